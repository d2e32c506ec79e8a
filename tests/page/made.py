"""Replies and documents as the service sends them, made by hand for what a real index seldom shows."""

from __future__ import annotations

from typing import Any


def answer(text: str, context: str | None = None, **fields: Any) -> dict[str, Any]:
    """An answer in the sentence `context`, which begins its document."""
    context = context or f"It is {text}, as everybody knows."
    start = context.index(text)
    return {
        "text": text,
        "document_id": "made",
        "title": "Made up",
        "paragraph": 0,
        "span": {"start_char": start, "end_char": start + len(text)},
        "context": context,
        "context_span": {"start_char": 0, "end_char": len(context)},
        "score": 12.5,
        "parts": {"start": 6.0, "end": 5.0, "coherency": -1.5, "document": 1.0, "paragraph": 2.0},
        "confidence": 0.5,
        "evidence": [],
        "matches": [],
    } | fields


def evidence(text: str, context: str, **fields: Any) -> dict[str, Any]:
    """Another place with the same answer, in a document that begins with the sentence `context`."""
    shared = answer(text, context, document_id="other", title="Another")
    names = ("text", "document_id", "title", "paragraph", "span", "context", "context_span", "score")
    return {name: shared[name] for name in names} | fields


def reply(*answers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "question": "made",
        "read_as": None,
        "answers": list(answers),
        "strategy": "hybrid",
        "generation": 1,
        "documents_visited": 3,
        "latency_ms": 3.0,
        "stages_ms": {"encode": 1.0, "sparse": 2.0},
        "certificate": None,
    } | fields


def document(*paragraphs: str, **fields: Any) -> dict[str, Any]:
    text, spans = "", []
    for paragraph in paragraphs:
        spans.append({"start_char": len(text), "end_char": len(text) + len(paragraph)})
        text += paragraph + "\n\n"
    return {
        "id": "made",
        "title": "Made up",
        "text": text,
        "paragraphs": spans,
        "source": "made.txt",
        "metadata": {},
    } | fields


def problem(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": "Problem", "status": status, "detail": detail}
