"""The peers of ``ropewalk bench --against``: one small file each, found by its name here."""

from __future__ import annotations

import importlib

from .peer import Peer

#: Modules of this folder, in the order of the report.
MODULES = (
    "ropewalk", "torch_eager", "torch_compile", "triton_teaching", "xformers", "torchtune", "vllm",
    "flash_attn", "liger", "flashinfer", "transformer_engine", "rotary_embedding_torch",
    "onnxruntime", "hub_kernel",
)  # fmt: skip


def all_peers() -> list[Peer]:
    modules = (importlib.import_module(f"{__name__}.{name}") for name in MODULES)
    return [peer for module in modules for peer in module.PEERS]
