"""``patch`` and ``unpatch``: a transformers model whose attention layers call our operator."""

from __future__ import annotations

import re
import types
from collections.abc import Callable

from torch import nn

from ..errors import UnsupportedError
from .exact import ExactApply, exact_rotaries
from .rebind import methods, rebound
from .recognise import recognise
from .special import special_function, special_method

ARITHMETICS = ("parity", "exact")
_APPLIES = re.compile(r"^_?\w*apply_\w*(rotary|rope)\w*$|^rotate_queries_or_keys$")
_RECORD = "_ropewalk_patch"


class Record:
    """What a patch put where; kept by the model that was patched."""

    def __init__(self, arithmetic: str) -> None:
        self.arithmetic = arithmetic
        self.places: list[tuple[nn.Module, str, object]] = []

    def put(self, module: nn.Module, name: str, value: object) -> None:
        self.places.append((module, name, module.__dict__.get(name)))
        module.__dict__[name] = value


class _Replacements:
    """Our functions for a model's, each made once. Refuses a function that it cannot replace."""

    def __init__(self, arithmetic: str) -> None:
        self.arithmetic = arithmetic
        self._made: dict[Callable, Callable | None] = {}
        self.owner = ""

    def __call__(self, name: str, function: Callable) -> Callable | None:
        if not _APPLIES.match(name):
            return None
        if function not in self._made:
            self._made[function] = self._make(name, function)
        return self._made[function]

    def _make(self, name: str, function: Callable) -> Callable:
        found = special_function(function) or recognise(function)
        if found is not None:
            return _plain(ExactApply(found) if self.arithmetic == "exact" else found)
        helper = rebound(function, self)  # rotates nothing itself but calls a function that does
        if helper is None:
            raise UnsupportedError(
                f"patch: {self.owner} calls {function.__module__}.{name}, whose rotation is none that "
                "ropewalk knows; the model was not changed"
            )
        return helper


def _plain(call: Callable) -> Callable:
    """A plain function, which torch.compile follows better than an object."""
    if isinstance(call, types.FunctionType):
        return call

    def apply(*arguments, **keywords):
        return call.run(arguments, keywords)

    return apply


def patch(model: nn.Module, arithmetic: str = "parity") -> nn.Module:
    """Makes a transformers model rotate q and k with ropewalk's operator; returns the model.

    Args:
        model: any model, or part of one, of transformers or of code in its style.
        arithmetic: ``parity``: the bits of the model's eager code on the CPU, from the tables that
            the model's own rotary modules compute. ``exact``: from positions and the model's
            frequencies, without their rounding errors.

    Attention layers get copies of their own methods, in which the function that applies the
    rotation is ours; classes and other models are untouched. A function is replaced only if ours
    gives its bits on random tensors. UnsupportedError, and an unchanged model, where the model does
    not rotate, where a layer's rotation is not recognised, or (``exact``) where a rotary module's
    angles are not positions times frequencies. Weights, caches and the state dict are as before.
    """
    if arithmetic not in ARITHMETICS:
        raise ValueError(
            f"arithmetic: expected one of {', '.join(ARITHMETICS)}, got {arithmetic!r}"
        )
    for name, module in model.named_modules():
        if _RECORD in module.__dict__:
            where = f"its module {name}" if name else "it"
            raise UnsupportedError(
                f"patch: {type(model).__name__}: {where} is patched already "
                f"({module.__dict__[_RECORD].arithmetic}): call ropewalk.unpatch first"
            )
    planned = _planned(model, _Replacements(arithmetic))
    if not planned:
        raise UnsupportedError(
            f"patch: {type(model).__name__} does not rotate: none of its modules calls a function "
            "that applies rotary position embeddings"
        )
    if arithmetic == "exact":
        planned += exact_rotaries(model)
    record = Record(arithmetic)
    for module, name, value in planned:
        record.put(module, name, value)
    model.__dict__[_RECORD] = record
    return model


def unpatch(model: nn.Module) -> nn.Module:
    """Takes :func:`patch` back; returns the model. UnsupportedError where it is not patched."""
    record = model.__dict__.pop(_RECORD, None)
    if record is None:
        raise UnsupportedError(f"unpatch: {type(model).__name__} is not patched")
    for module, name, before in reversed(record.places):
        if before is None:
            del module.__dict__[name]
        else:
            module.__dict__[name] = before
    return model


def _planned(model: nn.Module, replacements: _Replacements) -> list[tuple[nn.Module, str, object]]:
    """The attributes to set, without setting them."""
    planned = []
    copies: dict[tuple[type, str], types.FunctionType | None] = {}
    for module in model.modules():
        cls = type(module)
        for name, function, static in methods(cls, nn.Module):
            if (cls, name) not in copies:
                replacements.owner = cls.__name__
                copies[cls, name] = special_method(name, function) or rebound(
                    function, replacements
                )
            copy = copies[cls, name]
            if copy is not None:
                planned.append(_place(module, name, copy, static))
    return planned


def _place(
    module: nn.Module, name: str, function: types.FunctionType, static: bool
) -> tuple[nn.Module, str, object]:
    value = function if static else types.MethodType(function, module)
    if name in module.__dict__:
        # accelerate's hooks keep the method they wrap under another name.
        if name == "forward" and "_old_forward" in module.__dict__:
            return module, "_old_forward", value
        raise UnsupportedError(
            f"patch: {type(module).__name__}.{name} was replaced on this model by other code; "
            "the model was not changed"
        )
    return module, name, value
