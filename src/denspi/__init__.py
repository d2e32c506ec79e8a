"""denspi: exact, sourced answers from your own documents, from a dense-sparse phrase index.

Only the names in ``__all__`` are public. Importing this package loads nothing heavy.
"""

from typing import TYPE_CHECKING, Any

from denspi.errors import DenspiError, InputError
from denspi.types import Answer, Document, Question, Span

if TYPE_CHECKING:
    from denspi.build.index import Index
    from denspi.search.candidates import Limits
    from denspi.search.searcher import Reply, Searcher

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "DenspiError",
    "Document",
    "Index",
    "InputError",
    "Limits",
    "Question",
    "Reply",
    "Searcher",
    "Span",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load what needs numpy when somebody asks for it."""
    if name == "Index":
        from denspi.build.index import Index

        return Index
    if name == "Limits":
        from denspi.search.candidates import Limits

        return Limits
    if name in ("Reply", "Searcher"):
        from denspi.search import searcher

        return getattr(searcher, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
