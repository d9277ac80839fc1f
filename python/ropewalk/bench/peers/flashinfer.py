"""FlashInfer's kernels: the headers of its wheel, compiled around a shim at benchmark time."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from ..packages import Source
from ..setting import Setting
from . import nvcc
from .peer import Peer, Rotate, need, need_gpu

_FOLDER = "flashinfer/data/include"
_HEADERS = ("pos_enc.cuh", "layout.cuh", "math.cuh", "page.cuh", "utils.cuh", "vec_dtypes.cuh",
            "fastdiv.cuh", "exception.h")  # fmt: skip
SOURCE = Source(
    "flashinfer-python==0.6.0", tuple(f"{_FOLDER}/flashinfer/{name}" for name in _HEADERS)
)


def _prepare(setting: Setting, table: bool, in_place: bool) -> Rotate:
    need_gpu(setting)
    case = setting.case
    need(case.layout == "bthd", "heads before tokens")
    need(case.dtype in ("float16", "bfloat16"), case.dtype)
    need(table or not setting.inverse, "inverse")
    include = setting.packages.path(SOURCE) / _FOLDER
    library = nvcc.compiled("flashinfer", include, nvcc.architecture(setting.device))
    cache = setting.cos_sin_cache(torch.float32) if table else None
    positions = setting.positions.flatten().to(torch.int64 if table else torch.int32)
    tokens = case.batch * case.tokens
    sizes = (ctypes.c_uint32 * 4)(tokens, case.heads, case.kv_heads, case.head_dim)

    def rotate(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        out = (q, k) if in_place else (torch.empty_like(q), torch.empty_like(k))
        status = library.shim_flashinfer(
            nvcc.pointer(q), nvcc.pointer(k), nvcc.pointer(out[0]), nvcc.pointer(out[1]),
            nvcc.pointer(cache), nvcc.pointer(positions), sizes, int(case.dtype == "bfloat16"),
            int(case.pairing == "interleaved"), ctypes.c_float(case.base), nvcc.stream(),
        )  # fmt: skip
        if status != 0:
            raise RuntimeError(f"FlashInfer's launcher returned {status}")
        return out

    return rotate


PEERS = (
    Peer("flashinfer", "FlashInfer, table, fresh outputs",
         lambda setting: _prepare(setting, True, False), sources=(SOURCE,)),
    Peer("flashinfer-in-place", "FlashInfer, table, in place",
         lambda setting: _prepare(setting, True, True), in_place=True, sources=(SOURCE,)),
    Peer("flashinfer-on-the-fly", "FlashInfer, angles in the kernel",
         lambda setting: _prepare(setting, False, False), sources=(SOURCE,)),
)  # fmt: skip
