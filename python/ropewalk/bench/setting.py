"""The data of a case: inputs, positions, and the tables that other implementations ask for."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .cases import LARGEST_ID, START, Case
from .packages import Packages


@dataclass
class Setting:
    """What a peer gets to prepare itself. Tensors lie on ``device``."""

    case: Case
    device: torch.device
    packages: Packages
    seed: int
    positions: Tensor = field(init=False)
    #: (rows, head_dim / 2), float32, indexed by position; sin is negated for the inverse.
    cos: Tensor = field(init=False)
    sin: Tensor = field(init=False)

    def __post_init__(self) -> None:
        case, generator = self.case, torch.Generator().manual_seed(self.seed)
        if case.positions == "start":
            positions = torch.arange(START, START + case.tokens).expand(case.batch, -1)
        else:
            shape = (case.batch, case.tokens)
            positions = torch.randint(LARGEST_ID, shape, generator=generator)
        self.positions = positions.contiguous().to(self.device)
        rows = int(positions.max()) + 1
        # The recipe of model code: float32 throughout.
        exponent = torch.arange(0, case.head_dim, 2).float() / case.head_dim
        frequencies = 1.0 / case.base**exponent
        angles = torch.outer(torch.arange(rows).float(), frequencies)
        self.cos = angles.cos().to(self.device)
        self.sin = (-angles.sin() if self.inverse else angles.sin()).to(self.device)

    @property
    def inverse(self) -> bool:
        return self.case.direction == "inverse"

    @property
    def shared_positions(self) -> bool:
        """Whether one row of positions serves every batch row."""
        return self.case.batch == 1 or self.case.positions == "start"

    def inputs(self, sets: int = 1) -> list[tuple[Tensor, Tensor]]:
        """Fresh random normal q and k, contiguous in the layout of the case."""
        case = self.case
        generator = torch.Generator(self.device).manual_seed(self.seed + 1)

        def one(heads: int) -> Tensor:
            middle = (case.tokens, heads) if case.layout == "bthd" else (heads, case.tokens)
            shape = (case.batch, *middle, case.head_dim)
            dtype = torch.float64 if case.dtype == "float64" else torch.float32
            x = torch.randn(shape, generator=generator, device=self.device, dtype=dtype)
            return x.to(case.torch_dtype)

        return [(one(case.heads), one(case.kv_heads)) for _ in range(sets)]

    def heads_first(self, x: Tensor) -> Tensor:
        """A view (batch, heads, tokens, head_dim) of a tensor in the case's layout, or back."""
        return x if self.case.layout == "bhtd" else x.transpose(1, 2)

    def tokens_first(self, x: Tensor) -> Tensor:
        """A view (batch, tokens, heads, head_dim) of a tensor in the case's layout, or back."""
        return x if self.case.layout == "bthd" else x.transpose(1, 2)

    def rows(self, dtype: torch.dtype, doubled: bool = True) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the tokens, gathered once: (batch, tokens, head_dim), every value
        twice as the pairing wants it, or (batch, tokens, head_dim / 2)."""
        cos, sin = (table[self.positions] for table in (self.cos, self.sin))
        if doubled:
            cos, sin = self.twice(cos), self.twice(sin)
        return cos.to(dtype), sin.to(dtype)

    def twice(self, table: Tensor) -> Tensor:
        if self.case.pairing == "half":
            return torch.cat([table, table], dim=-1)
        return table.repeat_interleave(2, dim=-1)

    def cos_sin_cache(self, dtype: torch.dtype) -> Tensor:
        """(rows, head_dim): cosines, then sines, as serving engines keep them."""
        return torch.cat([self.cos, self.sin], dim=-1).to(dtype)
