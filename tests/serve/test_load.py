"""More than a worker can do, commits in the middle of questions, and an end in the middle of both."""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.serve.conftest import QUESTION, TOKEN, Running, serve, started
from tests.serve.test_metrics import value_of
from tests.serve.test_problems import problem

from denspi import Index
from denspi.corpus import join_paragraphs
from denspi.types import Document

MANY = {"questions": [QUESTION] * 40, "strategy": "exact", "k": 20}
"""Some tenths of a second of work, in one request."""


def post_many(server: Running) -> httpx.Response:
    with httpx.Client(base_url=server.url, timeout=120) as client:
        return client.post("/api/answers", json=MANY)


def wait_until_working(server: Running, requests: int = 1) -> None:
    """Until so many requests have come through the queue; metrics are not behind it."""
    while value_of(server, "denspi_stage_seconds_count", stage="queue") < requests:
        time.sleep(0.01)


def test_too_much_at_once_is_refused_while_the_rest_is_done(built: Path) -> None:
    with serve(built, "--queue", "1") as running, ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(post_many, running) for _ in range(10)]
        replies = [each.result() for each in as_completed(waiting)]
        statuses = [each.status_code for each in replies]
        assert set(statuses) == {200, 503}
        # A refusal does not wait for anybody: the last word is an answer.
        assert statuses[0] == 503
        assert statuses[-1] == 200
        refused = replies[statuses.index(503)]
        problem(refused, 503)
        assert refused.headers["retry-after"] == "1"
        done = replies[statuses.index(200)].json()["replies"]
        assert len(done) == len(MANY["questions"])  # type: ignore[arg-type]
        assert running.client.get("/healthz").status_code == 200
        assert value_of(running, "denspi_requests_total", route="answers", status="503") == statuses.count(
            503
        )


@pytest.mark.slow
def test_a_commit_is_served_without_a_restart_and_without_a_failure(own_index: Path) -> None:
    text, spans = join_paragraphs(["The lighthouse of Skerryvore was painted green by Ola Brun."])
    question = "Who painted the lighthouse of Skerryvore?"
    stop = threading.Event()

    def ask(running: Running) -> list[tuple[int, int, str]]:
        found = []
        with httpx.Client(base_url=running.url, timeout=60) as client:
            while not stop.is_set():
                replied = client.get("/api/answers", params={"question": question, "k": 1})
                reply = replied.json()
                best = reply["answers"][0]["text"] if replied.status_code == 200 else ""
                found.append((replied.status_code, reply.get("generation", 0), best))
        return found

    with serve(own_index, "--workers", "2") as running, ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, running) for _ in range(4)]
        with Index.open(own_index) as index:
            for number in range(3):
                index.add([Document(f"light-{number}", "Skerryvore", text, spans)])
                newest = index.commit()
            index.delete("danube")
            newest = index.commit()
            newest = index.merge()
        while not all(running.ask(question).json()["generation"] == newest for _ in range(8)):
            time.sleep(0.05)
        stop.set()
        for found in (each.result() for each in asking):
            assert {status for status, _, _ in found} == {200}
            generations = [generation for _, generation, _ in found]
            assert generations == sorted(generations)  # of one connection, so of one worker
            assert (generations[-1], found[-1][2]) == (newest, "Ola Brun")
        assert running.client.get("/api/documents/danube").status_code == 404


@pytest.mark.slow
def test_an_index_that_goes_away_is_still_served_and_not_ready(own_index: Path) -> None:
    with serve(own_index) as running:
        (own_index / "manifest.json").rename(own_index / "elsewhere")
        assert running.ask().status_code == 200
        assert "not an index" in str(problem(running.client.get("/readyz"), 503)["detail"])
        (own_index / "elsewhere").rename(own_index / "manifest.json")
        assert running.client.get("/readyz").status_code == 200


@pytest.mark.slow
def test_an_index_that_is_deleted_is_served_as_far_as_it_was_open(own_index: Path) -> None:
    with serve(own_index, "--writable", DENSPI_TOKEN=TOKEN) as running:
        shutil.rmtree(own_index)  # before anything was asked
        assert running.client.get("/api/documents/danube").json()["title"] == "The Danube"
        assert "no such index" in str(problem(running.client.get("/readyz"), 503)["detail"])
        assert "denspi_requests_total" in running.client.get("/metrics").text
        assert running.ask().status_code in (200, 503)
        headers = {"authorization": f"Bearer {TOKEN}"}
        body = {"documents": [{"id": "x", "text": "It is gone."}]}
        for replied in (
            running.client.post("/api/documents", json=body, headers=headers),
            running.client.delete("/api/documents/danube", headers=headers),
        ):
            assert str(own_index) not in str(problem(replied, 503)["detail"])
        for strategy in ("sparse_first", "dense_first", "exact"):
            assert running.ask(strategy=strategy).status_code in (200, 503)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_an_end_finishes_what_was_accepted(built: Path, workers: str) -> None:
    with serve(built, "--workers", workers) as running, ThreadPoolExecutor(3) as pool:
        accepted = [pool.submit(post_many, running) for _ in range(3)]
        wait_until_working(running)
        assert running.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        replies = [each.result() for each in accepted if each.exception() is None]
        # The first is being worked on. Whether the others were accepted before the signal nobody knows, and
        # on a slow machine one of them may have waited too long.
        done = [each for each in replies if each.status_code == 200]
        assert done
        assert {each.status_code for each in replies} <= {200, 503}
        for each in done:
            assert len(each.json()["replies"]) == len(MANY["questions"])  # type: ignore[arg-type]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{running.url}/healthz")


