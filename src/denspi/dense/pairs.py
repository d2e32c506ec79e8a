"""What a reader is shown: ``[CLS] question [SEP] paragraph [SEP]``, types 0, and 1 from the paragraph on.

Encoders without types (MPNet) tell the two apart by a second separator between them. One place for training,
export and the runtime; numpy only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from denspi.text.tokens import Tokenizer

Ids = NDArray[np.int32]


def separators_for(has_types: bool) -> int:
    """How many separators stand between question and paragraph."""
    return 1 if has_types else 2


def frame_pair(tokenizer: Tokenizer, question: Ids, paragraph: Ids, separators: int) -> tuple[Ids, Ids, int]:
    """Piece ids and types of a pair, and the position of the paragraph's first piece."""
    head = [tokenizer.cls_id, *question.tolist(), *[tokenizer.sep_id] * separators]
    body = [*paragraph.tolist(), tokenizer.sep_id]
    ids = np.array(head + body, dtype=np.int32)
    types = np.array([0] * len(head) + [1] * len(body), dtype=np.int32)
    return ids, types, len(head)
