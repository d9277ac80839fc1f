"""Every test that takes `device` runs on the CPU, and on a GPU where there is one."""

import pytest
import torch

import ropewalk


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        metafunc.parametrize("device", devices)


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(20260101)


@pytest.fixture
def configs():
    from pathlib import Path

    return Path(__file__).parents[3] / "configs"


@pytest.fixture
def rotary():
    return ropewalk.RotaryEmbedding(16)
