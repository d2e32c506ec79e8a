"""The OpenAPI document tells the truth: schemathesis makes requests from it and checks the replies by it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.serve.conftest import TOKEN, Running

# What a schema allows may still say nothing ("?!" is a text, and no question).
NOT_CHECKED = [positive_data_acceptance]


@pytest.fixture(scope="module")
def read_only(server: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.fixture(scope="module")
def changing(writable: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{writable.url}/openapi.json")


READING = [
    ("GET", "/api/answers"),
    ("POST", "/api/answers"),
    ("GET", "/api/documents/{document_id}"),
    ("GET", "/api/documents"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]
CHANGING = [
    ("POST", "/api/documents"),
    ("DELETE", "/api/documents/{document_id}"),
    ("DELETE", "/api/documents"),
]
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def check(
    schema: schemathesis.BaseSchema,
    method: str,
    path: str,
    mode: GenerationMode,
    examples: int,
    **options: Any,
) -> None:
    """Make requests that fit the description, or that do not, and hold the replies against it."""
    operation = schema[path][method]
    if mode == GenerationMode.NEGATIVE and not (operation.query or operation.body):
        return  # there is nothing to get wrong

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def replies_are_as_described(case: schemathesis.Case) -> None:
        case.call_and_validate(excluded_checks=NOT_CHECKED, **options)

    replies_are_as_described()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("method", "path"), READING)
def test_replies_are_as_described(
    read_only: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    check(read_only, method, path, mode, examples=10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("method", "path"), READING[:4])
def test_many_replies_are_as_described(
    read_only: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    check(read_only, method, path, mode, examples=200)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("method", "path"), CHANGING)
@pytest.mark.parametrize("token", [TOKEN, "wrong"])
def test_changes_are_as_described(
    changing: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode, token: str
) -> None:
    check(changing, method, path, mode, examples=25, headers={"Authorization": f"Bearer {token}"})


def test_every_route_is_described_with_an_example(server: Running) -> None:
    document = server.client.get("/openapi.json").json()
    routes = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == {
        ("get", "/api/answers"),
        ("post", "/api/answers"),
        ("get", "/api/documents/{document_id}"),
        ("delete", "/api/documents/{document_id}"),
        ("get", "/api/documents"),
        ("delete", "/api/documents"),
        ("post", "/api/documents"),
        ("get", "/healthz"),
        ("get", "/readyz"),
        ("get", "/metrics"),
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
    schemas = document["components"]["schemas"]
    for name in ("AskBody", "DocumentsIn"):
        assert schemas[name]["examples"]


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_questions_are_answered(server: Running, number: int) -> None:
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    assert server.client.post("/api/answers", json=schemas["AskBody"]["examples"][number]).status_code == 200
