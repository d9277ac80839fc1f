"""Derivatives. A rotation is linear and orthogonal in x: its backward pass is the same kernel in the
inverse direction, its tangent the same kernel on the tangent, and nothing of x is kept for either.

Two functions do the same. :class:`_Rotate` is the lean one (and :mod:`ropewalk.known` has a leaner
one for the calls that need least). :class:`_RotateTransformable` serves
``torch.func`` and forward mode, at three times the host cost, and only while those are active.
``torch.library.register_autograd`` would not do: with it, forward mode silently gives zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from .call import Call, table_for_kernel, table_gradients, table_tangent
from .ops import LOAD_PROBLEM

if LOAD_PROBLEM is None:
    _rotate = torch.ops.ropewalk._rotate.default
    _rotate_inplace = torch.ops.ropewalk._rotate_.default
    _rotate_out = torch.ops.ropewalk._rotate.out

    torch.library.register_vmap("ropewalk::_rotate", lambda *arguments: _vmap(*arguments))


_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled
_transforms_active = torch._C._are_functorch_transforms_active
_increment_version = torch._C._increment_version

Pair = tuple[Tensor, "Tensor | None"]


# Below, `call` is a Call, or the first fields of one: most calls need few arguments, and every one
# that is passed costs time.
_COS, _SIN = Call._fields.index("cos"), Call._fields.index("sin")


def _served(q: Tensor, call: tuple) -> tuple:
    """The call as the operators of q's device take it."""
    if len(call) <= _COS or call[_COS] is None or not q.is_cuda:
        return call
    return table_for_kernel(Call(*call), q.dtype)


def _op(q: Tensor, k: Tensor | None, *call) -> Pair:
    return _rotate(q, k, *_served(q, call))


def _op_inplace(q: Tensor, k: Tensor | None, *call) -> None:
    _rotate_inplace(q, k, *_served(q, call))


def _table_needs_grad(call: tuple) -> bool:
    return (
        len(call) > _COS
        and call[_COS] is not None
        and (call[_COS].requires_grad or call[_SIN].requires_grad)
    )


def _needs_grad(q: Tensor, k: Tensor | None, call: tuple) -> bool:
    return q.requires_grad or (k is not None and k.requires_grad) or _table_needs_grad(call)


def _is_transformed() -> bool:
    return _transforms_active() or forward_ad._current_level >= 0


def rotate(q: Tensor, k: Tensor | None, call: tuple) -> Pair:
    """Out of place, with every derivative that eager PyTorch has; backward alone when compiled."""
    if not _is_compiling() and _is_transformed():
        return _RotateTransformable.apply(q, k, *call)
    if _is_grad_enabled() and _needs_grad(q, k, call):
        return _Rotate.apply(q, k, *call)
    return _op(q, k, *call)


# The fields of a call that are tensors.
_TENSORS = slice(Call._fields.index("positions"), _SIN + 1)


def _keep(ctx, call: tuple, q: Tensor | None, k: Tensor | None) -> tuple[Tensor | None, ...]:
    """Leaves the rest of the call on ctx; returns what is to be saved for the derivatives."""
    ctx.call = call
    tensors = call[_TENSORS]
    if q is None and not any(t is not None for t in tensors):
        return ()
    ctx.call = (*call[: _TENSORS.start], *[None] * len(tensors), *call[_TENSORS.stop :])
    return (*tensors, q, k)


def keep_for_backward(ctx, call: tuple, q: Tensor | None, k: Tensor | None) -> None:
    """Keeps on ctx what :func:`pull_back` needs."""
    kept = _keep(ctx, call, q, k)
    if kept:
        ctx.save_for_backward(*kept)


def _kept(ctx) -> tuple[tuple, Tensor | None, Tensor | None]:
    call, saved = ctx.call, ctx.saved_tensors
    if not saved:
        return call, None, None
    *tensors, q, k = saved
    return (*call[: _TENSORS.start], *tensors, *call[_TENSORS.stop :]), q, k


def _rotate_some(q: Tensor | None, k: Tensor | None, call: Call) -> tuple[Tensor | None, ...]:
    """rotate where either tensor may be missing."""
    if q is None:
        return (None, None) if k is None else (None, rotate(k, None, call)[0])
    return rotate(q, k, call)


