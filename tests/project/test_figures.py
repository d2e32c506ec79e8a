"""Every figure that README and docs claim comes from a result file, and the two agree.

Pages of docs/results that a script renders are rendered again; figures in prose are looked up in the files
that the page names for them (`tests.project.figures` says how).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.project.figures import (
    MEASURED_UNITS,
    SETTINGS,
    Figure,
    all_figures,
    figures_of,
    is_backed,
    load_script,
    objects_of,
    read_source,
)

from denspi.dense.models import find_model
from denspi.dense.runtime_folder import read_record

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
# Pages that are written by a script, from the JSON file of the same name.
SCRIPTS = {
    "agreement": "experiments/tables/agreement.py",
    "collection-growth": "experiments/tables/collection_growth.py",
    "growth": "benchmarks/growth_page.py",
    "index-size": "experiments/compact/render.py",
    "opening": "benchmarks/opening.py",
    "plan": "experiments/tables/plan_check.py",
    "query": "benchmarks/query_page.py",
    "samples": "experiments/tables/samples.py",
    "serve": "benchmarks/serve.py",
    "size": "experiments/tables/size.py",
    "sparse": "benchmarks/sparse.py",
    "table1": "experiments/tables/table1.py",
    "table2": "experiments/tables/table2.py",
    "table2-wikipedia": "experiments/tables/table2.py",
    "typing": "benchmarks/as_you_type.py",
    "vector-lists": "experiments/vector_lists.py",
}
# Pages that people write; they must name their sources.
WRITTEN = {"reading", "README"}
PAGES = sorted(path.stem for path in RESULTS.glob("*.md"))
PROSE = [
    path.relative_to(ROOT).as_posix()
    for path in [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        RESULTS / "reading.md",
        *sorted((ROOT / "src" / "denspi" / "models").glob("*/README.md")),
    ]
]


def test_every_page_is_rendered_or_names_its_sources() -> None:
    assert set(PAGES) - set(SCRIPTS) - WRITTEN == set()


def test_the_list_of_tables_is_up_to_date() -> None:
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert page == load_script("experiments/tables/contents.py").render(), (
        "run experiments/tables/contents.py"
    )


@pytest.mark.parametrize("name", [name for name in PAGES if name in SCRIPTS])
def test_a_page_is_what_its_figures_render_to(name: str) -> None:
    pytest.importorskip("numba")
    result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    script = load_script(SCRIPTS[name])
    assert page == _rendered(script, result, RESULTS / f"{name}.json"), (
        f"docs/results/{name}.md: not what {SCRIPTS[name]} makes of its JSON; render it again"
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in RESULTS.glob("*.json")))
def test_a_result_names_the_command_that_made_it(name: str) -> None:
    page = RESULTS / f"{name}.md"
    texts = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    texts += page.read_text(encoding="utf-8") if page.exists() else ""
    if name == "build":  # of an earlier benchmark, which names it in docs/indexing.md
        texts += (ROOT / "docs" / "indexing.md").read_text(encoding="utf-8")
    assert re.search(r"(python|denspi) [\w./-]+|benchmarks/\w+\.py", texts), name


def test_what_is_said_of_the_shipped_model_was_measured_on_it() -> None:
    record = read_record(find_model("small"))
    assert record.filter
    assert record.calibration
    of = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("filter", "calibration", "table2", "table2-wikipedia", "index-size-all")
    }
    assert of["filter"]["thresholds"] == asdict(record.filter)
    assert of["calibration"]["shipped"] == asdict(record.calibration)
    assert of["index-size-all"]["fingerprint"] == record.fingerprint
    for name in ("table2", "table2-wikipedia"):
        assert record.fingerprint.startswith(of[name]["index"]["model"]), name


@pytest.mark.parametrize("document", PROSE)
def test_figures_in_prose_are_those_of_their_sources(document: str) -> None:
    backed = Backed()
    wrong = [
        f"{document}:{figure.line}: {' / '.join(figure.shown)} is in none of {figure.sources}"
        for figure in figures_of((ROOT / document).read_text(encoding="utf-8"))
        if not backed(figure)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("document", PROSE)
def test_every_figure_has_a_source_or_is_a_setting(document: str) -> None:
    """So that no measurement can slip in without a result file."""
    wrong = [
        f"{document}:{figure.line}: {' / '.join(figure.shown)} {figure.unit} "
        + ("is measured, not chosen" if figure.sources else "names no source")
        for figure in all_figures((ROOT / document).read_text(encoding="utf-8"))
        if not figure.sources
        or (figure.sources == (SETTINGS,) and (figure.unit in MEASURED_UNITS or len(figure.shown) > 1))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("document", PROSE)
def test_a_wrong_figure_would_be_noticed(document: str) -> None:
    """Nearly always: a figure that is a little off is not by chance another value of what it names."""
    backed, unnoticed, tried = Backed(), [], 0
    for figure in figures_of((ROOT / document).read_text(encoding="utf-8")):
        for change in (-2, -1, 1, 2):
            wrong = replace(figure, shown=(_changed(figure.shown[0], change), *figure.shown[1:]))
            tried += 1
            if backed(wrong):
                unnoticed.append(f"{document}:{figure.line}: {figure.shown} would pass as {wrong.shown}")
    assert len(unnoticed) <= 0.16 * tried, "\n".join([*unnoticed, "name narrower sources: file.json#place"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it takes 0.34 ms", [("0.34",)]),
        ("68.2 / 76.4 on dev", [("68.2", "76.4")]),
        ("68.2 EM / 76.4 F1, 73.6 EM", [("68.2", "76.4"), ("73.6",)]),
        ("210,416 paragraphs of 2015", [("210,416",)]),
        ("SQuAD v1.1, all-MiniLM-L6-v2, commit 8845af3", []),
        ("94% of them, `0.5` in [code](a/1.5)", [("94",)]),
    ],
)
def test_what_counts_as_a_figure(text: str, shown: list[tuple[str, ...]]) -> None:
    found = list(figures_of(f"<!-- figures: x.json -->\n{text}"))
    assert [figure.shown for figure in found] == shown


def test_a_mark_ends_with_its_section() -> None:
    page = "# A\n0.1 ms\n## B\n<!-- figures: x.json -->\n0.2 ms\n### C\n0.3 ms\n## D\n0.4 ms\n"
    assert [figure.shown for figure in figures_of(page)] == [("0.2",), ("0.3",)]
    settings = f"<!-- figures: settings -->\n{page}"
    assert list(figures_of(settings)) == list(figures_of(f"\n{page}"))
    assert all(figure.sources for figure in all_figures(settings))


def test_values_are_rounded_as_shown_and_pairs_stay_together() -> None:
    objects = objects_of({"runs": [{"em": 68.249, "f1": 76.44}, {"em": 61.5, "f1": 70.6}], "share": 0.963})
    for shown, expected in (
        (("68.2",), True),
        (("68.3",), False),
        (("96",), True),
        (("68.2", "76.4"), True),
        (("68.2", "70.6"), False),
        (("963",), False),
    ):
        unit = "%" if shown == ("96",) else ""
        assert is_backed(Figure(1, shown, (), unit), objects) is expected, shown


def test_a_source_may_be_a_place_in_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "results"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text('{"runs": [{"name": "a", "em": 1.5}, {"name": "b", "em": 2.5}], "c": 9}')
    for name, values in (("x.json#runs.b", [2.5]), ("x.json#runs.0", [1.5]), ("x.json#runs.-1", [2.5])):
        assert [each["values"] for each in read_source(name, tmp_path, [])] == [values]
    with pytest.raises(KeyError):
        read_source("x.json#nothing", tmp_path, [])


class Backed:
    """Whether a figure is in its sources, each of which is read once."""

    def __init__(self) -> None:
        self._paper = _paper_rows()
        self._read: dict[str, list[dict[str, list[float]]]] = {}

    def __call__(self, figure: Figure) -> bool:
        for name in figure.sources:
            if name not in self._read:
                self._read[name] = read_source(name, ROOT, self._paper)
        return is_backed(figure, [each for name in figure.sources for each in self._read[name]])


def _changed(shown: str, change: int) -> str:
    """Its last digit is another one."""
    decimals = len(shown.partition(".")[2])
    return f"{float(shown.replace(',', '')) + change * 10**-decimals:.{decimals}f}"


def _rendered(script: ModuleType, result: dict[str, Any], path: Path) -> str:
    if path.stem == "index-size":  # with what was measured on all articles, where it was
        return str(script.render(result, script._all_articles_beside(path)))
    return str(script.render(result))


def _paper_rows() -> list[Any]:
    paper = load_script("experiments/tables/paper.py")
    rows: list[Any] = [paper.SIZES_TB, list(paper.AUXILIARY_TB)]
    for value in vars(paper).values():
        for each in value if isinstance(value, tuple) else (value,):
            if is_dataclass(each) and not isinstance(each, type):
                rows.append({key: v for key, v in asdict(each).items() if isinstance(v, int | float)})
    return rows
