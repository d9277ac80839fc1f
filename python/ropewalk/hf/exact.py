"""Exact arithmetic: rotary modules that say where their tokens stand, and the rotation by phase."""

from __future__ import annotations

import functools
import itertools
import json
import struct
import types
import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..call import Call
from ..errors import UnsupportedError
from ..plans import Plan, make_plan
from .recognise import Recognised
from .rotaries import Angles, Form, Rotary, layers_of
from .rules import ApplyRule, apply, broadcast, head_axis_of, run

_TAG = "_ropewalk_phase"
#: Lists of frequencies that a module comes back to: LongRoPE has two.
_KEPT = 4


def _hex(numbers: tuple[float, ...], kind: str) -> str:
    return "".join(struct.pack(">" + kind, number).hex() for number in numbers)


def _plan(angles: Angles, head_dim: int, rotary_dim: int, offset: int, pairing: str) -> Plan:
    plain = make_plan(head_dim, rotary_dim=rotary_dim, pairing=pairing, offset=offset)
    fields = json.loads(plain.text)
    fields.pop("base")
    fields |= {
        "frequencies": _hex(angles.frequencies, "d"),
        "model_frequencies": _hex(angles.frequencies, "f"),
        "amplitude": angles.amplitude,
    }
    if angles.axes > 1:
        fields |= {"axes": angles.axes, "axis": list(angles.axis)}
    return Plan(json.dumps(fields))


#: By name, for compilers: a name is a constant that they guard.
_NAMED: weakref.WeakValueDictionary[str, _Plans] = weakref.WeakValueDictionary()
_counter = itertools.count()


@torch.compiler.assume_constant_result
def _named_text(name: str, head_dim: int, rotary_dim: int, offset: int, pairing: str) -> str:
    return _NAMED[name].text(head_dim, rotary_dim, offset, pairing)


class _Plans:
    """The plans of one list of frequencies, each made once."""

    def __init__(self, angles: Angles) -> None:
        self.pairs = len(angles.frequencies)
        self.name = str(next(_counter))
        self.text = functools.cache(lambda *geometry: _plan(angles, *geometry).text)
        _NAMED[self.name] = self

    def of(self, head_dim: int, rotary_dim: int, offset: int, pairing: str) -> str:
        """A plan's text; a constant where a compiler traces."""
        if torch.compiler.is_compiling():
            return _named_text(self.name, head_dim, rotary_dim, offset, pairing)
        return self.text(head_dim, rotary_dim, offset, pairing)


class Phase(NamedTuple):
    """Where the rows of a table stand: positions (batch, token), (axes, batch, token), or (token)
    for one batch row."""

    plans: _Plans
    positions: Tensor


class _Source:
    """One form of a rotary module and the plans of its present frequencies."""

    def __init__(self, rotary: Rotary, form: Form) -> None:
        self.rotary, self.form = rotary, form
        self._made: dict[tuple[tuple[float, ...], float], _Plans] = {}
        self._values: tuple[float, ...] = ()
        #: One head whose pairs are all (1, 0): it rotates to (cos, sin).
        self.units = torch.tensor([1.0, 0.0]).repeat_interleave(len(form.index))
        self._renew()

        @torch.compiler.assume_constant_result
        def follow() -> bool:  # a compiler runs it where it traces
            self._renew()
            return True

        self._follow = follow

    def _renew(self) -> None:
        """Follows the module's frequencies, which may have changed."""
        values, amplitude = self.rotary.values(), self.rotary.amplitude
        if values is self._values and amplitude == self._amplitude:
            return
        self._values, self._amplitude = values, amplitude
        self.plans = self._made.get((values, amplitude)) or _Plans(self.rotary.angles(self.form))
        self._made[values, amplitude] = self.plans
        if len(self._made) > _KEPT:
            del self._made[next(iter(self._made))]
        self.units = self.units.to(self.rotary.inv_freq.device)

    def phase(self, position_ids: Tensor) -> Phase:
        self._follow()
        return Phase(self.plans, self.form.components(position_ids))

    def tables(self, phase: Phase) -> tuple[Tensor, Tensor]:
        """cos and sin (batch, token, pair) in float32, for layers that do more than pass them on."""
        width = 2 * phase.plans.pairs
        batch, tokens = phase.positions.shape[-2:]
        call = Call(
            phase.plans.of(width, width, 0, "half"), -2, 0, phase.positions,
            fractional=phase.positions.is_floating_point(),
        )  # fmt: skip
        turned, _ = run(call, self.units.expand(batch, 1, tokens, width), None)
        return tuple(turned.squeeze(1).chunk(2, -1))


