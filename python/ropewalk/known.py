"""The lean way through eager calls that need nothing but a plan and positions.

In such a call a plan is a number, which crosses into the operators for nothing, and not its text.
Numbers mean something in this process alone. So they stay out of everything that records calls: a
compiler, a dispatch mode (which make_fx, FakeTensor and functionalization are), a transform. A
plan's first call with a layout goes the general way and learns the number.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from .autograd import keep_for_backward, pull_back
from .call import TOKEN_DIM, Call
from .ops import LOAD_PROBLEM, SERVES_CUDA
from .plans import Plan

if LOAD_PROBLEM is None:
    # The builtin inside an OpOverload: its __call__ adds a Python frame.
    _op = torch.ops.ropewalk._rotate_known.default._op
    _op_inplace = torch.ops.ropewalk._rotate_known_.default._op

_is_dynamo_compiling = torch.compiler.is_dynamo_compiling
_is_grad_enabled = torch.is_grad_enabled
_is_inference_mode = torch.is_inference_mode_enabled
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms_active = torch._C._are_functorch_transforms_active
_increment_version = torch._C._increment_version
_NO_NUMBERS: dict[str, int] = {}
# Subclasses (DTensor among them) give the operators with texts their own meaning.
_PLAIN = (Tensor, torch.nn.Parameter)


def learn(plan: Plan, q: Tensor, layout: str) -> None:
    """Numbers the plan for later calls of this layout on the kind of device that q is on. 0 stands
    for none: the numbers are used up."""
    if _is_dynamo_compiling() or _dispatch_modes() or _transforms_active() or not plan.is_exact:
        return
    if q.__class__ not in _PLAIN:
        return
    if q.is_cuda and SERVES_CUDA:
        numbers = plan.numbers_cuda
    elif q.is_cpu:
        numbers = plan.numbers_cpu
    else:
        return
    if layout not in numbers:
        numbers[layout] = torch.ops.ropewalk._number_of(q, plan.text, TOKEN_DIM[layout], False)


def rotate(q: Tensor, k: Tensor | None, plan: Plan, layout: str, start: int, positions,
           inplace: bool = False):  # fmt: skip
    """q, or (q, k), rotated; None where the call must go the general way, as it must in place where
    there is something to derive."""
    # One function, as every call of another is a twentieth of the time there is.
    if (
        _is_dynamo_compiling()
        or type(start) is not int
        or type(q) not in _PLAIN
        or (k is not None and type(k) not in _PLAIN)
        or _dispatch_modes()
        or _transforms_active()
        or forward_ad._current_level >= 0
    ):
        return None
    numbers = plan.numbers_cuda if q.is_cuda else plan.numbers_cpu if q.is_cpu else _NO_NUMBERS
    number = numbers.get(layout)
    if not number:
        return None
    derived = (q.requires_grad or (k is not None and k.requires_grad)) and _is_grad_enabled()
    if not inplace:
        if derived:
            result = _apply(q, k, number, start, positions, plan.text, layout)
        else:
            result = _op(q, k, number, start, positions)
        return result[0] if k is None else result
    if derived:
        return None
    _op_inplace(q, k, number, start, positions)
    both = (q,) if k is None else (q, k)
    if not _is_inference_mode():
        _increment_version(both)
    return q if k is None else both


class _RotateKnown(Function):
    @staticmethod
    def forward(q, k, number, start, positions, text, layout):
        return _op(q, k, number, start, positions)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, k, _, start, positions, text, layout = inputs
        ctx.set_materialize_grads(False)
        if positions is None:
            ctx.call = (text, TOKEN_DIM[layout], start)
        else:
            keep_for_backward(ctx, Call(text, TOKEN_DIM[layout], start, positions), None, None)
        if k is not None:
            needs = ctx.needs_input_grad
            if not (needs[0] and needs[1]):
                ctx.mark_non_differentiable(output[1] if needs[0] else output[0])

    backward = staticmethod(pull_back)


# Function.apply without its Python half, which binds defaults by signature and serves transforms: a
# known call has neither.
_apply = super(Function, _RotateKnown).apply
