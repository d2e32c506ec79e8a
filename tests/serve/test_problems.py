"""Whatever is wrong ends as a problem document (RFC 9457) with its own status, and the server goes on."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import ValidationError
from tests.serve.conftest import QUESTION, TOKEN, Running
from tests.serve.test_metrics import value_of

from denspi import cli
from denspi.serve.models import AskBody
from denspi.serve.settings import ServeSettings


def problem(replied: httpx.Response, status: int) -> dict[str, object]:
    assert replied.status_code == status, replied.text
    assert replied.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = replied.json()
    assert {"type", "title", "status", "detail"} <= found.keys()
    assert found["status"] == status
    assert "\n" not in str(found["detail"])
    return found


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("", "query.question"),
        ("question=", "query.question"),
        ("question=x&k=0", "query.k"),
        ("question=x&k=101", "query.k"),
        ("question=x&k=five", "query.k"),
        ("question=x&strategy=best", "query.strategy"),
        ("question=x&colour=red", "query.colour"),
        ("question=x&min_confidence=nan", "query.min_confidence"),
        ("question=x&sparse_weight=inf", "query.sparse_weight"),
        (f"question={'x' * 4001}", "query.question"),
        ("question=x&question=y", "query.question"),
        ("question=x&k=1&k=2", "query.k"),
    ],
)
def test_a_request_that_does_not_fit_is_told_where(server: Running, query: str, where: str) -> None:
    found = problem(server.client.get(f"/api/answers?{query}"), 422)
    assert where in [each["where"] for each in found["errors"]]  # type: ignore[attr-defined]


def test_mistakes_of_newcomers_are_told_what_to_do(server: Running, writable: Running) -> None:
    def detail(replied: httpx.Response, status: int = 422) -> object:
        return problem(replied, status)["detail"]

    headers = {"content-type": "application/json"}
    assert detail(server.client.get("/api/answers?q=x")) == "query.question: is missing; send it"
    found = detail(server.client.get("/api/answers?question=x&top=3"))
    assert found == "query.top: there is no such field; see /openapi.json"
    found = detail(server.client.post("/api/answers", content=b"{'question': 1}", headers=headers), 400)
    assert found == "body.1: is not JSON from this character on; send plain JSON"
    alone = {"id": "x", "text": "not in a list"}
    found = detail(
        writable.client.post("/api/documents", json=alone, headers={"authorization": f"Bearer {TOKEN}"})
    )
    assert found == "body: 2 fields, such as 'id'; there are only: documents"


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"question": "?!"}, "question '?!': has no word; ask with letters or digits"),
        ({"question": "x", "where": "colour"}, "condition 'colour': write it as field=value"),
    ],
)
def test_what_the_search_refuses_is_said_as_it_says_it(
    server: Running, options: dict[str, str], detail: str
) -> None:
    assert problem(server.client.get("/api/answers", params=options), 422)["detail"] == detail


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 422),
        (b"\xff\xfe{}", 400),
        (b'{"question": "\xff"}', 400),
        (b'{"question": "\\ud800"}', 422),
        (b'{"question": 5}', 422),
        (b'["question"]', 422),
        (b'{"question": "x", "questions": ["y"]}', 422),
        (b'{"k": 1}', 422),
        (b'{"questions": []}', 422),
        (b'{"question": "x", "colour": 1}', 422),
        (b'{"question": "x", "sparse_weight": NaN}', 422),
        (b'{"question": "x", "sparse_weight": false}', 422),
        (b'{"question": "x", "k": "5"}', 422),
        (b'{"question": "x", "where": {"a": {"b": 1}}}', 422),
        (b'{"question": "x", "where": "a=b"}', 422),
        (b'{"question": "x", "k": ' + b"1" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
        ('{"question": "who?"}'.encode("utf-16"), 400),
        ('{"question": "who?"}'.encode("utf-16-le"), 400),
        ('{"question": "who?"}'.encode("utf-32"), 400),
    ],
)
def test_bad_bodies(server: Running, body: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    found = problem(server.client.post("/api/answers", content=body, headers=headers), status)
    assert status != 400 or "JSON" in str(found["detail"])


def test_a_batch_is_refused_as_a_whole(server: Running) -> None:
    too_long = {"questions": ["word " * 800] * 11}
    found = problem(server.client.post("/api/answers", json=too_long), 422)
    assert found["detail"] == "body: questions of 44,000 characters; ask 40,000 at once"
    before = value_of(server, "denspi_stage_seconds_count", stage="queue")
    problem(server.client.post("/api/answers", json={"questions": [QUESTION] * 50 + ["?!"]}), 422)
    assert value_of(server, "denspi_stage_seconds_count", stage="queue") == before  # none was asked


MANY_MISTAKES = [
    {"question": "x", "where": [1] * 300_000},
    {"question": "x", "where": ["a=b"] * 100_000},
    {"question": "x", "where": {str(number): {} for number in range(60_000)}},
    {"question": "x", "where": {str(number): [{}] * 1000 for number in range(100)}},
    {"question": "x", "where": {"a": [1] * 300_000}},
    {"questions": [1] * 300_000},
    {str(number): 1 for number in range(60_000)},
    {"question": "x", "x" * 900_000: 1},
]


@pytest.mark.parametrize("body", MANY_MISTAKES, ids=lambda body: str(body)[:40])
def test_a_body_full_of_mistakes_is_looked_at_as_far_as_anybody_reads(
    server: Running, body: dict[str, object]
) -> None:
    replied = server.client.post("/api/answers", json=body)
    errors = problem(replied, 422)["errors"]
    assert 1 <= len(errors) <= 10  # type: ignore[arg-type]
    assert len(replied.content) < 5000
    with pytest.raises(ValidationError) as raised:
        AskBody.model_validate(body)
    assert raised.value.error_count() <= 400  # of at most 100 fields


def test_an_address_full_of_mistakes(server: Running) -> None:
    fields = "&".join(f"{number:x}" for number in range(9000))
    found = problem(server.client.get(f"/api/answers?question=x&{fields}"), 422)
    assert str(found["detail"]).startswith("query: 9,001 fields, such as '0'; there are only: k, strategy, ")


@pytest.mark.parametrize(
    "where", [["a=b"] * 100, {str(number): "b" for number in range(100)}, {"a": ["b"] * 100}]
)
def test_a_hundred_conditions_are_allowed(server: Running, where: object) -> None:
    body = {"question": "who?", "where": where}
    assert server.client.post("/api/answers", json=body).json()["answers"] == []


def test_bad_utf8_in_an_address_makes_a_strange_question_and_no_fault(server: Running) -> None:
    assert server.client.get("/api/answers?question=who+built+%ff%fe+bridge").status_code == 200


def test_no_such_address_and_no_such_method(server: Running) -> None:
    for path in ("/nothing", "/api", "/api/nothing", "/page", "/..%2Fapp.py", "/docs", "/redoc"):
        problem(server.client.get(path), 404)
    for method, path, allowed in (
        ("DELETE", "/api/answers", "GET, HEAD, POST"),
        ("OPTIONS", "/api/answers", "GET, HEAD, POST"),
        ("PUT", "/api/documents/x", "GET, HEAD, DELETE"),
        ("PUT", "/api/documents", "GET, HEAD, POST, DELETE"),
        ("OPTIONS", "/healthz", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ):
        replied = server.client.request(method, path)
        problem(replied, 405)
        assert replied.headers["allow"] == allowed


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/api/documents/danube",
        "/api/answers?question=who",
        "/api/documents/nothing",
        "/api/documents?id=danube",
        "/api/documents",
        "/api/answers",
        "/nothing",
    ],
)
def test_whatever_can_be_read_can_be_asked_for_without_its_content(server: Running, path: str) -> None:
    read, asked = server.client.get(path), server.client.head(path)
    assert (asked.status_code, asked.content) == (read.status_code, b"")
    assert asked.headers["content-type"] == read.headers["content-type"]


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain", "json"])
def test_a_body_that_is_not_declared_as_json_is_told_which_header(server: Running, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    replied = server.client.post("/api/answers", content=b'{"question": "who?"}', headers=headers)
    assert "Content-Type: application/json" in str(problem(replied, 415)["detail"])


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/a+json"]
)
def test_what_is_json_by_another_name(server: Running, kind: str) -> None:
    headers = {"content-type": kind}
    body = b'{"question": "who?"}'
    assert server.client.post("/api/answers", content=body, headers=headers).status_code == 200


def test_who_may_not_write_is_told_why(server: Running) -> None:
    document = {"documents": [{"id": "x", "text": "y"}]}
    assert "--writable" in str(problem(server.client.post("/api/documents", json=document), 403)["detail"])
    problem(server.client.delete("/api/documents/danube"), 403)
    problem(server.client.delete("/api/documents?id=danube"), 403)


def test_a_large_body_is_refused_by_its_head(server: Running) -> None:
    """Nothing of the body is sent, and the answer is there."""
    limit = ServeSettings(Path()).answers_body_bytes
    head = f"POST /api/answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: {limit + 1}\r\n\r\n"
    assert raw(server, head.encode()).startswith(b"HTTP/1.1 413 ")


def test_a_large_body_without_a_length_is_refused_before_its_end(server: Running) -> None:
    sent_bytes = 0

    def pieces() -> object:
        nonlocal sent_bytes
        while sent_bytes < 1 << 30:
            sent_bytes += 1 << 16
            yield b" " * (1 << 16)

    headers = {"content-type": "application/json"}
    problem(server.client.post("/api/answers", content=pieces(), headers=headers), 413)  # type: ignore[arg-type]
    assert sent_bytes < 1 << 25
    assert server.ask().status_code == 200


def raw(server: Running, request: bytes) -> bytes:
    """What comes back until the server closes the connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:  # type: ignore[arg-type]
        connection.sendall(request)
        pieces = []
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def test_what_is_no_http_is_a_problem_too(server: Running) -> None:
    head, _, body = raw(server, b"hello\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == 400


def test_an_address_that_is_not_escaped_is_told_so(server: Running) -> None:
    found = raw(server, "GET /api/answers?question=Où HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert found.startswith(b"HTTP/1.1 400 ")
    assert "escape" in json.loads(found.partition(b"\r\n\r\n")[2])["detail"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n" + b"X-Colour: red\r\n" * 6000,
        b"GET /?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["lines", "address"],
)
def test_a_head_without_end_is_refused(server: Running, head: bytes) -> None:
    assert raw(server, head).startswith(b"HTTP/1.1 431 ")


CHUNKED = (
    b"POST /api/answers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize("line", [b"X-Colour: red\r\n" * 1000, b"X" * 15_000], ids=["lines", "line"])
def test_trailers_without_end_are_refused(server: Running, line: bytes) -> None:
    address = urlsplit(server.url)
    sent_bytes, sent = 0, CHUNKED + b"2\r\n{}\r\n0\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:  # type: ignore[arg-type]
        try:
            while sent_bytes < 1 << 26:
                connection.sendall(sent)
                sent_bytes, sent = sent_bytes + len(sent), line
        except OSError:  # the server has closed it
            pass
    assert sent_bytes < 1 << 25
    assert server.ask().status_code == 200


def test_trailers_are_no_headers(writable: Running) -> None:
    body = b'{"documents": [{"id": "trailer", "text": "It came by a trailer."}]}'
    request = CHUNKED.replace(b"answers", b"documents").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    request += b"%x\r\n%s\r\n0\r\nAuthorization: Bearer %s\r\n\r\n" % (len(body), body, TOKEN.encode())
    assert raw(writable, request).startswith(b"HTTP/1.1 401 ")


def test_garbage_after_a_request_does_not_take_its_reply_away(server: Running) -> None:
    body = json.dumps({"questions": [QUESTION] * 8}).encode()
    head = b"POST /api/answers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    found = raw(server, (head + body) * 2 + b"GARBAGE\x01\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.count(b"HTTP/1.1 200 ") == 2
    assert found.count(b"HTTP/1.1 400 ") == 1
    assert found.rindex(b"HTTP/1.1 200 ") < found.index(b"HTTP/1.1 400 ")
    broken = CHUNKED + b"zz\r\n"  # a body that cannot be read, behind one that can
    found = raw(server, head + body + broken)
    assert (found.count(b"HTTP/1.1 200 "), found.count(b"HTTP/1.1 400 ")) == (1, 1)
    assert raw(server, broken).startswith(b"HTTP/1.1 400 ")


def test_it_answers_to_its_own_names_only(server: Running) -> None:
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:8000"):
        assert server.client.get("/healthz", headers={"host": name}).status_code == 200
    for name in ("example.org", "127.0.0.1.example.org", "", "[::1"):
        status = server.client.get("/healthz", headers={"host": name}).status_code
        assert status == (200 if name == "[::1" else 421)


def test_two_names_are_none(server: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw(server, request).startswith(b"HTTP/1.1 400 ")


def test_an_id_that_is_given_twice_is_neither(server: Running) -> None:
    found = problem(server.client.get("/api/documents?id=danube&id=forth-bridge"), 422)
    assert found["detail"] == "query.id: is there 2 times; give it once"


def test_no_other_site_may_read_it(server: Running) -> None:
    origin = {"origin": "https://example.org"}
    assert "access-control-allow-origin" not in server.ask().headers
    assert "access-control-allow-origin" not in server.client.get("/healthz", headers=origin).headers
    asked = {**origin, "access-control-request-method": "POST"}
    problem(server.client.options("/api/answers", headers=asked), 405)


def test_html_is_never_served_as_a_page(server: Running) -> None:
    replied = server.ask("<script>alert(1)</script> who pressed the button?", k=5)
    assert replied.headers["content-type"] == "application/json"
    assert replied.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in replied.headers["content-security-policy"]
    assert replied.json()["question"].startswith("<script>")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "nowhere: no such index; build one with: denspi index"),
        (["INDEX", "--port", "70000"], "Invalid value for '--port': "),
        (["INDEX", "--workers", "0"], "Invalid value for '--workers': "),
        (["INDEX", "--token-file", "f"], "--token-file without --writable: nobody may write; add --writable"),
        (["INDEX", "--writable", "--token-file", "nowhere"], "nowhere: No such file or directory"),
        (["INDEX", "--writable"], "DENSPI_TOKEN: a token of 5 characters; use 16 or more"),
        (["INDEX", "--host", "192.0.2.1"], "192.0.2.1 port 8000: "),
        (
            ["INDEX", "--allow-origin", "example.org"],
            "--allow-origin example.org: not an origin; write it as ",
        ),
        (
            ["INDEX", "--allow-origin", "https://a.example/b"],
            "--allow-origin https://a.example/b: not an ori",
        ),
        (
            ["INDEX", "--allow-host", "https://a.example"],
            "--allow-host https://a.example: not a name; write ",
        ),
        (["INDEX", "--host", ""], "--host is empty: name an address, such as 127.0.0.1, or leave it out"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    arguments: list[str],
    line: str,
    built: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DENSPI_TOKEN", "short")
    assert cli.run(["serve", *(str(built) if each == "INDEX" else each for each in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"denspi: {line}")
    assert (captured.err.count("\n"), captured.out) == (1, "")


@pytest.mark.parametrize(
    "token", ["correct-horse-bättery", "correct-horse\nbattery-staple", "token" + "\N{BAGEL}" * 20]
)
def test_a_token_that_no_header_carries_is_refused(
    token: str, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(token, encoding="utf-8")
    assert cli.run(["serve", str(built), "--writable", "--token-file", str(tmp_path / "token")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"denspi: {tmp_path / 'token'}: the token is not plain ASCII; ")
    assert said.count("\n") == 1


def test_a_token_file_that_is_no_text_is_one_line(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe" * 20)
    assert cli.run(["serve", str(built), "--writable", "--token-file", str(tmp_path / "token")]) == 2
    assert (
        capsys.readouterr().err
        == f"denspi: {tmp_path / 'token'}: not UTF-8 text; put the token there on one line\n"
    )


def test_a_port_that_is_taken_is_one_line(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    port = str(urlsplit(server.url).port)
    assert cli.run(["serve", str(server.index), "--port", port]) == 2
    assert capsys.readouterr().err.startswith(f"denspi: 127.0.0.1 port {port}: ")
    assert server.ask(QUESTION).status_code == 200
