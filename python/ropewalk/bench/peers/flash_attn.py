"""flash-attn's Triton rotary kernel: its one file."""

from __future__ import annotations

from ..packages import Source, module_from_file
from ..setting import Setting
from .peer import Peer, Rotate, each, need, need_gpu

FILE = "flash_attn/ops/triton/rotary.py"
SOURCE = Source("flash-attn==2.8.3", (FILE,), sdist=True)


def _function(setting: Setting):
    try:
        from flash_attn.ops.triton.rotary import apply_rotary
    except ImportError:
        path = setting.packages.path(SOURCE) / FILE
        apply_rotary = module_from_file("flash_attn_triton_rotary", path).apply_rotary
    return apply_rotary


def _prepare(setting: Setting, in_place: bool) -> Rotate:
    need_gpu(setting)
    case = setting.case
    need(case.positions == "start", "a position for each token")
    need(case.dtype != "float64", "float64")
    apply_rotary = _function(setting)
    start = int(setting.positions[0, 0])

    def one(x):
        rotated = apply_rotary(
            setting.tokens_first(x), setting.cos, setting.sin, seqlen_offsets=start,
            interleaved=case.pairing == "interleaved", inplace=in_place,
        )  # fmt: skip
        return setting.tokens_first(rotated)

    return each(one)


PEERS = (
    Peer("flash-attn", "flash-attn apply_rotary (Triton), fresh outputs",
         lambda setting: _prepare(setting, False), note="two launches", sources=(SOURCE,)),
    Peer("flash-attn-in-place", "flash-attn apply_rotary (Triton), in place",
         lambda setting: _prepare(setting, True), in_place=True, note="two launches",
         sources=(SOURCE,)),
)  # fmt: skip
