"""The page's files come under their own addresses, nothing else does, and nothing inline would run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.serve.conftest import Running, serve
from tests.serve.test_problems import problem

from denspi.serve.page_files import FOLDER, page_routes

FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_served_as_it_is(server: Running, path: Path) -> None:
    replied = server.client.get(f"/{path.relative_to(FOLDER).as_posix()}")
    assert replied.status_code == 200
    assert replied.content == path.read_bytes()
    assert replied.headers["x-content-type-options"] == "nosniff"
    again = server.client.get(
        f"/{path.relative_to(FOLDER).as_posix()}", headers={"if-none-match": replied.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_the_address_alone_is_the_page(server: Running) -> None:
    replied = server.client.get("/")
    assert replied.headers["content-type"] == "text/html; charset=utf-8"
    assert replied.content == (FOLDER / "index.html").read_bytes()
    assert server.client.head("/").status_code == 200


def test_the_policy_allows_own_files_and_nothing_inline(server: Running) -> None:
    policy = dict(
        each.split(maxsplit=1)
        for each in server.client.get("/").headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"


def test_the_page_asks_nothing_of_other_sites() -> None:
    for path in FILES:
        if path.suffix in {".html", ".js", ".css", ".svg"}:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", text), path.name


def test_hidden_files_stay_hidden(tmp_path: Path) -> None:
    (tmp_path / ".secret").write_text("x")
    (tmp_path / "index.html").write_text("x")
    assert [route.path for route in page_routes(tmp_path)] == ["/index.html", "/"]


@pytest.mark.slow
def test_a_named_site_may_ask(built: Path) -> None:
    sites = ["--allow-origin", "https://example.org", "--allow-host", "answers.example.org"]
    with serve(built, "--host", "127.0.0.2", *sites) as running:
        named, other = {"origin": "https://example.org"}, {"origin": "https://example.com"}
        header = "access-control-allow-origin"
        assert running.client.get("/healthz", headers=named).headers[header] == "https://example.org"
        assert header not in running.client.get("/healthz", headers=other).headers
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        allowed = running.client.options("/api/answers", headers=named | asked)
        assert (allowed.status_code, allowed.headers[header]) == (200, "https://example.org")
        refused = running.client.options("/api/answers", headers=other | asked)
        assert "origin" in str(problem(refused, 400)["detail"])
        assert header not in refused.headers
        for name, status in (("answers.example.org", 200), ("localhost", 200), ("127.0.0.3", 421)):
            assert running.client.get("/healthz", headers={"host": name}).status_code == status
        for method, path, content, status in (
            ("GET", "/api/answers", b"", 422),
            ("POST", "/api/answers", b" " * ((1 << 20) + 1), 413),
            ("DELETE", "/api/documents/x", b"", 403),
        ):
            replied = running.client.request(method, path, headers=named, content=content)
            assert (replied.status_code, replied.headers[header]) == (status, "https://example.org")
            assert replied.headers["access-control-expose-headers"] == "Retry-After"
            assert "content-security-policy" in replied.headers
