"""An attention block whose heads are split over the ranks of a process group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from ..module import RotaryEmbedding
from .collectives import sum_of_parts, used_by_all


class TensorParallelAttention(nn.Module):
    """Self-attention with column-wise q, k and v projections, rotation, attention of this rank's
    heads, a row-wise output projection and one all-reduce (Shoeybi et al. 2019, arXiv:1909.08053,
    §3). No biases.

    Every rank gets the same x (batch, token, channel) and returns the same result. Where the world
    is a divisor of the KV heads they are divided. Where it is a multiple, each is held by
    world / kv_heads neighbouring ranks, and gradients of its weights are summed over those, so that
    the copies stay equal.

    Args:
        hidden: channels of x.
        heads, kv_heads: of the whole block; heads must be a multiple of the world and of kv_heads.
        rotary: the rotation; its plan says how wide a head is.
        group: default: all ranks. All of them must construct the module together.
    """

    def __init__(
        self, hidden: int, heads: int, kv_heads: int, rotary: RotaryEmbedding, *,
        group: dist.ProcessGroup | None = None, dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        world, rank = dist.get_world_size(group), dist.get_rank(group)
        if heads % world or heads % kv_heads:
            raise ValueError(
                f"heads: expected a multiple of the world of {world} and of kv_heads = {kv_heads}, "
                f"got {heads}"
            )
        if kv_heads % world and world % kv_heads:
            raise ValueError(
                f"kv_heads: expected a multiple or a divisor of the world of {world}, got {kv_heads}"
            )
        self.group, self.rotary = group, rotary
        self.head_dim = rotary.plan.head_dim
        copies = max(1, world // kv_heads)
        self.kv_group = _groups_of(copies, group) if copies > 1 else None
        self.heads = slice(rank * heads // world, (rank + 1) * heads // world)
        first = rank // copies * max(1, kv_heads // world)
        self.kv_heads = slice(first, first + max(1, kv_heads // world))

        def weight(rows: int, columns: int) -> nn.Parameter:
            values = torch.empty(rows, columns, dtype=dtype, device=device)
            return nn.Parameter(values)

        q_rows, kv_rows = (
            (part.stop - part.start) * self.head_dim for part in (self.heads, self.kv_heads)
        )
        self.q, self.k, self.v = (weight(rows, hidden) for rows in (q_rows, kv_rows, kv_rows))
        self.o = weight(hidden, q_rows)

    @torch.no_grad()
    def load(self, q: Tensor, k: Tensor, v: Tensor, o: Tensor) -> None:
        """Takes this rank's part of the whole block's weights: q (heads · head_dim, hidden), k and
        v (kv_heads · head_dim, hidden), o (hidden, heads · head_dim)."""
        self.q.copy_(q[self.channels(self.heads)])
        self.k.copy_(k[self.channels(self.kv_heads)])
        self.v.copy_(v[self.channels(self.kv_heads)])
        self.o.copy_(o[:, self.channels(self.heads)])

    def channels(self, heads: slice) -> slice:
        """The channels of some heads, where heads follow each other."""
        return slice(heads.start * self.head_dim, heads.stop * self.head_dim)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of this rank's heads, (batch, head, token, channel), before the rotation."""
        x = used_by_all(x, self.group)
        k, v = self.k, self.v
        if self.kv_group is not None:
            k, v = (used_by_all(weight, self.kv_group) for weight in (k, v))
        return tuple(
            linear(x, weight).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for weight in (self.q, k, v)
        )

    def combine(self, attended: Tensor) -> Tensor:
        """The block's output from this rank's heads (batch, head, token, channel)."""
        part = linear(attended.transpose(1, 2).flatten(2), self.o)
        return sum_of_parts(part, self.group)

    def forward(self, x: Tensor, positions: Tensor | None = None, **rotation) -> Tensor:
        """Causal. ``positions`` and further keywords as :class:`RotaryEmbedding` takes them."""
        q, k, v = self.project(x)
        q, k = self.rotary(q, k, positions, layout="bhtd", **rotation)
        gqa = q.size(1) != k.size(1)
        return self.combine(scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa))


def _groups_of(size: int, group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """The group of `size` neighbouring ranks that this one belongs to."""
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    neighbours = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return dist.new_subgroups_by_enumeration(neighbours)[0]
