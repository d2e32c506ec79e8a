from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspi.corpus import wikipedia
from denspi.corpus.wikitext import clean_wikitext

DUMP = Path(__file__).parent / "fixtures" / "wiki.xml"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_dump(pack: Callable[[bytes], bytes], read: Callable, write: Callable) -> None:
    path = write("pages-articles.xml", pack(DUMP.read_bytes()))
    result = read(path)
    assert result.ids == ["Lighthouse of Alden", "Norsund (strait)"]
    tower, strait = result.documents
    assert tower.metadata == {"page_id": "12"}
    assert list(tower.paragraph_texts()) == [
        "The Lighthouse of Alden (Phare d'Alden) is a tower on the Norsund, 40 m high. "
        "It was built in 1871 & still burns.",
        "Three families kept the light:",
        "the Holms, until 1901",
        "the Bergs",
        "More at the society. unclosed",
    ]
    assert list(strait.paragraph_texts()) == ["The Norsund is a strait."]
    assert [str(skipped) for skipped in result.skipped] == [f"{path}:Only a box: empty"]
    assert [note.text for note in result.notes] == [
        "dropped 1 redirect, 1 disambiguation page, 1 page of another namespace"
    ]


def test_a_cut_dump_keeps_the_pages_before(read: Callable, write: Callable) -> None:
    data = DUMP.read_bytes()
    result = read(write("dump.xml", data[: data.index(b"Only a box")]))
    assert result.ids == ["Lighthouse of Alden"]
    assert result.reason.startswith("damaged XML (no element found")


def test_an_entity_bomb_is_refused(read: Callable, write: Callable) -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><mediawiki>&b;</mediawiki>'
    )
    result = read(write("bomb.xml", bomb))
    assert result.reason == "declares the XML entity 'a'; a dump has none, so this file is refused"


def test_a_page_above_the_limit_is_skipped(
    read: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikipedia, "LONGEST_PAGE_CHARS", 200)
    result = read(write("dump.xml", DUMP.read_bytes()))
    assert result.ids == ["Norsund (strait)"]
    assert result.skipped[0].reason == "a page longer than 200 characters"


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("'''Bold''' and ''italic''", ["Bold and italic"]),
        ("one\ntwo\n\nthree", ["one two", "three"]),
        ("a [[b|c]] [[d]]s [[:Category:E]]", ["a c ds Category:E"]),
        ("a<ref>x</ref> b<ref name=y/>.", ["a b."]),
        ("[[Image:x.jpg|thumb|[[a]] b]]text [[category:x]]", ["text"]),
        ("&lt;b&gt; is a tag, &eacute;&#233; &nbsp; x", ["<b> is a tag, éé x"]),
        ("== Heading ==\ntext __NOTOC__", ["text"]),
        ("{{a|{{b}}}} text {{nowrap|10 kg}}", ["text 10 kg"]),
        ("a <math>x</math> b<br/>c", ["a b", "c"]),
        ("x ( ; ) y ({{lang|de|z}}, ) .", ["x y (z)."]),
        ("'''broken text [[ and {{", ["broken text and"]),
        ("{| unclosed\n| cell\ntext", ["text"]),
        ("&#99999999999; x", ["&#99999999999; x"]),
    ],
)
def test_wikitext(wikitext: str, expected: list[str]) -> None:
    assert clean_wikitext(wikitext) == expected


def test_a_page_nested_too_deeply_is_skipped_alone(read: Callable, write: Callable) -> None:
    deep = "{{" * 1000 + "x" + "}}" * 1000
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text></revision></page>"
        for title, text in (("A", "Before."), ("Deep", deep), ("B", "After."))
    )
    result = read(write("dump.xml", f"<mediawiki>{pages}</mediawiki>"))
    assert result.ids == ["A", "B"]
    assert result.reason == "wikitext that cannot be parsed (nested too deeply)"


@pytest.mark.parametrize(
    ("wikitext", "paragraphs"),
    [
        ("'''!!!''' is an American band.", ["!!! is an American band."]),
        ("'''!Kung''' people live there.", ["!Kung people live there."]),
        ("|x| is the absolute value.", ["|x| is the absolute value."]),
        ("Before.\n{| class=x\n! head\n|-\n| cell\nAfter.", ["Before.", "After."]),
        ("{|\n| cell\n|}\n!Kung is a language.", ["!Kung is a language."]),
    ],
)
def test_only_table_lines_in_a_table_go(wikitext: str, paragraphs: list[str]) -> None:
    assert clean_wikitext(wikitext) == paragraphs


MARKUP = st.sampled_from(
    [
        "[[",
        "]]",
        "{{",
        "}}",
        "|",
        "'''",
        "''",
        "{|",
        "|}",
        "\n",
        "* ",
        "== ",
        "<ref>",
        "</ref>",
        "word ",
        "&amp;",
    ]
)


@given(st.lists(MARKUP, max_size=25).map("".join))
def test_no_markup_is_left_and_nothing_breaks(wikitext: str) -> None:
    for paragraph in clean_wikitext(wikitext):
        assert paragraph == paragraph.strip()
        assert "\n" not in paragraph
        assert not any(mark in paragraph for mark in ("[[", "]]", "{{", "}}", "''", "{|", "<ref"))
