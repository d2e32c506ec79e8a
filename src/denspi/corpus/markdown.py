"""Markdown files (CommonMark with tables): the text without its marks, one paragraph a block or list item.

Code blocks stay as they are, images become their description, raw HTML is read like a page; front matter
goes, but may name the title. A heading opens the paragraph after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from denspi.corpus.encoding import decode_all
from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError
from denspi.corpus.headings import attach_headings
from denspi.corpus.html import html_blocks
from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.records import Item
from denspi.errors import MissingExtraError
from denspi.types import Document

if TYPE_CHECKING:
    from markdown_it.token import Token

LARGEST_FILE_BYTES = 16 << 20
DEEPEST_NESTING = 100  # of lists (two levels each) and quotes; the parser recurses

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# A key, a list item, a comment, a TOML table or the end of a bracket, an indented line, a blank line.
_FRONT_LINE = re.compile(r"""["']?[\w.-]+["']?\s*(?::(?:\s|$)|=)|-\s|#|\[|[\]}],?\s*$|\s|$""")
_FRONT_TITLE = re.compile(r"""^title\s*[:=]\s*(["']?)(.+?)\1\s*$""", re.MULTILINE | re.IGNORECASE)


def read_markdown(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document; its title comes from the front matter, else the first heading, else the file's name."""
    source_text = decode_all(stream.read_all(LARGEST_FILE_BYTES))
    source_text = source_text.replace("\r\n", "\n").replace("\r", "\n")
    front_title, body = split_front_matter(source_text)
    blocks = list(_blocks(_parse(body)))
    first_heading = next((text for text, is_heading in blocks if is_heading), "")
    text, spans = join_paragraphs(attach_headings(blocks))
    yield Document(file.document_id, front_title or first_heading or file.title, text, spans, file.source)


def split_front_matter(text: str) -> tuple[str, str]:
    """The title that YAML or TOML front matter names ('' if none), and the text after the front matter."""
    found = _FRONT_MATTER.match(text)
    if not found or not _is_front_matter(found[2] or ""):
        return "", text
    title = _FRONT_TITLE.search(found[2] or "")
    return (title[2].strip() if title else ""), text[found.end() :]


def _is_front_matter(block: str) -> bool:
    """Whether it holds fields, and is no prose between two rules, which a blank line would open."""
    return not block.startswith("\n") and all(_FRONT_LINE.match(line) for line in block.splitlines())


def _parse(body: str) -> list[Token]:
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingExtraError("reading Markdown files", "corpus") from error
    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST_NESTING}).enable(["table", "strikethrough"])
    tokens = parser.parse(body)
    # The parser silently leaves out what a quote or list item holds at its limit.
    containers = (token for token in tokens if token.type in ("blockquote_open", "list_item_open"))
    if any(token.level >= DEEPEST_NESTING - 1 for token in containers):
        raise UnreadableError(f"lists or quotes nested deeper than {DEEPEST_NESTING} levels")
    return tokens


def _blocks(tokens: Sequence[Token]) -> Iterator[tuple[str, bool]]:
    """The text of each block in order, with whether it is a heading."""
    row: list[str] | None = None
    is_heading = False
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            is_heading = token.type == "heading_open"
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            yield " | ".join(row), False
            row = None
        elif token.type == "inline":
            text = _inline_text(token.children or [])
            if row is not None:
                row.append(text)
            elif text:
                yield text, is_heading
        elif token.type in ("fence", "code_block"):
            yield token.content.strip("\n"), False
        elif token.type == "html_block":
            yield from html_blocks(token.content)


def _inline_text(tokens: Sequence[Token]) -> str:
    """What a person sees: link texts, descriptions of images, code without its ticks."""
    pieces: list[str] = []
    for token in tokens:
        if token.type == "softbreak":
            pieces.append(" ")
        elif token.type == "hardbreak" or (token.type == "html_inline" and token.content.startswith("<br")):
            pieces.append("\n")
        elif token.type == "image":
            pieces.append(_inline_text(token.children or []))
        elif token.type != "html_inline":
            pieces.append(token.content)
    return "".join(pieces).strip()