def exact_rotaries(model: nn.Module) -> list[tuple[nn.Module, str, object]]:
    """The forward methods to set on a model's rotary modules."""
    planned = []
    for module in model.modules():
        layers = list(dict.fromkeys(layers_of(module)))
        if not layers:
            continue
        sources = {}
        for layer in layers:
            rotary = Rotary(module, layer)
            rotary.understand()
            if not rotary.forms:
                kind = "" if layer is None else f" ({layer})"
                raise UnsupportedError(
                    f"patch: {type(module).__name__}{kind}: its angles are not positions times "
                    'frequencies as ropewalk knows them; arithmetic="parity" takes its tables as '
                    "they are; the model was not changed"
                )
            sources[layer] = tuple(_Source(rotary, form) for form in rotary.forms)
        forward = _exact_forward(sources)
        if _chosen_by_length(module):
            forward = torch.compiler.disable(_following_length(forward))
        planned.append((module, "forward", types.MethodType(forward, module)))
    if not planned:
        raise UnsupportedError(
            f"patch: {type(model).__name__}: no module holds frequencies (inv_freq); "
            'arithmetic="parity" takes its tables as they are; the model was not changed'
        )
    return planned


def _chosen_by_length(module: nn.Module) -> bool:
    """Whether a call may renew the module's frequencies, as transformers' ``dynamic_rope_update``
    does; a module that does not name its kinds is taken for one that may."""
    kinds = getattr(module, "rope_type", "dynamic")
    kinds = kinds.values() if isinstance(kinds, dict) else (kinds,)
    return any("dynamic" in str(kind) or kind == "longrope" for kind in kinds)


def _following_length(forward: Callable) -> Callable:
    """The module's own forward first: it renews inv_freq where a length chooses it. Frequencies are
    read from the device when they change, which no compiler can trace."""

    def renewed(self, x, position_ids, *layers, **keywords):
        with torch.no_grad():
            type(self).forward(self, x, position_ids, *layers, **keywords)
        return forward(self, x, position_ids, *layers, **keywords)

    return renewed


def _exact_forward(sources: dict[str | None, tuple[_Source, ...]]) -> Callable:
    @torch.no_grad()
    def forward(self, x, position_ids, layer_type=None):
        known = sources[None if None in sources else layer_type]
        for source in known:
            if source.form.fits(position_ids):
                break
        else:
            raise ValueError(
                f"position_ids: {type(self).__name__} takes "
                f"{' or '.join(f'({s.form.name})' for s in known)}, got {tuple(position_ids.shape)}"
            )
        phase = source.phase(position_ids)
        tables = source.form.tables(*source.tables(phase))
        for table in tables:
            setattr(table, _TAG, phase)
        return tables if len(tables) > 1 else tables[0]

    return forward


class ExactApply:
    """An apply function by the phase of its tokens, or by exact tables where a layer cut them."""

    def __init__(self, recognised: Callable) -> None:
        if not isinstance(recognised, Recognised):
            raise UnsupportedError(
                f"patch: {recognised.__doc__.split(':')[0]}: its rotation has no exact form here; "
                'arithmetic="parity" has; the model was not changed'
            )
        self.recognised = recognised

    def run(self, arguments: tuple, keywords: dict) -> Tensor | tuple[Tensor, Tensor]:
        """A call with these arguments."""
        recognised = self.recognised
        roles, rule = recognised.roles, recognised.rule
        given = recognised.bind(arguments, keywords)
        q, k = given[roles.q], given[roles.k] if roles.k else None
        phase = self._phase(given)
        if phase is None:
            cos, sin = recognised.tables(given)
            q, k = apply(rule._replace(rounding="exact"), q, k, cos, sin)
        else:
            q, k = _by_phase(rule, q, k, recognised.table(given), phase)
        return q if k is None else (q, k)

    def _phase(self, given: dict) -> Phase | None:
        """Of the tables of a call; None where a layer made tables of its own from them."""
        roles = self.recognised.roles
        names = (roles.complex,) if roles.complex else (roles.cos, roles.sin)
        phases = [getattr(given[name], _TAG, None) for name in names]
        return phases[0] if phases[0] is phases[-1] else None


def _by_phase(
    rule: ApplyRule, q: Tensor, k: Tensor | None, cos: Tensor, phase: Phase
) -> tuple[Tensor, Tensor | None]:
    """q and k rotated; ``cos`` tells by its shape where tokens and heads stand."""
    if k is not None and (k.dtype != q.dtype or k.shape[0] != q.shape[0]):
        return _by_phase(rule, q, None, cos, phase)[0], _by_phase(rule, k, None, cos, phase)[0]
    head_dim, dims = q.size(-1), q.dim()
    rotary_dim = rule.rotary_dim(cos.size(-1))
    offset = head_dim - rotary_dim if rule.last else 0
    positions = phase.positions
    if positions.dim() == 2 and (dims == 3 or positions.size(0) == 1):
        positions = positions[0]
    elif positions.dim() == 3 and dims == 4:
        positions = positions.expand(-1, q.size(0), -1)
    call = Call(
        phase.plans.of(head_dim, rotary_dim, offset, rule.pairing),
        dims - 5 - head_axis_of(q, broadcast(cos, q)), 0, positions,
        fractional=positions.is_floating_point(), inverse=rule.negated,
    )  # fmt: skip
    return run(call, q, k)
