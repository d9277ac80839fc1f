"""Recognises a model's apply function by what it does.

A function is accepted only where ours, called with the same random tensors, gives the same bits in
every combination of dtypes that a model may meet. Nothing depends on the function's source.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from .rules import ApplyRule, apply

_Q = ("q", "x", "xq", "query", "tensor", "hidden_states")
_K = ("k", "xk", "key")
_COS, _SIN = ("cos",), ("sin",)
_COMPLEX = ("freqs_cis", "freqs_ci")
_UNSQUEEZE = "unsqueeze_dim"
#: Accepted and not read.
_IGNORED = ("position_ids",)

_BATCH, _HEADS, _TOKENS = 2, 3, 5
_DTYPES = (
    (torch.float32, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32),
    (torch.float16, torch.float16),
)  # fmt: skip

#: Shapes of x without channels, of cos without columns, and where cos is unsqueezed inside.
_SHAPES = (
    ((_BATCH, _HEADS, _TOKENS), (_BATCH, _TOKENS), 1),
    ((_TOKENS, _HEADS), (_TOKENS,), -2),
    ((_BATCH, _TOKENS, _HEADS), (_BATCH, _TOKENS), 2),
    ((_BATCH, _TOKENS, _HEADS), (_TOKENS,), -2),
    ((_BATCH, _HEADS, _TOKENS), (1, 1, _TOKENS), None),
    ((_BATCH, _HEADS, _TOKENS), (1, _TOKENS), None),
)


def signature_of(function: Callable) -> inspect.Signature:
    """Of a function, also where the ``kernels`` package has wrapped it as a module."""
    return inspect.signature(function.forward if isinstance(function, nn.Module) else function)


class Roles:
    """Which parameter of an apply function is which; None where it is not such a function."""

    def __init__(self, function: Callable) -> None:
        self.signature = signature_of(function)
        names = list(self.signature.parameters)

        def first(options: tuple[str, ...]) -> str | None:
            return next((name for name in names if name in options), None)

        self.q, self.k = first(_Q), first(_K)
        self.cos, self.sin, self.complex = first(_COS), first(_SIN), first(_COMPLEX)
        known = {self.q, self.k, self.cos, self.sin, self.complex, _UNSQUEEZE, *_IGNORED}
        others = [
            name for name, parameter in self.signature.parameters.items()
            if name not in known and parameter.kind is not parameter.VAR_KEYWORD
        ]  # fmt: skip
        #: Parameters that have to stay at their defaults, and those that have none.
        self.fixed = [
            n for n in others if self.signature.parameters[n].default is not inspect.Parameter.empty
        ]
        self.others = [name for name in others if name not in self.fixed]
        self.unsqueezes = _UNSQUEEZE in names
        self.names = tuple(names)
        self.defaults = {
            name: parameter.default for name, parameter in self.signature.parameters.items()
            if parameter.default is not parameter.empty
        }  # fmt: skip
        self.takes_more = any(
            parameter.kind is parameter.VAR_KEYWORD
            for parameter in self.signature.parameters.values()
        )

    @property
    def complete(self) -> bool:
        return bool(self.q and not self.others and ((self.cos and self.sin) or self.complex))

    def arguments(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> dict[str, Tensor]:
        given = {self.q: q}
        if self.k:
            given[self.k] = k
        if self.complex:
            given[self.complex] = torch.complex(cos.float(), sin.float())
        else:
            given |= {self.cos: cos, self.sin: sin}
        return given


def _candidates(complex_table: bool) -> Iterator[ApplyRule]:
    tables = [
        ("half", "copies"), ("interleaved", "copies"), ("interleaved", "first_half"),
        ("interleaved", "pairs"), ("half", "pairs"), ("interleaved_to_half", "first_half"),
        ("interleaved_to_half", "pairs"),
    ]  # fmt: skip
    if complex_table:
        tables, roundings = [("interleaved", "pairs")], ["once"]
    else:
        roundings = ["each", "once", "promoted", "double"]
    for negated, last, rounding, (pairing, columns) in itertools.product(
        (False, True), (False, True), roundings, tables
    ):
        yield ApplyRule(pairing, columns, rounding, last, negated)


def _columns(values: Tensor, rule: ApplyRule, generator: torch.Generator) -> Tensor:
    """A table as the rule expects it, from one value per pair. Columns that are not read hold noise."""
    if rule.columns == "pairs":
        return values
    if rule.columns == "first_half":
        noise = torch.rand(values.shape, generator=generator, device="cpu")
        return torch.cat([values, noise.to(values.dtype)], -1)
    return (
        values.repeat_interleave(2, -1)
        if rule.pairing == "interleaved"
        else torch.cat([values] * 2, -1)
    )


def same_bits(ours: tuple, theirs: object) -> bool:
    theirs = theirs if isinstance(theirs, (tuple, list)) else (theirs,)
    return len(theirs) == sum(x is not None for x in ours) and all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(ours, theirs, strict=False)
    )


class Recognised:
    """An apply function and the rule that gives its bits; call it as the function is called."""

    def __init__(self, function: Callable, roles: Roles, rule: ApplyRule, unsqueeze: int | None,
                 windowed: bool) -> None:  # fmt: skip
        self.function, self.roles, self.rule, self.unsqueeze = function, roles, rule, unsqueeze
        self.name = getattr(function, "__name__", "an apply function")
        #: Whether a product of complex numbers is fused where the table's columns are not adjacent.
        self.fuses = roles.complex is not None and _fuses(function, roles, rule, unsqueeze)
        #: Whether the function itself leaves the channels beyond the table's columns alone.
        self.windowed = windowed

    def table(self, arguments: dict) -> Tensor:
        """cos of a call, so that its shape broadcasts against q and k; cheaper than both tables."""
        roles = self.roles
        table = arguments[roles.complex].real if roles.complex else arguments[roles.cos]
        axis = arguments[_UNSQUEEZE] if roles.unsqueezes else self.unsqueeze
        return table if axis is None else table.unsqueeze(axis)

    def tables(self, arguments: dict) -> tuple[Tensor, Tensor]:
        """cos and sin of a call, so that they broadcast against q and k."""
        roles = self.roles
        if roles.complex:
            table = arguments[roles.complex].to(arguments[roles.q].device)
            cos, sin = table.real, table.imag
        else:
            cos, sin = arguments[roles.cos], arguments[roles.sin]
        axis = arguments[_UNSQUEEZE] if roles.unsqueezes else self.unsqueeze
        if axis is None:
            return cos, sin
        return cos.unsqueeze(axis), sin.unsqueeze(axis)

    def bind(self, arguments: tuple, keywords: dict) -> dict:
        """The arguments of a call by name, defaults included."""
        roles = self.roles
        given = dict(roles.defaults)
        given.update(zip(roles.names, arguments, strict=False))
        given.update(keywords)
        if not roles.takes_more:
            for name in keywords:
                if name not in roles.names:
                    raise TypeError(f"{name}: {self.name} takes no such argument")
        for name in roles.fixed:
            if given[name] != roles.defaults[name]:
                raise ValueError(
                    f"{name}: ropewalk rotates for {self.name} with its default "
                    f"{roles.defaults[name]!r} alone, got {given[name]!r}"
                )
        return given

    def __call__(self, *arguments, **keywords):
        return self.run(arguments, keywords)

    def run(self, arguments: tuple, keywords: dict) -> Tensor | tuple[Tensor, Tensor]:
        """A call with these arguments."""
        given = self.bind(arguments, keywords)
        cos, sin = self.tables(given)
        k = given[self.roles.k] if self.roles.k else None
        rule = self.rule
        if self.fuses and given[self.roles.complex].stride(-1) != 1:
            rule = rule._replace(rounding="fused")
        q, k = apply(rule, given[self.roles.q], k, cos, sin)
        return q if k is None else (q, k)


def _fuses(function: Callable, roles: Roles, rule: ApplyRule, unsqueeze: int | None) -> bool:
    """Whether the function's bits for a transposed table are those of the fused rule."""
    generator = torch.Generator().manual_seed(20260601)
    shape = (_BATCH, _HEADS, _TOKENS) if unsqueeze == 1 else (_BATCH, _TOKENS, _HEADS)
    q, k = (torch.randn(*shape, 64, generator=generator) for _ in "qk")
    values = torch.view_as_complex(torch.randn(_BATCH, 32, _TOKENS, 2, generator=generator))
    table = values.transpose(1, 2)
    if unsqueeze == -2:
        table = table[0]
    theirs = function(**{roles.q: q, roles.k: k, roles.complex: table})
    axis = unsqueeze
    cos, sin = table.real.unsqueeze(axis), table.imag.unsqueeze(axis)
    return same_bits(apply(rule._replace(rounding="fused"), q, k, cos, sin), theirs)


