"""Moving cached keys to other positions: R(new) · k = R(new − old) · R(old) · k, so that a rotation
at relative positions is all there is to it."""

from __future__ import annotations

import torch
from torch import Tensor

from .call import TOKEN_DIM
from .functional import rotate, rotate_
from .plans import Plan

#: Rows that do not move keep their bits.
_STAYS = 0


def move_keys(
    k: Tensor,
    *,
    plan: Plan,
    old: Tensor,
    new: Tensor,
    layout: str = "bhtd",
    inplace: bool = False,
    fallback: str | None = None,
) -> Tensor:
    """Keys that ``plan`` rotated at positions ``old``, as if it had rotated them at ``new``.

    One operator call. ``old`` and ``new`` are integers, (token), (batch, token) or
    (axes, batch, token); tokens of packed sequences are (token) with layout ``thd``. Rows with
    new = old keep their bits. |new − old| < 2^36.

    The error is that of one more rotation (docs/numerics.md): for many moves add up the positions
    and move once, as :class:`CacheShift` does.
    """
    relative = new.long() - old.long()
    call = rotate_ if inplace else rotate
    return call(
        k, plan=plan.relative(), positions=relative, layout=layout, padding=_STAYS,
        fallback=fallback,
    )  # fmt: skip


class CacheShift:
    """Positions of cached keys that move, as context shifting does, while the keys stay as cached.

    Moves add up as integers. :meth:`moved` gives keys at their present positions and leaves the
    cache alone; :meth:`materialise_` rotates the cache itself, once, by all that is pending. A
    thousand shifts of −1 are one of −1000, bit for bit.

    >>> shift = CacheShift(plan, positions)         # of the cached tokens
    >>> shift.add(-256, positions >= 256)           # as often as tokens are evicted
    >>> shift.materialise_(*keys_of_layers)         # before the next attention

    Args:
        plan: the plan the keys were rotated with; all layers given share it.
        positions: int32 or int64, (token), (batch, token) or (axes, batch, token).
        layout: of the keys.
    """

    def __init__(
        self, plan: Plan, positions: Tensor, *, layout: str = "bhtd", fallback: str | None = None
    ) -> None:
        if layout not in TOKEN_DIM:
            raise ValueError(f"layout: expected one of {', '.join(TOKEN_DIM)}, got {layout!r}")
        self.plan = plan
        self.layout = layout
        self.fallback = fallback
        self._cached = _integers(positions, "positions").clone()
        self._present = self._cached.clone()

    @property
    def positions(self) -> Tensor:
        """Where the tokens stand now, int64."""
        return self._present.clone()

    @property
    def pending(self) -> Tensor:
        """By how much each token has moved since the keys were cached or materialised, int64."""
        return self._present - self._cached

    def add(self, delta: int | Tensor, tokens: Tensor | slice | None = None) -> None:
        """Moves tokens by ``delta``, an integer or integers that broadcast.

        ``tokens`` chooses some: a bool mask that broadcasts to the positions, or a slice of the
        token dimension.
        """
        if isinstance(delta, Tensor):
            delta = _integers(delta, "delta")
        elif not isinstance(delta, int):
            raise TypeError(f"delta: expected integers, got {type(delta).__name__}")
        if tokens is None:
            self._present += delta
        elif isinstance(tokens, slice):
            self._present[..., tokens] += delta
        elif tokens.dtype == torch.bool:
            self._present = torch.where(tokens, self._present + delta, self._present)
        else:
            raise TypeError(f"tokens: expected a bool mask or a slice, got {tokens.dtype}")

    def add_to_sequences(self, delta: Tensor, cu_seqlens: Tensor) -> None:
        """Moves packed sequences, each by its entry of ``delta`` (sequences,)."""
        delta, bounds = _integers(delta, "delta"), cu_seqlens.long()
        lengths = bounds[1:] - bounds[:-1]
        if delta.shape != lengths.shape:
            raise ValueError(
                f"delta: expected one per sequence ({lengths.numel()}), got {tuple(delta.shape)}"
            )
        self.add(torch.repeat_interleave(delta, lengths))

    def append(self, positions: Tensor) -> None:
        """Tokens whose keys have just been cached behind the others, at these positions."""
        positions = _integers(positions, "positions")
        self._cached = torch.cat([self._cached, positions], dim=-1)
        self._present = torch.cat([self._present, positions], dim=-1)

    def keep(self, tokens: Tensor) -> None:
        """Drops all tokens but those, an index (int64) or a mask of the token dimension, as the
        keys have been."""
        self._cached, self._present = self._cached[..., tokens], self._present[..., tokens]

    def moved(self, k: Tensor) -> Tensor:
        """The keys at their present positions, in a new tensor. The cache stays as it is, so that
        the error never exceeds that of one rotation more, however often this is called."""
        self._check(k, "k")
        return move_keys(
            k, plan=self.plan, old=self._cached, new=self._present, layout=self.layout,
            fallback=self.fallback,
        )  # fmt: skip

    def materialise_(self, *keys: Tensor) -> None:
        """Rotates the keys of all layers in place, each by one operator call; nothing is pending
        afterwards. Every tensor is checked before the first is written."""
        for i, k in enumerate(keys):
            self._check(k, f"keys[{i}]")
        if not torch.equal(self._cached, self._present):
            for k in keys:
                move_keys(
                    k, plan=self.plan, old=self._cached, new=self._present, layout=self.layout,
                    inplace=True, fallback=self.fallback,
                )  # fmt: skip
        self._cached = self._present.clone()

    def _check(self, k: Tensor, name: str) -> None:
        token_dim = TOKEN_DIM[self.layout]
        if k.dim() not in (3, 4) or k.size(token_dim) != self._present.size(-1):
            raise ValueError(
                f"{name}: expected layout {self.layout} with {self._present.size(-1)} tokens, "
                f"got shape {tuple(k.shape)}"
            )
        if k.size(-1) != self.plan.head_dim or not k.is_floating_point():
            raise ValueError(
                f"{name}: expected a floating dtype and {self.plan.head_dim} channels, got "
                f"{k.dtype} and {k.size(-1)}"
            )


def _integers(values: Tensor, name: str) -> Tensor:
    if values.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name}: expected int32 or int64, got {values.dtype}")
    return values.long()
