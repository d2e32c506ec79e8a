"""Which weights a stage went on from: what was made of others than are there now is not mixed with them.

A finished stage keeps it in its scores.json (`made_from`), an unfinished one in its checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from denspi.dense.model_folder import WEIGHTS
from denspi.errors import ModelError


def weights_of(folders: Sequence[Path]) -> list[str]:
    """A fingerprint of the weights in each of these model folders; empty where there are none (any more)."""
    found = []
    for path in (folder / WEIGHTS for folder in folders):
        if path.is_file():
            with path.open("rb") as file:
                found.append(hashlib.file_digest(file, "sha256").hexdigest()[:16])
        else:
            found.append("")
    return found


def check_made_from(stage: Path, before: Sequence[str], now: Sequence[str], models: Sequence[Path]) -> None:
    """Refuse a finished stage that was made from `before` where `models` hold the weights `now`."""
    if len(before) == len(now) and ("" in now or sorted(before) == sorted(now)):
        return
    if not models:
        finding = "was made from another model, and the settings name none now"
    else:
        several = f"{models[0]} and {len(models) - 1} more hold" if len(models) > 1 else f"{models[0]} holds"
        finding = f"was not made from the weights that {several} now"
    raise ModelError(f"{stage}: {finding}; remove it to make it again")


def check_order(stages: Sequence[tuple[Path, bool]]) -> None:
    """Refuse finished stages after one that is not; each is given by its folder and whether it is done.

    That one would be made first, for hours perhaps, and they are not made from it.
    """
    missing = next((folder for folder, is_done in stages if not is_done), None)
    if missing is None:
        return
    after = [folder for folder, is_done in stages[stages.index((missing, False)) :] if is_done]
    if after:
        raise ModelError(
            f"{missing}: has to be made before {', '.join(each.name for each in after)}, which are there; "
            "remove them, or put it back"
        )
