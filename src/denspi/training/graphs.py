"""CUDA graphs for a backbone in training: a small encoder is bound by kernel launches, and a replay has one.

Inputs are padded to a few shapes; each shape's forward and backward pass is recorded once and replayed after
that. A recording keeps its memory, the gradient of every weight included, so shapes are few, and large
encoders, which launches do not hold up, are better left without. Validation, the CPU and everything but the
backbone are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from denspi.dense.backbone import Backbone


class GraphReplay:
    """Stands in for ``Backbone.forward`` while it trains on a GPU.

    Calls with different `slot` never share a graph: what one holds for its backward pass, the other must not
    overwrite.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone
        self.graphs: dict[tuple[int, int, int], Callable[..., Tensor]] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor, slot: int) -> Tensor:
        """The backbone's hidden states, from the graph of the padded shape."""
        rows, pieces = ids.shape
        more_rows = -rows % (4 if rows < 32 else 16)
        more_pieces = min(-pieces % (32 if pieces <= 192 else 64), self.backbone.max_pieces - pieces)
        room = (0, more_pieces, 0, more_rows)
        ids, mask, types = pad(ids, room), pad(mask, room), pad(types, room)
        mask[rows:, 0] = 1  # a row that attends to nothing would be not-a-number
        key = (*ids.shape, slot)
        if key not in self.graphs:
            self.graphs[key] = self._record(ids, mask, types)
        return self.graphs[key](ids, mask, types)[:rows, :pieces]

    def _record(self, *example: Tensor) -> Callable[..., Tensor]:
        shape = _Shape(self.backbone)
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            recorded = torch.cuda.make_graphed_callables(
                shape, tuple(tensor.clone() for tensor in example), allow_unused_input=True
            )
        return cast("Callable[..., Tensor]", recorded)


class _Shape(nn.Module):
    """One module per recorded shape, all with the same weights."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.encoder = backbone.encoder
        self.hidden = backbone.hidden

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        return self.hidden(ids, mask, types)