@pytest.mark.slow
def test_workers_end_with_their_parent(built: Path) -> None:
    with serve(built, "--workers", "2") as running:
        running.process.kill()
        running.process.wait()
        deadline = time.monotonic() + 60
        while is_listening(running):
            assert time.monotonic() < deadline, "the workers go on"
            time.sleep(0.1)


def is_listening(server: Running) -> bool:
    address = urlsplit(server.url)
    try:
        socket.create_connection((address.hostname, address.port)).close()  # type: ignore[arg-type]
    except ConnectionRefusedError:
        return False
    return True


SHORT_OF_PATIENCE = """
import sys, denspi.serve.protocol as protocol
from pathlib import Path
from denspi.serve.run import serve
from denspi.serve.settings import Listening, ServeSettings
protocol.HEAD_SECONDS = protocol.UNREAD_SECONDS = 0.5
settings = ServeSettings(Path(sys.argv[1]), body_seconds=0.5)
serve(settings, Listening(port=0), lambda address: print("test at", address, flush=True))
"""


@pytest.mark.slow
def test_slow_clients_are_let_go(built: Path) -> None:
    command = [sys.executable, "-c", SHORT_OF_PATIENCE, str(built)]
    post = b"POST /api/answers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    post += b"Content-Length: 50\r\n\r\n"
    kept = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with started(command, built) as running:
        address = urlsplit(running.url)
        place = (address.hostname, address.port)
        for sent, expected in (
            (b"", b""),
            (b"GET /healthz HT", b""),
            (kept + b"GET /he", b"HTTP/1.1 200 "),
            (post + b'{"question": ', b"HTTP/1.1 408 "),
        ):
            with socket.create_connection(place, timeout=60) as connection:  # type: ignore[arg-type]
                connection.sendall(sent)
                pieces = []
                while piece := connection.recv(1 << 16):
                    pieces.append(piece)
            assert b"".join(pieces).startswith(expected), sent
            assert bool(pieces) == bool(expected)
        assert running.ask().status_code == 200


def test_a_client_that_reads_nothing_holds_up_nobody(server: Running) -> None:
    address = urlsplit(server.url)
    request = f"GET /api/documents/danube HTTP/1.1\r\nHost: localhost:{address.port}\r\n\r\n".encode()
    with socket.create_connection((address.hostname, address.port)) as connection:  # type: ignore[arg-type]
        connection.setblocking(False)
        try:
            while True:  # until nothing more can be sent, as nothing is read
                connection.send(request * 100)
        except BlockingIOError:
            pass
        assert server.ask().status_code == 200


def unread(place: tuple[str, int], request: bytes) -> socket.socket:
    """A connection that has asked for more than the kernel keeps for it, and takes nothing of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(place)
    connection.setblocking(False)
    try:
        while True:
            connection.send(request * 100)
    except BlockingIOError:
        return connection


@pytest.mark.slow
def test_who_takes_nothing_of_a_reply_is_let_go(built: Path) -> None:
    request = b"GET /api/documents/danube HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with started([sys.executable, "-c", SHORT_OF_PATIENCE, str(built)], built) as running:
        address = urlsplit(running.url)
        held = [unread((str(address.hostname), int(address.port or 0)), request) for _ in range(3)]
        deadline = time.monotonic() + 60
        while connections_of(running):
            assert time.monotonic() < deadline, "they are still held"
            time.sleep(0.1)
        for each in held:
            each.close()
        assert running.ask().status_code == 200


def connections_of(running: Running) -> int:
    """How many sockets the server has beside the one that listens."""
    port = f":{urlsplit(running.url).port:04X}"
    rows = [
        line.split() for line in Path(f"/proc/{running.process.pid}/net/tcp").read_text().splitlines()[1:]
    ]
    return sum(row[1].endswith(port) and row[3] in ("01", "04", "05", "08") and row[9] != "0" for row in rows)


@pytest.mark.slow
def test_an_end_does_not_wait_for_those_who_read_nothing(built: Path, tmp_path: Path) -> None:
    request = b"GET /api/documents/danube HTTP/1.1\r\nHost: localhost\r\n\r\n"
    program = "import sys; from denspi import cli; sys.exit(cli.run(sys.argv[1:]))"
    log = tmp_path / "log"
    shell = 'exec "$0" "$@" 2>' + shlex.quote(str(log))
    command = ["sh", "-c", shell, sys.executable, "-c", program, "serve", str(built), "--port", "0"]
    with started(command, built) as running:
        address = urlsplit(running.url)
        held = [unread((str(address.hostname), int(address.port or 0)), request) for _ in range(5)]
        assert running.end() in (0, -signal.SIGTERM)
        for each in held:
            each.close()
    assert log.read_text() == ""  # nothing had to be cancelled


@pytest.mark.slow
def test_one_connection_too_many_hears_so_at_once(built: Path) -> None:
    program = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)); "
    program += "from denspi import cli; sys.exit(cli.run(sys.argv[1:]))"
    with started([sys.executable, "-c", program, "serve", str(built), "--port", "0"], built) as running:
        address = urlsplit(running.url)
        place = (str(address.hostname), int(address.port or 0))
        held = [socket.create_connection(place) for _ in range(64)]
        with httpx.Client(base_url=running.url, timeout=60) as client:
            refused = client.get("/healthz")
        assert "64 connections" in str(problem(refused, 503)["detail"])
        assert refused.headers["retry-after"] == "1"
        more = [socket.create_connection(place) for _ in range(200)]  # far more than it has descriptors for
        for each in (*held, *more):
            each.close()
        deadline = time.monotonic() + 60
        while True:
            try:
                if running.ask().status_code == 200:
                    break
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, "it does not answer any more"
            time.sleep(0.1)
