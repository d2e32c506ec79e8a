"""What strangers write, in documents or in questions, is text: nothing of it runs or is drawn as HTML."""

from __future__ import annotations

import urllib.request

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import Opened, ask
from tests.page.made import answer, document, evidence, problem, reply

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror='window.hit=1'><script>window.hit=1</script><b>bold</b>"


def test_the_service_forbids_everything_foreign_and_inline(service: str) -> None:
    with urllib.request.urlopen(service) as response:
        policy, body = response.headers["Content-Security-Policy"], response.read().decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in body + policy
    assert "https:" not in body + policy
    for inline in ("<style", "style=", "onclick", "<script>", "javascript:"):
        assert inline not in body


def test_html_in_a_reply_is_text(opened: Opened) -> None:
    also = [evidence(EVIL, EVIL, title=EVIL, document_id=f"{EVIL} too")]
    matches = [{"ngram": EVIL, "document": 1.0, "paragraph": 1.0}]
    made = answer(EVIL, title=EVIL, document_id=EVIL, evidence=also, matches=matches)
    page = opened.with_reply(reply(made, made, strategy=EVIL, stages_ms={EVIL: 1.0}))
    ask(page, EVIL)
    expect(page.locator(".best h1")).to_have_text(EVIL)
    expect(page.locator(".best .evidence a")).to_have_text(EVIL)
    _nothing_ran(page)
    page.wait_for_timeout(1000)  # what is read out comes later
    expect(page.locator("#said")).to_contain_text("<script>")
    _nothing_ran(page)


def test_html_in_a_document_is_text(opened: Opened) -> None:
    made = document(EVIL, title=EVIL, source=EVIL, metadata={EVIL: EVIL, "list": [EVIL]}, id=EVIL)
    opened.with_reply(reply(), made)
    page = opened.at("#document=made&span=0-5")
    expect(page.locator("#document h1")).to_have_text(EVIL)
    expect(page.locator("#document .text")).to_contain_text(EVIL)
    _nothing_ran(page)


def test_html_in_a_problem_is_text(opened: Opened) -> None:
    page = opened.page
    page.route("**/api/answers*", lambda route: route.fulfill(status=500, json=problem(500, EVIL)))
    page.fill("#question", "made")
    expect(page.locator("#notice")).to_have_text(EVIL)
    _nothing_ran(page)


def test_addresses_of_strangers_run_nothing(opened: Opened) -> None:
    page = opened.at(
        "?q=%3Cscript%3Ewindow.hit=1%3C/script%3E&strategy=%3Cimg%3E#document=javascript:window.hit=1"
    )
    expect(page.locator("#document")).to_contain_text("No document")
    _nothing_ran(page)
    page = opened.at("#%E0%A4%A&document=%00&span=9-1")
    expect(page.locator("#document")).to_be_visible()
    _nothing_ran(page)


def test_the_real_service_treats_html_in_a_question_as_words(page: Page) -> None:
    ask(page, f"Where does the Danube begin? {EVIL}")
    expect(page.locator(".best")).to_be_visible()
    _nothing_ran(page)


def test_right_to_left_text_runs_its_own_way(opened: Opened) -> None:
    hebrew = "תל אביב"
    made = answer(hebrew, f"העיר {hebrew} נוסדה בשנת 1909.", title="ערים")
    page = opened.with_reply(reply(made, answer("plain")), document(made["context"], "Left to right."))
    ask(page, "איפה?")
    direction = "element => getComputedStyle(element).direction"
    assert page.locator("#question").evaluate(direction) == "rtl"
    assert page.locator(".best h1").evaluate(direction) == "rtl"
    assert page.locator(".best > .sentence").evaluate(direction) == "rtl"
    assert page.locator(".others h3").evaluate(direction) == "ltr"
    assert page.locator(".took").evaluate(direction) == "ltr"
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_have_text(hebrew)
    assert page.locator("#document .text p").first.evaluate(direction) == "rtl"
    assert page.locator("#document .text p").last.evaluate(direction) == "ltr"


def _nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('main img, main script, main b, #said *').length") == 0
