"""What a reply looks like to people, in lines that fit their terminal; to programs, see `search.reply_json`.

Documents are written by strangers: control characters of theirs never reach the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from denspi.cli.wording import counted, print_wrapped, without_controls
from denspi.search.reply_json import encodable
from denspi.types import MAX_EVIDENCE

if TYPE_CHECKING:
    from denspi.search.searcher import Reply
    from denspi.types import Answer, Evidence

SHOWN_EVIDENCE, SHOWN_MATCHES = 3, 12
_INDENT = "   "


def print_reply(reply: Reply, explain: bool = False) -> None:
    """The best answer first, each with its sentence; then what it took."""
    if reply.read_as is not None:
        print_wrapped(f"Read as: {_printable(reply.read_as)}")
    if not reply.answers:
        is_found = bool(reply.documents_visited)
        finding = (
            "nothing found is sure enough" if is_found else "nothing that may be found fits the question"
        )
        typer.secho(f"No answer: {finding}.", bold=True)
    for number, answer in enumerate(reply.answers, start=1):
        _print_answer(number, answer)
        if explain:
            _print_explanation(answer)
        typer.echo()
    stages = ", ".join(f"{name} {ms:.1f} ms" for name, ms in reply.stages_ms.items())
    total_ms = sum(reply.stages_ms.values())
    seen = f"{counted(reply.documents_visited, 'document')} visited"
    print_wrapped(f"{total_ms:.1f} ms ({stages}); {reply.strategy}, {seen}{_proof(reply)}")
    typer.echo()


def _proof(reply: Reply) -> str:
    is_proven = reply.certificate is not None and reply.certificate.proven_phrases > 0
    return "; nothing that may be found scores higher, proven" if is_proven and reply.answers else ""


def _print_answer(number: int, answer: Answer) -> None:
    text = _printable(answer.text)
    is_best = number == 1
    typer.secho(f"{number}. {text}", bold=True, fg="green" if is_best else None, underline=is_best)
    sure = "" if answer.confidence is None else f"{100 * answer.confidence:.0f}% sure · "
    print_wrapped(f"{sure}{_place(answer)}", indent=_INDENT)
    start_char = answer.span.start_char - answer.context_span.start_char
    before, after = answer.context[:start_char], answer.context[start_char + len(answer.text) :]
    marked = f"[{text}]"
    print_wrapped(_printable(before) + marked + _printable(after), indent=_INDENT, marked=marked)
    if answer.evidence:
        print_wrapped(f"also: {_others(answer.evidence)}", indent=_INDENT)


def _place(found: Answer | Evidence) -> str:
    """Title and id, once where they are the same."""
    title, document_id = _printable(found.title), _printable(found.document_id)
    name = title if title.replace(" ", "_") in (document_id, document_id.replace(" ", "_")) else ""
    return f"{name or f'{title} ({document_id})'}, paragraph {found.paragraph + 1}"


def _others(evidence: tuple[Evidence, ...]) -> str:
    shown = "; ".join(_place(each) for each in evidence[:SHOWN_EVIDENCE])
    more = len(evidence) - SHOWN_EVIDENCE
    least = "at least " if len(evidence) == MAX_EVIDENCE else ""
    return f"{shown}; and {least}{more} more" if more > 0 else shown


def _print_explanation(answer: Answer) -> None:
    parts = answer.parts
    print_wrapped(
        f"score {answer.score:.2f} = start {parts.start:.2f} + end {parts.end:.2f} + coherency "
        f"{parts.coherency:.2f} + document {parts.document:.2f} + paragraph {parts.paragraph:.2f}",
        indent=_INDENT,
    )
    shown = ", ".join(
        f"{match.ngram} {match.document + match.paragraph:.2f}" for match in answer.matches[:SHOWN_MATCHES]
    )
    if rest := answer.matches[SHOWN_MATCHES:]:
        shown += f", and {len(rest)} more {sum(match.document + match.paragraph for match in rest):.2f}"
    print_wrapped(f"matched: {_printable(shown) or 'no word of the question'}", indent=_INDENT)


def _printable(text: str) -> str:
    return without_controls(encodable(text))
