"""A small language model on bytes whose positions come in one of several ways; all else is equal."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import ropewalk

ENCODINGS = ("rope", "sinusoidal", "learned", "alibi", "relative", "none")
#: Of the relative bias: buckets, and the distance from which all share the last (as in T5).
BUCKETS, FARTHEST = 32, 128


def sinusoidal(length: int, width: int) -> Tensor:
    """(length, width): sines of even, cosines of odd channels (Vaswani et al. 2017, 3.5)."""
    pair = torch.arange(0, width, 2)
    angle = torch.outer(torch.arange(length), 10000.0 ** (-pair / width))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


def alibi(heads: int, length: int, device: torch.device) -> Tensor:
    """(heads, length, length): −slope × distance, slopes 2^(−8 h / heads) (Press et al. 2022)."""
    slope = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    return -slope[:, None, None] * distances(length, device).clamp(min=0)


def distances(length: int, device: torch.device) -> Tensor:
    at = torch.arange(length, device=device)
    return at[:, None] - at[None, :]


def bucket(distance: Tensor) -> Tensor:
    """Half of the buckets are single distances, the others grow up to FARTHEST (Raffel et al. 2020)."""
    near = BUCKETS // 2
    distance = distance.clamp(min=0)
    grown = (distance.clamp(min=1) / near).log() / math.log(FARTHEST / near) * (BUCKETS - near)
    return torch.where(distance < near, distance, (near + grown.long()).clamp(max=BUCKETS - 1))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, encoding: str) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.rotary = ropewalk.RotaryEmbedding(width // heads) if encoding == "rope" else None

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.before[0](x)).view(batch, tokens, 3, self.heads, -1).unbind(2)
        if self.rotary is not None:
            q, k = self.rotary(q, k, layout="bthd")
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=bias is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.before[1](x))


class TinyModel(nn.Module):
    """tokens (batch, length) of bytes to logits. ``longest`` rows exist of the learned encoding;
    those beyond the trained length stay as they were initialised."""

    def __init__(self, encoding: str, width: int, heads: int, layers: int, longest: int) -> None:
        super().__init__()
        self.encoding, self.heads = encoding, heads
        self.embed = nn.Embedding(256, width)
        self.layers = nn.ModuleList(Layer(width, heads, encoding) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)
        if encoding == "learned":
            self.positions = nn.Parameter(0.02 * torch.randn(longest, width))
        elif encoding == "sinusoidal":
            self.register_buffer("positions", sinusoidal(longest, width))
        elif encoding == "relative":
            self.relative = nn.Parameter(torch.zeros(heads, BUCKETS))
        nn.init.normal_(self.embed.weight, std=0.02)

    def bias(self, length: int, device: torch.device) -> Tensor | None:
        """What is added to the scores, −∞ for later keys; None where nothing but that is added."""
        if self.encoding == "alibi":
            added = alibi(self.heads, length, device)
        elif self.encoding == "relative":
            added = self.relative[:, bucket(distances(length, device))]
        else:
            return None
        return added.masked_fill(distances(length, device) < 0, -torch.inf)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        if self.encoding in ("learned", "sinusoidal"):
            x = x + self.positions[: tokens.size(1)]
        bias = self.bias(tokens.size(1), tokens.device)
        if bias is not None and torch.is_autocast_enabled(x.device.type):
            bias = bias.to(torch.get_autocast_dtype(x.device.type))
        for layer in self.layers:
            x = layer(x, bias)
        return self.head(self.last(x))
