"""The OpenAPI document tells the truth: schemathesis makes requests from it and checks the replies by it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.serve.conftest import TOKEN, Running

from denspi.serve import examples, models

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
    schemas = document["components"]["schemas"]
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    for operation in operations:
        name = operation["operationId"]
        assert operation["description"], name
        assert {"421", "500"} <= operation["responses"].keys(), name
        for parameter in operation.get("parameters", []):
            is_plain = "default" in parameter["schema"] and parameter["name"] != "where"
            assert is_plain or examples_of(parameter, schemas), (name, parameter["name"])
        contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
        for status, response in operation["responses"].items():
            assert response["description"], (name, status)
            contents.append(response["content"])
        for content in contents:
            for kind, media in content.items():
                assert examples_of(media, schemas), (name, kind)


def examples_of(described: dict[str, Any], schemas: dict[str, Any]) -> list[Any]:
    """Of a parameter, a body or a schema: its own, or those of what it consists of."""
    if "example" in described:
        return [described["example"]]
    if "examples" in described:
        return list(described["examples"])
    if "$ref" in described:
        return examples_of(schemas[described["$ref"].rpartition("/")[2]], schemas)
    if "schema" in described:
        return examples_of(described["schema"], schemas)
    if "anyOf" in described:
        return [each for choice in described["anyOf"] for each in examples_of(choice, schemas)]
    fields = described.get("properties", {}).values()
    return [each for field in fields for each in examples_of(field, schemas)]


@pytest.mark.parametrize(
    ("model", "made"),
    [
        (models.ReplyOut, examples.REPLY),
        (models.DocumentOut, examples.DOCUMENT),
        (models.DocumentsIn, examples.DOCUMENTS),
        (models.WrittenOut, examples.WRITTEN),
        (models.ReadyOut, examples.READY),
        *((models.AskBody, each) for each in examples.ASKED),
    ],
)
def test_the_examples_are_what_they_are_examples_of(model: type[BaseModel], made: dict[str, Any]) -> None:
    assert set(model.model_validate(made).model_dump()) >= made.keys()
    fields = {name for name, field in model.model_fields.items() if field.is_required()}
    assert fields <= made.keys()


def test_the_example_of_a_reply_could_be_one() -> None:
    (answer,) = examples.REPLY["answers"]
    text, span = examples.DOCUMENT["text"], answer["span"]
    assert text[span["start_char"] : span["end_char"]] == answer["text"]
    assert answer["context"] == text
    assert sum(answer["parts"].values()) == answer["score"]
    assert sum(examples.REPLY["stages_ms"].values()) == examples.REPLY["latency_ms"]


def test_the_examples_of_problems_are_problems(server: Running) -> None:
    document = server.client.get("/openapi.json").json()
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status != "200":
                    (media,) = response["content"].values()
                    found = models.Problem.model_validate(media["example"])
                    assert (str(found.status), bool(found.detail)) == (status, True)


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_questions_are_answered(server: Running, number: int) -> None:
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    assert server.client.post("/api/answers", json=schemas["AskBody"]["examples"][number]).status_code == 200
