"""Apply functions with more than q, k, cos and sin to them, and rotations written into a method.

Each is matched by the names of its parameters and, like the others, accepted only where ours gives
its bits on random tensors (:data:`_EXAMPLES`).
"""

from __future__ import annotations

import types
from collections.abc import Callable

import torch
from torch import Tensor

from .recognise import same_bits, signature_of
from .rules import ApplyRule, apply

_HALF_EACH = ApplyRule("half", "copies", "each")
_INTERLEAVED_EACH = ApplyRule("interleaved", "copies", "each")
_INTERLEAVED_ONCE = ApplyRule("interleaved", "copies", "once")


def apply_unequal(
    rule: ApplyRule, q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor | None]:
    """``apply`` where a table's copies differ: the first members of pairs by one rotation, the second
    by another."""
    if rule.pairing == "half":
        lower, upper = cos.chunk(2, -1), sin.chunk(2, -1)
    else:
        lower, upper = (t.unflatten(-1, (-1, 2)).unbind(-1) for t in (cos, sin))
    pairs = rule._replace(columns="pairs")
    first = apply(pairs, q, k, lower[0], upper[0])
    second = apply(pairs, q, k, lower[1], upper[1])

    def joined(a: Tensor | None, b: Tensor | None) -> Tensor | None:
        if a is None:
            return None
        member = torch.arange(a.size(-1), device=a.device)
        member = member % 2 if rule.pairing == "interleaved" else member // (a.size(-1) // 2)
        return torch.where(member == 0, a, b)

    return joined(first[0], second[0]), joined(first[1], second[1])


def _own_angles(q, k, cos, sin, unsqueeze_dim=1):
    """HunYuan-VL: the members of a pair turn by different angles, in float32."""
    rule = ApplyRule("half", "copies", "once")
    return apply_unequal(rule, q, k, cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim))


def _prefix(q, k, cos, sin, **_):
    """DINOv3: the rows of cos belong to the last tokens; those before pass through."""
    ours = []
    for x in (q, k):
        x, rows = x.clone(), cos.size(-2)
        x[..., -rows:, :] = apply(_HALF_EACH, x[..., -rows:, :], None, cos, sin)[0]
        ours.append(x)
    return tuple(ours)


