"""``denspi ask``: questions in, answers out: one, a prompt for many, or a file of them.

Owns where questions come from and how a session ends; `answers_shown` owns what an answer looks like. Heavy
imports stay inside the functions, and torch is never loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from denspi.cli.answers_shown import print_reply
from denspi.cli.indexing import IndexFolder
from denspi.cli.progress import progress_bar
from denspi.errors import DenspiError, InputError
from denspi.search.reply_json import reply_json

if TYPE_CHECKING:
    from denspi.search.filters import Filter
    from denspi.search.searcher import Reply, Searcher, SearchOptions
    from denspi.types import Question

PROMPT = "? "
_STARTS_WORTH_COMPILING = 1_000_000
"""Below, one question is answered sooner than the compiled loops are loaded."""
_BATCH_OF_THREAD = 32


def ask_command(
    index: IndexFolder,
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="Left out: a prompt, or a question a line from a pipe."),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="K", min=1, help="Answers to show, at most.")] = 5,
    strategy: Annotated[
        str,
        typer.Option("--strategy", metavar="NAME", help="sparse_first, dense_first, hybrid or exact."),
    ] = "hybrid",
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="FIELD=VALUE",
            help="Only documents with this id, title, source or metadata; several of a field: any of them.",
            show_default=False,
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--min-confidence", metavar="X", min=0, max=1, help="No answer where the best is less sure."
        ),
    ] = None,
    sparse_weight: Annotated[
        float | None,
        typer.Option(
            "--sparse-weight", metavar="X", min=0, help="How much words count; the model's own by default."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what scores consist of, and the n-grams that match.")
    ] = False,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Answer a file (a question a line, JSON Lines, SQuAD); prints a JSON object for each.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, an object for each question.")] = False,
) -> None:
    """Answer a question from an index, with the sentence that says so."""
    if question is not None and questions is not None:
        raise InputError("a question and --questions: ask one or the other")
    from denspi.search.filters import Filter
    from denspi.search.strategies import find_strategy

    find_strategy(strategy)  # what is wrong with the command is said before anything is loaded
    wanted = Filter.of(where)
    options: SearchOptions = {
        "where": wanted,
        "min_confidence": min_confidence,
        "sparse_weight": sparse_weight,
        "explain": explain,
    }

    def print_one(text: str, reply: Reply) -> None:
        if as_json:
            typer.echo(reply_json(reply, question=_clean(text)))
        else:
            print_reply(reply, explain)

    if questions is not None:
        batch = _checked_questions(questions)
        searcher = _open(index, wanted, is_one=False)
        _answer_file(searcher, batch, k, strategy, options)
        return
    if question is not None:
        _clean(question)
        print_one(question, _open(index, wanted, is_one=True).ask(question, k, strategy, **options))
        return
    if sys.stdin is None:
        raise InputError("standard input is closed; give a question, or --questions FILE")
    searcher = _open(index, wanted, is_one=False)

    def answer(text: str) -> None:
        searcher.refresh()
        print_one(text, searcher.ask(text, k, strategy, **options))

    if sys.stdin.isatty():
        _converse(answer, f"{searcher.view.snapshot.live.documents:,} documents")
    else:
        _answer_lines(answer)


def _open(index: Path, wanted: Filter, is_one: bool) -> Searcher:
    """A condition on a field that no document has is a slip, and said to be one."""
    from denspi.build.index import Index
    from denspi.search.searcher import Searcher

    opened = Index.open(index)
    is_small = opened.snapshot().live.starts < _STARTS_WORTH_COMPILING
    searcher = Searcher(opened, compiled=False if is_one and is_small else None)
    if unknown := wanted.unknown_fields(searcher.view):
        known = ", ".join(wanted.fields_of(searcher.view))
        raise InputError(f"--where {unknown[0]}: no document has this field; there are {known}")
    return searcher


def _clean(text: str) -> str:
    from denspi.search.questions import clean_question

    return clean_question(text)


def _checked_questions(path: str) -> list[Question]:
    """All of the file, or one line about what is wrong: nobody wants half of a thousand answers."""
    from denspi.corpus.questions import read_questions

    found = read_questions(path)
    for each in found:
        try:
            _clean(each.text)
        except InputError as error:
            raise InputError(f"{path}, question {each.question_id}: {error}") from None
    return found


def _answer_file(
    searcher: Searcher, questions: list[Question], k: int, strategy: str, options: SearchOptions
) -> None:
    at_once = _BATCH_OF_THREAD * searcher.threads
    with progress_bar("answering", lambda: len(questions)) as show:
        for first in range(0, len(questions), at_once):
            some = questions[first : first + at_once]
            replies = searcher.ask_batch([each.text for each in some], k, strategy, **options)
            for each, reply in zip(some, replies, strict=True):
                typer.echo(reply_json(reply, id=each.question_id, question=_clean(each.text)))
            show(len(some))


def _answer_lines(answer: Callable[[str], None]) -> None:
    """A question a line; each is answered before the next is read, so that a program may talk to it."""
    _take_any_bytes(sys.stdin)
    for number, line in enumerate(sys.stdin, start=1):
        if line.isspace():
            continue
        try:
            question = _clean(line)
        except InputError as error:
            raise InputError(f"standard input, line {number}: {error}") from None
        answer(question)
        sys.stdout.flush()


def _take_any_bytes(stdin: object) -> None:
    """What is no text becomes replacement signs, which make a strange question but no crash."""
    if isinstance(stdin, TextIOWrapper):
        stdin.reconfigure(errors="replace")


def _converse(answer: Callable[[str], None], about: str) -> None:
    """Until an empty line or Ctrl-D. Ctrl-C drops the line, or the search, and asks for the next one."""
    with suppress(ImportError):
        import readline  # noqa: F401  # `input` uses it for editing and history, once it is loaded

    _take_any_bytes(sys.stdin)
    typer.echo(f"{about}. An empty line or Ctrl-D ends.", err=True)
    while True:
        try:
            line = _typed_line()
            if line is None or not line.strip():
                return
            answer(line)
        except DenspiError as error:
            typer.echo(f"denspi: {error}", err=True)
        except KeyboardInterrupt:
            typer.echo(err=True)


def _typed_line() -> str | None:
    """None at the end. The prompt stays out of a redirected standard output."""
    try:
        if sys.stdout.isatty():
            return input(PROMPT)
        typer.echo(PROMPT, nl=False, err=True)
        return input()
    except EOFError:
        typer.echo(err=True)
        return None
