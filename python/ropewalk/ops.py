"""The operators ``torch.ops.ropewalk.*``: loading, fake kernels, and the guard of the public ones.

``rotate``, ``rotate_`` and ``rotate.out`` are public and have no derivative: they raise when given
inputs that require grad, or tangents. ``_rotate``, ``_rotate_`` and ``_rotate.out`` are the same
kernels without that guard, for :mod:`ropewalk.autograd`.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

_FOLDER = Path(__file__).parent / "lib"
_CUDA = _FOLDER / "libropewalk_torch_cuda.so"
_MINIMUM = (2, 10)


def _version() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _load() -> str | None:
    """Loads the libraries; why that is not possible, in a sentence, or None."""
    if _version() < _MINIMUM:
        return f"the operators need PyTorch 2.10 or newer, this is {torch.__version__}"
    try:
        torch.ops.load_library(str(_FOLDER / "libropewalk_torch_cpu.so"))
        if torch.version.cuda is not None and _CUDA.exists():
            torch.ops.load_library(str(_CUDA))
    except OSError as error:
        return f"the operators cannot be loaded: {error}"
    return None


def _check(q: Tensor, k: Tensor | None) -> None:
    torch._check(q.dim() in (3, 4), lambda: f"q: expected 3 or 4 dimensions, got {q.dim()}")
    torch._check(q.is_floating_point(), lambda: f"q: expected a floating dtype, got {q.dtype}")
    if k is not None:
        torch._check(k.dim() == q.dim(), lambda: f"k: expected {q.dim()} dimensions, got {k.dim()}")
        torch._check(k.dtype == q.dtype, lambda: f"k: expected dtype {q.dtype}, got {k.dtype}")


def _fake_rotate(q, k, plan, *args, **kwargs):
    _check(q, k)
    return torch.empty_like(q), None if k is None else torch.empty_like(k)


def _fake_inplace(q, k, plan, *args, **kwargs):
    _check(q, k)


def _refuse_derivatives(*tensors: object) -> None:
    tensors = [t for t in tensors if isinstance(t, Tensor)]
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise RuntimeError(
            "torch.ops.ropewalk.* have no derivative and an input requires grad: call "
            "ropewalk.rotate, or torch.no_grad()"
        )
    if any(torch.autograd.forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise RuntimeError(
            "torch.ops.ropewalk.* have no derivative and an input has a tangent: call ropewalk.rotate"
        )


def _guarded(op, mutated):
    """An Autograd kernel: refuses derivatives, calls the kernel below, counts mutations."""

    def kernel(*args, **kwargs):
        _refuse_derivatives(*args, *kwargs.values())
        with torch._C._AutoDispatchBelowAutograd():
            result = op(*args, **kwargs)
        for tensor in mutated(args, kwargs):
            if tensor is not None and not tensor.is_inference():
                torch.autograd.graph.increment_version(tensor)
        return result

    return kernel


_registrations: list[torch.library.Library] = []


def _fake_bad_rows(like, plan, reset):
    raise RuntimeError("ropewalk.bad_rows reads the GPU's counter: it has no place in a graph")


def _register() -> None:
    library = torch.library.Library("ropewalk", "IMPL")
    _registrations.append(library)
    torch.library.register_fake("ropewalk::_bad_rows", _fake_bad_rows, lib=library)
    torch.library.register_fake("ropewalk::_rotate_known", _fake_rotate, lib=library)
    torch.library.register_fake("ropewalk::_rotate_known_", _fake_inplace, lib=library)
    for name in ("rotate", "_rotate"):
        torch.library.register_fake(f"ropewalk::{name}", _fake_rotate, lib=library)
        torch.library.register_fake(f"ropewalk::{name}_", _fake_inplace, lib=library)
        torch.library.register_fake(f"ropewalk::{name}.out", _fake_inplace, lib=library)
    ops = torch.ops.ropewalk
    library.impl("rotate", _guarded(ops.rotate.default, lambda args, kwargs: ()), "Autograd")
    library.impl(
        "rotate_", _guarded(ops.rotate_.default, lambda args, kwargs: args[:2]), "Autograd"
    )
    library.impl(
        "rotate.out",
        _guarded(ops.rotate.out, lambda args, kwargs: (kwargs["q_out"], kwargs.get("k_out"))),
        "Autograd",
    )


#: Why the operators are not available; None where they are.
LOAD_PROBLEM = _load()

SERVES_CPU = LOAD_PROBLEM is None
SERVES_CUDA = SERVES_CPU and torch.version.cuda is not None and _CUDA.exists()

if SERVES_CPU:
    _register()
