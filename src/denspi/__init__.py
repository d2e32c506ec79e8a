"""denspi: exact, sourced answers from your own documents, from a dense-sparse phrase index.

Only the names in ``__all__`` are public. Importing this package loads nothing heavy.
"""

from typing import TYPE_CHECKING, Any

from denspi.errors import DenspiError
from denspi.types import Answer, Document, Question, Span

if TYPE_CHECKING:
    from denspi.build.index import Index
    from denspi.search.searcher import Searcher

__version__ = "0.1.0"

__all__ = ["Answer", "DenspiError", "Document", "Index", "Question", "Searcher", "Span", "__version__"]


def __getattr__(name: str) -> Any:
    """Load `Index` or `Searcher`, and numpy with it, when somebody asks for it."""
    if name == "Index":
        from denspi.build.index import Index

        return Index
    if name == "Searcher":
        from denspi.search.searcher import Searcher

        return Searcher
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
