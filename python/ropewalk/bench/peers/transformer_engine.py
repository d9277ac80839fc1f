"""TransformerEngine's fused kernel, where the package is installed."""

from __future__ import annotations

import torch

from ..packages import Unavailable
from ..setting import Setting
from .peer import Peer, Rotate, each, need, need_gpu


def _prepare(setting: Setting) -> Rotate:
    need_gpu(setting)
    case = setting.case
    need(setting.shared_positions and case.positions == "start", "a position for each token")
    need(case.dtype != "float64", "float64")
    try:
        from transformer_engine.pytorch.attention.rope import apply_rotary_pos_emb
    except ImportError:
        raise Unavailable("transformer_engine is not installed") from None
    exponent = torch.arange(0, case.head_dim, 2, device=setting.device).float() / case.head_dim
    angles = torch.outer(setting.positions[0].float(), 1.0 / case.base**exponent)
    angles = setting.twice(-angles if setting.inverse else angles)[:, None, None, :]

    def one(x):
        rotated = apply_rotary_pos_emb(
            setting.tokens_first(x), angles, tensor_format="bshd", fused=True,
            interleaved=case.pairing == "interleaved",
        )  # fmt: skip
        return setting.tokens_first(rotated)

    return each(one)


PEERS = (
    Peer("transformer-engine", "TransformerEngine fused_rope", _prepare, note="two launches"),
)  # fmt: skip
