"""``denspi evaluate``: how good and how fast a model or an index is. Prints what `denspi.evaluation` found.

Heavy imports stay inside the functions; torch is loaded only for a model folder that needs it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from denspi.cli.indexing import IndexFolder
from denspi.cli.progress import progress_bar
from denspi.errors import InputError, StoppedError, StorageError

if TYPE_CHECKING:
    from denspi.corpus.squad import SquadArticle
    from denspi.evaluation.open import OpenResult
    from denspi.evaluation.outcomes import Outcome
    from denspi.evaluation.reading import Progress, ReadingResult

evaluate_app = typer.Typer(
    help="Measure a model or an index on questions with known answers.",
    rich_markup_mode=None,
)


@evaluate_app.callback(invoke_without_command=True)
def _evaluate(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@evaluate_app.command("reading")
def reading_command(
    data: Annotated[
        str, typer.Option("--data", metavar="SQUAD", help="Questions in SQuAD's layout (.json, .gz).")
    ],
    model: Annotated[
        str,
        typer.Option("--model", metavar="small|DIR", help="A packaged model, or a model or reader folder."),
    ] = "small",
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions", metavar="FILE", help="Write the official predictions file, {id: answer}."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Ask only the first N questions.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Answer every question from its own paragraph: exact match, F1, and the words read in a second."""
    from denspi.corpus.squad import read_squad
    from denspi.dense.models import find_model
    from denspi.evaluation.answering import open_answerer
    from denspi.evaluation.reading import evaluate_reading, first_questions

    if predictions is not None:
        _check_writable(predictions)
    articles = read_squad(data)
    if limit is not None:
        articles = list(first_questions(articles, limit))
    total = _count_questions(articles)
    if not total:
        raise InputError(f"{data}: holds no question with an answer")
    answerer = open_answerer(find_model(model))
    text = "EM {task.fields[em]:.1f}, {task.fields[rate]:,.0f} words/s"
    with progress_bar(text, lambda: total, em=0.0, rate=0.0) as show:
        shown = 0

        def on_progress(progress: Progress) -> None:
            nonlocal shown
            show(progress.questions - shown, em=progress.em, rate=progress.words_per_second)
            shown = progress.questions

        result = evaluate_reading(answerer, articles, on_progress)
    if as_json:
        print(json.dumps(_as_json(result, model), ensure_ascii=False), flush=True)
    else:
        _print_result(result)
    if predictions is not None:  # last: a full disk must not take the scores with it
        _write_json(predictions, result.predictions)


@evaluate_app.command("open")
def open_command(
    index: IndexFolder,
    data: Annotated[
        str, typer.Option("--data", metavar="SQUAD", help="Questions in SQuAD's layout (.json, .gz).")
    ],
    strategy: Annotated[
        str,
        typer.Option("--strategy", metavar="NAME", help="sparse_first, dense_first, hybrid or exact."),
    ] = "hybrid",
    sparse_weight: Annotated[
        float | None,
        typer.Option(
            "--sparse-weight",
            metavar="X",
            min=0,
            max=1e6,
            help="How much words count: the model's own by default, 0 to leave them out.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Ask only the first N questions.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="FILE", help="Keep what is answered there, and go on after what it holds."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Put every question to the whole index: exact match, F1, time, and what each stage finds."""
    from denspi.build.index import Index
    from denspi.corpus.squad import read_squad
    from denspi.evaluation.open import OpenSettings, asked_questions, evaluate_open, evaluated
    from denspi.evaluation.outcomes import OutcomeFile
    from denspi.evaluation.reading import first_questions
    from denspi.search.searcher import Searcher
    from denspi.search.strategies import find_strategy

    find_strategy(strategy)
    settings = OpenSettings(strategy, sparse_weight=sparse_weight)
    articles = read_squad(data)
    if limit is not None:
        articles = list(first_questions(articles, limit))
    total = _count_questions(articles)
    if not total:
        raise InputError(f"{data}: holds no question with an answer")
    searcher = Searcher(Index.open(index))
    about = evaluated(searcher, settings)
    with (
        _goes_on(resume),
        OutcomeFile(resume, about) if resume else nullcontext() as state,
        progress_bar("EM {task.fields[em]:.1f}", lambda: total, em=0.0) as show,
    ):
        known = state.of(question for _, _, question in asked_questions(articles)) if state else {}
        right, asked = sum(each.em for each in known.values()), len(known)

        def on_outcome(outcome: Outcome) -> None:
            nonlocal right, asked
            if state:
                state.add(outcome)
            right, asked = right + outcome.em, asked + 1
            show(1, em=100 * right / asked)

        show(len(known), em=100 * right / max(1, asked))
        result = evaluate_open(searcher, articles, settings, known, on_outcome)
    if as_json:
        print(json.dumps(_rounded(dataclasses.asdict(result)), ensure_ascii=False))
    else:
        _print_open(result)


@contextmanager
def _goes_on(resume: Path | None) -> Iterator[None]:
    """An interrupt that loses nothing says so."""
    try:
        yield
    except KeyboardInterrupt:
        if resume is None:
            raise
        raise StoppedError(f"interrupted; the same command goes on after what {resume} holds") from None


def _count_questions(articles: list[SquadArticle]) -> int:
    return sum(bool(q.answers) for a in articles for p in a.paragraphs for q in p.questions)


def _as_json(result: ReadingResult, model: str) -> dict[str, Any]:
    found = dataclasses.asdict(result)
    del found["predictions"]
    return {name: round(v, 3) if isinstance(v, float) else v for name, v in found.items()} | {"model": model}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _print_open(result: OpenResult) -> None:
    typer.echo(
        f"exact match {result.em:.2f}, F1 {result.f1:.2f}, among the best {result.k} {result.top_k_em:.2f} "
        f"on {result.questions:,} questions ({result.strategy})"
    )
    latency_ms = 1000 * result.seconds_per_question
    in_batches = (
        f" ({1000 * result.batch_seconds_per_question:.1f} ms in batches)"
        if result.batch_seconds_per_question is not None
        else ""
    )
    typer.echo(
        f"{latency_ms:.1f} ms{in_batches} and {result.documents_per_question:,.1f} documents a question"
    )
    typer.echo(f"{'recall':<12}{'document':>10}{'paragraph':>11}{'answer':>9}")
    for stage, found in result.recall.items():
        typer.echo(f"{stage:<12}{found['document']:>10.1f}{found['paragraph']:>11.1f}{found['answer']:>9.1f}")


def _print_result(result: ReadingResult) -> None:
    typer.echo(f"exact match {result.em:.2f}, F1 {result.f1:.2f} on {result.questions:,} questions")
    typer.echo(
        f"{result.paragraphs:,} paragraphs, {result.words:,} words: "
        f"{result.words_per_second:,.0f} words and {result.questions_per_second:,.0f} questions a second"
    )


def _check_writable(path: Path) -> None:
    """Refuse at once what would fail after minutes of work."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if path.exists() and not path.is_file():  # a file would take the place of /dev/null
        raise InputError(f"{path}: is no regular file; name one")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written, {path.parent} is not writable")


def _write_json(path: Path, content: dict[str, str]) -> None:
    """All of the file or none: an interrupted run leaves what was there."""
    half_written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Escaped: a text may hold half of a surrogate pair, which JSON can write and UTF-8 cannot.
        half_written.write_text(json.dumps(content) + "\n", encoding="utf-8")
        os.replace(half_written, path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        half_written.unlink(missing_ok=True)
