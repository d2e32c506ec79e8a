"""A searcher for those who run on while an index changes: committed to, built anew, or taken away.

Every call looks for a newer commit first, which costs one small read. Where the newest cannot be opened, the
last one that could be goes on answering, and `why_not` says so. Threads may share one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from denspi.build.index import Index
from denspi.errors import DenspiError, ModelError
from denspi.search.searcher import Searcher


class NewestSearcher:
    """The newest generation of the index in a folder; `on_trouble` hears once why it cannot be had."""

    def __init__(
        self,
        folder: Path,
        on_trouble: Callable[[str], None] = lambda line: None,
        *,
        compiled: bool | None = None,
    ) -> None:
        self._folder, self._on_trouble, self._compiled = folder, on_trouble, compiled
        self._searcher = self._opened()
        self._looking = threading.Lock()
        self.why_not: str | None = None

    def searcher(self) -> Searcher:
        """On the newest generation that can be opened."""
        with self._looking:
            try:
                try:
                    self._searcher.refresh()
                except ModelError:  # built anew with another model
                    self._searcher = self._opened()
                self.why_not = None
            except DenspiError as error:
                if self.why_not != str(error):
                    self._on_trouble(f"serving generation {self._searcher.view.snapshot.generation}: {error}")
                self.why_not = str(error)
            return self._searcher

    def _opened(self) -> Searcher:
        return Searcher(Index.open(self._folder), compiled=self._compiled, threads=1)