def _last_queries(q, k, cos, sin, unsqueeze_dim=1):
    """MuseGlimmer's assistant: q holds the last of k's tokens."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    last = slice(cos.size(-2) - q.size(-2), None)
    return (
        apply(_HALF_EACH, q, None, cos[..., last, :], sin[..., last, :])[0],
        apply(_HALF_EACH, k, None, cos, sin)[0],
    )


def _values_too(q, k, v, cos, sin, position_ids, unsqueeze_dim=1):
    """CLVP: v rotates as well."""
    cos, sin = (t[position_ids].unsqueeze(unsqueeze_dim) for t in (cos, sin))
    q, k = apply(_HALF_EACH, q, k, cos, sin)
    return q, k, apply(_HALF_EACH, v, None, cos, sin)[0]


def _memory(q, k, cos, sin, num_k_exclude_rope=0, repeat_freqs_k=False):
    """SAM 2: the last keys do not rotate; the others may repeat the table."""
    rotated = k.size(-2) - num_k_exclude_rope
    k_out = k.clone()
    if rotated > 0:
        repeats = rotated // q.size(-2) if repeat_freqs_k and rotated != q.size(-2) else 1
        tables = (t.repeat(1, 1, repeats, 1) for t in (cos, sin))
        k_out[..., :rotated, :] = apply(_INTERLEAVED_ONCE, k[..., :rotated, :], None, *tables)[0]
    return apply(_INTERLEAVED_ONCE, q, None, cos, sin)[0], k_out


def _spatial_memory(q, k, cos, sin, cos_k, sin_k, num_k_exclude_rope=0, repeat_freqs_k=1):
    """EdgeTAM: of each group of keys the last, spatial ones rotate."""
    rotated = k.size(-2) - num_k_exclude_rope
    k_out = k.clone()
    if rotated > 0:
        groups = k_out[..., :rotated, :].unflatten(-2, (repeat_freqs_k, -1))
        spatial = groups[..., -cos_k.size(-2) :, :].flatten(-3, -2)
        tables = (t.repeat(1, 1, repeat_freqs_k, 1) for t in (cos_k, sin_k))
        turned = apply(_INTERLEAVED_ONCE, spatial, None, *tables)[0]
        groups[..., -cos_k.size(-2) :, :] = turned.unflatten(-2, (repeat_freqs_k, -1))
    return apply(_INTERLEAVED_ONCE, q, None, cos, sin)[0], k_out


def _block(x, pos):
    """V-JEPA 2: pairs (2i, 2i + 1) whose members turn by the angles of columns 2i and 2i + 1 of
    [angles, angles]."""
    dim = x.size(-1)
    omega = torch.arange(dim // 2, dtype=x.dtype, device=x.device)
    omega /= dim / 2.0
    omega = 1.0 / 10000**omega
    angles = pos.unsqueeze(-1) * omega
    cos, sin = (t.repeat(1, 1, 1, 2) for t in (angles.cos(), angles.sin()))
    return apply_unequal(_INTERLEAVED_EACH, x, None, cos, sin)[0]


def _conformer(self, hidden_states, relative_position_embeddings):
    """Conformer layers: hidden states rotate before they are projected to q and k."""
    batch, tokens, hidden = hidden_states.size()
    heads = hidden_states.view(batch, tokens, self.num_heads, self.head_size)
    cos, sin = (
        t[:tokens].transpose(0, 1) for t in (relative_position_embeddings[0], relative_position_embeddings[1])
    )  # fmt: skip
    return apply(_HALF_EACH, heads, None, cos, sin)[0].view(batch, tokens, hidden)


def _roformer(sinusoidal_pos, query_layer, key_layer, value_layer=None):
    """RoFormer: one table, sines then cosines."""
    sin, cos = sinusoidal_pos.chunk(2, dim=-1)
    rule = ApplyRule("interleaved", "pairs", "each")
    q, k = apply(rule, query_layer, key_layer, cos, sin)
    if value_layer is None:
        return q, k
    return q, k, apply(rule, value_layer, None, cos, sin)[0]


def _pairs(*shape: int, dtype: torch.dtype, double: bool = True) -> list[Tensor]:
    """cos and sin, every value twice in the half layout."""
    tables = [torch.rand(*shape, dtype=torch.float32).to(dtype) for _ in "cs"]
    return [torch.cat([t, t], -1) for t in tables] if double else tables


def _unequal_example(dtype):
    q, k = (torch.randn(2, 3, 5, 8).to(dtype) for _ in "qk")
    return (q, k, *(torch.rand(2, 5, 8).to(dtype) for _ in "cs")), {}


def _prefix_example(dtype):
    q, k = (torch.randn(2, 3, 7, 8).to(dtype) for _ in "qk")
    return (q, k, *_pairs(5, 4, dtype=dtype)), {}


def _last_queries_example(dtype):
    q, k = torch.randn(2, 3, 2, 8).to(dtype), torch.randn(2, 3, 5, 8).to(dtype)
    return (q, k, *_pairs(2, 5, 4, dtype=dtype)), {}


def _values_too_example(dtype):
    q, k, v = (torch.randn(2, 3, 5, 8).to(dtype) for _ in "qkv")
    return (q, k, v, *_pairs(9, 4, dtype=dtype), torch.randint(0, 9, (2, 5))), {}


def _memory_example(dtype):
    q, k = torch.randn(1, 2, 5, 8).to(dtype), torch.randn(1, 2, 13, 8).to(dtype)
    cos, sin = (t.repeat_interleave(2, -1) for t in _pairs(5, 4, dtype=torch.float32, double=False))
    tables = [t[None, None] for t in (cos, sin)]
    return (q, k, *tables), {"num_k_exclude_rope": 3, "repeat_freqs_k": True}


def _spatial_memory_example(dtype):
    arguments, _ = _memory_example(dtype)
    tables = [t[:, :, :3] for t in arguments[2:]]
    return (*arguments, *tables), {"num_k_exclude_rope": 3, "repeat_freqs_k": 2}


def _block_example(dtype):
    return (torch.randn(2, 3, 5, 8).to(dtype), torch.randint(0, 20, (2, 3, 5))), {}


def _conformer_example(dtype):
    layer = types.SimpleNamespace(num_heads=3, head_size=8)
    tables = torch.stack(_pairs(6, 4, dtype=dtype))[:, :, None, None]
    return (layer, torch.randn(2, 5, 24).to(dtype), tables), {}


def _roformer_example(dtype):
    layers = [torch.randn(2, 3, 5, 8).to(dtype) for _ in "qkv"]
    return (torch.rand(1, 1, 5, 8).to(dtype), *layers), {}


_EXAMPLES: dict[Callable, Callable] = {
    _own_angles: _unequal_example,
    _prefix: _prefix_example,
    _last_queries: _last_queries_example,
    _values_too: _values_too_example,
    _memory: _memory_example,
    _spatial_memory: _spatial_memory_example,
    _block: _block_example,
    _conformer: _conformer_example,
    _roformer: _roformer_example,
}

_FUNCTIONS = (_prefix, _last_queries, _values_too, _memory, _spatial_memory, _block)
_METHODS = {"_apply_rotary_embedding": _conformer, "apply_rotary_position_embeddings": _roformer}


@torch.no_grad()
def _agrees(ours: Callable, theirs: Callable, example: Callable) -> bool:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20260601)
        for dtype in (torch.float32, torch.bfloat16):
            arguments, keywords = example(dtype)
            try:
                expected = theirs(*arguments, **keywords)
            except (RuntimeError, TypeError, ValueError, IndexError):
                return False
            got = ours(*arguments, **keywords)
            if not same_bits(got if isinstance(got, tuple) else (got,), expected):
                return False
    return True


def _parameters(function: Callable) -> list[str]:
    return [
        name for name, parameter in signature_of(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]  # fmt: skip


#: Folders whose tables do not hold every value twice.
_UNEQUAL_TABLES = ("hunyuan_vl",)


def special_function(function: Callable) -> Callable | None:
    """Ours for an apply function that takes more than q, k and one row per token."""
    has_unequal = any(name in function.__module__.split(".") for name in _UNEQUAL_TABLES)
    for ours in (_own_angles,) if has_unequal else _FUNCTIONS:
        if _parameters(ours) == _parameters(function) and _agrees(ours, function, _EXAMPLES[ours]):
            return ours
    return None


def special_method(name: str, function: Callable) -> types.FunctionType | None:
    """Ours for a method that rotates by itself."""
    ours = _METHODS.get(name)
    if ours is None or not _agrees(ours, function, _EXAMPLES[ours]):
        return None
    return ours
