"""What the page says when there is no answer: nothing asked, nothing found, slow, busy, away, refused."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect
from tests.page.conftest import ANSWERS, DOCUMENTS, Opened, ask, send, stop_time
from tests.page.made import answer, document, evidence, problem, reply

pytestmark = pytest.mark.slow


def test_nothing_asked(page: Page) -> None:
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#welcome")).to_contain_text("100 documents")
    expect(page.locator("#question")).to_be_focused()
    expect(page.locator("#answers")).to_be_hidden()
    page.locator("#question").press_sequentially("?!")  # not a word yet
    page.wait_for_timeout(200)
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#welcome")).to_be_visible()


def test_the_cleared_question_leaves_nothing_behind(page: Page) -> None:
    ask(page, "Where does the Danube begin?")
    page.get_by_role("button", name="Clear the question").click()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#answers")).to_be_hidden()
    expect(page.locator("#question")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/$"))


def test_nothing_found(opened: Opened) -> None:
    page = opened.with_reply(reply())
    ask(page, "made")
    expect(page.locator("#answers")).to_contain_text("No answer")
    expect(page.locator("#answers")).to_contain_text("close enough")
    opened.page.unroute(ANSWERS)
    opened.with_reply(reply(documents_visited=0))
    ask(page, "made again")
    expect(page.locator("#answers")).to_contain_text("nothing to search")


def test_waiting_is_shown_only_if_it_takes_long(page: Page) -> None:
    held: list[Route] = []
    page.route(ANSWERS, lambda route: held.append(route))
    stop_time(page)
    with page.expect_request(ANSWERS):
        page.fill("#question", "made")
        page.clock.run_for(100)
    page.clock.run_for(250)
    expect(page.locator("#progress")).to_be_hidden()
    page.clock.run_for(100)
    expect(page.locator("#progress")).to_be_visible()
    assert len(held) == 1
    send(held[0], reply(answer("at last")))
    expect(page.locator(".best h1")).to_have_text("at last")
    expect(page.locator("#progress")).to_be_hidden()


def test_a_busy_server_is_asked_again_without_a_word(page: Page) -> None:
    tries, notices = [], []

    def handle(route: Route) -> None:
        tries.append(route.request.url)
        notices.append(page.locator("#notice").is_visible())
        busy = len(tries) < 3
        send(
            route, problem(503, "too much at once") if busy else reply(answer("served")), 503 if busy else 200
        )

    page.route(ANSWERS, handle)
    page.fill("#question", "made")
    expect(page.locator(".best h1")).to_have_text("served")
    assert len(tries) == 3
    assert len(set(tries)) == 1
    assert not any(notices)


def test_a_server_that_stays_busy_is_mentioned(page: Page) -> None:
    page.route(ANSWERS, lambda route: send(route, problem(503, "too much at once"), 503))
    stop_time(page)
    page.fill("#question", "made")
    for _ in range(8):
        page.clock.run_for(3000)
        page.wait_for_timeout(50)
    expect(page.locator("#notice")).to_have_text("The server is busy. Asking again…")


def test_old_answers_stay_while_the_server_is_away_and_it_is_found_again(page: Page) -> None:
    ask(page, "Where does the Danube begin?")
    page.route(ANSWERS, lambda route: route.abort())
    page.fill("#question", "Who was Ada Lovelace's father?")
    expect(page.locator("#notice")).to_have_text("The server cannot be reached. Trying again…")
    expect(page.locator(".best h1")).to_have_text("Black Forest of Germany")
    expect(page.locator("#answers.old")).to_be_visible()
    page.unroute(ANSWERS)
    expect(page.locator(".best h1")).to_have_text("Lord Byron")
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#answers.old")).to_have_count(0)


def test_a_refusal_is_one_line_and_the_next_question_works(page: Page) -> None:
    line = "index made.index: a block is damaged; restore it"
    page.route(ANSWERS, lambda route: send(route, problem(500, line + "\nTraceback"), 500))
    page.fill("#question", "made")
    expect(page.locator("#notice.error")).to_have_text("Index made.index: a block is damaged; restore it")
    page.unroute(ANSWERS)
    ask(page, "Where does the Danube begin?")
    expect(page.locator("#notice")).to_be_hidden()


def test_a_refusal_that_is_no_problem_document(page: Page) -> None:
    page.route(ANSWERS, lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    page.fill("#question", "made")
    expect(page.locator("#notice.error")).to_have_text("The server answered 502")


def test_a_question_that_is_too_long_is_refused_by_the_server_itself(opened: Opened) -> None:
    page = opened.at("?q=" + "word " * 900)
    expect(page.locator("#notice.error")).to_contain_text("4")


def test_a_long_answer_is_set_smaller(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("a very long answer " * 12)))
    ask(page, "made")
    expect(page.locator(".best h1.long")).to_be_visible()


def test_a_phrase_that_would_fill_the_page_is_shortened(opened: Opened) -> None:
    key = "🗝" + "x" * 3000
    made = answer(key, title="chapter " * 1000)
    page = opened.with_reply(reply(made, made), document(f"It is {key}, as everybody knows."))
    ask(page, "made")
    shown = "🗝" + "x" * 299 + "…"
    for part in (".best h1", ".best .sentence mark", ".others h3", ".others .sentence mark"):
        expect(page.locator(part)).to_have_text(shown)
    expect(page.locator(".best .sentence")).to_have_text(f"It is {shown}, as everybody knows.")
    assert len(page.locator(".best .title").inner_text()) <= 301
    page.locator(".best h1 a").click()
    expect(page.locator("#document mark")).to_have_text(key)  # there, all of it


def test_a_model_without_confidence_says_nothing_about_it(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("x", confidence=None)))
    ask(page, "made")
    expect(page.locator(".confidence")).to_have_count(0)


def test_a_refused_question_can_be_asked_again(page: Page) -> None:
    page.route(ANSWERS, lambda route: send(route, problem(500, "a fault"), 500))
    page.fill("#question", "made")
    expect(page.locator("#notice.error")).to_have_text("A fault")
    page.unroute(ANSWERS)
    page.route(ANSWERS, lambda route: send(route, reply(answer("found"))))
    page.keyboard.press("Enter")
    expect(page.locator(".best h1")).to_have_text("found")


def test_a_busy_server_is_asked_again_for_a_document(opened: Opened) -> None:
    tries: list[str] = []

    def handle(route: Route) -> None:
        tries.append(route.request.url)
        busy = len(tries) < 3
        send(route, problem(503, "too much at once") if busy else document("text"), 503 if busy else 200)

    opened.page.route(DOCUMENTS, handle)
    page = opened.at("#document=made&span=0-4")
    expect(page.locator("#document mark")).to_have_text("text")
    assert len(tries) == 3


def test_the_answers_stay_until_the_document_is_there(opened: Opened) -> None:
    held: list[Route] = []
    page = opened.with_reply(reply(answer("first"), answer("second")))
    page.route(DOCUMENTS, lambda route: held.append(route))
    ask(page, "made")
    stop_time(page)
    with page.expect_request(DOCUMENTS):
        page.locator(".best h1 a").click()
    page.clock.run_for(250)
    expect(page.locator("#progress")).to_be_hidden()
    page.clock.run_for(100)
    expect(page.locator("#progress")).to_be_visible()
    expect(page.locator(".best h1")).to_have_text("first")
    expect(page.locator("#document")).to_be_hidden()
    with page.expect_request(DOCUMENTS):
        page.locator(".others h3 a").click()  # instead of the first, not after it
    send(held[1], document("text"))
    expect(page.locator("#document .text")).to_have_text("text")
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#answers")).to_be_hidden()
    page.go_back()
    expect(page.locator(".others h3 a")).to_be_focused()
    assert "#" not in page.url


def test_a_document_that_does_not_come_can_be_left(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("first")))
    page.route(DOCUMENTS, lambda route: None)
    ask(page, "made")
    page.locator(".best h1 a").click()
    expect(page.locator("#progress")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator(".best h1")).to_have_text("first")
    expect(page.locator("#question")).to_have_value("made")
    assert "#" not in page.url


def test_a_document_is_found_again_when_the_server_is(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("first")))
    page.route(DOCUMENTS, lambda route: route.abort())
    ask(page, "made")
    page.locator(".best h1 a").click()
    expect(page.locator("#notice")).to_have_text("The server cannot be reached. Trying again…")
    expect(page.locator(".best h1")).to_be_visible()
    expect(page.locator("#answers.old")).to_have_count(0)  # they are right
    page.route(DOCUMENTS, lambda route: send(route, document("text")))
    expect(page.locator("#document .text")).to_have_text("text")
    expect(page.locator("#notice")).to_be_hidden()


def test_the_network_that_is_back_is_used_at_once(opened: Opened) -> None:
    away = [True]
    opened.page.route(DOCUMENTS, lambda route: route.abort() if away else send(route, document("text")))
    stop_time(opened.page)  # no retry comes by itself
    page = opened.at("#document=made&span=0-4")
    expect(page.locator("#notice")).to_be_visible()
    away.clear()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#document mark")).to_have_text("text")


def test_what_the_server_refuses_has_its_own_heading(opened: Opened) -> None:
    opened.page.route(DOCUMENTS, lambda route: send(route, problem(500, "a fault"), 500))
    page = opened.at("#document=made&span=0-4")
    expect(page.locator("#document h1")).to_have_text("The document cannot be shown")
    expect(page.locator("#document p")).to_have_text("A fault")


def test_an_answer_is_not_read_out_after_a_refusal(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("first")))
    stop_time(page)
    page.fill("#question", "made")
    page.clock.run_for(100)
    expect(page.locator(".best h1")).to_have_text("first")
    page.unroute(ANSWERS)
    page.route(ANSWERS, lambda route: send(route, problem(500, "a fault"), 500))
    page.fill("#question", "made again")
    page.clock.run_for(100)
    expect(page.locator("#said")).to_have_text("A fault")
    page.clock.run_for(2000)
    expect(page.locator("#said")).to_have_text("A fault")


def test_a_doubtful_answer_says_so(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("red", confidence=0.34)))
    ask(page, "made")
    expect(page.locator(".best .doubt")).to_have_text("Not sure:")
    page.unroute(ANSWERS)
    page = opened.with_reply(reply(answer("red", confidence=0.35)))
    ask(page, "made again")
    expect(page.locator(".best .doubt")).to_have_count(0)


def test_documents_of_the_same_title_are_told_apart(opened: Opened) -> None:
    also = evidence("red", "It was red.", document_id="b", title="Report")
    first = answer("red", document_id="a", title="Report", evidence=[also])
    page = opened.with_reply(reply(first, answer("green", document_id="c", title="Other")))
    ask(page, "made")
    assert page.locator(".id").all_inner_texts() == ["a", "b"]


def test_an_empty_index_says_how_to_fill_it(opened: Opened) -> None:
    opened.page.route("**/readyz", lambda route: send(route, {"documents": 0, "words": 0}))
    opened.with_reply(reply(documents_visited=0))
    page = opened.at("")
    expect(page.locator("#welcome")).to_contain_text("denspi add")
    ask(page, "made")
    expect(page.locator("#answers")).to_contain_text("The index is empty. Add documents with denspi add.")


def test_times_have_units_and_are_never_nothing(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("x"), stages_ms={"encode": 1.04, "sparse": 0.0}))
    ask(page, "made")
    expect(page.locator(".took p").first).to_have_text("encode 1.0 mssparse <0.1 ms")


def test_a_document_keeps_its_spaces_and_the_server_its_paths(opened: Opened) -> None:
    made = document("a   b\n    c", source="/srv/secret/folder/made.txt")
    opened.with_reply(reply(answer("x")), made)
    page = opened.at("#document=made&span=0-1")
    expect(page.locator(".about")).to_contain_text("made.txt")
    expect(page.locator(".about")).not_to_contain_text("secret")
    assert page.locator(".text p").inner_text() == "a   b\n    c"


def test_what_does_not_fit_is_said_in_words(opened: Opened) -> None:
    page = opened.at("?q=" + "word " * 900)
    expect(page.locator("#notice.error")).to_have_text(
        "This question cannot be asked: it may have up to 4,000 characters"
    )
