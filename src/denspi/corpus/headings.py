"""What becomes of headings in Markdown and HTML: each opens the paragraph that follows it. Pure.

Alone it would be a paragraph that says nothing, without it the paragraph would lose its topic. The blank line
between them keeps phrases from reaching over it (`denspi.text.breaks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def attach_headings(blocks: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Paragraphs from (text, is a heading) pairs; headings that nothing follows stay as a last paragraph."""
    waiting: list[str] = []
    for text, is_heading in blocks:
        waiting.append(text)
        if not is_heading:
            yield "\n\n".join(waiting)
            waiting.clear()
    if waiting:
        yield "\n\n".join(waiting)
