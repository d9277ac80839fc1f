"""The model's code through torch.compile."""

from __future__ import annotations

import torch

from ..setting import Setting
from .model_code import head_axis, model_function, table_dtype
from .peer import Peer, Rotate


def _prepare(setting: Setting) -> Rotate:
    function, axis = model_function(setting), head_axis(setting)
    torch._dynamo.reset()  # a fresh compilation for the shapes of this case
    compiled = torch.compile(
        lambda q, k, cos, sin: function(q, k, cos, sin, unsqueeze_dim=axis),
        fullgraph=True,
        dynamic=False,
    )
    cos, sin = setting.rows(table_dtype(setting))
    return lambda q, k: compiled(q, k, cos, sin)


PEERS = (
    Peer("torch-compile", "torch.compile of the model's code", _prepare,
         note="cosines and sines gathered beforehand"),
)  # fmt: skip