def _agrees(candidate: Recognised, shape: tuple, cos_shape: tuple, head_dim: int, pairs: int,
            cos_dtypes: tuple) -> bool:  # fmt: skip
    """Whether the candidate gives the function's bits. An exception of the function passes on."""
    generator = torch.Generator().manual_seed(20260601)
    for dtype, table_dtype in cos_dtypes:
        q, k = (torch.randn(*shape, head_dim, generator=generator).to(dtype) for _ in "qk")
        cos, sin = (
            _columns(torch.rand(*cos_shape, pairs, generator=generator).to(table_dtype),
                     candidate.rule, generator)
            for _ in "cs"
        )  # fmt: skip
        given = candidate.roles.arguments(q, k, cos, sin)
        theirs = candidate.function(**given)
        try:
            ours = candidate(**given)
        except (RuntimeError, ValueError):
            return False
        ours = ours if isinstance(ours, tuple) else (ours, None)
        if not same_bits(ours, theirs):
            return False
    return True


@functools.cache
@torch.no_grad()
def recognise(function: Callable) -> Recognised | None:
    """The function's rule, found by calling it; None where no rule gives its bits."""
    roles = Roles(function)
    if not roles.complete:
        return None
    dtypes = (
        ((torch.float32, torch.float32), (torch.bfloat16, torch.float32))
        if roles.complex
        else _DTYPES
    )
    # PyTorch's product of complex numbers fuses its operations where fewer than 16 are left over.
    pairs = 32 if roles.complex else 4
    # A window narrower than the head first: only functions that know windows accept it.
    for (shape, cos_shape, unsqueeze), head_dim, rule in itertools.product(
        _SHAPES, (2 * pairs + 4, 2 * pairs), _candidates(roles.complex is not None)
    ):
        if roles.unsqueezes and unsqueeze != roles.signature.parameters[_UNSQUEEZE].default:
            continue
        try:
            candidate = Recognised(function, roles, rule, unsqueeze, head_dim > 2 * pairs)
            if _agrees(candidate, shape, cos_shape, head_dim, pairs, dtypes):
                return candidate
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
    return None
