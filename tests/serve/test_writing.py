"""Documents that are added and deleted over HTTP, by those who may, one at a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import pytest
from tests.serve.conftest import ODD_ID, TOKEN, Running, serve, started
from tests.serve.test_problems import problem, raw

from denspi import Index, Searcher
from denspi.errors import IndexLockedError
from denspi.index import IndexWriter
from denspi.serve.models import DocumentIn
from denspi.serve.problems import ProblemError
from denspi.serve.writing import Writing, may_write

AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
LEASE = {
    "id": "contracts/lease",
    "title": "Lease",
    "text": "Mira Okafor signed the lease of the mill in 1843.",
}


def post(server: Running, *documents: dict[str, object], token: str = TOKEN) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    return server.client.post("/api/documents", json={"documents": documents}, headers=headers)


def delete(server: Running, document_id: str) -> httpx.Response:
    return server.client.delete(f"/api/documents/{quote(document_id, safe='')}", headers=AUTHORIZED)


def answers(server: Running) -> set[str]:
    """The best answers of many connections, so of both workers."""
    found = set()
    for _ in range(12):
        with httpx.Client(base_url=server.url, timeout=60) as client:
            asked = {"question": "Who signed the lease of the mill?", "k": 1}
            found.add(client.get("/api/answers", params=asked).json()["answers"][0]["text"])
    return found


def test_a_document_comes_changes_and_goes(writable: Running) -> None:
    before = writable.client.get("/readyz").json()
    assert before["writable"] is True
    written = post(writable, LEASE | {"metadata": {"year": 1843}})
    assert written.status_code == 200, written.text
    assert written.json() == {
        "generation": before["generation"] + 1,
        "written": 1,
        "unchanged": 0,
        "deleted": 0,
    }
    assert answers(writable) == {"Mira Okafor"}
    stored = writable.client.get("/api/documents/contracts%2Flease").json()
    assert (stored["text"], stored["metadata"], stored["source"]) == (LEASE["text"], {"year": 1843}, "")
    assert post(writable, LEASE | {"metadata": {"year": 1843}}).json()["unchanged"] == 1
    assert (
        post(writable, LEASE | {"text": str(LEASE["text"]).replace("Okafor", "Lind")}).json()["written"] == 1
    )
    assert answers(writable) == {"Mira Lind"}
    assert delete(writable, "contracts/lease").json()["deleted"] == 1
    problem(delete(writable, "contracts/lease"), 404)
    problem(writable.client.get("/api/documents/contracts/lease"), 404)
    assert writable.client.get("/readyz").json()["documents"] == before["documents"]


def test_an_odd_id_can_be_deleted_and_put_back(writable: Running) -> None:
    stored = writable.client.get(f"/api/documents/{quote(ODD_ID, safe='')}").json()
    assert delete(writable, ODD_ID).json()["deleted"] == 1
    fields = {name: stored[name] for name in ("id", "title", "text", "metadata")}
    assert post(writable, fields).json()["written"] == 1


@pytest.mark.parametrize("document_id", [".", "..", "a/./b", "/"])
def test_ids_that_are_steps_of_a_path(writable: Running, document_id: str) -> None:
    assert post(writable, {"id": document_id, "text": "The dots stand for Ines."}).json()["written"] == 1
    address = f"/api/documents?{urlencode({'id': document_id})}"
    assert writable.client.get(address).json()["id"] == document_id
    assert writable.client.delete(address, headers=AUTHORIZED).json()["deleted"] == 1
    problem(writable.client.get(address), 404)


@pytest.mark.parametrize("document_id", ["abc\n", "a\nb", "\n", "a\r\n/b\u2028"])
def test_an_id_with_line_breaks_is_another_id(writable: Running, document_id: str) -> None:
    assert post(writable, {"id": "abc", "text": "The letter is from Ines."}).status_code == 200
    problem(delete(writable, document_id), 404)
    assert writable.client.get("/api/documents/abc").status_code == 200
    assert post(writable, {"id": document_id, "text": "The line is from Ines."}).json()["written"] == 1
    found = writable.client.get(f"/api/documents/{quote(document_id, safe='')}")
    assert found.json()["id"] == document_id
    assert delete(writable, document_id).json()["deleted"] == 1
    assert delete(writable, "abc").json()["deleted"] == 1


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic eDp5", f"Bearer {TOKEN}x", TOKEN]
)
def test_only_the_token_opens(writable: Running, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    for method, path in (("POST", "/api/documents"), ("DELETE", "/api/documents/danube")):
        replied = writable.client.request(method, path, headers=headers, content=b"not JSON")
        problem(replied, 401)
        assert replied.headers["www-authenticate"] == "Bearer"
    assert writable.client.get("/api/documents/danube").status_code == 200


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/documents"), ("DELETE", "/api/documents/x")])
def test_who_may_not_write_is_told_before_anything_is_read(
    server: Running, writable: Running, method: str, path: str
) -> None:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n"
    for running, header, status in (
        (server, f"Authorization: Bearer {TOKEN}\r\n", b"403"),
        (writable, "", b"401"),
        (writable, "Authorization: Bearer wrong\r\n", b"401"),
    ):
        assert raw(running, f"{head}{header}\r\n".encode()).startswith(b"HTTP/1.1 " + status)


def test_a_token_is_not_its_beginning() -> None:
    may_write(TOKEN, f"bearer  {TOKEN}")
    for given in (TOKEN[:-1], TOKEN + " x", TOKEN.upper(), "é"):
        with pytest.raises(ProblemError) as raised:
            may_write(TOKEN, f"Bearer {given}")
        assert raised.value.status == 401
    with pytest.raises(ProblemError) as raised:
        may_write(None, f"Bearer {TOKEN}")
    assert raised.value.status == 403


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "", "text": "x"},
        {"id": "x"},
        {"id": "x", "text": ""},
        {"id": "x", "text": " \n "},
        {"id": "x", "text": "y", "colour": "red"},
        {"id": "x", "text": "y", "metadata": {"a": 1e999}},
        {"id": "x", "text": "y", "metadata": [1]},
        {"id": 5, "text": "y"},
    ],
)
def test_of_several_documents_one_bad_one_keeps_all_out(writable: Running, bad: dict[str, object]) -> None:
    before = writable.client.get("/readyz").json()
    content = json.dumps({"documents": [LEASE | {"id": "good"}, bad]})
    headers = AUTHORIZED | {"content-type": "application/json"}
    problem(writable.client.post("/api/documents", content=content, headers=headers), 422)
    assert writable.client.get("/readyz").json() == before
    assert post(writable, LEASE | {"id": "other"}).json()["written"] == 1
    problem(writable.client.get("/api/documents/good"), 404)
    assert delete(writable, "other").status_code == 200


def test_an_id_that_is_there_twice_is_named(writable: Running) -> None:
    found = problem(post(writable, LEASE, {"id": "x", "text": "y"}, LEASE | {"title": "Another"}), 422)
    line = "body.documents: id 'contracts/lease' is there 2 times; send each document once"
    assert found["detail"] == line
    problem(writable.client.get("/api/documents/contracts%2Flease"), 404)
    assert "at least 1 item" in str(problem(post(writable), 422)["detail"])


def test_an_index_built_anew_is_written_with_its_own_model(own_index: Path) -> None:
    writing = Writing(own_index, lock_seconds=0)
    assert writing.put([DocumentIn(**LEASE)]).written == 1  # type: ignore[arg-type]
    shutil.rmtree(own_index)
    with Index.create(own_index, precision="compact") as index:
        index.commit()
    assert writing.put([DocumentIn(**LEASE)]).written == 1  # type: ignore[arg-type]
    found = Searcher(Index.open(own_index), compiled=False).answer("Who signed the lease?", 1)
    assert [each.text for each in found] == ["Mira Okafor"]


def test_many_writers_at_once_lose_nothing(writable: Running) -> None:
    """Over both workers: each change takes the one lock in turn."""
    names = [f"many/{number}" for number in range(8)]

    def put(name: str) -> int:
        with httpx.Client(base_url=writable.url, timeout=60) as client:
            body = {"documents": [{"id": name, "text": f"The note {name} was written by Ines."}]}
            return client.post("/api/documents", json=body, headers=AUTHORIZED).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(put, names))
    stored = [writable.client.get(f"/api/documents/{name}").status_code == 200 for name in names]
    assert [status == 200 for status in statuses] == stored
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    for name in names:
        delete(writable, name)


@pytest.mark.slow
def test_somebody_else_who_writes_is_named(own_index: Path) -> None:
    with (
        serve(own_index, "--writable", DENSPI_TOKEN=TOKEN) as running,
        IndexWriter.open(own_index),
    ):
        replied = post(running, LEASE)
        found = problem(replied, 503)
        assert f"process {os.getpid()} on " in str(found["detail"])
        assert int(replied.headers["retry-after"]) >= 1
        assert running.ask().status_code == 200  # questions go on


@pytest.mark.slow
def test_a_token_is_made_and_printed_where_none_is_given(own_index: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DENSPI_TOKEN"}
    command = [sys.executable, "-m", "denspi", "serve", str(own_index), "--port", "0", "--writable"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        assert process.stderr
        url = process.stdout.readline().split()[-1]
        token = process.stderr.readline().removeprefix("token for writing: ").strip()
        assert len(token) >= 16
        with httpx.Client(base_url=url, timeout=60) as client:
            body, headers = {"documents": [LEASE]}, {"authorization": f"Bearer {token}"}
            assert client.post("/api/documents", json=body, headers=headers).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert Index.open(own_index).snapshot().document("contracts/lease") is not None


def test_a_change_that_nobody_waits_for_is_given_up(own_index: Path) -> None:
    writing = Writing(own_index, lock_seconds=1)
    writing.give_up()
    with pytest.raises(ProblemError, match="the service ends"):
        writing.put([DocumentIn(id="late", text="It comes too late.")])
    with Index.open(own_index) as index:
        assert index.snapshot().generation == 1
        assert index.delete("danube")  # nobody holds the lock


HASTY = """
import sys
import time
from pathlib import Path
from denspi.serve.run import serve
from denspi.serve.settings import Listening, ServeSettings
settings = ServeSettings(Path(sys.argv[1]), token=sys.argv[2])
listening = Listening(port=0, shutdown_seconds=1)
serve(settings, listening, lambda address: print("test at", address, flush=True))
"""


@pytest.mark.slow
def test_an_end_does_not_wait_for_a_large_change(own_index: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} tells of the mill at Harrow Ford." for number in range(200_000))
    body = {"documents": [{"id": "large", "text": text}]}  # takes minutes
    headers = {"authorization": f"Bearer {TOKEN}"}
    with (
        started([sys.executable, "-c", HASTY, str(own_index), TOKEN], own_index) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        changing = pool.submit(running.client.post, "/api/documents", json=body, headers=headers)
        while not is_written(own_index):
            time.sleep(0.05)
        assert running.end() in (0, -signal.SIGTERM)
        problem(changing.result(), 503)
    assert Index.open(own_index).snapshot().generation == 1


def is_written(folder: Path) -> bool:
    """Whether somebody has the write lock."""
    try:
        with Index.open(folder) as index:
            index.delete("no such document")
    except IndexLockedError:
        return True
    return False
