"""The Triton kernel of examples/, which lies in the source tree, not in the wheel."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ..packages import Unavailable, module_from_file
from ..setting import Setting
from .peer import Peer, Rotate, need, need_gpu


def _module():
    path = Path(__file__).resolve().parents[4] / "examples" / "triton_rope.py"
    if not path.exists():
        raise Unavailable("examples/triton_rope.py is in the source tree only")
    if importlib.util.find_spec("triton") is None:
        raise Unavailable("triton is not installed")
    return module_from_file("ropewalk_example_triton_rope", path)


def _prepare(setting: Setting) -> Rotate:
    need_gpu(setting)
    need(setting.case.dtype != "float64", "float64")
    need(setting.case.pairing == "half", "interleaved pairing")
    triton_rope = _module()
    # The setting's sines are negated already where the case is the inverse.
    cos, sin = setting.cos, setting.sin

    def rotate(q, k):
        views = (setting.tokens_first(x) for x in (q, k))
        results = (triton_rope.rotate(x, cos, sin, setting.positions) for x in views)
        return tuple(setting.tokens_first(y) for y in results)

    return rotate


PEERS = (Peer("triton-teaching", "examples/triton_rope.py, a kernel to learn from", _prepare),)
