"""Plans: everything about a rotation except the data, made and checked by the C++ core.

A plan crosses into the operators, into exported programs and into pickles as its text, one line of
JSON that lists the fields which differ from their defaults, frequencies as the digits of their bits.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import PlanError, UnsupportedError

PAIRINGS = ("half", "interleaved", "interleaved_to_half")
ARITHMETICS = (
    "exact", "parity_p0", "parity_p1", "parity_p2", "parity_p3", "parity_p4",
)  # fmt: skip

_LIBRARY = Path(__file__).parent / "lib" / "libropewalk_plan.so"


#: power(base, denominator, count, out): fills out[i] with base ** (2 * i / denominator) in float32.
_Power = ctypes.CFUNCTYPE(
    None, ctypes.c_float, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_float)
)


@_Power
def _torch_power(base: float, denominator: int, count: int, out: Any) -> None:
    """PyTorch's power function, called as models call it."""
    import torch

    pairs = torch.arange(0, 2 * count, 2, device="cpu").float()
    powers = base ** (pairs / denominator)
    ctypes.memmove(out, powers.data_ptr(), 4 * count)


@functools.cache
def _core() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        raise UnsupportedError(
            f"ropewalk: the library of plans cannot be loaded: {error}"
        ) from None
    int64, text = ctypes.c_int64, ctypes.c_char_p
    library.ropewalk_python_text.restype = text
    library.ropewalk_python_version.restype = text
    library.ropewalk_python_make_plan.argtypes = [int64, ctypes.c_double, int64, int64, text]
    library.ropewalk_python_plan_from_config.argtypes = [
        text, text, int64, ctypes.c_int, text, _Power, text, text,
    ]  # fmt: skip
    library.ropewalk_python_config_text.argtypes = [text]
    library.ropewalk_python_config_facts.argtypes = [text, text]
    library.ropewalk_python_normalise_plan.argtypes = [text]
    library.ropewalk_python_relative_plan.argtypes = [text]
    library.ropewalk_python_plan_facts.argtypes = [text]
    return library


def _ask(function: str, *arguments: object) -> str:
    """Calls a function of the core; its answer, or PlanError with its message."""
    core = _core()
    status = getattr(core, "ropewalk_python_" + function)(*arguments)
    answer = core.ropewalk_python_text().decode()
    if status != 0:
        raise PlanError(answer)
    return answer


def core_version() -> str:
    """The version of the core, which is the version of the package."""
    return _core().ropewalk_python_version().decode()


