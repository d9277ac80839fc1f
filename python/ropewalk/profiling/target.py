"""What runs under the profiler: ``python -m ropewalk.profiling.target '<case as JSON>'``."""

from __future__ import annotations

import json
import sys

import torch

from ..bench.cases import Case
from ..bench.packages import Packages
from ..bench.peers.ropewalk import PEERS
from ..bench.setting import Setting

#: Launches before the one that counts: the plan's device copy and the modules are loaded then.
WARM = 3


def prepared(case: Case, in_place: bool, device: torch.device):
    """(rotate, q, k) on the device."""
    setting = Setting(case, device, Packages(), seed=0)
    peer = next(peer for peer in PEERS if peer.in_place == in_place)
    return peer.prepare(setting), *setting.inputs()[0]


def main() -> None:
    request = json.loads(sys.argv[1])
    in_place = request.pop("in_place")
    rotate, q, k = prepared(Case(**request), in_place, torch.device("cuda"))
    with torch.no_grad():
        for _ in range(WARM + 1):
            rotate(q, k)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
