"""What is rotated: one case is one shape, dtype, layout, pairing, direction and kind of positions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
LAYOUTS = ("bthd", "bhtd")
PAIRINGS = ("half", "interleaved")
DIRECTIONS = ("forward", "inverse")
#: start: token t stands at 4095 + t. ids: a random position below 131072 for each token.
POSITIONS = ("start", "ids")
START = 4095
LARGEST_ID = 131072


@dataclass(frozen=True)
class Case:
    """q (batch, tokens, heads, head_dim) and k with ``kv_heads``, in the order of ``layout``."""

    tokens: int
    batch: int = 1
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    base: float = 10000.0
    dtype: str = "bfloat16"
    layout: str = "bthd"
    pairing: str = "half"
    direction: str = "forward"
    positions: str = "start"

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    @property
    def bytes(self) -> int:
        """Each byte of q and k read once and written once, as measure/traffic.h counts."""
        heads = self.heads + self.kv_heads
        size = self.torch_dtype.itemsize
        return 2 * self.batch * self.tokens * heads * self.head_dim * size

    @property
    def options(self) -> str:
        """The command line options that ask for this case."""
        return (
            f"--no-fixed --batch {self.batch} --tokens {self.tokens} --heads {self.heads} "
            f"--kv-heads {self.kv_heads} --head-dim {self.head_dim} --base {self.base:g} "
            f"--dtype {self.dtype} --layout {self.layout} --pairing {self.pairing} "
            f"--direction {self.direction} --positions {self.positions}"
        )

    def __str__(self) -> str:
        return (
            f"{self.dtype} {self.batch}x{self.tokens} {self.heads}+{self.kv_heads} "
            f"D{self.head_dim} {self.layout} {self.pairing} {self.direction} {self.positions}"
        )


def fixed_cases() -> list[Case]:
    """The cases that every field benchmark has, so that machines can be compared."""
    train = [Case(8192, 4, 32, 32, dtype="float32", layout="bhtd")]
    tutorial = {"batch": 2, "dtype": "float32", "base": 1e6}
    lengths = [Case(2**n, heads=12, kv_heads=12, **tutorial) for n in range(6, 14)]
    heads = [Case(1024, heads=2**n, kv_heads=2**n, **tutorial) for n in range(6)]
    decode = [Case(2**n) for n in range(17)]
    return [*train, *lengths, *heads, *decode]


def tiny_cases() -> list[Case]:
    """Every dtype, layout, pairing, direction and kind of positions once, small enough for CI."""
    return list(
        product({
            "tokens": [5], "batch": [2], "heads": [4], "kv_heads": [2], "head_dim": [16],
            "dtype": ["float32", "bfloat16"], "layout": LAYOUTS, "pairing": PAIRINGS,
            "direction": DIRECTIONS, "positions": POSITIONS,
        })
    )  # fmt: skip


def product(axes: dict[str, list]) -> Iterator[Case]:
    for values in itertools.product(*axes.values()):
        yield Case(**dict(zip(axes, values, strict=True)))
