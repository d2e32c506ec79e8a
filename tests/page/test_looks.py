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


@pytest.mark.parametrize("opened", SCHEMES, indirect=True, ids=["light", "dark"])
def test_the_page_follows_the_system(opened: Opened, request: pytest.FixtureRequest) -> None:
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour[4:-1].split(",")) / 3
    assert (brightness > 200) == ("light" in request.node.name)


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
def test_fingers_find_what_they_aim_at(opened: Opened) -> None:
    ask(opened.page, DANUBE)
    small = opened.page.evaluate(
        "[...document.querySelectorAll('.strategies label, summary, #clear, .answer-link, #question')]"
        ".map(each => each.getBoundingClientRect()).filter(box => box.height < 24 || box.width < 24).length"
    )
    assert small == 0  # WCAG 2.2, 2.5.8
    expect(opened.page.locator(".best h1")).to_be_in_viewport()


def test_the_header_does_not_cover_what_is_marked(opened: Opened) -> None:
    opened.with_reply(reply(), document(*["A paragraph of some words. " * 20] * 30))
    page = opened.at("#document=made&span=0-11")
    expect(page.locator("#document mark")).to_be_in_viewport()
    box, header = page.locator("#document mark").bounding_box(), page.locator("header").bounding_box()
    assert box is not None
    assert header is not None
    assert box["y"] >= header["height"]
