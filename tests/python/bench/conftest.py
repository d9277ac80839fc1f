"""What the tests of the field benchmark share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ropewalk.bench.cases import Case
from ropewalk.bench.packages import Packages
from ropewalk.bench.setting import Setting


@pytest.fixture
def setting():
    def make(folder: Path | None = None, **changes) -> Setting:
        sizes = {"tokens": 3, "batch": 2, "heads": 2, "kv_heads": 1, "head_dim": 8}
        case = Case(**(sizes | {"dtype": "float32"} | changes))
        return Setting(case, torch.device("cpu"), Packages(folder), seed=5)

    return make
