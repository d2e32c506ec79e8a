"""A document opened at the place of an answer, in the same page."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import DOCUMENTS, Opened, ask
from tests.page.made import answer, document, problem, reply

pytestmark = pytest.mark.slow
DANUBE = "Where does the Danube begin?"
IN_VIEW = """element => {
  const box = element.getBoundingClientRect();
  const header = document.querySelector("header").getBoundingClientRect();
  return box.top >= header.bottom && box.bottom <= innerHeight;
}"""


def test_an_answer_opens_its_document_at_the_span_and_back_works(page: Page) -> None:
    ask(page, DANUBE)
    page.locator(".best h1 a").click()
    expect(page.locator("#document h1")).to_have_text("The Danube")
    expect(page.locator("#document mark")).to_have_text("Black Forest of Germany")
    assert page.locator("#document mark").evaluate(IN_VIEW)
    assert page.url.endswith("#document=danube&span=25-48")
    assert "q=Where" in page.url
    expect(page.locator("#answers")).to_be_hidden()
    page.go_back()
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.locator(".best h1 a")).to_be_focused()
    page.go_forward()
    expect(page.locator("#document mark")).to_have_text("Black Forest of Germany")


def test_a_shared_link_opens_the_document_and_knows_the_question(page: Page) -> None:
    ask(page, DANUBE)
    page.locator(".others h3 a").first.click()
    expect(page.locator("#document mark")).to_be_visible()
    marked, url = page.locator("#document mark").inner_text(), page.url
    stranger = page.context.new_page()
    stranger.goto(url)
    expect(stranger.locator("#document mark")).to_have_text(marked)
    expect(stranger.locator("#question")).to_have_value(DANUBE)
    stranger.locator("#back").click()  # there is nothing before it in the history
    expect(stranger.locator(".best h1")).to_have_text("Black Forest of Germany")
    assert "#" not in stranger.url


def test_a_shared_link_shows_the_title_once(opened: Opened) -> None:
    for _ in range(3):
        page = opened.at("?q=danube#document=danube&span=25-48")
        expect(page.locator("#document mark")).to_be_visible()
        page.wait_for_timeout(400)
        expect(page.locator("#document h1")).to_be_in_viewport()
        expect(page.locator("#way.titled")).to_have_count(0)


def test_typing_leaves_the_document(page: Page) -> None:
    ask(page, DANUBE)
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_be_visible()
    page.fill("#question", "Who was Ada Lovelace's father?")
    expect(page.locator(".best h1")).to_have_text("Lord Byron")
    expect(page.locator("#document")).to_be_hidden()
    page.go_back()
    expect(page.locator("#document mark")).to_have_text("Black Forest of Germany")
    expect(page.locator("#question")).to_have_value(DANUBE)


def test_spans_count_characters_as_python_does(opened: Opened) -> None:
    context = "🦊🦊 Über 𝔘nicode says the fox 🦊 is red 🟥."
    made = document("🐻 before it.", context)
    start = made["paragraphs"][1]["start_char"] + context.index("fox")
    page = opened.with_reply(
        reply(
            answer(
                "fox 🦊 is",
                context,
                paragraph=1,
                span={"start_char": start, "end_char": start + 8},
                context_span={"start_char": start - context.index("fox"), "end_char": len(made["text"])},
            )
        ),
        made,
    )
    ask(page, "made")
    expect(page.locator(".best .sentence mark")).to_have_text("fox 🦊 is")
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_have_text("fox 🦊 is")


def test_a_long_document_is_opened_at_the_span(opened: Opened) -> None:
    paragraphs = [
        f"Paragraph {number}. " + "Words and more words. " * (number % 40) for number in range(4000)
    ]
    made = document(*paragraphs)
    start = made["text"].index("Paragraph 3210.")
    opened.with_reply(reply(answer("x")), made)
    page = opened.at(f"?q=made#document=made&span={start}-{start + 15}")
    expect(page.locator("#document mark")).to_have_text("Paragraph 3210.")
    page.wait_for_timeout(300)
    assert page.locator("#document mark").evaluate(IN_VIEW)
    assert page.locator("#document .text p").count() == 4000


@pytest.mark.parametrize(
    "opened", [{"viewport": {"width": width, "height": 640}} for width in (360, 1100)], indirect=True
)
def test_the_way_back_and_the_title_stay_in_view(opened: Opened) -> None:
    title = "A title of more words than a phone has room for in one line of its header"
    made = document(*["Words and more words. " * 20] * 40, title=title)
    start = made["paragraphs"][30]["start_char"]
    opened.with_reply(reply(answer("x")), made)
    page = opened.at(f"?q=made#document=made&span={start}-{start + 5}")
    expect(page.locator("#document mark")).to_have_text("Words")
    expect(page.locator("#back")).to_be_in_viewport(ratio=1)
    expect(page.locator("#title")).to_have_text(title)
    expect(page.locator("#title")).to_have_css("opacity", "1")
    box = page.locator("#way").bounding_box()
    assert box is not None
    assert box["height"] < 50  # one line
    expect(page.locator("#strategies")).to_be_hidden()
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("#document h1")).to_be_in_viewport()
    expect(page.locator("#title")).to_have_css("opacity", "0")  # the heading says it
    page.locator("#back").click()
    expect(page.locator(".best h1")).to_have_text("x")
    expect(page.locator("#way")).to_be_hidden()
    expect(page.locator("#strategies")).to_be_visible()


def test_what_stands_between_paragraphs_is_shown(opened: Opened) -> None:
    made = document("one", "two") | {"text": "A heading\n\none\n\ntwo\n\nthe end"}
    made["paragraphs"] = [{"start_char": 11, "end_char": 14}, {"start_char": 16, "end_char": 19}]
    opened.with_reply(reply(), made)
    page = opened.at("#document=made&span=16-19")
    expect(page.locator("#document .text p")).to_have_count(4)
    expect(page.locator("#document mark")).to_have_text("two")


def test_a_span_that_left_the_document_marks_nothing(opened: Opened) -> None:
    opened.with_reply(reply(), document("short"))
    page = opened.at("#document=made&span=900-910")
    expect(page.locator("#document .text")).to_contain_text("short")
    expect(page.locator("#document mark")).to_have_count(0)
    expect(page.locator("#document h1")).to_have_text("Made up")


def test_a_document_that_is_gone_says_so(opened: Opened) -> None:
    opened.with_reply(reply(answer("x")), problem(404, "document 'made': not in the index"), 404)
    page = opened.at("?q=made#document=made&span=0-1")
    expect(page.locator("#document")).to_contain_text("Document 'made': not in the index")
    page.locator("#back").click()
    expect(page.locator(".best h1")).to_have_text("x")


@pytest.mark.parametrize("name", ["a/../b?c=d#e %2F ü&span=0-1", ".", ".."])
def test_ids_of_any_characters_reach_the_server(opened: Opened, name: str) -> None:
    page = opened.with_reply(reply(answer("x", document_id=name)), document("It is x"))
    ask(page, "made")
    with page.expect_request(DOCUMENTS) as asked:
        page.locator(".best h1 a").click()
    assert parse_qs(urlsplit(asked.value.url).query) == {"id": [name]}
    expect(page.locator("#document .text")).to_contain_text("It is x")
