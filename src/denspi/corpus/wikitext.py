"""Wikitext to clean paragraphs: link texts and prose stay; templates, tables, references and files go. Pure.

Headings go too (paragraphs then look like SQuAD's), each list item is a paragraph. A few templates that carry
words of a sentence (`{{convert}}`, `{{lang}}`, `{{nowrap}}`) leave those words behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from denspi.corpus.files import UnreadableError
from denspi.errors import MissingExtraError


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_DROPPED_TAGS = _names(
    "ref references gallery table math chem ce timeline score imagemap syntaxhighlight source style "
    "templatestyles mapframe maplink graph hiero section indicator inputbox categorytree noinclude"
)
_BREAKING_TAGS = _names("li dt dd br hr p div blockquote poem center ul ol dl")
# Which argument of a template is its text.
_TEXT_ARGUMENT = {
    "nowrap": "1",
    "nobr": "1",
    "nobreak": "1",
    "lang": "2",
    "transl": "2",
    "abbr": "1",
    "small": "1",
}
_MEASURES = frozenset(("convert", "cvt"))
_INTERLANGUAGE = re.compile(r"\s*[a-z]{2,3}(?:-[a-z]+)*\s*:\s*\S")
_UNPAIRED_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_TIDYING = (
    (re.compile(r"__[A-ZÄÖÜ]+__|'{2,}|\[\[+|\]\]+|\{\{+|\}\}+|\{\||\|\}"), " "),  # unpaired marks
    (re.compile(r"\s+"), " "),
    (re.compile(r"\([;,: ]{1,20}"), "("),
    (re.compile(r"[;,: ]{1,20}\)"), ")"),
    (re.compile(r" ?\( ?\)"), ""),
    (re.compile(r" +([,.)])(?!\d)"), r"\1"),
)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Lower-case names of the namespaces of files and of categories; a dump's head adds its language's."""

    files: frozenset[str] = frozenset(("file", "image", "media"))
    categories: frozenset[str] = frozenset(("category",))

    def with_files(self, name: str) -> Namespaces:
        """These, and another name for files."""
        return replace(self, files=self.files | {name.strip().lower()})

    def with_categories(self, name: str) -> Namespaces:
        """These, and another name for categories."""
        return replace(self, categories=self.categories | {name.strip().lower()})


def clean_wikitext(wikitext: str, namespaces: Namespaces | None = None) -> list[str]:
    """The paragraphs of a page, in order."""
    try:
        import mwparserfromhell
        from mwparserfromhell.parser import ParserError
    except ImportError as error:
        raise MissingExtraError("reading Wikipedia dumps", "corpus") from error
    pieces: list[str] = []
    try:
        _collect(mwparserfromhell.parse(wikitext).nodes, namespaces or Namespaces(), pieces)
    except ParserError as error:
        raise UnreadableError(f"wikitext that cannot be parsed ({error})") from error
    except RecursionError as error:
        raise UnreadableError("wikitext that cannot be parsed (nested too deeply)") from error
    text = _without_table_lines("".join(pieces))
    paragraphs = (_tidy(block) for block in re.split(r"\n\s*\n", text))
    return [paragraph for paragraph in paragraphs if any(sign.isalnum() for sign in paragraph)]


def _without_table_lines(text: str) -> str:
    """Without the rows of tables that were left unparsed: from a line with "{|" to one with "|}", if any."""
    kept: list[str] = []
    open_tables = 0
    for line in text.split("\n"):
        start = line.lstrip()
        if start.startswith("{|"):
            open_tables += 1
        is_row = open_tables and start.startswith(("{|", "|", "!"))
        if is_row and start.startswith("|}"):
            open_tables -= 1
        kept.append("" if is_row else line)
    return "\n".join(kept)


def _tidy(block: str) -> str:
    """One line with clean spacing, without the empty brackets and lone commas that templates leave behind."""
    text = " ".join(block.split())
    for pattern, replacement in _TIDYING:
        text = pattern.sub(replacement, text)
    return text.strip()


def _collect(nodes: Iterable[Any], namespaces: Namespaces, pieces: list[str]) -> None:
    """Append what a reader sees of the nodes; "\\n\\n" stands for a paragraph's end."""
    for node in nodes:
        kind = type(node).__name__
        if kind == "Text":
            # Here, and not at the end: a decoded "&lt;b&gt;" is text.
            pieces.append(_UNPAIRED_TAG.sub("", str(node.value)))
        elif kind == "Wikilink":
            _collect_link(node, namespaces, pieces)
        elif kind == "ExternalLink":
            if node.title is not None:
                _collect(node.title.nodes, namespaces, pieces)
            elif not node.brackets:
                pieces.append(str(node.url))
        elif kind == "Tag":
            _collect_tag(node, namespaces, pieces)
        elif kind == "HTMLEntity":
            pieces.append(_entity(node))
        elif kind == "Heading":
            pieces.append("\n\n")
        elif kind == "Template":
            _collect_template(node, namespaces, pieces)


def _collect_link(node: Any, namespaces: Namespaces, pieces: list[str]) -> None:
    target = str(node.title).strip()
    prefix = target.partition(":")[0].strip().lower() if ":" in target else ""
    if prefix in namespaces.files or prefix in namespaces.categories:
        return
    if node.text is not None:
        _collect(node.text.nodes, namespaces, pieces)
    elif not _INTERLANGUAGE.match(target):
        pieces.append(target.removeprefix(":"))


def _collect_tag(node: Any, namespaces: Namespaces, pieces: list[str]) -> None:
    tag = str(node.tag).strip().lower()
    if tag in _DROPPED_TAGS:
        return
    if tag in _BREAKING_TAGS:
        pieces.append("\n\n")
    if node.contents is not None:
        _collect(node.contents.nodes, namespaces, pieces)
    if tag in _BREAKING_TAGS and not node.wiki_markup:
        pieces.append("\n\n")


def _collect_template(node: Any, namespaces: Namespaces, pieces: list[str]) -> None:
    name = str(node.name).strip().lower()
    if name in _MEASURES and node.has("1") and node.has("2"):
        pieces.append(f"{str(node.get('1').value).strip()} {str(node.get('2').value).strip()}")
    elif name in _TEXT_ARGUMENT and node.has(_TEXT_ARGUMENT[name]):
        _collect(node.get(_TEXT_ARGUMENT[name]).value.nodes, namespaces, pieces)


def _entity(node: Any) -> str:
    try:
        return str(node.normalize())
    except (ValueError, OverflowError):
        return str(node)
