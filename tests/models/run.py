"""Runs folders and sums up what came out of each."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from cases import module_cases
from catalogue import Folder
from outcome import compare
from own_code import own_cases
from upstream import rotaries

from ropewalk import Plan, PlanError

DTYPES = (torch.float32, torch.bfloat16)
SAME, NEAR, EXACT, NONE, FAILED = (
    "same bits", "within 1 ulp", "exact only", "not applicable", "differs",
)  # fmt: skip


class Row(NamedTuple):
    """What the page says of one folder."""

    folder: Folder
    status: str
    plans: tuple[Plan, ...]
    cases: int
    #: Largest difference in float32 and bfloat16, in units in the last place.
    ulps: tuple[float, float]
    #: Why, where the status is not "same bits"; what else a reader should know.
    notes: tuple[str, ...]


def run_folder(folder: Folder, seed: int) -> Row:
    """Every case of a folder in every dtype, on fresh random tensors."""
    generator = torch.Generator().manual_seed(seed)
    plans, notes, statuses = [], [folder.note] if folder.note else [], []
    ulps = dict.fromkeys(DTYPES, 0.0)
    count = 0
    for case in itertools.chain(own_cases(folder), module_cases(rotaries(folder))):
        count += 1
        try:
            plans.append(case.plan("parity"))
        except PlanError as error:
            statuses.append(NONE)
            notes.append(f"{case.label}: {error}")
            continue
        for dtype in DTYPES:
            sides = case.run(dtype, generator)
            outcome = compare(sides.ours, sides.theirs)
            ulps[dtype] = max(ulps[dtype], outcome.ulps)
            statuses.append(_status(outcome))
            if statuses[-1] == NEAR:  # the same words for all random tensors
                notes.append(f"{case.label}: at most 1 ulp apart")
            elif statuses[-1] == FAILED:
                notes.append(f"{case.label}, {_name(dtype)}: {outcome.ulps:.3g} ulp apart")
        try:
            case.plan("exact")
        except PlanError as error:
            notes.append(f"exact refuses: {error}")
    if count == 0:
        raise LookupError(f"{folder.name}: no rotary module was found")
    status = max(statuses, key=(SAME, NEAR, EXACT, NONE, FAILED).index)
    return Row(folder, status, tuple(plans), count, tuple(ulps.values()),
               tuple(dict.fromkeys(notes)))  # fmt: skip


def _status(outcome) -> str:
    if outcome.same_bits:
        return SAME
    return NEAR if outcome.ulps <= 1.0 else FAILED


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
