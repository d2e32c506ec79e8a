"""Reading documents out of files: one reader per format behind `read_corpus`.

Knows nothing of models, tokens or indexes. The parsers of the optional part `corpus` are imported when a file
needs them.
"""

from denspi.corpus.paragraphs import join_paragraphs, split_paragraphs
from denspi.corpus.read import read_corpus, read_corpus_by_path
from denspi.corpus.records import Item, Note, Skipped
from denspi.corpus.report import CorpusReport, SourceCounts
from denspi.corpus.squad import (
    SquadAnswer,
    SquadArticle,
    SquadParagraph,
    SquadQuestion,
    read_squad,
)

__all__ = [
    "CorpusReport",
    "Item",
    "Note",
    "Skipped",
    "SourceCounts",
    "SquadAnswer",
    "SquadArticle",
    "SquadParagraph",
    "SquadQuestion",
    "join_paragraphs",
    "read_corpus",
    "read_corpus_by_path",
    "read_squad",
    "split_paragraphs",
]
