"""Rotary modules, understood by asking them: which position component and which of its frequencies
each pair uses follows from the angles a module gives for unit positions, and the answer is checked at
random ones.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

_FREQUENCIES = re.compile(r"^(?:(?P<layer>\w+)_)?(?<!original_)inv_freq$")
_TOKENS = 7
#: Shapes of position_ids that rotary modules take: name, axes, and the shape for _TOKENS tokens.
_FORMS = (
    ("batch token", 1, (1, _TOKENS)),
    ("axis batch token", 3, (3, 1, _TOKENS)),
    ("axis batch token", 4, (4, 1, _TOKENS)),
    ("axis batch token", 2, (2, 1, _TOKENS)),
    ("token axis", 2, (_TOKENS, 2)),
)


class Angles(NamedTuple):
    """Frequencies of the pairs, in the order of the tables' columns."""

    frequencies: tuple[float, ...]
    axis: tuple[int, ...]
    axes: int
    amplitude: float


class Form(NamedTuple):
    """One shape of position_ids that a module takes, and what its pairs do with it."""

    name: str
    axes: int
    dimensions: int
    axis: tuple[int, ...]
    index: tuple[int, ...]
    columns: str  # copies, alternating, pairs or complex

    def fits(self, positions: Tensor) -> bool:
        if positions.dim() != self.dimensions:
            return False
        if self.name == "batch token":
            return True
        return positions.size(0 if self.name == "axis batch token" else -1) == self.axes

    def components(self, positions: Tensor) -> Tensor:
        """(batch, token), or (axes, batch, token)."""
        if self.name == "token axis":
            return positions.movedim(-1, 0).unsqueeze(1)
        return positions

    def tables(self, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        """Pair columns (batch, token, pair) as the module lays them out."""
        if self.name == "token axis":
            cos, sin = cos[0], sin[0]
        if self.columns == "complex":
            return (torch.complex(cos, sin),)
        if self.columns == "copies":
            return torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
        if self.columns == "alternating":
            return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        return cos, sin


class Rotary:
    """A rotary module and one of its layer types (None where it has one)."""

    def __init__(self, module: nn.Module, layer: str | None) -> None:
        self.module, self.layer = module, layer
        self.prefix = f"{layer}_" if layer else ""
        self._known: tuple[Tensor, int, tuple[float, ...]] | None = None
        self.forms: list[Form] = []

    def understand(self) -> None:
        """Finds the forms. Asks a copy: an answer may change what a module keeps."""
        mine, self.module = self.module, copy.deepcopy(self.module)
        self.forms = [form for form in map(self._understand, _FORMS) if form is not None]
        self.module, self._known = mine, None

    @property
    def amplitude(self) -> float:
        return float(getattr(self.module, f"{self.prefix}attention_scaling", 1.0))

    @property
    def inv_freq(self) -> Tensor:
        return getattr(self.module, f"{self.prefix}inv_freq")

    def values(self) -> tuple[float, ...]:
        """The frequencies; read from the device only when they have changed."""
        buffer = self.inv_freq
        if self._known is None or self._known[0] is not buffer or self._known[1] != buffer._version:
            self._known = (buffer, buffer._version, tuple(buffer.detach().flatten().tolist()))
        return self._known[2]

    def angles(self, form: Form) -> Angles:
        values = self.values()
        return Angles(tuple(values[i] for i in form.index), form.axis, form.axes, self.amplitude)

    def ask(self, positions: Tensor) -> tuple[tuple[Tensor, Tensor], bool]:
        """The module's own (cos, sin) in float32, and whether they came as complex numbers."""
        x = torch.zeros(1, 1, 1, device=self.inv_freq.device)
        layers = () if self.layer is None else (self.layer,)
        result = type(self.module).forward(self.module, x, positions, *layers)
        if isinstance(result, Tensor):
            if not result.is_complex():
                raise TypeError("expected cos and sin")
            return (result.real, result.imag), True
        cos, sin = result
        return (cos.float(), sin.float()), False

    def _understand(self, shape_of_form: tuple[str, int, tuple[int, ...]]) -> Form | None:
        name, axes, shape = shape_of_form
        axis_dim = {"batch token": None, "axis batch token": 0, "token axis": -1}[name]
        generator = torch.Generator().manual_seed(20260601)
        device = self.inv_freq.device
        try:
            (cos, sin), is_complex = self.ask(
                torch.randint(0, 100, shape, generator=generator).to(device)
            )
        except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
            return None
        columns = _columns_of(cos, sin, is_complex)
        if columns is None or cos.numel() != _TOKENS * cos.size(-1):
            return None
        axis = index = None
        for component in range(axes):
            unit = torch.zeros(shape, dtype=torch.long, device=device)
            (unit if axis_dim is None else unit.select(axis_dim, component)).fill_(1)
            unit_tables, _ = self.ask(unit)
            known = torch.tensor(self.values(), dtype=torch.float64)  # as the answer used them
            unit_cos, unit_sin = (
                _pair_columns(t, columns).reshape(_TOKENS, -1)[0].double().cpu() / self.amplitude
                for t in unit_tables
            )
            found = torch.atan2(unit_sin, unit_cos)
            nearest = (found[:, None] - known).abs().argmin(1)
            if axis is None:
                axis, index = torch.zeros_like(nearest), nearest
            else:
                uses = found != 0
                axis, index = axis.masked_fill(uses, component), torch.where(uses, nearest, index)
        form = Form(name, axes, len(shape), tuple(axis.tolist()), tuple(index.tolist()), columns)
        return form if self._agrees(form, shape) else None

    def _agrees(self, form: Form, shape: tuple[int, ...]) -> bool:
        """Whether the module's tables are positions times frequencies, to within their rounding: an
        angle and its product are each rounded to float32, cosine and amplitude once more."""
        generator = torch.Generator().manual_seed(20260602)
        positions = torch.randint(0, 64, shape, generator=generator)
        theirs, _ = self.ask(positions.to(self.inv_freq.device))
        angles = self.angles(form)
        components = form.components(positions).double()
        if form.axes > 1:
            components = components[torch.tensor(angles.axis)].movedim(0, -1)
        else:
            components = components[..., None]
        phase = components * torch.tensor(angles.frequencies, dtype=torch.float64)
        bound = angles.amplitude * (phase.abs() * 2.0**-23 + 2.0**-22)
        ours = (phase.cos() * angles.amplitude, phase.sin() * angles.amplitude)
        return all(
            bool(
                (
                    (_pair_columns(t, form.columns).double().cpu().reshape(o.shape) - o).abs()
                    <= bound
                ).all()
            )
            for t, o in zip(theirs, ours, strict=True)
        )


def _pair_columns(table: Tensor, columns: str) -> Tensor:
    if columns == "copies":
        return table[..., : table.size(-1) // 2]
    return table[..., ::2] if columns == "alternating" else table


def _columns_of(cos: Tensor, sin: Tensor, is_complex: bool) -> str | None:
    if is_complex:
        return "complex"
    if all(torch.equal(*t.chunk(2, -1)) for t in (cos, sin) if t.size(-1) % 2 == 0):
        return "copies" if cos.size(-1) % 2 == 0 else "pairs"
    if cos.size(-1) % 2 == 0 and all(torch.equal(t[..., ::2], t[..., 1::2]) for t in (cos, sin)):
        return "alternating"
    return "pairs"


def layers_of(module: nn.Module) -> Iterator[str | None]:
    """The layer types a module has frequencies for; one None where it does not tell them apart."""
    if "layer_type" not in inspect.signature(type(module).forward).parameters:
        if isinstance(getattr(module, "inv_freq", None), Tensor):
            yield None
        return
    for name in (*dict(module.named_buffers(recurse=False)), *module.__dict__):
        match = _FREQUENCIES.match(name)
        if match and isinstance(getattr(module, name), Tensor):
            yield match["layer"]
