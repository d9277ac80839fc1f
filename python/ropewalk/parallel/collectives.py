"""All-reduces that know their derivatives."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function


class _SumOfParts(Function):
    """Each rank has a term of the result: forward the sum, backward the gradient as it is."""

    @staticmethod
    def forward(ctx, x: Tensor, group) -> Tensor:
        total = x.contiguous()
        if total is x:
            total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return gradient, None


class _UsedByAll(Function):
    """Every rank uses the same value for its part: forward as it is, backward the sum."""

    @staticmethod
    def forward(ctx, x: Tensor, group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


def sum_of_parts(x: Tensor, group) -> Tensor:
    return _SumOfParts.apply(x, group)


def used_by_all(x: Tensor, group) -> Tensor:
    return _UsedByAll.apply(x, group)
