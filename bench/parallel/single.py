"""The same block in one process, and how far the split one may be from it."""

from __future__ import annotations

import torch
import torch.distributed as dist
from setting import Shape, rotary_of, weights_of
from torch.nn.functional import linear, scaled_dot_product_attention

from tolerances import roundings

Results = dict[str, torch.Tensor]


def single(
    shape: Shape, x: torch.Tensor, positions: torch.Tensor, gradient: torch.Tensor,
    dtype: torch.dtype, *, reversed_sums: bool = False, mask: torch.Tensor | None = None,
) -> Results:  # fmt: skip
    """Output and every gradient. ``reversed_sums`` adds up over the channels of x, and over those
    of the heads in the output projection, in the opposite order: the same numbers by other sums."""
    device = x.device
    weights = {n: w.to(device, dtype).requires_grad_() for n, w in weights_of(shape).items()}
    x = x.detach().to(dtype, copy=True).requires_grad_()
    flip = (lambda t: t.flip(-1)) if reversed_sums else (lambda t: t)
    q, k, v = (
        linear(flip(x), flip(weights[n])).unflatten(-1, (-1, shape.head_dim)).transpose(1, 2)
        for n in "qkv"
    )
    q, k = rotary_of(shape)(q, k, positions)
    attended = scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=shape.heads != shape.kv_heads
    )
    y = linear(flip(attended.transpose(1, 2).flatten(2)), flip(weights["o"]))
    y.backward(gradient.to(dtype))
    return {"y": y.detach(), "x": x.grad, **{n: w.grad for n, w in weights.items()}}


class Comparison:
    """Worst error of the split block's results, as a share of what is allowed.

    The reference is float64. A split result may be as far from it as twice the unsplit one in its
    own dtype, plus the roundings that splitting adds: each rank's term is rounded, and each addition
    of the all-reduce."""

    def __init__(self, world: int, dtype: torch.dtype, reference: Results, unsplit: Results):
        self.dtype = str(dtype).removeprefix("torch.")
        self.world = world
        self.reference, self.unsplit = reference, unsplit
        self.worst = {}

    def add(self, name: str, got: torch.Tensor, part: slice | tuple = slice(None)) -> None:
        want = self.reference[name][part].double()
        own = (self.unsplit[name][part].double() - want).abs().max()
        added = roundings(self.dtype, 2 * self.world) * want.abs().max() * self.world**0.5
        error = (got.double() - want).abs().max()
        assert got.shape == want.shape, (name, got.shape, want.shape)
        share = float(error / (2 * own + added))
        self.worst[name] = max(self.worst.get(name, 0.0), share)

    def result(self) -> dict:
        """Over all ranks; NaN fails."""
        shares = torch.tensor(list(self.worst.values()), dtype=torch.float64)
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        gathered = [torch.empty_like(shares, device=device) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, shares.to(device))
        worst = torch.stack(gathered).amax(0).tolist()
        return {
            "worst_share_of_bound": dict(zip(self.worst, worst, strict=True)),
            "passed": all(share <= 1.0 for share in worst),
        }
