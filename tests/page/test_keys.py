"""The page without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import Opened, ask, stop_time
from tests.page.made import answer, reply

pytestmark = pytest.mark.slow
DANUBE = "Where does the Danube begin?"
FOCUSED = "(each => each === document.body ? 'BODY' : each.className || each.tagName)(document.activeElement)"


@pytest.mark.parametrize("key", ["/", "Control+k", "Meta+k"])
def test_keys_that_go_to_the_question(page: Page, key: str) -> None:
    ask(page, DANUBE)
    page.locator(".best h1 a").focus()
    page.keyboard.press(key)
    expect(page.locator("#question")).to_be_focused()
    expect(page.locator("#question")).to_have_value(DANUBE)  # the slash is not typed
    page.keyboard.type("a/b")  # what was there is selected; a slash in a question is a slash
    expect(page.locator("#question")).to_have_value("a/b")


def test_arrows_walk_through_the_answers(page: Page) -> None:
    ask(page, DANUBE)
    links = page.locator(".answer-link")
    page.locator("#question").focus()
    for place in range(3):
        page.keyboard.press("ArrowDown")
        expect(links.nth(place)).to_be_focused()
    for _ in range(9):
        page.keyboard.press("ArrowDown")
    expect(links.last).to_be_focused()
    expect(links.last).to_be_in_viewport()
    for _ in range(9):
        page.keyboard.press("ArrowUp")
    expect(page.locator("#question")).to_be_focused()
    expect(page.locator("#question")).to_be_in_viewport()


@pytest.mark.parametrize("key", ["Shift+ArrowDown", "Control+ArrowDown", "Alt+ArrowDown", "Meta+ArrowUp"])
def test_arrows_with_another_key_are_not_ours(page: Page, key: str) -> None:
    ask(page, DANUBE)
    page.locator("#question").focus()
    page.keyboard.press(key)
    expect(page.locator("#question")).to_be_focused()


@pytest.mark.parametrize("key", ["Escape", "ArrowDown"])
def test_keys_that_choose_a_character_are_not_ours(page: Page, key: str) -> None:
    ask(page, DANUBE)
    page.locator("#question").evaluate(
        "(element, key) => element.dispatchEvent(new KeyboardEvent('keydown',"
        " {key, isComposing: true, bubbles: true, cancelable: true}))",
        key,
    )
    expect(page.locator("#question")).to_have_value(DANUBE)
    expect(page.locator("#question")).to_be_focused()


def test_the_first_stop_skips_to_what_is_shown_and_closes_nothing(page: Page) -> None:
    ask(page, DANUBE)
    for opens in (False, True):
        if opens:
            page.locator(".best h1 a").click()
            expect(page.locator("#document mark")).to_be_visible()
        address = page.url
        page.locator(".skip").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        assert page.url == address
    expect(page.locator("#document mark")).to_be_visible()


def test_enter_opens_and_escape_goes_back_to_the_same_place(page: Page) -> None:
    ask(page, DANUBE)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#document h1")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator(".answer-link").nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#question")).to_have_value("")
    expect(page.locator("#welcome")).to_be_visible()


def test_enter_in_the_question_opens_the_best_answer(page: Page) -> None:
    ask(page, DANUBE)
    page.keyboard.press("Enter")
    expect(page.locator("#document mark")).to_have_text("Black Forest of Germany")
    page.keyboard.press("/")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.press("Enter")  # from the document to the answers, and no further
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator(".best h1 a")).to_be_focused()


def test_enter_before_the_answer_is_there_does_not_open_an_old_one(page: Page) -> None:
    ask(page, DANUBE)
    page.fill("#question", "Who was Ada Lovelace's father?")
    page.keyboard.press("Enter")
    expect(page.locator(".best h1")).to_have_text("Lord Byron")
    expect(page.locator("#document")).to_be_hidden()


def test_everything_that_can_be_used_has_a_name_and_can_be_reached(page: Page) -> None:
    ask(page, DANUBE)
    page.locator("#question").focus()
    reached: list[str] = []
    while "BODY" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
        # What a label stands for is outlined in its place.
        outlines = page.evaluate(
            "[document.activeElement, document.activeElement.nextElementSibling].filter(Boolean)"
            ".map(each => getComputedStyle(each).outlineStyle)"
        )
        assert reached[-1] == "BODY" or "solid" in outlines
    assert {"answer-link", "clear", "SUMMARY", "INPUT"} <= set(reached)
    assert reached.count("answer-link") == 5  # titles lead to the same place and are not stops of their own
    nameless = page.evaluate(
        "[...document.querySelectorAll('a, button, input, summary')].filter(each => !each.ariaLabel"
        " && !(each.innerText || '').trim() && !each.labels?.length).map(each => each.outerHTML)"
    )
    assert nameless == []


def test_what_was_found_is_read_out_once_it_has_settled(opened: Opened) -> None:
    page = opened.with_reply(reply(answer("first", confidence=0.42), answer("second")))
    expect(page.locator("#said")).to_have_attribute("aria-live", "polite")
    stop_time(page)
    page.fill("#question", "made")
    page.clock.run_for(100)
    expect(page.locator(".best h1")).to_have_text("first")
    page.clock.run_for(800)
    expect(page.locator("#said")).to_have_text("")  # not on every key
    page.clock.run_for(200)
    expect(page.locator("#said")).to_have_text("first. 42% sure. From Made up. 1 other answer.")
