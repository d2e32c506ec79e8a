"""Questions over HTTP: the same answers as from the command line, in an address, a body or a batch."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest
from tests.serve.conftest import ODD_ID, QUESTION, RIGHT, SCRIPT, Running

from denspi import Index, cli
from denspi.search.strategies import STRATEGIES
from denspi.serve import metrics, models

TIMES = {"latency_ms", "stages_ms"}


def without_times(reply: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in reply.items() if name not in TIMES}


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_it_answers_as_the_command_line_does(
    server: Running, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-k", "3", "--strategy", strategy, "--explain", "--json"]
    assert cli.run(["ask", str(server.index), QUESTION, *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    replied = server.ask(k=3, strategy=strategy, explain=True)
    assert replied.status_code == 200
    assert replied.headers["content-type"] == "application/json"
    assert replied.headers["cache-control"] == "no-store"
    assert list(replied.json()) == list(printed)
    assert without_times(replied.json()) == without_times(printed)
    assert replied.json()["answers"][0]["text"] == RIGHT
    models.ReplyOut.model_validate_json(replied.content)


def test_a_body_says_the_same_as_an_address(server: Running) -> None:
    options = {"k": 2, "strategy": "exact", "explain": True, "min_confidence": 0.01, "sparse_weight": 0.5}
    by_address = server.ask(**options).json()
    by_body = server.client.post("/api/answers", json={"question": QUESTION, **options}).json()
    assert without_times(by_address) == without_times(by_body)


def test_a_batch_is_answered_in_order(server: Running) -> None:
    questions = [QUESTION, "Where did the great fire start?", QUESTION] * 7  # more than are asked in a turn
    replies = server.client.post("/api/answers", json={"questions": questions, "k": 1}).json()["replies"]
    alone = [server.ask(question, k=1).json() for question in questions[:3]] * 7
    assert [each["question"] for each in replies] == questions
    assert [without_times(each) for each in replies] == [without_times(each) for each in alone]


@pytest.mark.parametrize(
    "where", [["colour=red"], {"colour": "red"}, {"colour": ["red", "blue"], "title": SCRIPT}]
)
def test_where_in_a_body(server: Running, where: object) -> None:
    found = server.client.post("/api/answers", json={"question": "Who pressed it?", "where": where}).json()
    assert {each["document_id"] for each in found["answers"]} == {ODD_ID}


def test_where_in_an_address_may_come_more_than_once(server: Running) -> None:
    found = server.ask("Who?", where=["document_id=danube", "document_id=forth-bridge"], k=20).json()
    assert {each["document_id"] for each in found["answers"]} == {"danube", "forth-bridge"}


def test_spans_are_places_in_the_document(server: Running) -> None:
    best = server.ask("Who pressed the button?", where=f"document_id={ODD_ID}", k=1).json()["answers"][0]
    document = server.client.get(f"/api/documents/{quote(ODD_ID, safe='')}").json()
    span, around = best["span"], best["context_span"]
    assert document["text"][span["start_char"] : span["end_char"]] == best["text"]
    assert document["text"][around["start_char"] : around["end_char"]] == best["context"]


def test_the_names_of_strategies_are_those_of_the_search(server: Running) -> None:
    assert set(metrics.STRATEGIES) == set(STRATEGIES) == set(models.Strategy.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("document_id", ["danube", ODD_ID])
def test_a_document_as_it_is_stored(server: Running, document_id: str) -> None:
    stored = Index.open(server.index).snapshot().document(document_id)
    assert stored is not None
    for address in (
        f"/{quote(document_id, safe='')}",
        f"/{quote(document_id, safe='/')}",
        f"?{urlencode({'id': document_id})}",
    ):
        if "/.." in address:
            continue  # a client takes these for steps of the path
        found = server.client.get(f"/api/documents{address}").json()
        assert (found["id"], found["title"], found["text"]) == (document_id, stored.title, stored.text)
        assert (found["source"], found["metadata"]) == (stored.source, dict(stored.metadata))
        spans = [(each["start_char"], each["end_char"]) for each in found["paragraphs"]]
        assert spans == [(each.start_char, each.end_char) for each in stored.paragraphs]


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "",
        "/etc/passwd",
        "..%2F..%2Fmanifest.json",
        "%2e%2e/%2e%2e/manifest.json",
        "manifest.json",
        "danube%00",
        "danube/",
        "%ff%fe",
        "x" * 5000,
    ],
)
def test_an_id_is_never_a_path(server: Running, path: str) -> None:
    for address in (f"/{path}", f"?id={path}"):
        replied = server.client.get(f"/api/documents{address}")
        assert replied.status_code == 404
        assert replied.headers["content-type"] == "application/problem+json"
