"""One case: a rotary module and its layer type, theirs and ours on the same random q and k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from upstream import Rotary, rule_of

import ropewalk
from ropewalk import Plan

BATCH, TOKENS, HEADS, KEY_HEADS = 2, 24, 3, 2
FAR, GRID = 131_072, 100


class Sides(NamedTuple):
    theirs: tuple[Tensor, ...]
    ours: tuple[Tensor, ...]


class ModuleCase:
    """A module that makes tables from positions, and a function that applies them."""

    def __init__(self, rotary: Rotary, layer_type: str | None) -> None:
        self.rotary, self.layer_type = rotary, layer_type
        self.label = rotary.name + (f" {layer_type}" if layer_type else "")
        self.rule = rule_of(rotary.apply)

    def plan(self, arithmetic: str = "parity") -> Plan:
        """Ours, from the config alone."""
        return ropewalk.plan_from_config(
            self.rotary.config,
            layer_type=self.layer_type,
            arithmetic=arithmetic,
            part=self.rotary.part,
        )

    def run(self, dtype: torch.dtype, generator: torch.Generator) -> Sides:
        plan = self.plan()
        positions, shape, layout, ours = self._positions(plan, generator)

        def data(heads: int) -> Tensor:
            size = [heads if n == HEADS else n for n in shape]
            return torch.randn(*size, plan.head_dim, generator=generator).to(dtype)

        q, k = data(HEADS), data(KEY_HEADS)
        rotated = ropewalk.rotate(q, k, plan=plan, positions=ours, layout=layout)
        return Sides(self._theirs(q, k, positions, plan, dtype), rotated)

    def _positions(self, plan: Plan, generator: torch.Generator):
        """Positions as the module takes them, the shape of q, its layout, and positions as we do."""
        if self.rotary.vision and plan.axes > 1:
            grid = torch.randint(0, GRID, (TOKENS, plan.axes), generator=generator)
            ours = grid.T.unsqueeze(1).contiguous()
            if self.rule.unsqueeze == -2:  # with a batch of one, which all of these take
                return grid, (1, TOKENS, HEADS), "bthd", ours
            return grid, (1, HEADS, TOKENS), "bhtd", ours
        shape = (BATCH, TOKENS) if plan.axes == 1 else (plan.axes, BATCH, TOKENS)
        positions = torch.randint(0, FAR if plan.axes == 1 else 4096, shape, generator=generator)
        positions[..., 0] = 0
        if self.rule.roles.unsqueezes or self.rule.unsqueeze in (1, None):
            return positions, (BATCH, HEADS, TOKENS), "bhtd", positions
        return positions, (BATCH, TOKENS, HEADS), "bthd", positions

    @torch.no_grad()
    def _theirs(
        self, q: Tensor, k: Tensor, positions: Tensor, plan: Plan, dtype: torch.dtype
    ) -> tuple[Tensor, ...]:
        layers = () if self.layer_type is None else (self.layer_type,)
        tables = self.rotary.module(torch.zeros(1, dtype=dtype), positions, *layers)
        if isinstance(tables, Tensor):
            tables = (tables.real, tables.imag)
        rule = self.rule
        width = rule.rule.rotary_dim(tables[0].size(-1))
        # A function without a window of its own gets the window that attention layers cut.
        window = slice(None) if rule.windowed else slice(plan.offset, plan.offset + width)
        given = rule.roles.arguments(q[..., window], k[..., window], *tables)
        if rule.roles.unsqueezes and tables[0].dim() == 2:  # a table without batch, as Pixtral's
            given["unsqueeze_dim"] = 0
        results = self.rotary.apply(**given)
        if isinstance(results, Tensor):
            results = (results, self.rotary.apply(**(given | {rule.roles.q: k[..., window]})))
        whole = []
        for x, rotated in zip((q, k), results, strict=True):
            y = x.to(rotated.dtype, copy=True)
            y[..., window] = rotated
            whole.append(y)
        return tuple(whole)


def module_cases(rotaries: Iterator[Rotary]) -> Iterator[ModuleCase]:
    for rotary in rotaries:
        for layer_type in rotary.layer_types:
            yield ModuleCase(rotary, layer_type)
