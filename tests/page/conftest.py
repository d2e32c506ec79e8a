"""A browser (Debian's chromium, or what CHROMIUM names), a real service over the sample corpus, a fresh page.

The service runs as its users run it, in a process of its own. Replies that a real index seldom gives are put
in the way of the page's requests by `Opened.with_reply`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; pip install 'denspi[dev]'")

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

ANSWERS, DOCUMENTS = "**/api/answers*", "**/api/documents?*"
START_SECONDS = 60
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(
            "no chromium; install Debian's package of that name, or name the program with CHROMIUM=..."
        )
    return found


@pytest.fixture(scope="module")  # playwright's event loop must not run on under the tests of others
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root, as in a container; nothing foreign is loaded here.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service over the sample corpus."""
    pytest.importorskip("fastapi", reason="the service is not installed; pip install 'denspi[serve]'")
    folder = tmp_path_factory.mktemp("served")
    index, port = folder / "sample.index", _free_port()
    articles = Path(__file__).parents[2] / "src" / "denspi" / "sample" / "articles.jsonl"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    denspi = [sys.executable, "-m", "denspi"]
    subprocess.run(
        [*denspi, "index", articles, "--output", index], check=True, capture_output=True, env=environment
    )
    with (folder / "log").open("w+b") as log:
        command = [*denspi, "serve", str(index), "--port", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/", process, folder / "log")
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(30)


@dataclass
class Opened:
    """A page on the service, what it asked for and what went wrong in it."""

    page: Page
    address: str
    hosts: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def at(self, address: str) -> Page:
        """The page, opened anew at an address below the service's."""
        self.page.goto("about:blank")  # another fragment alone would not load it again
        self.page.goto(self.address + address)
        return self.page

    def with_reply(
        self, reply: dict[str, Any], document: dict[str, Any] | None = None, status: int = 200
    ) -> Page:
        """From now on every question gets this reply and every document is this one."""
        self.page.route(ANSWERS, lambda route: send(route, reply))
        if document is not None:
            self.page.route(DOCUMENTS, lambda route: send(route, document, status))
        return self.page


@pytest.fixture
def opened(browser: Browser, service: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Fails the test if the page throws or a request goes to any other host."""
    context = browser.new_context(**getattr(request, "param", {"viewport": {"width": 1100, "height": 800}}))
    page = context.new_page()
    page.set_default_timeout(10_000)
    found = Opened(page, service)
    page.on("request", lambda each: found.hosts.add(each.url.split("/")[2]))
    page.on("pageerror", lambda error: found.faults.append(str(error)))
    page.on("console", lambda line: _note(found, line.text))
    page.goto(service)
    yield found
    context.close()
    assert not found.faults
    assert found.hosts <= {service.split("/")[2], ""}


@pytest.fixture
def page(opened: Opened) -> Page:
    return opened.page


def ask(page: Page, question: str) -> None:
    """Type a question and wait for what the page says about it."""
    page.fill("#question", question)
    expect(page.locator(".took")).to_be_visible()
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#answers")).to_have_attribute("data-question", question.strip())


def stop_time(page: Page) -> None:
    """From here on time passes in the page only as `page.clock` is told, however busy the machine is."""
    page.clock.install(time=datetime(2030, 1, 1, tzinfo=UTC))
    page.clock.pause_at(datetime(2030, 1, 2, tzinfo=UTC))


def send(route: Route, content: dict[str, Any], status: int = 200) -> None:
    route.fulfill(status=status, content_type="application/json", body=json.dumps(content))


def _note(found: Opened, line: str) -> None:
    if "Content Security Policy" in line or "Uncaught" in line:
        found.faults.append(line)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(address + "readyz", timeout=2).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the service did not start: {log.read_text()}")
