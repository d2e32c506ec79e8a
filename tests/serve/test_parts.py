"""What a whole server shows only by chance: the gate, the limits on bodies, faults, missing libraries."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message
from tests.serve.conftest import QUESTION

from denspi.errors import IndexDamagedError
from denspi.serve.app import create_app
from denspi.serve.body import Body
from denspi.serve.edge import Edge
from denspi.serve.gate import Gate
from denspi.serve.metrics import Metrics
from denspi.serve.problems import ProblemError
from denspi.serve.run import _Workers
from denspi.serve.service import Answered, Asked, Service
from denspi.serve.settings import LOOPBACK, Listening, ServeSettings, host_of, origin_of


async def stays() -> bool:
    return False


async def has_gone() -> bool:
    return True


class Busy:
    """Work that goes on until it is let go, and what is queued behind it."""

    def __init__(self, waiting: int, max_wait_seconds: float = 60) -> None:
        self.waits: list[float] = []
        self.gate = Gate(
            "test",
            threads=1,
            waiting=waiting,
            max_wait_seconds=max_wait_seconds,
            on_wait=self.waits.append,
        )
        self.go, self.done = threading.Event(), []

    async def start(self) -> asyncio.Task[str]:
        task = asyncio.create_task(self.gate.run(lambda: str(self.go.wait(60)), stays))
        while not self.waits:  # it is inside
            await asyncio.sleep(0)
        return task

    def queue(self, name: str, is_gone: Callable[[], Awaitable[bool]] = stays) -> asyncio.Task[None]:
        return asyncio.create_task(self.gate.run(lambda: self.done.append(name), is_gone))


def test_beyond_the_queue_the_answer_is_no_at_once() -> None:
    async def run() -> None:
        busy = Busy(waiting=2)
        first = await busy.start()
        assert not busy.gate.is_full
        queued = [busy.queue("a"), busy.queue("b")]
        await asyncio.sleep(0)
        assert busy.gate.is_full
        with pytest.raises(ProblemError, match="2 requests are waiting already") as raised:
            await busy.queue("c")
        assert (raised.value.status, raised.value.headers) == (503, {"Retry-After": "1"})
        busy.go.set()
        await asyncio.gather(first, *queued)
        assert busy.done == ["a", "b"]
        assert not busy.gate.is_full
        busy.gate.close()

    asyncio.run(run())


def test_nobody_waits_for_ever_or_works_for_nobody() -> None:
    async def run() -> None:
        busy = Busy(waiting=5, max_wait_seconds=0.01)
        first = await busy.start()
        with pytest.raises(ProblemError, match=r"not begun within 0\.01 s"):
            await busy.queue("too late")
        busy.go.set()
        await first
        busy = Busy(waiting=5)
        first = await busy.start()
        gone, there = busy.queue("gone", has_gone), busy.queue("there")
        await asyncio.sleep(0)
        busy.go.set()
        await asyncio.gather(first, there)
        with pytest.raises(ProblemError) as raised:
            await gone
        assert (raised.value.status, busy.done) == (499, ["there"])

    asyncio.run(run())


def test_others_get_their_turn_between_the_pieces_of_a_batch() -> None:
    async def run() -> None:
        busy = Busy(waiting=1)
        pieces = [lambda: str(busy.go.wait(60)), *(partial(busy.done.append, name) for name in "bc")]
        batch = asyncio.create_task(busy.gate.run_in_turns(pieces, stays))
        while not busy.waits:
            await asyncio.sleep(0)
        other = busy.queue("other")
        await asyncio.sleep(0)
        assert busy.gate.is_full
        busy.go.set()
        await asyncio.gather(other, batch)  # which goes on, although there is no room for anybody new
        assert busy.done == ["other", "b", "c"]
        assert len(busy.waits) == 4

    asyncio.run(run())


def test_a_batch_ends_with_its_client() -> None:
    async def run() -> None:
        gate = Gate("test", threads=1, waiting=5, max_wait_seconds=60)
        done: list[str] = []
        with pytest.raises(ProblemError) as raised:
            await gate.run_in_turns([partial(done.append, name) for name in "abc"], has_gone)
        assert (raised.value.status, done) == (499, ["a"])

    asyncio.run(run())


def test_a_batch_is_asked_in_pieces_of_bounded_size() -> None:
    def sizes(*chars: int) -> list[list[int]]:
        asked = Asked(["x" * each for each in chars], 5, "hybrid", {"explain": True})
        turns = list(asked.in_turns())
        assert all((each.k, each.strategy, each.options) == (5, "hybrid", asked.options) for each in turns)
        return [[len(text) for text in each.questions] for each in turns]

    assert sizes(50) == [[50]]
    assert sizes(*[50] * 40) == [[50] * 16, [50] * 16, [50] * 8]
    assert sizes(4000, 4000, 1, 3999, 1) == [[4000], [4000], [1, 3999], [1]]


def test_a_document_does_not_wait_for_questions(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()

    def wait(*_: object) -> list[Answered]:
        begun.set()
        go.wait(60)
        return [Answered("{}", {})]

    monkeypatch.setattr(Service, "ask", wait)

    async def run() -> None:
        transport = httpx.ASGITransport(create_app(ServeSettings(built)))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            asking = asyncio.create_task(client.get("/api/answers", params={"question": QUESTION}))
            await asyncio.to_thread(begun.wait)
            document = await client.get("/api/documents/danube")
            assert document.json()["title"] == "The Danube"
            assert not asking.done()
            go.set()
            assert (await asking).status_code == 200

    asyncio.run(run())


def test_what_fails_gives_its_place_back() -> None:
    async def run() -> None:
        gate = Gate("test", threads=1, waiting=0, max_wait_seconds=60)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await gate.run(lambda: 1 / 0, stays)
        assert await gate.run(lambda: 5, stays) == 5

    asyncio.run(run())


def body_of(messages: list[Message], headers: dict[str, str], **limits: float) -> Callable[[], Body]:
    async def receive() -> Message:
        return messages.pop(0) if messages else await asyncio.sleep(3600)  # type: ignore[return-value]

    return lambda: Body(receive, Headers(headers), int(limits.get("bytes", 10)), limits.get("seconds", 60))


def piece(content: bytes, more: bool) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


def test_a_body_ends_at_its_limits() -> None:
    async def run() -> None:
        chunked = {"transfer-encoding": "chunked"}
        body = body_of([piece(b"12345", True), piece(b"67890", False)], chunked)()
        assert [(await body.receive())["body"] for _ in range(2)] == [b"12345", b"67890"]
        assert body.is_whole
        body = body_of([piece(b"12345", True), piece(b"678901", False)], chunked)()
        await body.receive()
        with pytest.raises(HTTPException) as raised:
            await body.receive()
        assert raised.value.status_code == 413
        body = body_of([piece(b"1", True)], chunked, seconds=0.01)()
        await body.receive()
        with pytest.raises(HTTPException) as raised:
            await body.receive()
        assert raised.value.status_code == 408
        assert not body.is_whole
        for declared, is_too_large in (("10", False), ("11", True), ("9" * 5000, True), ("-1", False)):
            assert body_of([], {"content-length": declared})().is_declared_too_large == is_too_large
        assert body_of([], {})().is_whole

    asyncio.run(run())


def test_origins_and_names_are_taken_as_browsers_send_them() -> None:
    for given, sent in (
        ("https://example.org/", "https://example.org"),
        ("HTTPS://Example.org:443", "https://example.org"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("*", "*"),
    ):
        assert origin_of(given) == sent
    for given, sent in (
        ("A.example:8000", "a.example"),
        ("a.example", "a.example"),
        ("[::1]:80", "::1"),
        ("::1", "::1"),
        ("192.0.2.1:80", "192.0.2.1"),
    ):
        assert host_of(given) == sent


class Child:
    """A worker that was asked for a sign of life and dies without one."""

    def __init__(self) -> None:
        self.parent_conn, self.child_conn = Pipe()  # the parent holds both ends: no end of file comes
        self.process, self.looks = self, 0

    pid, exitcode = 4711, -9

    def is_alive(self) -> bool:
        self.looks += 1
        return self.looks < 3

    def kill(self) -> None: ...

    def join(self) -> None: ...

    def start(self) -> None: ...


def test_a_worker_that_dies_is_not_waited_for_as_one_that_hangs() -> None:
    class Parent(_Workers):
        def __init__(self) -> None:
            self.signal_queue, self.should_exit = [], threading.Event()

    parent = Parent()
    assert not parent._shows_life(Child())  # type: ignore[arg-type]
    answering = Child()
    answering.child_conn.send(True)
    assert parent._shows_life(answering)  # type: ignore[arg-type]
    parent.signal_queue.append(signal.SIGTERM)  # is heard at once, whoever hangs
    hanging = Child()
    hanging.looks = -(10**9)
    assert parent._shows_life(hanging)  # type: ignore[arg-type]


def test_a_worker_that_died_is_replaced_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Parent(_Workers):
        def __init__(self) -> None:
            self.config, self.sockets = None, []  # type: ignore[assignment]
            self.signal_queue, self.should_exit = [], threading.Event()
            self.processes = [Child()]  # type: ignore[list-item]

    parent, replacement = Parent(), Child()
    monkeypatch.setattr("denspi.serve.run.Process", lambda config, sockets: replacement)
    parent.keep_subprocess_alive()
    assert parent.processes == [replacement]
    assert "worker 4711 ended" in caplog.text


def test_a_request_whose_time_is_over_ends_quietly() -> None:
    async def run() -> list[Message]:
        begun, sent = asyncio.Event(), []

        async def wait(*_: object) -> None:
            begun.set()
            await asyncio.sleep(3600)

        async def send(message: Message) -> None:
            sent.append(message)

        edge = Edge(wait, Metrics.alone())
        task = asyncio.create_task(edge({"type": "http", "path": "/"}, wait, send))  # type: ignore[arg-type]
        await begun.wait()
        task.cancel()
        await task  # uvicorn would log what it raises
        return sent

    assert [each.get("status") for each in asyncio.run(run())] == [503, None]


@pytest.mark.parametrize(
    ("host", "address", "allowed", "names"),
    [
        ("127.0.0.1", "127.0.0.1", (), set()),
        ("localhost", "127.0.0.1", (), set()),
        ("127.0.0.2", "127.0.0.2", (), {"127.0.0.2"}),
        ("Mill", "127.0.1.1", ("A.example",), {"127.0.1.1", "mill", "a.example"}),
        ("::1", "::1", (), set()),
        ("192.0.2.1", "192.0.2.1", ("a.example",), {"192.0.2.1", "a.example"}),
        ("0.0.0.0", "0.0.0.0", ("a.example",), {"a.example"}),
        ("::", "::", ("a.example",), {"a.example"}),
        ("192.0.2.1", "192.0.2.1", (), None),
        ("0.0.0.0", "0.0.0.0", (), None),
    ],
)
def test_the_names_of_a_service(
    host: str, address: str, allowed: tuple[str, ...], names: set[str] | None
) -> None:
    found = Listening(host, allowed_hosts=allowed).names_at(address)
    assert (None if found is None else set(found)) == (None if names is None else {*LOOPBACK, *names})


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (RuntimeError("secret"), "a fault of the service; its log says more"),
        (
            IndexDamagedError("secret: damaged"),
            "the index cannot be used; the log of the service says why",
        ),
    ],
)
def test_a_fault_is_a_problem_that_tells_nothing(
    error: Exception, detail: str, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Service, "ask", fail)

    async def run() -> httpx.Response:
        app = create_app(ServeSettings(built))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/api/answers", params={"question": QUESTION})

    replied = asyncio.run(run())
    assert (replied.status_code, replied.json()["detail"]) == (500, detail)
    assert replied.headers["content-type"] == "application/problem+json"
    assert "content-security-policy" in replied.headers
    assert "secret" not in replied.text


@pytest.mark.parametrize(("command", "library"), [("serve", "fastapi"), ("serve", "uvicorn"), ("mcp", "mcp")])
def test_a_missing_library_is_one_line(command: str, library: str, built: Path) -> None:
    program = (
        f"import sys; sys.modules[{library!r}] = None; from denspi import cli; "
        f"sys.exit(cli.run([{command!r}, {str(built)!r}]))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr.endswith(f"install it with: pip install 'denspi[{command}]'\n")
    assert finished.stderr.count("\n") == 1


def test_the_core_loads_no_web_framework(built: Path) -> None:
    program = (
        "import sys; from denspi import Index, Searcher, cli; "
        f"Searcher(Index.open({str(built)!r}), compiled=False).answer('who?'); print(*sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in finished.stdout.split()}
    assert loaded.isdisjoint({"fastapi", "starlette", "uvicorn", "pydantic", "mcp"})
