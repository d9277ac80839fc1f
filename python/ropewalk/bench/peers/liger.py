"""Liger-Kernel's Triton kernel, from an installed package or a fetched wheel."""

from __future__ import annotations

from ..packages import Source
from ..setting import Setting
from .peer import Peer, Rotate, need, need_gpu

SOURCE = Source("liger-kernel==0.8.5")


def _function(setting: Setting):
    try:
        from liger_kernel.ops.rope import rope_forward
    except ImportError:
        setting.packages.make_importable(SOURCE)
        from liger_kernel.ops.rope import rope_forward
    return rope_forward


def _prepare(setting: Setting) -> Rotate:
    need_gpu(setting)
    need(setting.case.pairing == "half", "interleaved pairing")
    need(setting.case.dtype != "float64", "float64")
    rope_forward = _function(setting)
    cos, sin = setting.rows(setting.case.torch_dtype)

    def rotate(q, k):
        rotated = rope_forward(setting.heads_first(q), setting.heads_first(k), cos, sin)
        return setting.heads_first(rotated[0]), setting.heads_first(rotated[1])

    return rotate


PEERS = (
    Peer("liger", "Liger-Kernel (Triton)", _prepare, sources=(SOURCE,),
         note="writes into its input where that is [tokens, heads, dim], else copies first"),
)  # fmt: skip
