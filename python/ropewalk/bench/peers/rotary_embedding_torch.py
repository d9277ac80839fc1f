"""rotary-embedding-torch, from an installed package or a fetched wheel."""

from __future__ import annotations

from ..packages import Source
from ..setting import Setting
from .peer import Peer, Rotate, each, need

SOURCES = (Source("rotary-embedding-torch==0.9.1"), Source("einops==0.8.2"))


def _class(setting: Setting):
    try:
        from rotary_embedding_torch import RotaryEmbedding
    except ImportError:
        setting.packages.make_importable(*SOURCES)
        from rotary_embedding_torch import RotaryEmbedding
    return RotaryEmbedding


def _prepare(setting: Setting) -> Rotate:
    case = setting.case
    need(case.pairing == "interleaved", "half pairing")
    need(not setting.inverse, "inverse")
    need(case.positions == "start", "a position for each token")
    need(case.dtype != "float64", "float64")
    module = _class(setting)(
        case.head_dim, theta=case.base, cache_max_seq_len=setting.cos.size(0)
    ).to(setting.device)
    start, token_axis = int(setting.positions[0, 0]), -3 if case.layout == "bthd" else -2
    return each(lambda x: module.rotate_queries_or_keys(x, seq_dim=token_axis, offset=start))


PEERS = (
    Peer("rotary-embedding-torch", "rotary-embedding-torch (PyTorch eager)", _prepare,
         note="forms its angles in every call", sources=SOURCES),
)  # fmt: skip
