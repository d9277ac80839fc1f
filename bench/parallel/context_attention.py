"""Attention split over tokens: each rank has all heads of its tokens and gathers rotated keys and
values of the others. What a context-parallel engine overlaps and streams is done here in one step:
this is for checking positions, and for measuring what the rotation is a part of."""

from __future__ import annotations

import torch
import torch.distributed as dist
from setting import Shape, rotary_of, weights_of
from torch.autograd import Function
from torch.nn.functional import linear, scaled_dot_product_attention

from ropewalk.parallel import join_tokens


class _Gather(Function):
    """Whole tokens (batch, head, token, channel) from every rank's; backward each rank's sum."""

    @staticmethod
    def forward(ctx, part, all_tokens):
        ctx.tokens = all_tokens[dist.get_rank()]
        parts = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in all_tokens]
        dist.all_gather(parts, part.contiguous())
        return join_tokens(parts, all_tokens, 2)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient)
        return gradient.index_select(2, ctx.tokens), None


class ContextParallelAttention:
    def __init__(self, shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
        self.shape, self.rotary = shape, rotary_of(shape)
        self.weights = {
            n: w.to(device, dtype).requires_grad_() for n, w in weights_of(shape).items()
        }

    def __call__(self, x, positions, all_tokens, mask) -> torch.Tensor:
        """``mask`` (local token, token): which keys a local query sees."""
        q, k, v = (
            linear(x, self.weights[n]).unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)
            for n in "qkv"
        )
        q, k = self.rotary(q, k, positions)
        k, v = (_Gather.apply(t, all_tokens) for t in (k, v))
        attended = scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return linear(attended.transpose(1, 2).flatten(2), self.weights["o"])
