"""The interface of a peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ..packages import Source, Unavailable
from ..setting import Setting

#: Rotates (q, k), in the layout of the case; returns the rotated ones in the same layout.
Rotate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Unsupported(Exception):
    """A case that the peer does not offer; the message says what, in a few words."""


@dataclass(frozen=True)
class Peer:
    """One way of rotating.

    ``prepare`` gets the setting of a case and returns the function that is timed. What a model would
    do once for many layers (tables, gathering rows) belongs into ``prepare``. It raises Unavailable
    where the peer cannot run on this machine, Unsupported where it does not offer the case.
    ``in_place`` says that the result is meant to replace the input.
    """

    name: str
    what: str
    prepare: Callable[[Setting], Rotate]
    in_place: bool = False
    note: str = ""
    sources: tuple[Source, ...] = ()


def need_gpu(setting: Setting) -> None:
    if setting.device.type != "cuda":
        raise Unavailable("runs on a GPU only")


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Unsupported(what)


def each(rotate: Callable[[Tensor], Tensor]) -> Rotate:
    """For peers that take one tensor at a time."""
    return lambda q, k: (rotate(q), rotate(k))
