"""torchtune's RotaryPositionalEmbeddings: its one file, which needs PyTorch alone."""

from __future__ import annotations

import torch

from ..packages import Source, module_from_file
from ..setting import Setting
from .peer import Peer, Rotate, each, need

FILE = "torchtune/modules/position_embeddings.py"
SOURCE = Source("torchtune==0.6.1", (FILE,))


def _class(setting: Setting):
    try:
        from torchtune.modules import RotaryPositionalEmbeddings
    except ImportError:
        path = setting.packages.path(SOURCE) / FILE
        module = module_from_file("torchtune_position_embeddings", path)
        RotaryPositionalEmbeddings = module.RotaryPositionalEmbeddings
    return RotaryPositionalEmbeddings


def _module(setting: Setting) -> torch.nn.Module:
    case = setting.case
    need(case.pairing == "interleaved", "half pairing")
    need(not setting.inverse, "inverse")
    need(case.dtype != "float64", "float64")
    rows = setting.cos.size(0)
    module = _class(setting)(case.head_dim, max_seq_len=rows, base=int(case.base))
    return module.to(setting.device)


def _eager(setting: Setting) -> Rotate:
    module = _module(setting)

    def one(x):
        rotated = module(setting.tokens_first(x), input_pos=setting.positions)
        return setting.tokens_first(rotated)

    return each(one)


def _compiled(setting: Setting) -> Rotate:
    eager = _eager(setting)
    torch._dynamo.reset()
    return torch.compile(eager, fullgraph=True, dynamic=False)


PEERS = (
    Peer("torchtune", "torchtune RotaryPositionalEmbeddings", _eager,
         note="gathers its rows in every call", sources=(SOURCE,)),
    Peer("torchtune-compile", "the same through torch.compile", _compiled, sources=(SOURCE,)),
)  # fmt: skip
