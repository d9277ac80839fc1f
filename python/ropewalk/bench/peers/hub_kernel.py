"""The rotary kernel that transformers takes from the hub, where ``kernels`` has it at hand."""

from __future__ import annotations

from ..packages import Unavailable
from ..setting import Setting
from .model_code import head_axis
from .peer import Peer, Rotate, need


def _prepare(setting: Setting) -> Rotate:
    need(setting.case.pairing == "half", "interleaved pairing")
    try:
        from kernels import get_kernel
    except ImportError:
        raise Unavailable("kernels, which loads it, is not installed") from None
    try:
        kernel = get_kernel("kernels-community/rotary")
    except Exception as error:  # noqa: BLE001 - no network, no build for this machine …
        raise Unavailable(f"kernels-community/rotary: {error}") from None
    cos, sin = setting.rows(setting.case.torch_dtype)
    axis = head_axis(setting)
    return lambda q, k: kernel.apply_rotary_transformers(q, k, cos, sin, unsqueeze_dim=axis)


PEERS = (Peer("hub-kernel", "kernels-community/rotary, as transformers loads it", _prepare),)
