"""What comes in and goes out, as the OpenAPI document describes it. Checks shapes and sizes, nothing else.

Replies are written by `search.reply_json`; their models only describe them, and the tests hold both together.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from denspi.corpus.records import shortened
from denspi.search.questions import MAX_QUESTION_CHARS
from denspi.serve.examples import ASKED, DOCUMENT, DOCUMENTS, QUESTION, READY, REPLY, WRITTEN, problem_of
from denspi.types import Answer, Span

MAX_K, MAX_QUESTIONS, MAX_CONDITIONS, MAX_DOCUMENTS, MAX_ID_CHARS = 100, 100, 100, 1000, 2000
MAX_BATCH_CHARS = 10 * MAX_QUESTION_CHARS
Strategy = Literal["hybrid", "sparse_first", "dense_first", "exact"]
QuestionText = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]


def _few(given: Any) -> Any:
    if isinstance(given, dict) and len(given) > MAX_CONDITIONS:
        raise ValueError(f"{len(given):,} fields; name at most {MAX_CONDITIONS}")
    return given


def _kind(given: Any) -> str:
    return "list" if isinstance(given, list) else "object" if isinstance(given, dict) else "value"


# A body of a megabyte has room for a hundred thousand mistakes, and each would become a record of its own:
# lists end at the first one, and objects are counted before they are looked into.
_Questions = Annotated[list[QuestionText], Field(min_length=1, max_length=MAX_QUESTIONS, fail_fast=True)]
_Conditions = Annotated[list[str], Field(max_length=MAX_CONDITIONS, fail_fast=True)]
_Value = str | int | float | bool
_Values = Annotated[list[_Value], Field(max_length=MAX_CONDITIONS, fail_fast=True)]
_ValueOrValues = Annotated[
    Annotated[_Value, Tag("value")] | Annotated[_Values, Tag("list")],
    Discriminator(_kind, "value_type", "give a text, a number, true or false, or a list of these"),
]
_Fields = Annotated[dict[str, _ValueOrValues], Field(max_length=MAX_CONDITIONS), BeforeValidator(_few)]
_Where = Annotated[
    Annotated[_Conditions, Tag("list")] | Annotated[_Fields, Tag("object")],
    Discriminator(_kind, "where_type", "give a list of field=value, or an object of fields and values"),
]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > len(cls.model_fields):
            stranger = shortened(next(str(name) for name in given if name not in cls.model_fields), 50)
            raise ValueError(
                f"{len(given):,} fields, such as {stranger!r}; there are only: {', '.join(cls.model_fields)}"
            )
        return given


class AskOptions(_In):
    """How to answer."""

    k: int = Field(5, ge=1, le=MAX_K, description="Answers, at most.")
    strategy: Strategy = Field("hybrid", description="How to search; `exact` proves its answers.")
    explain: bool = Field(False, description="List the n-grams that question and place share.")
    repair: bool = Field(True, description="Read words that nobody knows as what was probably meant.")
    min_confidence: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="No answer where the best is less sure.",
        examples=[0.2],
    )
    sparse_weight: float | None = Field(
        None,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="How much words count; the model's own by default.",
        examples=[0.05],
    )


class AskQuery(AskOptions):
    """A question in an address."""

    question: QuestionText = Field(examples=[QUESTION])
    where: _Conditions = Field(
        [], description="`field=value`; several of a field: any of them.", examples=[["topic=medicine"]]
    )


class AskBody(AskOptions):
    """A question, or a batch of them."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,  # JSON has types: true is no number here, as it may be in an address
        json_schema_extra={
            "examples": ASKED,
            "oneOf": [
                {"required": ["question"], "properties": {"question": {"type": "string"}}},
                {"required": ["questions"], "properties": {"questions": {"type": "array"}}},
            ],
        },
    )
    question: QuestionText | None = None
    questions: _Questions | None = Field(
        None, description=f"Of at most {MAX_BATCH_CHARS:,} characters together."
    )
    where: _Where = Field([], description="`field=value` texts, or an object of fields and values.")

    @model_validator(mode="after")
    def _is_one_or_many(self) -> AskBody:
        if (self.question is None) == (self.questions is None):
            raise ValueError("give either question or questions")
        chars = sum(map(len, self.questions or ()))
        if chars > MAX_BATCH_CHARS:
            raise ValueError(f"questions of {chars:,} characters; ask {MAX_BATCH_CHARS:,} at once")
        return self


class CertificateOut(BaseModel):
    """What is proven about the answers."""

    proven_phrases: int
    lowest_score: float | None
    highest_bound: float | None = Field(description="Null where everything was read.")
    paragraphs_read: int
    paragraphs: int


class ReplyOut(BaseModel):
    """The answers to one question, and what they took: what `denspi ask --json` prints."""

    model_config = ConfigDict(json_schema_extra={"examples": [REPLY]})

    question: str
    read_as: str | None = Field(description="The question with slips repaired; null where there are none.")
    answers: list[Answer] = Field(description="Best first; empty where nothing is sure enough.")
    strategy: Strategy
    generation: int = Field(description="Of the index that was searched.")
    documents_visited: int
    latency_ms: float
    stages_ms: dict[str, float]
    certificate: CertificateOut | None


class RepliesOut(BaseModel):
    """A reply to each question of a batch, in order."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"replies": [REPLY]}]})

    replies: list[ReplyOut]


class DocumentOut(BaseModel):
    """A document as it was indexed. Spans count characters (code points) of `text`."""

    model_config = ConfigDict(json_schema_extra={"examples": [DOCUMENT]})

    id: str
    title: str
    text: str
    paragraphs: list[Span]
    source: str = Field(description="The file that it came from; empty where there was none.")
    metadata: dict[str, Any]


def _storable(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(metadata, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"cannot be stored as JSON ({error})") from None
    return metadata


class DocumentIn(_In):
    """A document to be indexed; paragraphs are found as in a text file."""

    id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    title: str = Field("", max_length=10_000, description="The id where it is empty.")
    text: str = Field(min_length=1)
    metadata: Annotated[dict[str, Any], AfterValidator(_storable)] = Field({}, examples=[{"language": "en"}])


def _different(documents: list[DocumentIn]) -> list[DocumentIn]:
    (often, times), *_ = Counter(each.id for each in documents).most_common(1)
    if times > 1:
        raise ValueError(f"id {shortened(often)!r} is there {times} times; send each document once")
    return documents


class DocumentsIn(_In):
    """Documents that are committed together."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [DOCUMENTS]},
    )
    documents: Annotated[
        list[DocumentIn],
        Field(min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True),
        AfterValidator(_different),
    ]


class WrittenOut(BaseModel):
    """What a change has done, once it is durable."""

    model_config = ConfigDict(json_schema_extra={"examples": [WRITTEN]})

    generation: int = Field(description="The first that has the change.")
    written: int = 0
    unchanged: int = Field(default=0, description="Already there with the same content.")
    deleted: int = 0


class HealthOut(BaseModel):
    """That the process answers."""

    status: Literal["ok"] = Field(examples=["ok"])


class ReadyOut(BaseModel):
    """What is being served."""

    model_config = ConfigDict(json_schema_extra={"examples": [READY]})

    status: Literal["ready"]
    generation: int
    documents: int
    paragraphs: int
    words: int
    model: str
    precision: str
    writable: bool


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    model_config = ConfigDict(json_schema_extra={"examples": [problem_of(422)]})

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = Field(
        None, description="Of a request that does not fit: where, and what."
    )