def pull_back(ctx, gq: Tensor | None, gk: Tensor | None) -> tuple[Tensor | None, ...]:
    """Gradients of (q, k, *call) from those of the outputs."""
    call, q, k = _kept(ctx)
    call = Call(*call)
    needs = ctx.needs_input_grad
    dq, dk = _rotate_some(
        gq if needs[0] else None, gk if needs[1] else None, call._replace(inverse=not call.inverse)
    )
    gradients = Call(*[None] * len(call))
    if len(needs) > 2 + _SIN and (needs[2 + _COS] or needs[2 + _SIN]):
        known = [(x, g) for x, g in ((q, gq), (k, gk)) if x is not None and g is not None]
        if known:
            dcos, dsin = table_gradients(known, call)
            gradients = gradients._replace(cos=dcos, sin=dsin)
    return (dq, dk, *gradients)[: len(needs)]


class _Rotate(Function):
    @staticmethod
    def forward(ctx, q, k, *arguments):
        table = _table_needs_grad(arguments)
        keep_for_backward(ctx, arguments, q if table else None, k if table else None)
        ctx.set_materialize_grads(False)
        result = _op(q, k, *arguments)
        if k is not None and not table:
            needs_q, needs_k = ctx.needs_input_grad[:2]
            if not (needs_q and needs_k):
                ctx.mark_non_differentiable(result[1] if needs_q else result[0])
        return result

    backward = staticmethod(pull_back)


