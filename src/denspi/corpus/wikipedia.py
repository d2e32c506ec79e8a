"""Wikipedia's XML dump (``pages-articles.xml``), streamed: no tree is built and one page is held at a time.

Keeps the articles (namespace 0) that are neither redirects nor disambiguation pages, and notes how many
others there were. XML from strangers: entity declarations are refused, so nothing expands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from denspi.corpus.files import ByteStream, CorpusFile, UnreadableError
from denspi.corpus.paragraphs import join_paragraphs
from denspi.corpus.records import Item, Note, Skipped
from denspi.corpus.wikitext import Namespaces, clean_wikitext
from denspi.types import Document

LONGEST_PAGE_CHARS = 8_000_000  # MediaWiki itself stops at 2 MiB

_REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)
_DISAMBIGUATION = re.compile(
    r"__DISAMBIG__|\{\{\s*(?:(?:[\w-]+[ _]){0,4}disambig(?:uation)?(?:[ _]page)?|dab|disamb|hndis|geodis"
    r"|begriffsklärung|homonymie|desambiguación|desambiguação|disambigua|ujednoznacznienie|неоднозначность)\s*[|}]",
    re.IGNORECASE,
)
_WANTED = {
    ("page", "title"): "title",
    ("page", "ns"): "namespace",
    ("page", "id"): "page_id",
    ("revision", "text"): "text",
}
_PLURALS = {
    "redirect": "redirects",
    "disambiguation page": "disambiguation pages",
    "page of another namespace": "pages of other namespaces",
}
_FILES, _CATEGORIES, _MEDIA = "6", "14", "-2"


@dataclass(slots=True)
class _Page:
    """What is collected of one page while its elements pass by."""

    is_redirect: bool = False
    is_too_long: bool = False
    fields: dict[str, str] = field(default_factory=dict)


def read_wikipedia(file: CorpusFile, stream: ByteStream) -> Iterator[Item]:
    """One document an article; its id is the page's title, and ``page_id`` is kept as metadata."""
    dump = _Dump()
    dropped: Counter[str] = Counter()
    failure: UnreadableError | None = None
    chunks = iter(stream)
    while failure is None:
        try:
            chunk = next(chunks, b"")
            dump.feed(chunk)
        except UnreadableError as error:
            failure, chunk = error, b""
        for page in dump.take_pages():
            kind = _kind(page)
            if kind:
                dropped[kind] += 1
            else:
                yield _article(file, page, dump.namespaces)
        if not chunk:
            break
    if dropped:
        counts = (
            f"{dropped[kind]} {kind if dropped[kind] == 1 else plural}" for kind, plural in _PLURALS.items()
        )
        yield Note(file.source, "dropped " + ", ".join(counts))
    if failure:
        raise failure


def _kind(page: _Page) -> str | None:
    """Why a page is ordinarily left out, or None for an article."""
    text = page.fields.get("text", "")
    if page.fields.get("namespace", "0").strip() != "0":
        return "page of another namespace"
    if page.is_redirect or _REDIRECT.match(text):
        return "redirect"
    if page.fields.get("title", "").endswith("(disambiguation)") or _DISAMBIGUATION.search(text):
        return "disambiguation page"
    return None


def _article(file: CorpusFile, page: _Page, namespaces: Namespaces) -> Document | Skipped:
    title = page.fields.get("title", "").strip()
    source = f"{file.source}:{title}"
    if not title:
        return Skipped(source, "a page without a title")
    if page.is_too_long:
        return Skipped(source, f"a page longer than {LONGEST_PAGE_CHARS:,} characters")
    try:
        text, spans = join_paragraphs(clean_wikitext(page.fields.get("text", ""), namespaces))
    except UnreadableError as error:
        return Skipped(source, str(error))
    return Document(title, title, text, spans, source, {"page_id": page.fields.get("page_id", "")})


class _Dump:
    """An expat parser that turns chunks of a dump into pages."""

    def __init__(self) -> None:
        self.namespaces = Namespaces()
        self._finished: list[_Page] = []
        self._page: _Page | None = None
        self._open: list[str] = []
        self._namespace_key = ""
        self._pieces: list[str] | None = None
        self._chars = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = _refuse_entity
        self._parser = parser

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; b"" says that there are no more."""
        try:
            self._parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            raise UnreadableError(f"damaged XML ({error}); read up to there") from error

    def take_pages(self) -> Iterator[_Page]:
        """The pages that were completed since the last call."""
        finished, self._finished = self._finished, []
        return iter(finished)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else ""
        self._open.append(name)
        if name == "page":
            self._page = _Page()
        elif name == "redirect" and self._page:
            self._page.is_redirect = True
        elif name == "namespace" or (self._page and (parent, name) in _WANTED):
            self._namespace_key = attributes.get("key", "")
            self._pieces, self._chars = [], 0

    def _characters(self, data: str) -> None:
        if self._pieces is None:
            return
        self._chars += len(data)
        if self._chars <= LONGEST_PAGE_CHARS:
            self._pieces.append(data)
        elif self._page:
            self._page.is_too_long = True

    def _end(self, name: str) -> None:
        self._open.pop()
        parent = self._open[-1] if self._open else ""
        if name == "page" and self._page:
            self._finished.append(self._page)
            self._page = None
        elif self._pieces is not None:
            value = "".join(self._pieces)
            self._pieces = None
            if self._page:
                self._page.fields[_WANTED[parent, name]] = value
            elif self._namespace_key in (_FILES, _MEDIA):
                self.namespaces = self.namespaces.with_files(value)
            elif self._namespace_key == _CATEGORIES:
                self.namespaces = self.namespaces.with_categories(value)


def _refuse_entity(name: str, *_: object) -> None:
    raise UnreadableError(f"declares the XML entity {name!r}; a dump has none, so this file is refused")
