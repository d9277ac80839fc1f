"""``RotaryEmbedding``: a plan as a module without parameters, buffers or state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import known
from .functional import rotate, rotate_
from .pairs import join_written, split_written
from .plans import Plan, make_plan, plan_from_config

#: Keys that other rotary modules save; they follow from the configuration and are ignored.
_STRAY_KEYS = frozenset({
    "inv_freq", "original_inv_freq", "freqs", "freqs_cis", "cos_cached", "sin_cached", "cos_cache",
    "sin_cache", "cos_sin_cache", "cache",
})  # fmt: skip


class RotaryEmbedding(nn.Module):
    """Rotates queries and keys.

    >>> rotary = RotaryEmbedding(dim=64)
    >>> q, k = rotary(q, k)  # (batch, head, token, channel), positions 0, 1, …

    Args:
        dim: channels of a head.
        max_seq_len: accepted for compatibility; limits nothing (see :attr:`cos_cache`).
        base: the constant θ.
        rotary_dim: rotated channels; default all.
        pairing: ``half`` (channels i and i + rotary_dim / 2) or ``interleaved`` (2i and 2i + 1).
        layout: default of the calls, ``bhtd`` or ``bthd``.
        fallback: ``"reference"`` for plain PyTorch where the operators are not available.

    Nothing is stored in the state dict, nothing moves with ``.to()``, and ``.half()`` changes
    nothing: angles are computed from the plan, exactly, in every call.
    """

    plan: Plan

    def __init__(
        self,
        dim: int,
        max_seq_len: int | None = None,
        base: float = 10000.0,
        *,
        rotary_dim: int | None = None,
        pairing: str = "half",
        layout: str = "bhtd",
        fallback: str | None = None,
    ) -> None:
        super().__init__()
        self._set(make_plan(dim, base, rotary_dim, pairing), layout, max_seq_len, fallback)

    def _set(self, plan: Plan, layout: str, max_seq_len: int | None, fallback: str | None) -> None:
        self.plan = plan
        self.layout = layout
        self.max_seq_len = max_seq_len
        self.fallback = fallback
        self._config = None

    @classmethod
    def from_plan(
        cls, plan: Plan, *, layout: str = "bhtd", max_seq_len: int | None = None,
        fallback: str | None = None,
    ) -> RotaryEmbedding:  # fmt: skip
        module = cls.__new__(cls)
        nn.Module.__init__(module)
        module._set(plan, layout, max_seq_len, fallback)
        return module

    @classmethod
    def from_config(
        cls, config: object, *, layer_type: str | None = None, length: int | None = None,
        frequencies: str = "model", arithmetic: str = "exact", layout: str = "bhtd",
        fallback: str | None = None,
    ) -> RotaryEmbedding:  # fmt: skip
        """From a path, a dict, JSON text or a transformers config: :func:`plan_from_config`."""
        plan = plan_from_config(
            config, layer_type=layer_type, length=length, frequencies=frequencies,
            arithmetic=arithmetic,
        )  # fmt: skip
        return cls.from_plan(plan, layout=layout, fallback=fallback)

    def forward(
        self,
        q: Tensor,
        k: Tensor | None = None,
        positions: Tensor | None = None,
        *,
        offset: int | Tensor = 0,
        cu_seqlens: Tensor | None = None,
        layout: str | None = None,
        inplace: bool = False,
        padding: int | None = None,
        fractional: bool = False,
    ):
        """q, or (q, k), rotated: see :func:`ropewalk.rotate` for the arguments."""
        if cu_seqlens is None and padding is None and layout is None and not fractional:
            result = known.rotate(q, k, self.plan, self.layout, offset, positions, inplace)
            if result is not None:
                return result
        return (rotate_ if inplace else rotate)(
            q, k, plan=self.plan, positions=positions, offset=offset, cu_seqlens=cu_seqlens,
            layout=layout or self.layout, padding=padding, fractional=fractional,
            fallback=self.fallback,
        )  # fmt: skip

    def cos_sin(self, positions: int | Tensor, dtype: torch.dtype = torch.float32):
        """Cosines and sines, amplitude included: (token, rotary_dim / 2) each, or
        (batch, token, rotary_dim / 2). Column i belongs to pair i of the plan's pairing.

        ``positions`` is a number of tokens (from 0), or a tensor of positions.
        """
        plan = self.plan
        if isinstance(positions, int):
            positions = torch.arange(positions, device="cpu")
        batch = positions.shape[:-1] if positions.dim() < 3 else positions.shape[1:-1]
        # One head whose pairs are all (1, 0) rotates to (cos, sin). Channels are placed as the
        # rotation reads them and taken as it writes them.
        x = torch.zeros(
            *batch, 1, positions.size(-1), plan.head_dim, dtype=torch.float64,
            device=positions.device,
        )  # fmt: skip
        ones = x.new_ones(*x.shape[:-1], plan.pairs)
        reads_otherwise = plan.pairing == "interleaved_to_half"
        x = join_written(ones, torch.zeros_like(ones), x, plan, inverse=reads_otherwise)
        y = rotate(x, plan=plan, positions=positions, layout="bhtd", fallback=self.fallback)
        cos, sin = split_written(y.squeeze(-3), plan, inverse=False)
        return cos.to(dtype), sin.to(dtype)

    def _cache(self) -> tuple[Tensor, Tensor]:
        if self.max_seq_len is None:
            raise ValueError("cos_cache, sin_cache: made for max_seq_len rows, which was not given; "
                             "use cos_sin(length)")  # fmt: skip
        return self.cos_sin(self.max_seq_len)

    @property
    def cos_cache(self) -> Tensor:
        """Cosines of positions 0 … max_seq_len − 1, float32, (max_seq_len, rotary_dim / 2), computed
        now, to look at; no rotation reads them. Column i belongs to pair i."""
        return self._cache()[0]

    @property
    def sin_cache(self) -> Tensor:
        """The sines to :attr:`cos_cache`."""
        return self._cache()[1]

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):  # fmt: skip
        kept = {
            key: value for key, value in state_dict.items()
            if not (key.startswith(prefix) and key[len(prefix):] in _STRAY_KEYS)
        }  # fmt: skip
        super()._load_from_state_dict(
            kept, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        return f"{self.plan!r}, layout={self.layout}"
