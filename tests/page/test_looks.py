"""Small screens, dark rooms, eyes that need contrast. Colours are computed from what the browser draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import Opened, ask
from tests.page.made import answer, document, evidence, problem, reply

pytestmark = pytest.mark.slow
DANUBE = "Where does the Danube begin?"
PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
SMALL_PHONE = PHONE | {"viewport": {"width": 320, "height": 568}}
SCHEMES = [{"color_scheme": "light"}, {"color_scheme": "dark"}]
POOR_CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8").split("\n", 1)[1]
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("opened", SCHEMES, indirect=True, ids=["light", "dark"])
def test_contrast_is_enough_everywhere(opened: Opened) -> None:
    page = opened.page
    assert page.evaluate(POOR_CONTRAST) == []
    also = evidence("x", "It was x too.")
    made = [answer("x", evidence=[also], confidence=sure) for sure in (0.9, 0.5, 0.1)]
    opened.with_reply(reply(*made, read_as="made up"), document("It is x, as everybody knows."))
    ask(page, "made")
    for why in page.locator("summary").all():
        why.click()
    expect(page.locator(".evidence").first).to_be_visible()
    assert page.evaluate(POOR_CONTRAST) == []
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_be_visible()
    assert page.evaluate(POOR_CONTRAST) == []
    page.route("**/api/answers*", lambda route: route.fulfill(status=500, json=problem(500, "damaged")))
    page.fill("#question", "damaged")
    expect(page.locator("#notice.error")).to_be_visible()
    assert page.evaluate(POOR_CONTRAST) == []


def test_the_contrast_check_finds_poor_contrast(page: Page) -> None:
    page.evaluate("document.querySelector('#welcome p').style.color = '#aaa'")
    assert page.evaluate(POOR_CONTRAST)[0].startswith("P. 2.2")
    page.evaluate("document.querySelector('#welcome p').style.color = ''")
    assert page.evaluate(POOR_CONTRAST) == []
    page.evaluate("document.querySelector('#welcome').style.opacity = .5")
    assert page.evaluate(POOR_CONTRAST)


@pytest.mark.parametrize("opened", SCHEMES, indirect=True, ids=["light", "dark"])
def test_old_answers_can_still_be_read(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("x", evidence=[evidence("x", "It was x.")]), answer("y")))
    ask(page, "made")
    page.unroute("**/api/answers*")
    page.route("**/api/answers*", lambda route: route.abort())
    page.fill("#question", "made again")
    expect(page.locator("#answers.old")).to_be_visible()
    assert page.evaluate(POOR_CONTRAST) == []
    for mark in page.locator(".sentence mark").all():  # nothing shines as an answer does
        expect(mark).to_have_css("box-shadow", "none")


@pytest.mark.parametrize("opened", SCHEMES, indirect=True, ids=["light", "dark"])
def test_the_page_follows_the_system(opened: Opened, request: pytest.FixtureRequest) -> None:
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour[4:-1].split(",")) / 3
    assert (brightness > 200) == ("light" in request.node.name)


@pytest.mark.parametrize("opened", [{"forced_colors": "active"}], indirect=True, ids=["forced"])
def test_bars_and_choices_are_seen_where_the_system_chooses_the_colours(opened: Opened) -> None:
    ask(opened.with_reply(reply(answer("x"))), "made")
    opened.page.locator("summary").click()
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    for name in (".meter > span", ".bar > span", ".bar.minus > span", ".strategies input:checked + span"):
        drawn = opened.page.locator(name).first.evaluate("each => getComputedStyle(each).backgroundColor")
        assert drawn not in (paper, "rgba(0, 0, 0, 0)"), name


@pytest.mark.parametrize("opened", [PHONE], indirect=True, ids=["phone"])
def test_nothing_is_wider_than_a_phone(opened: Opened) -> None:
    page = opened.page
    assert page.evaluate(TOO_WIDE) == 0
    ask(page, DANUBE)
    for why in page.locator("summary").all():
        why.click()
    assert page.evaluate(TOO_WIDE) == 0
    endless = "Donaudampfschifffahrtsgesellschaft" * 12
    made = document(endless, title=endless, metadata={endless: endless})
    opened.with_reply(reply(answer(endless, title=endless), answer(endless)), made)
    ask(page, endless)
    assert page.evaluate(TOO_WIDE) == 0
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_be_visible()
    assert page.evaluate(TOO_WIDE) == 0


@pytest.mark.parametrize("opened", [PHONE], indirect=True, ids=["phone"])
def test_letters_of_twice_the_size_fit_too(opened: Opened) -> None:
    page = opened.page
    page.evaluate("document.documentElement.style.fontSize = '32px'")  # WCAG 2.2, 1.4.4
    assert page.evaluate(TOO_WIDE) == 0
    ask(page, DANUBE)
    for why in page.locator("summary").all():
        why.click()
    assert page.evaluate(TOO_WIDE) == 0
    longest = "bars => Math.max(...bars.map(each => each.getBoundingClientRect().width))"
    assert page.locator(".best .bar > span").evaluate_all(longest) > 20
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_be_visible()
    assert page.evaluate(TOO_WIDE) == 0


@pytest.mark.parametrize("opened", [PHONE, SMALL_PHONE], indirect=True, ids=["phone", "small-phone"])
def test_fingers_find_what_they_aim_at(opened: Opened) -> None:
    also = [evidence("red", "It was red."), evidence("red", "It was red too.")]
    opened.with_reply(reply(answer("red", evidence=also), answer("green")), document("It is red"))
    ask(opened.page, "made")
    expect(opened.page.locator(".best h1")).to_be_in_viewport()
    small = """[...document.querySelectorAll('a:not(.skip), label:not(.unseen), summary, button, #question')]
        .filter(each => each.checkVisibility()).map(each => [each.outerHTML, each.getBoundingClientRect()])
        .filter(([, box]) => box.height < 24 || box.width < 24).map(([html]) => html)"""
    assert opened.page.evaluate(small) == []  # WCAG 2.2, 2.5.8
    opened.page.locator(".best h1 a").click()
    expect(opened.page.locator("#document")).to_be_visible()
    assert opened.page.evaluate(small) == []


@pytest.mark.parametrize("opened", [SMALL_PHONE], indirect=True, ids=["small-phone"])
def test_the_strategies_keep_their_words_and_their_line(opened: Opened) -> None:
    boxes = [each.bounding_box() for each in opened.page.locator(".strategies span").all()]
    assert len({box["y"] for box in boxes if box}) == 1
    assert max(box["height"] for box in boxes if box) < 30


@pytest.mark.parametrize("opened", [PHONE, {}], indirect=True, ids=["phone", "desk"])
def test_a_long_title_begins_beside_the_confidence_and_uses_the_whole_width(opened: Opened) -> None:
    title = "A long title of an article about the bridges over the lower Danube and its tributaries " * 2
    ask(opened.with_reply(reply(answer("x", title=title), answer("y", title=title))), "made")
    for source in opened.page.locator(".source").all():
        box, sure = source.bounding_box(), source.locator(".confidence").bounding_box()
        lines = source.locator(".title").evaluate(
            "each => [...each.getClientRects()].map(box => box.toJSON())"
        )
        assert box is not None
        assert sure is not None
        assert lines[0]["left"] >= sure["x"] + sure["width"]
        assert lines[0]["top"] < sure["y"] + sure["height"]
        assert max(line["right"] for line in lines) > box["x"] + 0.85 * box["width"]


def test_an_opened_reason_keeps_its_distance(opened: Opened) -> None:
    matches = [{"ngram": "word", "document": 1.0, "paragraph": 1.0}]
    ask(opened.with_reply(reply(*[answer(text, matches=matches) for text in "abc"])), "made")
    for why in opened.page.locator("summary").all():
        why.click()
    words = opened.page.locator(".others .matches").first.bounding_box()
    heading = opened.page.locator(".others h3").nth(1).bounding_box()
    assert words is not None
    assert heading is not None
    assert heading["y"] - (words["y"] + words["height"]) > 24


def test_links_can_be_seen_to_be_links(opened: Opened) -> None:
    """By the contrast of their underline, which WCAG asks of what must be seen (1.4.11)."""
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        opened.page.unroute_all()
        ask(opened.with_reply(reply(answer("x", evidence=[evidence("x", "It was x.")]))), f"made {scheme}")
        lines = opened.page.locator(".title").evaluate_all(
            "links => links.map(each => getComputedStyle(each).textDecorationColor)"
        )
        soft = opened.page.evaluate("getComputedStyle(document.querySelector('.source')).color")
        assert set(lines) == {soft}


def test_the_header_does_not_cover_what_is_marked(opened: Opened) -> None:
    opened.with_reply(reply(), document(*["A paragraph of some words. " * 20] * 30))
    page = opened.at("#document=made&span=0-11")
    expect(page.locator("#document mark")).to_be_in_viewport()
    box, header = page.locator("#document mark").bounding_box(), page.locator("header").bounding_box()
    assert box is not None
    assert header is not None
    assert box["y"] >= header["height"]