class Plan:
    """An immutable rotation plan. Make one with :func:`make_plan` or :func:`plan_from_config`."""

    __slots__ = ("_facts", "_fields", "is_exact", "numbers_cpu", "numbers_cuda", "text")

    #: The plan as one line of JSON.
    text: str
    #: Whether the arithmetic is exact, that is, needs no table.
    is_exact: bool
    #: By layout, what this process's operators know the plan under (:mod:`ropewalk.known`).
    numbers_cpu: dict[str, int]
    numbers_cuda: dict[str, int]

    def __init__(self, text: str) -> None:
        """Reads back ``plan.text``; PlanError where the core refuses it."""
        self._set(_ask("normalise_plan", text.encode()))

    def _set(self, text: str) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "_fields", json.loads(text))
        object.__setattr__(self, "_facts", None)
        object.__setattr__(self, "is_exact", self.arithmetic == "exact")
        object.__setattr__(self, "numbers_cpu", {})
        object.__setattr__(self, "numbers_cuda", {})

    @classmethod
    def _from_core(cls, text: str) -> Plan:
        plan = object.__new__(cls)
        plan._set(text)
        return plan

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Plan is immutable: cannot set {name}")

    def _fact(self, name: str) -> Any:
        if self._facts is None:
            object.__setattr__(self, "_facts", json.loads(_ask("plan_facts", self.text.encode())))
        return self._facts[name]

    @property
    def head_dim(self) -> int:
        """Channels of a head."""
        return self._fields["head_dim"]

    @property
    def rotary_dim(self) -> int:
        """Rotated channels of a head."""
        return self._fields.get("rotary_dim", 0)

    @property
    def offset(self) -> int:
        """First rotated channel."""
        return self._fields.get("offset", 0)

    @property
    def pairs(self) -> int:
        return self.rotary_dim // 2

    @property
    def pairing(self) -> str:
        """One of :data:`PAIRINGS`."""
        return self._fields.get("pairing", "half")

    @property
    def block_width(self) -> int:
        """Width of the blocks that have a half pairing of their own; 0: one block."""
        return self._fields.get("block_width", 0)

    @property
    def frequencies(self) -> list[float]:
        """Radians per position, one per pair."""
        return self._fact("frequencies")

    @property
    def model_frequencies(self) -> list[float]:
        """The float32 values that the model's own code holds."""
        return self._fact("model_frequencies")

    @property
    def axes(self) -> int:
        """Components of a position."""
        return self._fields.get("axes", 1)

    @property
    def axis(self) -> list[int]:
        """The component each pair uses."""
        return self._fact("axis")

    @property
    def amplitude(self) -> float:
        """Factor on cosine and sine."""
        return self._fields.get("amplitude", 1.0)

    @property
    def sign(self) -> int:
        return self._fields.get("sign", 1)

    @property
    def arithmetic(self) -> str:
        """One of :data:`ARITHMETICS`."""
        return self._fields.get("arithmetic", "exact")

    @property
    def channels(self) -> str:
        """``both``; or ``first`` or ``second``, where a model turns the two channels of a pair by
        different angles: the caller takes those channels from this plan's rotation."""
        return self._fields.get("channels", "both")

    @property
    def position_recipe(self) -> str:
        """Name of the way the model makes positions: :mod:`ropewalk.position_recipes`."""
        return self._fields.get("position_recipe", "token")

    @property
    def rotated(self) -> str:
        """What the model rotates: ``q k``, ``q k v``, ``hidden``, ``q k, output back`` …"""
        return self._fields.get("rotated", "q k")

    @property
    def query_scaling(self) -> str:
        """The model's scaling of queries by position, in words; reported, never applied."""
        return self._fields.get("query_scaling", "")

    @property
    def rotates(self) -> bool:
        """False where the layer has no rotary embedding."""
        return self._fields.get("rotates", True)

    @property
    def scaling(self) -> str:
        """Name of the schedule that made the frequencies, ``none`` where nothing rotates."""
        return self._fields.get("scaling", "default")

    @property
    def length_policy(self) -> str:
        """``none``, ``dynamic_ntk`` or ``longrope_switch``: whether a length chose the plan."""
        return self._fields.get("length_policy", "none")

    @property
    def softmax_multiplier(self) -> float:
        """Factor the model puts on its softmax scale; reported, never applied."""
        return self._fields.get("softmax_multiplier", 1.0)

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits; equal plans have equal fingerprints on every machine."""
        return self._fact("fingerprint")

    def relative(self) -> Plan:
        """The plan that moves what this one has rotated: at new − old positions it takes data from
        old positions to new ones. Without amplitude, which the data has already, with the pairs
        where this plan writes them, and exact."""
        return Plan._from_core(_ask("relative_plan", self.text.encode()))

    def __repr__(self) -> str:
        return f"Plan({self._fact('description')})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.text == other.text or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[type[Plan], tuple[str]]:
        return Plan, (self.text,)

    def __copy__(self) -> Plan:
        return self

    def __deepcopy__(self, memo: dict) -> Plan:
        return self


def make_plan(
    head_dim: int,
    base: float = 10000.0,
    rotary_dim: int | None = None,
    pairing: str = "half",
    offset: int = 0,
) -> Plan:
    """The plain plan: frequency i is ``base ** (-2 * i / rotary_dim)``.

    ``rotary_dim`` channels from ``offset`` on are rotated; None means all of the head.
    """
    width = 0 if rotary_dim is None else int(rotary_dim)
    if rotary_dim is not None and width < 1:
        raise PlanError(f"rotary_dim: expected an even number of at least 2, got {rotary_dim}")
    return Plan._from_core(
        _ask("make_plan", int(head_dim), float(base), width, int(offset), str(pairing).encode())
    )


def config_text(config: object) -> str:
    """The JSON text of a configuration: a path (also of a GGUF file), a mapping, JSON itself or a
    transformers config.
    """
    if isinstance(config, str) and config.lstrip().startswith("{"):
        return config
    if isinstance(config, (str, os.PathLike)):
        path = Path(config)
        if path.is_dir():
            path = path / "config.json"
        if path.suffix == ".gguf":
            return _ask("config_text", os.fsencode(path))
        return path.read_text(encoding="utf-8")
    if not isinstance(config, Mapping):
        to_dict = getattr(config, "to_dict", None)
        if to_dict is None:
            raise TypeError(
                "config: expected a path, a mapping, JSON text or an object with to_dict(), "
                f"got {type(config).__name__}"
            )
        config = to_dict()
    return json.dumps(config, default=str)


def plan_from_config(
    config: object,
    *,
    layer_type: str | None = None,
    length: int | None = None,
    frequencies: str = "model",
    arithmetic: str = "exact",
    part: str | None = None,
    channels: str = "both",
) -> Plan:
    """The plan of a model's configuration (see :func:`config_text` for what ``config`` may be).

    Args:
        layer_type: needed where layers differ (``full_attention``, ``sliding_attention`` …).
        length: sequence length, for dynamic NTK and LongRoPE, which choose frequencies by it.
        frequencies: ``model``, the float32 values that the model's code holds, or ``formula``,
            the formula's values rounded once to double.
        arithmetic: one of :data:`ARITHMETICS`, or ``parity``, that of the model's own code. With a
            parity arithmetic the float32 frequencies are formed with PyTorch's power function, as
            models form them.
        part: which tower of the model: None, its text model or only one; ``vision``, ``audio`` …,
            the dotted path of a nested config, or ``.``, the top level itself.
        channels: ``first`` or ``second`` for models that turn the two channels of a pair by
            different angles (:attr:`Plan.channels`).
    """
    if frequencies not in ("model", "formula"):
        raise PlanError(f'frequencies: expected "model" or "formula", got "{frequencies}"')
    if length is not None and length < 1:
        raise PlanError(f"length: expected at least 1, got {length}")
    return Plan._from_core(
        _ask(
            "plan_from_config",
            config_text(config).encode(),
            (layer_type or "").encode(),
            length or 0,
            int(frequencies == "model"),
            arithmetic.encode(),
            _torch_power if arithmetic.startswith("parity") else _Power(),
            (part or "").encode(),
            channels.encode(),
        )
    )


def config_facts(config: object, *, part: str | None = None) -> dict[str, Any]:
    """What a configuration says beside its plans.

    Keys: ``model_type``, ``part`` (the chosen one's path), ``parts`` (all that rotate),
    ``rotates``, ``arithmetic`` (the parity class of the model's own code), ``layer_types`` (the
    names that :func:`plan_from_config` takes), ``layer_type_of_layer``, ``layer_rotates`` (empty:
    all as ``rotates``), ``head_dim``, ``query_heads``, ``key_heads``, ``layers``,
    ``latent_attention``, ``query_scaling``, ``position_recipe``, ``rotated``, and
    ``differs_upstream``: whether parity departs from the checkpoint's own mathematics.
    """
    text = config_text(config).encode()
    return json.loads(_ask("config_facts", text, (part or "").encode()))
