"""HTML, Markdown and PDF: the text that a person sees, in paragraphs that stand where they say."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus.files import ByteStream, CorpusFile
from denspi.corpus.html import read_html
from denspi.corpus.markdown import read_markdown
from denspi.corpus.reflow import reflow
from denspi.types import Document

HTML = """<!doctype html><html><head><title>Tea &amp;
 cakes</title><style>p {}</style></head><body><nav>Home</nav><header>Logo</header>
<h1>Tea</h1><p>Tea is <b>hot</b>, see <a href="x">milk</a>.<br>Drink it.</p>loose text
<div>in a <i>div</i><p>inner</p></div><ul><li>one</li><li>two</li></ul>
<table><tr><th>kind</th><th>minutes</th></tr><tr><td><p>green</p></td><td>2</td></tr></table>
<pre>a
  b</pre><form>Search</form><p hidden>no</p><script>x()</script><footer>(c)</footer></body></html>"""

MARKDOWN = """---
title: 'Tea notes'
draft: true
---
# Tea

Tea is **hot**, see [milk](http://x)
and ![a cup](cup.png) &amp; `code`.\\
Drink <b>it</b>.

- one
- two *three*

```
x = 1

y = 2
```

| kind | minutes |
| --- | --- |
| green | **2** |

<p>raw <i>HTML</i></p>

## Last
"""


def test_html(read: Callable, write: Callable) -> None:
    document = read(write("tea.html", HTML)).only
    assert document.title == "Tea & cakes"
    assert list(document.paragraph_texts()) == [
        "Tea\n\nTea is hot, see milk.\nDrink it.",
        "loose text",
        "in a div",
        "inner",
        "one",
        "two",
        "kind | minutes",
        "green | 2",
        "a\n  b",
    ]


def test_html_encodings(read: Callable, write: Callable) -> None:
    page = '<meta charset="iso-8859-1"><h1>Größe</h1><p>“x”</p>'
    document = read(write("a.html", page.encode("cp1252"))).only
    assert (document.title, document.text) == ("Größe", "Größe\n\n“x”")
    assert read(write("b.html", page.encode("utf-16"))).only.title == "Größe"
    assert read(write("c.html", "<p>Größe".encode("latin-1"))).reason == "not UTF-8 text (0xf6 at byte 5)"
    assert read(write("d.html", b"<meta charset=klingon><p>x")).reason == "unknown charset 'klingon'"


def test_a_page_laid_out_in_a_table(read: Callable, write: Callable) -> None:
    page = "<table><tr><td><h2>Menu</h2><p>Soup.</p><p>Bread.</p></td></tr></table>"
    assert list(read(write("a.html", page)).only.paragraph_texts()) == ["Menu\n\nSoup.", "Bread."]


def test_html_that_is_extremely_deep_is_skipped(read: Callable, write: Callable) -> None:
    assert read(write("deep.html", "<div>" * 1500 + "deep")).only.text == "deep"
    assert read(write("long.html", "<div><p>x<li>y</div>" * 5000)).only.text.startswith("x\n\ny")
    reason = "elements nested deeper than 2,000 levels"
    assert read(write("deeper.html", "<div>" * 200_000 + "deep")).reason == reason


def test_markdown_that_is_deep_is_read_or_skipped(read: Callable, write: Callable) -> None:
    lists = "\n".join("  " * depth + f"- item{depth}" for depth in range(45))
    assert len(read(write("deep.md", lists)).only.paragraphs) == 45
    assert read(write("quotes.md", "> " * 99 + "deep")).only.text == "deep"
    assert read(write("brackets.md", "[" * 5000 + "deep")).only.text.endswith("deep")
    for depth in (100, 10_000):
        reason = read(write("deeper.md", "top\n\n" + "> " * depth + "deep")).reason
        assert reason == "lists or quotes nested deeper than 100 levels"


@pytest.mark.parametrize(
    ("source", "title", "text"),
    [
        ("---\n\nProse here.\n\n---\n\nMore.", "a", "Prose here.\n\nMore."),
        ("---\nProse here.\n\n---\n\nMore.", "a", "Prose here.\n\nMore."),
        ("---\n# why\ntitle: T\ntags:\n- x\n\nabout: >\n  long\n---\nMore.", "T", "More."),
        ("+++\ntitle = 'T'\n[extra]\nlist = [\n  1,\n]\n+++\nMore.", "T", "More."),
        ("---\rtitle: T\r---\rMore.\r\rLast.", "T", "More.\n\nLast."),
    ],
)
def test_front_matter_holds_fields(
    source: str, title: str, text: str, read: Callable, write: Callable
) -> None:
    document = read(write("a.md", source)).only
    assert (document.title, document.text) == (title, text)


def test_markdown(read: Callable, write: Callable) -> None:
    document = read(write("tea.md", MARKDOWN)).only
    assert document.title == "Tea notes"
    assert list(document.paragraph_texts()) == [
        "Tea\n\nTea is hot, see milk and a cup & code.\nDrink it.",
        "one",
        "two three",
        "x = 1\n\ny = 2",
        "kind | minutes",
        "green | 2",
        "raw HTML",
        "Last",
    ]


def test_the_title_of_a_markdown_file(read: Callable, write: Callable) -> None:
    assert read(write("a_b.md", "# *Head* `er`\n\nText.")).only.title == "Head er"
    assert read(write("b_c.md", "Text.\n\n---\n\ntitle: no")).only.title == "b c"
    assert read(write("c.md", '+++\ntitle = "Toml"\n+++\nText.')).only.title == "Toml"


@pytest.mark.parametrize("reader", [read_html, read_markdown])
@given(
    st.lists(st.sampled_from(["<p>", "</p>", "<pre>", "<tr><td>", "# ", "\n", "a", "- ", "`", "|", " "])).map(
        "".join
    )
)
def test_spans_of_extracted_text_are_exact(reader: Callable, source: str) -> None:
    file = CorpusFile(Path("a"), "a", "a")
    (document,) = reader(file, ByteStream(iter([source.encode()] if source else [])))
    assert isinstance(document, Document)
    assert "\n\n".join(document.paragraph_texts()) == document.text
    assert sum(document.text.count(sign) for sign in "a") == source.count("a")


def test_pdf(read: Callable, write: Callable, make_pdf: Callable) -> None:
    first = [
        "Lighthouses are towers that carry a bright light for the ships at",
        "sea. They are well-known land-",
    ]
    second = ["marks, and some of them are very old.", "2"]
    document = read(write("tower_book.pdf", make_pdf([first, second], title="Towers"))).only
    assert document.title == "Towers"
    assert list(document.paragraph_texts()) == [
        "Lighthouses are towers that carry a bright light for the ships at sea. "
        "They are well-known landmarks, and some of them are very old."
    ]


def test_pdf_without_text(read: Callable, write: Callable, make_pdf: Callable) -> None:
    assert read(write("scan.pdf", make_pdf([[], []]))).reason == "no text (scanned?)"
    half = read(write("half.pdf", make_pdf([["Some text."], []])))
    assert half.only.title == "half"
    assert [note.text for note in half.notes] == ["1 of 2 pages have no text"]


def test_encrypted_pdf(read: Callable, write: Callable, make_pdf: Callable) -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf([["Secret."]])))
    writer.encrypt("password", algorithm="RC4-128")
    encrypted = io.BytesIO()
    writer.write(encrypted)
    assert read(write("locked.pdf", encrypted.getvalue())).reason == "encrypted: needs a password"


@pytest.mark.parametrize("keep", [9, 60, 300])
def test_damaged_pdf(keep: int, read: Callable, write: Callable, make_pdf: Callable) -> None:
    result = read(write("cut.pdf", make_pdf([["Some text."]])[:keep]))
    assert not result.documents
    assert result.reason.startswith(("damaged PDF", "no text"))


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (["a well-known thing is a well-\nknown thing"], ["a well-known thing is a well-known thing"]),
        (["the conti-\nnuation"], ["the continuation"]),
        (["the North-\nSouth line"], ["the North-South line"]),
        (["soft\xad\nly"], ["softly"]),
        (["one\n\ntwo"], ["one", "two"]),
        (["The end of it.", "Next page."], ["The end of it.", "Next page."]),
        (["it goes on and", "Berlin is next."], ["it goes on and Berlin is next."]),
        (["Items:\n• one\n• two"], ["Items:", "• one", "• two"]),
        (["ﬁnal ﬂight\n- 7 -"], ["final flight"]),
    ],
)
def test_reflow(pages: list[str], expected: list[str]) -> None:
    assert reflow(pages) == expected
