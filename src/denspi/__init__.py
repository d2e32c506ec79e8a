"""denspi: exact, sourced answers from your own documents, from a dense-sparse phrase index.

Only the names in ``__all__`` are public. Importing this package loads nothing heavy.
"""

from typing import TYPE_CHECKING, Any

from denspi.errors import DenspiError
from denspi.types import Document, Question, Span

if TYPE_CHECKING:
    from denspi.build.index import Index

__version__ = "0.1.0"

__all__ = ["DenspiError", "Document", "Index", "Question", "Span", "__version__"]


def __getattr__(name: str) -> Any:
    """Load `Index`, and numpy with it, when somebody asks for it."""
    if name == "Index":
        from denspi.build.index import Index

        return Index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
