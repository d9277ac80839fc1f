"""transformers' own rotary modules and apply functions, found in its modeling files."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import transformers
from catalogue import Folder
from torch import nn

from ropewalk.hf.recognise import Recognised, recognise

_ROTARY = re.compile(r"Rotary\w*Embedding$|RopePositionEmbedding$")
_APPLY = ("apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb", "apply_rotary_emb")
_APPLY_VISION = ("apply_rotary_pos_emb_vision", "vision_apply_rotary_emb",
                 "apply_multidimensional_rope", "apply_rotary_pos_emb_2d",
                 "apply_rotary_pos_emb_2d_self_attn")  # fmt: skip


class Rotary(NamedTuple):
    """A rotary module of a folder, built from its default config."""

    name: str
    module: nn.Module
    config: object
    layer_types: tuple[str | None, ...]
    apply: Callable
    vision: bool
    #: Of the config, where the module is built from a nested one that names no model.
    part: str | None = None


def modeling(folder: str) -> list:
    """The modeling modules of a folder."""
    root = Path(transformers.__file__).parent / "models" / folder
    return [
        importlib.import_module(f"transformers.models.{folder}.{path.stem}")
        for path in sorted(root.glob("modeling_*.py"))
    ]


def _rotary_classes(module) -> Iterator[type]:
    for value in vars(module).values():
        if (
            isinstance(value, type) and issubclass(value, nn.Module)
            and _ROTARY.search(value.__name__) and value.__module__ == module.__name__
        ):  # fmt: skip
            yield value


def config_class(cls: type, module, folder: Folder) -> type:
    """The config class that a rotary class is built from."""
    if cls.__name__ in folder.configs:
        return getattr(importlib.import_module(f"transformers.models.{folder.name}"),
                       folder.configs[cls.__name__])  # fmt: skip
    annotation = list(inspect.signature(cls.__init__).parameters.values())[1].annotation
    return getattr(module, annotation) if isinstance(annotation, str) else annotation


def _layer_types_of(rotary: nn.Module) -> tuple[str | None, ...]:
    """The layer types that a module has tables for; (None,) where it has one."""
    names = tuple(
        name.removesuffix("_inv_freq") for name, _ in rotary.named_buffers()
        if name.endswith("_inv_freq") and not name.endswith("original_inv_freq")
    )  # fmt: skip
    return names or (None,)


def _apply_function(module, vision: bool) -> Callable:
    for name in (*_APPLY_VISION, *_APPLY) if vision else (*_APPLY, *_APPLY_VISION):
        if name in vars(module):
            return vars(module)[name]
    raise LookupError(f"{module.__name__} has no apply function")


def rotaries(folder: Folder) -> Iterator[Rotary]:
    """Every rotary module of a folder, without weights."""
    for module in modeling(folder.name):
        for cls in _rotary_classes(module):
            if cls.__name__ in folder.skip:
                continue
            made_from = config_class(cls, module, folder)
            vision = "Text" not in cls.__name__ and bool(
                re.search("Vision|ViT|Video", cls.__name__ + made_from.__name__)
            )
            config = made_from(**folder.settings)
            if not vision and cls.__name__ not in folder.configs:
                config = type(config.get_text_config())(**folder.settings | folder.text_settings)
            part = folder.parts.get(cls.__name__)
            rotary = cls(getattr(config, part) if part else config)
            yield Rotary(cls.__name__, rotary, config, _layer_types_of(rotary),
                         _apply_function(module, vision), vision, part)  # fmt: skip


@functools.cache
def rule_of(function: Callable) -> Recognised:
    found = recognise(function)
    if found is None:
        raise LookupError(f"{function.__module__}.{function.__name__} is not recognised")
    return found
