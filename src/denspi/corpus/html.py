"""HTML pages: the text that a person reads, block by block, without scripts, navigation and forms.

The page is read into memory and its tree walked without recursion. The parser's time grows with the depth at
each tag, so that extremely deep pages are refused. `<br>` is a line end, a table row one paragraph with its
cells between bars; a heading opens the paragraph after it.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from denspi.corpus.encoding import decode_all
from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError
from denspi.corpus.headings import attach_headings
from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.records import Item
from denspi.errors import MissingExtraError
from denspi.types import Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LARGEST_FILE_BYTES = 32 << 20
DEEPEST_NESTING = 2000


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


HEADINGS = _names("h1 h2 h3 h4 h5 h6")
BOILERPLATE = _names(
    "script style nav header footer aside form noscript template iframe svg canvas object head "
    "button select textarea dialog audio video math"
)
BLOCKS = HEADINGS | _names(
    "address article blockquote body caption center details div dl dt fieldset figcaption figure hr html "
    "li main menu ol option p pre section summary table tbody tfoot thead tr ul"
)
# Those that need an end tag; others (p, li, td, ...) end by themselves and lie no deeper than these.
_NESTING = _names(
    "address article aside b big blockquote center details div dl em fieldset figure font footer header i "
    "main menu nav ol section small span strong table u ul"
)
_CELLS = _names("td th")
_NOT_IN_A_DATA_ROW = (
    "table, h1, h2, h3, h4, h5, h6, ul, ol, dl, pre, article, section"  # a page laid out in a table
)
_TAG = re.compile(r"<(/?)([a-zA-Z]+)")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)


def read_html(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document; its title is the page's `<title>`, else its first heading, else the file's name."""
    data = stream.read_all(LARGEST_FILE_BYTES)
    tree = _parse(decode_all(data, _announced_encoding(data)))
    blocks = list(_walk(tree))
    first_heading = next((text for text, is_heading in blocks if is_heading), "")
    text, spans = join_paragraphs(attach_headings(blocks))
    title = _page_title(tree) or first_heading or file.title
    yield Document(file.document_id, title, text, spans, file.source)


def html_blocks(page: str) -> list[tuple[str, bool]]:
    """The readable blocks of a page or fragment in order, each with whether it is a heading."""
    return list(_walk(_parse(page)))


def _parse(page: str) -> LexborHTMLParser:
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise MissingExtraError("reading HTML files", "corpus") from error
    if _is_too_deep(page):
        raise UnreadableError(f"elements nested deeper than {DEEPEST_NESTING:,} levels")
    try:
        return LexborHTMLParser(page)
    except (ValueError, RuntimeError) as error:
        raise UnreadableError(f"not HTML that can be parsed ({error})") from error


def _is_too_deep(page: str) -> bool:
    """Whether so many elements are open at once, by a count of the tags that needs no tree."""
    open_elements: Counter[str] = Counter()
    depth = 0
    for found in _TAG.finditer(page):
        end, tag = found[1], found[2].lower()
        if tag not in _NESTING:
            continue
        if not end:
            open_elements[tag] += 1
            depth += 1
        elif open_elements[tag]:
            open_elements[tag] -= 1
            depth -= 1
        if depth > DEEPEST_NESTING:
            return True
    return False


def _page_title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("head title")
    return " ".join(node.text().split()) if node else ""


def _announced_encoding(data: bytes) -> str | None:
    """What `<meta charset>` names; browsers read Latin-1 and ASCII as Windows-1252, and so do we."""
    found = _CHARSET.search(data[:4096])
    if not found:
        return None
    try:
        encoding = codecs.lookup(found[1].decode("ascii", "replace"))
    except LookupError as error:
        raise UnreadableError(f"unknown charset {found[1].decode('ascii', 'replace')!r}") from error
    if encoding.name in ("iso8859-1", "ascii"):
        return "cp1252"
    # A page that can say so in ASCII is not in UTF-16, whatever it says.
    return None if encoding.name.startswith(("utf-16", "utf-32")) else encoding.name


def _walk(tree: LexborHTMLParser) -> Iterator[tuple[str, bool]]:
    """Blocks in document order: a block's start and end both close the text collected so far."""
    collected: list[str] = []
    preformatted = 0
    row_id: int | None = None  # the table row we are in, if its cells hold plain text
    body_id = tree.body.mem_id if tree.body else None
    node = tree.body
    while node is not None:
        tag = node.tag or ""
        if node.is_text_node:
            value = node.text() or ""
            collected.append(value if preformatted else re.sub(r"\s+", " ", value))
        elif tag == "br":
            collected.append("\n")
        elif tag in _CELLS and any(piece.strip() for piece in collected):
            collected.append(" | ")
        elif tag in BLOCKS and row_id is not None:
            collected.append(" ")
        elif tag in BLOCKS:
            yield from _close(collected)
            preformatted += tag == "pre"
            is_data_row = tag == "tr" and node.css_first(_NOT_IN_A_DATA_ROW) is None
            row_id = node.mem_id if is_data_row else None
        child = None if _is_left_out(node) else node.child
        if child is not None:
            node = child
            continue
        while node is not None:
            if node.mem_id == row_id:
                row_id = None
            if node.tag in BLOCKS and row_id is None:
                yield from _close(
                    collected, is_heading=node.tag in HEADINGS, is_preformatted=preformatted > 0
                )
                preformatted -= node.tag == "pre"
            if node.mem_id == body_id:  # `==` would compare the HTML of both
                return
            if node.next is not None:
                node = node.next
                break
            node = node.parent


def _is_left_out(node: LexborNode) -> bool:
    if node.tag in BOILERPLATE:
        return True
    return bool(node.is_element_node and "hidden" in node.attributes)


def _close(
    collected: list[str], *, is_heading: bool = False, is_preformatted: bool = False
) -> Iterator[tuple[str, bool]]:
    """The collected text as blocks (two line ends in a row separate), tidied; empties the list."""
    text = "".join(collected)
    collected.clear()
    if is_preformatted:
        if text.strip():
            yield text.strip("\n").rstrip(), is_heading
        return
    text = re.sub(r" ?\n ?", "\n", re.sub(r"[ \t]+", " ", text))
    for block in re.split(r"\n{2,}", text):
        if clean := block.strip("| \n"):
            yield clean, is_heading
