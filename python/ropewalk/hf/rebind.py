"""Copies of functions that look up some of their globals elsewhere.

A patched model's modules get such copies as attributes of their own. Classes and modeling modules
stay as they are, and with them every other model of the process.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator

#: Given a function's name and value: what to use in its place, or None to leave it.
Replace = Callable[[str, Callable], "Callable | None"]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _called(function: types.FunctionType) -> Iterator[tuple[str, Callable]]:
    """Globals that the function may call, functions only."""
    for name in dict.fromkeys(_names(function.__code__)):
        value = function.__globals__.get(name)
        if callable(value) and not isinstance(value, type):
            yield name, value


def rebound(function: Callable, replace: Replace) -> types.FunctionType | None:
    """A copy of the function with the replaced globals; None where nothing is replaced.

    Decorated functions are followed through their closures.
    """
    if not isinstance(function, types.FunctionType):
        return None
    replaced = {}
    for name, value in _called(function):
        new = replace(name, value)
        if new is not None:
            replaced[name] = new
    cells, any_cell = [], False
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not yet filled
            cells.append(cell)
            continue
        new = rebound(value, replace)
        any_cell = any_cell or new is not None
        cells.append(cell if new is None else types.CellType(new))
    if not replaced and not any_cell:
        return None
    scope = {**function.__globals__, **replaced}
    # torch.compile takes globals with a __name__ for those of the module of that name.
    scope.pop("__name__", None)
    copy = types.FunctionType(
        function.__code__, scope, function.__name__,
        function.__defaults__, tuple(cells) if function.__closure__ else None,
    )  # fmt: skip
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def methods(cls: type, base: type) -> Iterator[tuple[str, types.FunctionType, bool]]:
    """(name, function, static) of the methods that a class has beyond those of ``base``."""
    seen = set()
    for parent in cls.__mro__:
        if parent is base or parent in base.__mro__:
            break
        for name, value in vars(parent).items():
            if name in seen:
                continue
            seen.add(name)
            if isinstance(value, types.FunctionType):
                yield name, value, False
            elif isinstance(value, staticmethod) and isinstance(value.__func__, types.FunctionType):
                yield name, value.__func__, True
