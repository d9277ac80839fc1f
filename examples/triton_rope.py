"""Rotary embedding as a Triton kernel, to learn from: forward, backward, any strides, one pass.

    python examples/triton_rope.py          on a GPU
    TRITON_INTERPRET=1 python examples/triton_rope.py   on a CPU, slowly

How to read it: ``_rotate_kernel`` line by line, then ``rotate``, which launches it, then ``TritonRope``,
which tells autograd that the gradient is the rotation back. docs/kernels.md goes on from here: what a
CUDA kernel does differently, and what each step gains.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rotate_kernel(
    x_ptr, y_ptr, cos_ptr, sin_ptr, positions_ptr,
    x_batch, x_token, x_head,  # strides in elements; channels lie side by side
    y_batch, y_token, y_head,
    table_row, positions_batch, positions_token,
    heads, pairs, head_dim,
    INVERSE: tl.constexpr, COPY_REST: tl.constexpr,
    HEADS: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    # One program rotates all heads of one token: its cosines and sines are loaded once and used
    # for every head. 64-bit, because token * stride passes 2^31 in ordinary training batches.
    token = tl.program_id(0).to(tl.int64)
    batch = tl.program_id(1).to(tl.int64)

    # The position comes from memory, so that packed sequences and decoding need nothing special.
    position = tl.load(positions_ptr + batch * positions_batch + token * positions_token)

    # Ranges have sizes that are powers of two; the masks cut them to what is there.
    pair = tl.arange(0, PAIRS)
    head = tl.arange(0, HEADS)
    pair_mask = pair < pairs
    mask = (head < heads)[:, None] & pair_mask[None, :]

    # One row of the table, (PAIRS,), in float32 whatever the data are.
    cos = tl.load(cos_ptr + position * table_row + pair, mask=pair_mask, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * table_row + pair, mask=pair_mask, other=0.0).to(tl.float32)
    # The backward pass is the same rotation by the opposite angle. INVERSE is known when the kernel
    # is compiled: the forward kernel has no trace of this line.
    if INVERSE:
        sin = -sin

    # Half pairing: channel i goes with channel i + pairs. (HEADS, PAIRS) elements of each.
    x_row = x_ptr + batch * x_batch + token * x_token + head[:, None] * x_head
    x0 = tl.load(x_row + pair[None, :], mask=mask).to(tl.float32)
    x1 = tl.load(x_row + pair[None, :] + pairs, mask=mask).to(tl.float32)

    # Both are loaded before the first store, so y may be x. The products stay in registers as
    # float32; storing rounds once, to the dtype of y: a cast costs no pass of its own.
    y_row = y_ptr + batch * y_batch + token * y_token + head[:, None] * y_head
    tl.store(y_row + pair[None, :], x0 * cos[None, :] - x1 * sin[None, :], mask=mask)
    tl.store(y_row + pair[None, :] + pairs, x1 * cos[None, :] + x0 * sin[None, :], mask=mask)

    # Channels behind the rotated ones are copied, unless they are where they belong already.
    if COPY_REST:
        rest = 2 * pairs + tl.arange(0, REST)
        rest_mask = (head < heads)[:, None] & (rest < head_dim)[None, :]
        tl.store(
            y_row + rest[None, :], tl.load(x_row + rest[None, :], mask=rest_mask), mask=rest_mask
        )


def rotate(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, inverse: bool = False,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Rotates x (batch, tokens, heads, head_dim) in half pairing.

    cos, sin: (rows, pairs) with pairs ≤ head_dim / 2; positions: (batch, tokens), integers below
    ``rows``. ``out`` is written (it may be x itself, or of another dtype); without it one tensor is
    allocated, and nothing else ever is. float32, float16, bfloat16; any strides, channels side by
    side.
    """
    if x.dim() != 4 or x.stride(-1) != 1:
        raise ValueError("x: expected (batch, tokens, heads, head_dim) with channels side by side")
    pairs = cos.size(-1)
    if cos.shape != sin.shape or cos.stride() != sin.stride() or 2 * pairs > x.size(-1):
        raise ValueError("cos, sin: expected equal tables (rows, pairs), pairs ≤ head_dim / 2")
    if positions.shape != x.shape[:2]:
        raise ValueError(f"positions: expected {tuple(x.shape[:2])}, got {tuple(positions.shape)}")
    y = torch.empty_like(x) if out is None else out
    if y.shape != x.shape or y.stride(-1) != 1:
        raise ValueError("out: expected the shape of x with channels side by side")
    batch, tokens, heads, head_dim = x.shape
    if x.numel() == 0:
        return y
    rest = head_dim - 2 * pairs
    _rotate_kernel[(tokens, batch)](
        x, y, cos, sin, positions,
        *x.stride()[:3], *y.stride()[:3], cos.stride(0), *positions.stride(),
        heads, pairs, head_dim,
        INVERSE=inverse, COPY_REST=rest > 0 and y is not x,
        HEADS=triton.next_power_of_2(heads), PAIRS=triton.next_power_of_2(pairs),
        REST=triton.next_power_of_2(max(rest, 1)),
    )  # fmt: skip
    return y


class TritonRope(torch.autograd.Function):
    """``rotate`` with a gradient: y = R x, so that the gradient of x is Rᵀ = R⁻¹ times that of y.

    R depends on the positions alone: nothing of x is kept for the backward pass.
    """

    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin, positions)
        return rotate(x, cos, sin, positions)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None, None]:
        cos, sin, positions = ctx.saved_tensors
        if grad.stride(-1) != 1:
            grad = grad.contiguous()  # an expanded gradient, such as that of sum()
        return rotate(grad, cos, sin, positions, inverse=True), None, None, None


def tables(rows: int, rotary_dim: int, base: float = 10000.0, device=None) -> tuple[Tensor, Tensor]:
    """Cosines and sines (rows, rotary_dim / 2), float32, from angles in float64.

    Angles in float32 would be off by 4e-3 at position 131071; in bfloat16 they would be nonsense.
    """
    pair = torch.arange(0, rotary_dim, 2, dtype=torch.float64)
    angles = torch.outer(torch.arange(rows, dtype=torch.float64), base ** (-pair / rotary_dim))
    return angles.cos().float().to(device), angles.sin().float().to(device)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(2, 5, 3, 16, device=device, requires_grad=True)
    cos, sin = tables(100, 16, device=device)
    positions = torch.tensor([[0, 1, 2, 3, 4], [95, 96, 97, 98, 99]], device=device)
    y = TritonRope.apply(x, cos, sin, positions)
    back = rotate(y.detach(), cos, sin, positions, inverse=True)
    y.sum().backward()
    print("rotated and back, largest difference:", float((back - x.detach()).abs().max()))
    print("gradient of the first token (position 0, so all ones):", x.grad[0, 0, 0].tolist())


if __name__ == "__main__":
    main()
