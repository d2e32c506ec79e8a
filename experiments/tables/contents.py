"""docs/results/README.md: which of the paper's tables are there, and the command of each. Measures nothing.

python experiments/tables/contents.py
"""

from __future__ import annotations

import json

from pages import RESULTS, markdown

OUTPUT = RESULTS / "README.md"
TABLES = {
    "table1": "Table 1: reading SQuAD's own paragraphs, query-agnostic models and ablations beside readers",
    "table2": "Table 2: the open setting over SQuAD's articles, every strategy beside re-reading",
    "table2-wikipedia": "Table 2 again, with the articles of Wikipedia among them",
    "agreement": "how often hybrid answers as exact does, what it proves, where they differ",
    "collection-growth": "accuracy and time as the collection grows",
    "size": "section 5.2: bytes a word after pointer, filter and quantization, and for all of Wikipedia",
    "samples": "the example questions, our answers beside those that the paper quotes",
    "plan": "what `denspi plan` says, beside real builds",
}


def main() -> None:
    OUTPUT.write_text(render(), encoding="utf-8")


def render() -> str:
    rows = []
    for name, what in TABLES.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            command = json.loads(path.read_text(encoding="utf-8"))["command"]
            rows.append((f"[{name}]({name}.md)", what, f"`{command}`"))
    return (
        "\n".join(
            [
                "# The paper's tables",
                "",
                "`make tables` makes all of them anew; so does each command alone. Figures are in the JSON"
                " file beside",
                "a page, with the machine and the commit. The paper's own figures are quoted in",
                "[paper.py](../../experiments/tables/paper.py).",
                "",
                *markdown(("page", "what", "command"), rows),
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
