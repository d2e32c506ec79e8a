"""Answers while somebody types, from a real index of the sample corpus."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Request, Route, expect
from tests.page.conftest import ANSWERS, Opened, ask, stop_time
from tests.page.made import answer, document, evidence, reply

DANUBE = "Where does the Danube begin?"


def test_the_new_best_answer_is_in_sight_and_its_reasons_stay_open(opened: Opened) -> None:
    opened.with_reply(reply(*[answer(text, "words " * 80 + text) for text in ("one", "two", "three")]))
    page = opened.page
    ask(page, "made")
    page.locator(".best summary").click()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("scrollY") > 0
    ask(page, "made again")
    expect(page.locator(".best h1")).to_be_in_viewport()
    expect(page.locator(".best details[open]")).to_have_count(1)
    expect(page.locator(".others details[open]")).to_have_count(0)
    with page.expect_response(ANSWERS):
        page.locator("input[value=exact]").check()
    expect(page.locator(".best details[open]")).to_have_count(1)


def test_the_answer_appears_without_a_key_to_send(page: Page) -> None:
    page.locator("#question").press_sequentially(DANUBE, delay=15)
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.locator(".best .sentence mark")).to_have_text("Black Forest of Germany")
    expect(page.locator(".best > .sentence")).to_contain_text("The Danube begins in the")
    expect(page.locator(".best .source")).to_contain_text("The Danube")
    expect(page.locator(".best .confidence")).to_have_text(re.compile(r"^\d\d% sure$"))
    expect(page.locator(".others > li")).to_have_count(4)
    expect(page).to_have_url(re.compile(r"\?q=Where\+does\+the\+Danube\+begin%3F$"))
    expect(page).to_have_title(f"{DANUBE} · denspi")


def test_not_every_key_is_a_request_and_pauses_are(page: Page) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if "/api/answers" in request.url else None)
    stop_time(page)
    _type(page, DANUBE, every_ms=20)
    page.clock.run_for(100)
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    assert len(asked) == 3  # twice because 560 ms went by without a pause, and once at the end
    assert _question(asked[-1]) == DANUBE
    _type(page, "  ", every_ms=100)  # the same question
    assert len(asked) == 3


def test_somebody_who_never_pauses_sees_answers(page: Page) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request) if "/api/answers" in request.url else None)
    stop_time(page)
    _type(page, "what " * 12, every_ms=50)  # three seconds without a pause of 80 ms
    assert 8 <= len(asked) <= 12
    assert len({_question(each) for each in asked}) == len(asked)


def test_a_browser_of_2022_is_new_enough(opened: Opened) -> None:
    """iPhones that get no newer iOS than 16 have none of these."""
    young = ("Map.groupBy", "Object.groupBy", "URLSearchParams.prototype.size", "Promise.withResolvers")
    young += ("Array.prototype.toSorted", "Array.fromAsync", "Set.prototype.union", "URL.canParse")
    opened.page.add_init_script("; ".join(f"delete {name}" for name in young))
    page = opened.at("")
    also = [evidence("Paris", "It is Paris."), evidence("Paris", "Paris it is.", document_id="third")]
    opened.with_reply(reply(answer("Paris", evidence=also), answer("Lyon")), document("It is Paris"))
    ask(page, "made")
    expect(page.locator(".best .evidence h2")).to_have_text("Also in 2 other documents")
    expect(page).to_have_url(re.compile(r"\?q=made$"))
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_have_text("Paris")


def test_the_address_is_not_changed_with_every_key(page: Page) -> None:
    """Safari throws where a page does so more than a hundred times in a while, as a key that is held does."""
    page.evaluate(
        """() => {
          let left = 10;
          const replace = history.replaceState.bind(history);
          history.replaceState = (...given) => {
            if (!left) throw new DOMException("too many changes", "SecurityError");
            left -= 1;
            replace(...given);
          };
        }"""
    )
    stop_time(page)
    _type(page, "what " * 12 + DANUBE, every_ms=30)
    for _ in "what " * 12:
        page.keyboard.press("Home")
        page.keyboard.press("Delete")
        page.clock.run_for(30)
    page.clock.run_for(500)
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    assert parse_qs(urlsplit(page.url).query) == {"q": [DANUBE]}


def test_an_answer_that_is_opened_at_once_keeps_its_question(page: Page) -> None:
    stop_time(page)
    _type(page, DANUBE, every_ms=30)
    page.clock.run_for(100)
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    assert "?" not in page.url  # not settled yet
    page.keyboard.press("Enter")
    expect(page.locator("#document mark")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {"q": [DANUBE]}
    page.clock.run_for(1000)
    page.go_back()
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator("#question")).to_have_value(DANUBE)


def test_an_old_reply_never_replaces_a_newer_one(page: Page) -> None:
    held: list[Route] = []

    def handle(route: Route) -> None:
        if "slow" in route.request.url:
            held.append(route)
        else:
            route.fulfill(body=json.dumps(reply(answer("the newer"))))

    page.route(ANSWERS, handle)
    with page.expect_request(ANSWERS):
        page.fill("#question", "a slow one")
    page.fill("#question", "a quick one")
    expect(page.locator(".best h1")).to_have_text("the newer")
    assert len(held) == 1
    held[0].fulfill(body=json.dumps(reply(answer("the older"))))
    page.wait_for_timeout(150)
    expect(page.locator(".best h1")).to_have_text("the newer")


def test_the_reason_shows_five_parts_and_the_words_in_common(page: Page) -> None:
    ask(page, DANUBE)
    why = page.locator(".best details")
    expect(why.locator("dl")).to_be_hidden()
    why.locator("summary").click()
    names = why.locator("dt").all_text_contents()
    assert names == ["start", "end", "coherency", "document words", "paragraph words"]
    numbers = [float(text.replace("−", "-")) for text in why.locator(".number").all_text_contents()]
    score = float(re.search(r"score (.*)", why.locator("summary").inner_text())[1])  # type: ignore[index]
    assert abs(sum(numbers) - score) < 0.3  # each is rounded to a tenth
    widths = [bar.bounding_box()["width"] for bar in why.locator(".bar > span").all()]  # type: ignore[index]
    order = sorted(range(5), key=lambda n: abs(numbers[n]))
    assert [widths[n] for n in order] == sorted(widths)
    expect(why.locator(".matches")).to_contain_text("danube")


def test_negative_parts_go_to_the_left(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("x")))
    ask(page, "made")
    page.locator(".best summary").click()
    boxes = [bar.bounding_box() for bar in page.locator(".best .bar > span").all()]
    zero = boxes[0]["x"]  # type: ignore[index]
    assert boxes[2]["x"] < zero  # type: ignore[index]
    assert abs(boxes[2]["x"] + boxes[2]["width"] - zero) < 1  # type: ignore[index]


def test_other_documents_that_say_the_same(opened: Opened) -> None:
    also = "Later Lord Byron rented a villa."
    made = answer("Lord Byron", evidence=[evidence("Lord Byron", also)])
    page = opened.with_reply(reply(made), document(also, id="other", title="Another"))
    ask(page, "made")
    found = page.locator(".best .evidence")
    expect(found.locator("h2")).to_have_text("Also in 1 other document")
    expect(found.locator("mark")).to_have_text("Lord Byron")
    expect(found.locator("a")).to_have_text("Another")
    with page.expect_request("**/api/documents?id=other"):
        found.locator("a").click()
    expect(page.locator("#document mark")).to_have_text("Lord Byron")


def test_documents_are_counted_and_named_once(opened: Opened) -> None:
    def place(document_id: str, paragraph: int = 0) -> dict[str, Any]:
        return evidence("x", "It was x.", document_id=document_id, title=document_id, paragraph=paragraph)

    found = opened.page.locator(".best .evidence")
    for places, heading, names in (
        ([place("a")], "Also in 1 other document", ["a"]),
        ([place("made", 4)], "Also elsewhere in this document", ["This document"]),
        (
            [place("made", 4), place("a", 2), place("b"), place("a", 7), place("made", 5)],
            "Also in 2 other documents, and elsewhere in this one",
            ["a", "paragraph 8", "b", "This document", "paragraph 6"],
        ),
    ):
        opened.page.unroute(ANSWERS)
        ask(opened.with_reply(reply(answer("x", evidence=places))), heading)
        expect(found.locator("h2")).to_have_text(heading)
        expect(found.locator("a")).to_have_text(names)


def test_evidence_marks_its_own_place_and_not_the_first_like_it(opened: Opened) -> None:
    context = "🦊 Paris, Texas, is not Paris in France."
    start = context.index("Paris", 10)
    span = {"start_char": 90 + start, "end_char": 90 + start + 5}
    around = {"start_char": 90, "end_char": 90 + len(context)}
    also = evidence("Paris", context, span=span, context_span=around)
    ask(opened.with_reply(reply(answer("Paris", evidence=[also]))), "made")
    sentence = opened.page.locator(".best .evidence .sentence")
    assert sentence.inner_html() == "🦊 Paris, Texas, is not <mark>Paris</mark> in France."


def test_the_strategy_is_asked_for_and_kept_in_the_address(page: Page) -> None:
    ask(page, DANUBE)
    with page.expect_request(ANSWERS) as asked:
        page.get_by_label("exact").check(force=True)
    assert parse_qs(urlsplit(asked.value.url).query)["strategy"] == ["exact"]
    expect(page.locator(".took")).to_contain_text("the best of the whole index, proven")
    expect(page).to_have_url(re.compile("strategy=exact"))
    page.reload()
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.get_by_label("exact")).to_be_checked()


def test_the_time_of_each_stage_is_told(page: Page) -> None:
    ask(page, DANUBE)
    took = page.locator(".took")
    expect(took).to_contain_text("encode")
    expect(took).to_contain_text(re.compile(r"seen after [\d.,]+ ms"))
    expect(took).to_contain_text("documents visited")
    shade = "pieces => pieces.map(each => getComputedStyle(each).opacity)"
    shades = took.locator(".stages > span").evaluate_all(shade)
    assert len(set(shades)) == len(shades) > 3
    assert took.locator(".swatch").evaluate_all(shade) == shades  # in the same order


def test_a_slip_is_repaired_and_the_page_says_so(page: Page) -> None:
    ask(page, "Where does the Danubbe begin?")
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.locator(".read-as")).to_have_text("Read as Where does the Danube begin?")
    expect(page.locator("#question")).to_have_value("Where does the Danubbe begin?")
    ask(page, DANUBE)
    expect(page.locator(".read-as")).to_have_count(0)


def test_a_shared_question_is_asked_when_the_page_opens(opened: Opened) -> None:
    page = opened.at("?q=Where+does+the+Danube+begin%3F")
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.locator("#question")).to_have_value(DANUBE)


def _type(page: Page, text: str, every_ms: int) -> None:
    for sign in text:
        page.keyboard.type(sign)
        page.clock.run_for(every_ms)


def _question(request: Request) -> str:
    return parse_qs(urlsplit(request.url).query)["question"][0]