class _RotateTransformable(Function):
    @staticmethod
    def forward(q, k, *arguments):
        return _op(q, k, *arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, *arguments = inputs
        call = Call(*arguments)
        kept = _keep(ctx, call, *((None, None) if call.cos is None else (q, k)))
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    backward = staticmethod(pull_back)

    @staticmethod
    def jvp(ctx, tq, tk, *tangents):
        call, q, k = _kept(ctx)
        call = Call(*call)
        tangents = Call("")._replace(**dict(zip(Call._fields, tangents, strict=False)))
        out_q, out_k = _rotate_some(tq, tk, call)
        if tangents.cos is not None or tangents.sin is not None:
            tables = [torch.zeros_like(table) if tangent is None else tangent
                      for tangent, table in ((tangents.cos, call.cos), (tangents.sin, call.sin))]  # fmt: skip
            tangents = tangents._replace(cos=tables[0], sin=tables[1])
            out_q = out_q + table_tangent(q, tangents, call)
            out_k = None if k is None else out_k + table_tangent(k, tangents, call)
        return out_q, out_k

    @staticmethod
    def vmap(info, in_dims, q, k, *arguments):
        return _vmap(info, in_dims, q, k, *arguments)


def _vmap(info, in_dims, q: Tensor, k: Tensor | None, *arguments):
    call = Call(*arguments)
    if all(dim is None for dim in in_dims[2:]):
        return _vmap_over_data(in_dims[:2], q, k, call)
    # Positions or tables differ from sample to sample: one call each.
    samples = []
    for i in range(info.batch_size):
        q_i, k_i, *call_i = (
            value if dim is None else value.select(dim, i)
            for value, dim in zip((q, k, *arguments), in_dims, strict=True)
        )
        samples.append(rotate(q_i, k_i, Call(*call_i)))
    out_q = torch.stack([sample[0] for sample in samples])
    if k is None:
        return (out_q, None), (0, None)
    return (out_q, torch.stack([sample[1] for sample in samples])), (0, 0)


def _vmap_over_data(in_dims, q: Tensor, k: Tensor | None, call: Call):
    """The mapped dimension becomes part of the heads, which all rotate alike."""
    head = call.head_axis
    folded = []
    sizes = []
    for x, dim in ((q, in_dims[0]), (k, in_dims[1])):
        sizes.append(None if x is None or dim is None else x.size(dim))
        if sizes[-1] is not None:
            x = x.movedim(dim, head - 1).flatten(head - 1, head)
        folded.append(x)
    results = rotate(*folded, call)
    outputs = tuple(
        y if size is None else y.unflatten(head, (size, -1))
        for y, size in zip(results, sizes, strict=True)
    )
    dims = tuple(
        None if size is None else y.dim() + head - 1 for y, size in zip(outputs, sizes, strict=True)
    )
    return outputs, dims


def rotate_inplace(q: Tensor, k: Tensor | None, call: tuple) -> Pair:
    """In place; returns q and k. A leaf that requires grad is refused, as PyTorch does."""
    if _is_compiling() or _transforms_active() or forward_ad._current_level >= 0:
        _rotate_inplace_traced(q, k, call)
    elif _is_grad_enabled() and _needs_grad(q, k, call):
        _rotate_inplace_with_grad(q, k, call)
    else:
        _op_inplace(q, k, *call)
        _count_mutation(q, k)
    return q, k


def _rotate_inplace_traced(q: Tensor, k: Tensor | None, call: tuple) -> None:
    """Under a compiler or a transform: through a copy where there is something to derive."""
    if _is_compiling() and not (_is_grad_enabled() and _needs_grad(q, k, call)):
        _op_inplace(q, k, *call)
        return
    rotated = rotate(q, k, call)
    q.copy_(rotated[0])
    if k is not None:
        k.copy_(rotated[1])


def rotate_out(
    q: Tensor, k: Tensor | None, call: Call, q_out: Tensor, k_out: Tensor | None
) -> Pair:
    """Into given tensors; has no derivative, as PyTorch's own out= variants."""
    outputs = (q_out,) if k_out is None else (q_out, k_out)
    if _is_grad_enabled() and (_needs_grad(q, k, call) or any(t.requires_grad for t in outputs)):
        raise RuntimeError(
            "ropewalk.rotate(out=...) does not support automatic differentiation, but one of the "
            "arguments requires grad"
        )
    if not _is_compiling() and _is_transformed():
        raise RuntimeError("ropewalk.rotate(out=...) does not support forward mode or torch.func")
    _rotate_out(q, k, *_served(q, call), q_out=q_out, k_out=k_out)
    if not _is_compiling():
        _count_mutation(q_out, k_out)
    return q_out, k_out


def _count_mutation(q: Tensor, k: Tensor | None) -> None:
    if not torch.is_inference_mode_enabled():
        _increment_version((q,) if k is None else (q, k))


def _rotate_inplace_with_grad(q: Tensor, k: Tensor | None, call: tuple) -> None:
    if _table_needs_grad(call):
        raise RuntimeError(
            "ropewalk: in place is not possible where cos or sin requires grad: their gradient "
            "needs the input, which would be overwritten"
        )
    if k is None:
        _RotateInplace.apply(q, None, *call)
    elif not q._is_view() and not k._is_view() and q.requires_grad and k.requires_grad:
        _RotateInplace.apply(q, k, *call)
    elif q._is_view() and q._base is k._base:
        _rotate_two_views(q, k, call)
    else:
        # A Function that returns several outputs cannot return a view, and would make an output
        # of a tensor that needs no gradient: one call each.
        rotate_inplace(q, None, call)
        rotate_inplace(k, None, call)


def _rotate_two_views(q: Tensor, k: Tensor, call: tuple) -> None:
    """Views of one buffer: the rotation is recorded on the buffer."""
    base = q._base
    if not base.is_contiguous():
        raise RuntimeError(
            "ropewalk: q and k are views of one tensor that is not contiguous, and a Function cannot "
            "return two views: rotate out of place"
        )
    places = tuple(
        (x.size(), x.stride(), x.storage_offset() - base.storage_offset()) for x in (q, k)
    )
    _RotateViews.apply(base, places, Call(*call))


class _RotateInplace(Function):
    @staticmethod
    def forward(ctx, q, k, *arguments):
        keep_for_backward(ctx, arguments, None, None)
        ctx.set_materialize_grads(False)
        _op_inplace(q, k, *arguments)
        if k is None:
            ctx.mark_dirty(q)
            return q
        ctx.mark_dirty(q, k)
        return q, k

    @staticmethod
    def backward(ctx, gq, gk=None):
        return pull_back(ctx, gq, gk)


class _RotateViews(Function):
    @staticmethod
    def forward(ctx, base, places, call):
        ctx.places = places
        keep_for_backward(ctx, call, None, None)
        _op_inplace(*_views(base, places), *call)
        ctx.mark_dirty(base)
        return base

    @staticmethod
    def backward(ctx, gradient):
        call = Call(*_kept(ctx)[0])
        call = call._replace(inverse=not call.inverse)
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        if torch.is_grad_enabled() and gradient.requires_grad:
            return _RotateViews.apply(gradient, ctx.places, call), None, None
        _op_inplace(*_views(gradient, ctx.places), *call)
        return gradient, None, None


def _views(base: Tensor, places) -> list[Tensor]:
    first = base.storage_offset()
    return [base.as_strided(size, stride, offset + first) for size, stride, offset in places]
