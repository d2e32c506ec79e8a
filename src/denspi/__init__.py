"""denspi: exact, sourced answers from your own documents, from a dense-sparse phrase index.

Only the names in ``__all__`` are public. Importing this package loads nothing heavy.
"""

from denspi.errors import DenspiError
from denspi.types import Document, Question, Span

__version__ = "0.1.0"

__all__ = ["DenspiError", "Document", "Question", "Span", "__version__"]
