"""What DTensor may split in a rotation: batch, heads, and tokens that bring their positions. Never
channels: the two channels of a pair need each other."""

from __future__ import annotations

import functools

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

from ..call import Call


def _placements(q, k, call: Call, outputs: int):
    """Acceptable (placements of outputs, placements of inputs), one for each way to split."""
    dims = len(q.shape)
    token = dims + call.token_dim

    def choice(data, **others):
        """``data`` on q, k and the outputs; on other tensors what is named, else all of it."""
        fields = [
            (others.get(name) or Replicate()) if hasattr(value, "shape") else None
            for name, value in call._asdict().items()
        ]
        both = [data, None if k is None else data]
        return both[:outputs], [*both, *fields]

    positions = None if call.positions is None else call.positions.shape
    choices = [choice(Replicate()), choice(Shard(dims - 5 - call.token_dim))]
    if dims == 4 and call.cu_seqlens is None:
        by_row = positions is not None and len(positions) >= 2 and positions[-2] != 1
        choices.append(
            choice(
                Shard(0),
                positions=Shard(len(positions) - 2) if by_row else None,
                starts=None if call.starts is None else Shard(0),
            )
        )
    if positions is not None:
        choices.append(choice(Shard(token), positions=Shard(len(positions) - 1)))
    return choices


@functools.cache
def register_dtensor_rules() -> None:
    """Registers the rules for the operators behind ``ropewalk.rotate``, ``rotate_`` and the
    modules, for this process; further calls do nothing.

    All tensor arguments must then be DTensors (positions that every rank has whole:
    ``Replicate()``). A split that no rule accepts, such as channels, or tokens whose positions
    count from ``offset``, is gathered first; in place, where that is impossible, it is refused.
    """
    ops = torch.ops.ropewalk
    for outputs, op in (
        (2, ops._rotate.default), (2, ops.rotate.default), (0, ops._rotate_.default),
        (0, ops.rotate_.default),
    ):  # fmt: skip

        def rule(q, k, *call, _outputs=outputs):
            return _placements(q, k, Call(*call), _outputs)

        register_sharding(op)(rule)
