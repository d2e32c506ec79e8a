"""What the OpenAPI document shows: requests and replies of the sample corpus, and problems one may meet."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

QUESTION = "In which hospital did Fleming notice the mould?"
_CONTEXT = (
    "In September 1928 Alexander Fleming came back from a holiday to St Mary's Hospital in London and saw "
    "that a mould had settled on a dish of staphylococci and killed the colonies near it."
)
REPLY: dict[str, Any] = {
    "question": QUESTION,
    "read_as": None,
    "answers": [
        {
            "text": "St Mary's Hospital",
            "document_id": "penicillin",
            "title": "Penicillin",
            "paragraph": 0,
            "span": {"start_char": 64, "end_char": 82},
            "context": _CONTEXT,
            "context_span": {"start_char": 0, "end_char": 185},
            "score": 47.5,
            "parts": {"start": 18.25, "end": 12.5, "coherency": 0.5, "document": 7.5, "paragraph": 8.75},
            "confidence": 0.5,
            "evidence": [],
            "matches": [{"ngram": "mould", "document": 3.25, "paragraph": 3.5}],
        }
    ],
    "strategy": "hybrid",
    "generation": 1,
    "documents_visited": 81,
    "latency_ms": 8.25,
    "stages_ms": {"encode": 4.75, "sparse": 0.5, "starts": 1.25, "read": 1.0, "answers": 0.75},
    "certificate": None,
}
ASKED: list[Any] = [
    {"question": QUESTION, "k": 3, "explain": True, "where": {"topic": ["medicine", "biology"]}},
    {"questions": [QUESTION, "Who built Trajan's bridge?"], "k": 1, "where": ["topic=medicine"]},
]
DOCUMENT: dict[str, Any] = {
    "id": "penicillin",
    "title": "Penicillin",
    "text": _CONTEXT,
    "paragraphs": [{"start_char": 0, "end_char": len(_CONTEXT)}],
    "source": "articles.jsonl:23",
    "metadata": {"topic": "medicine"},
}
DOCUMENTS: dict[str, Any] = {
    "documents": [
        {
            "id": "lease",
            "title": "Lease",
            "text": "Ada Byron signed the lease in 1843.",
            "metadata": {"language": "en"},
        }
    ]
}
WRITTEN: dict[str, Any] = {"generation": 2, "written": 1, "unchanged": 0, "deleted": 0}
READY: dict[str, Any] = {
    "status": "ready",
    "generation": 1,
    "documents": 100,
    "paragraphs": 207,
    "words": 15385,
    "model": "small",
    "precision": "int8",
    "writable": False,
}
METRICS = """# HELP denspi_questions_total Questions answered.
# TYPE denspi_questions_total counter
denspi_questions_total{strategy="hybrid"} 12
"""
_DETAILS = {
    400: "body.1: is not JSON from this character on; send plain JSON",
    401: "changes need the header Authorization: Bearer TOKEN",
    403: "the service is read-only; start it with --writable",
    404: "the index has no document with this id",
    408: "the body did not come within 20 s; send it faster, or less at once",
    413: "the body has more than 1,048,576 bytes; send less at once",
    415: "the body must be JSON, with the header Content-Type: application/json",
    421: "the service does not answer to this name; allow it with --allow-host",
    422: "query.k: Input should be less than or equal to 100",
    500: "a fault of the service; its log says more",
    503: "32 requests are waiting already; try again in a moment",
}


def problem_of(status: int) -> dict[str, Any]:
    """What a route may end in."""
    detail = _DETAILS[status]
    problem = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    if status not in (400, 422):
        return problem
    where, _, finding = detail.partition(": ")
    return problem | {"errors": [{"where": where, "finding": finding}]}
