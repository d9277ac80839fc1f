"""Plain PyTorch: the model's own code, the complex reference, and gathering from a table."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ...reference import apply_rope_reference
from ..setting import Setting
from .model_code import head_axis, model_function, table_dtype
from .peer import Peer, Rotate, need


def _model(setting: Setting) -> Rotate:
    function, axis = model_function(setting), head_axis(setting)
    cos, sin = setting.rows(table_dtype(setting))
    return lambda q, k: function(q, k, cos, sin, unsqueeze_dim=axis)


def _gather(setting: Setting) -> Rotate:
    function, axis = model_function(setting), head_axis(setting)
    cos, sin = (setting.twice(t).to(table_dtype(setting)) for t in (setting.cos, setting.sin))

    def rotate(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        rows = (functional.embedding(setting.positions, table) for table in (cos, sin))
        return function(q, k, *rows, unsqueeze_dim=axis)

    return rotate


def _complex(setting: Setting) -> Rotate:
    need(setting.case.pairing == "interleaved", "pairs are complex numbers: interleaved only")
    need(setting.shared_positions, "positions differ between batch rows")
    rows = torch.complex(*(t[setting.positions[0]].double() for t in (setting.cos, setting.sin)))

    def one(x: Tensor) -> Tensor:
        return setting.heads_first(apply_rope_reference(setting.heads_first(x), rows))

    return lambda q, k: (one(q), one(k))


PEERS = (
    Peer("eager", "PyTorch eager, the model's code in transformers", _model,
         note="cosines and sines gathered beforehand"),
    Peer("eager-gather", "the same, gathering the rows with F.embedding in every call", _gather),
    Peer("eager-complex", "ropewalk.reference: complex numbers", _complex, note="float64"),
)  # fmt: skip
