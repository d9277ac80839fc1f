"""The rotation behind the ``rotary_pos_emb`` layer of the Hugging Face ``kernels`` convention.

``kernelize`` gives a model's own apply function, wrapped as a module, the forward method of our
layer. The module still knows its function, and with it how its model pairs channels and rounds.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from ..errors import UnsupportedError
from .recognise import Recognised, recognise
from .rules import ApplyRule, apply

_LLAMA = ApplyRule("half", "copies", "each")


@functools.cache
def _recognised(cls: type) -> Recognised | None:
    """The rule of a wrapped function; None for our own layer, which wraps none."""
    if not hasattr(cls.forward, "__signature__"):
        return None
    found = recognise(functools.partial(cls.forward, cls()))
    if found is None:
        raise UnsupportedError(
            "rotary_pos_emb: the model's apply function is none that ropewalk knows; leave it out "
            "with the kernel mapping, or use ropewalk.patch"
        )
    return found


@torch.compiler.assume_constant_result
def _rule(cls: type) -> ApplyRule:
    found = _recognised(cls)
    return _LLAMA if found is None else found.rule


def rotate_as(
    module: nn.Module, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int
) -> tuple[Tensor, Tensor]:
    """q and k rotated as the function behind ``module`` does; as Llama's where there is none.

    ``unsqueeze_dim`` is where cos and sin get the dimension of the heads.
    """
    return apply(
        _rule(type(module)), q, k, cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    )
