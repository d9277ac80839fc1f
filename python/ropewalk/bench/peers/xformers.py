"""xFormers' rope_padded: its two files from the source archive, in a stand-in for the package."""

from __future__ import annotations

import importlib
import sys
import types

import torch

from ..packages import Source
from ..setting import Setting
from .peer import Peer, Rotate, need, need_gpu

SOURCE = Source(
    "xformers==0.0.35",
    ("xformers/ops/rope_padded.py", "xformers/ops/_triton/rope_padded_kernels.py",
     "xformers/triton/importing.py"),
    sdist=True,
)  # fmt: skip


def _rope_padded(setting: Setting):
    try:
        from xformers.ops.rope_padded import rope_padded
    except ImportError:
        folder = setting.packages.path(SOURCE) / "xformers"
        parts = {"": folder, ".ops": folder / "ops", ".ops._triton": folder / "ops/_triton",
                 ".triton": folder / "triton", ".ops.fmha": None, ".ops.fmha.attn_bias": None}  # fmt: skip
        for name, path in parts.items():
            module = types.ModuleType("xformers" + name)
            module.__path__ = [] if path is None else [str(path)]
            sys.modules[module.__name__] = module
        sys.modules["xformers"]._is_triton_available = lambda: True
        sys.modules["xformers.ops"]._is_triton_available = lambda: True
        # Only named in an annotation.
        bias = sys.modules["xformers.ops.fmha.attn_bias"]
        bias.BlockDiagonalCausalWithOffsetPaddedKeysMask = object
        rope_padded = importlib.import_module("xformers.ops.rope_padded").rope_padded
    return rope_padded


def _prepare(setting: Setting) -> Rotate:
    need_gpu(setting)
    case = setting.case
    need(case.layout == "bthd", "heads before tokens")
    need(not setting.inverse, "inverse")
    need(case.dtype != "float64", "float64")
    rope_padded = _rope_padded(setting)
    tokens, device = case.batch * case.tokens, setting.device
    starts = [b * case.tokens for b in range(case.batch + 1)]
    start_tensor = torch.tensor(starts, dtype=torch.int32, device=device)
    lengths = torch.full((case.batch,), case.tokens, dtype=torch.int32, device=device)
    bias = types.SimpleNamespace(
        q_seqinfo=types.SimpleNamespace(
            seqstart_py=starts, seqstart=start_tensor, max_seqlen=case.tokens
        ),
        k_seqinfo=types.SimpleNamespace(seqstart_py=starts, seqstart=start_tensor, seqlen=lengths),
    )
    positions = setting.positions.flatten().to(torch.int32)
    # The kernel also copies v into its cache. One head of v keeps that copy small.
    v, cache_v = (
        torch.zeros(1, tokens, 1, case.head_dim, dtype=case.torch_dtype, device=device).expand(
            -1, -1, case.kv_heads, -1
        )
        for _ in range(2)
    )

    def rotate(q, k):
        flat_q, flat_k = (x.view(1, tokens, -1, case.head_dim) for x in (q, k))
        cache_k = torch.empty_like(flat_k)
        out = rope_padded(
            flat_q, flat_k, v, cache_k, cache_v, bias, theta=case.base, seqpos=positions,
            adjacents=case.pairing == "interleaved",
        )  # fmt: skip
        return out.view_as(q), cache_k.view_as(k)

    return rotate


PEERS = (
    Peer("xformers", "xFormers rope_padded (Triton, angles in the kernel)", _prepare,
         note="also copies one head of v", sources=(SOURCE,)),
)  # fmt: skip
