"""Ropewalk itself, through its Python package."""

from __future__ import annotations

import ropewalk

from ..setting import Setting
from .peer import Peer, Rotate


def _arguments(setting: Setting) -> dict:
    case = setting.case
    arguments = {
        "plan": ropewalk.make_plan(case.head_dim, case.base, pairing=case.pairing),
        "layout": case.layout,
        "inverse": setting.inverse,
    }
    if case.positions == "start":
        return arguments | {"offset": int(setting.positions[0, 0])}
    return arguments | {"positions": setting.positions}


def _out_of_place(setting: Setting) -> Rotate:
    arguments = _arguments(setting)
    return lambda q, k: ropewalk.rotate(q, k, **arguments)


def _in_place(setting: Setting) -> Rotate:
    arguments = _arguments(setting)
    return lambda q, k: ropewalk.rotate_(q, k, **arguments)


PEERS = (
    Peer("ropewalk", "Ropewalk, fresh outputs", _out_of_place),
    Peer("ropewalk-in-place", "Ropewalk, in place", _in_place, in_place=True),
)
