"""vLLM's rotary_embedding: its kernel file from the source archive, compiled against a shim that
stands in for PyTorch's headers."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from ..packages import Source
from ..setting import Setting
from . import nvcc
from .peer import Peer, Rotate, need, need_gpu

SOURCE = Source(
    "vllm==0.34.0", ("csrc/pos_encoding_kernels.cu", "csrc/core/cuda_compat.h"), sdist=True
)
#: As the shim numbers them.
_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def _shape(x: Tensor) -> ctypes.Array:
    values = [*x.shape, *x.stride()]
    return (ctypes.c_int64 * len(values))(*values)


def _function(setting: Setting, cache: Tensor):
    """(q, k) -> None, in place on (tokens, heads, head_dim): the installed operator or the file."""
    head_dim, is_neox = setting.case.head_dim, setting.case.pairing == "half"
    positions = setting.positions.flatten()
    try:
        import vllm._custom_ops as ops
    except ImportError:
        include = setting.packages.path(SOURCE) / "csrc"
        library = nvcc.compiled("vllm", include, nvcc.architecture(setting.device))
        cache_shape, int64 = _shape(cache), ctypes.c_int64

        def rotate_flat(q: Tensor, k: Tensor) -> None:
            status = library.shim_rotary_embedding(
                nvcc.pointer(positions), int64(positions.numel()), nvcc.pointer(q), _shape(q),
                nvcc.pointer(k), _shape(k), _DTYPES[q.dtype], nvcc.pointer(cache),
                _DTYPES[cache.dtype], cache_shape, int64(head_dim), int(is_neox), nvcc.stream(),
            )  # fmt: skip
            if status != 0:
                raise RuntimeError("vLLM's rotary_embedding refused its arguments")
    else:

        def rotate_flat(q: Tensor, k: Tensor) -> None:
            ops.rotary_embedding(positions, q, k, head_dim, cache, is_neox)

    return rotate_flat


def _prepare(setting: Setting) -> Rotate:
    need_gpu(setting)
    case = setting.case
    need(case.layout == "bthd", "heads before tokens")
    need(case.torch_dtype in _DTYPES, case.dtype)
    # The dtype that vLLM keeps its table in by default.
    rotate_flat = _function(setting, setting.cos_sin_cache(case.torch_dtype))

    def rotate(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        rotate_flat(*(x.view(-1, x.size(-2), case.head_dim) for x in (q, k)))
        return q, k

    return rotate


PEERS = (Peer("vllm", "vLLM rotary_embedding", _prepare, in_place=True, sources=(SOURCE,)),)
