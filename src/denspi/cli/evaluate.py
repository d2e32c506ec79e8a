"""``denspi evaluate``: how good and how fast a model is. Prints what `denspi.evaluation` found.

Heavy imports stay inside the functions; torch is loaded only for a model folder that needs it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from denspi.cli.progress import progress_bar
from denspi.errors import InputError

if TYPE_CHECKING:
    from denspi.corpus.squad import SquadArticle
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

    if predictions is not None and not predictions.parent.is_dir():
        raise InputError(f"{predictions}: there is no folder {predictions.parent}")
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
    if predictions is not None:
        _write_json(predictions, result.predictions)
    if as_json:
        print(json.dumps(_as_json(result, model), ensure_ascii=False))
    else:
        _print_result(result)


def _count_questions(articles: list[SquadArticle]) -> int:
    return sum(bool(q.answers) for a in articles for p in a.paragraphs for q in p.questions)


def _as_json(result: ReadingResult, model: str) -> dict[str, Any]:
    found = dataclasses.asdict(result)
    del found["predictions"]
    return {name: round(v, 3) if isinstance(v, float) else v for name, v in found.items()} | {"model": model}


def _print_result(result: ReadingResult) -> None:
    typer.echo(f"exact match {result.em:.2f}, F1 {result.f1:.2f} on {result.questions:,} questions")
    typer.echo(
        f"{result.paragraphs:,} paragraphs, {result.words:,} words: "
        f"{result.words_per_second:,.0f} words and {result.questions_per_second:,.0f} questions a second"
    )


def _write_json(path: Path, content: dict[str, str]) -> None:
    """All of the file or none: an interrupted run leaves what was there."""
    half_written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half_written.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(half_written, path)
    finally:
        half_written.unlink(missing_ok=True)
