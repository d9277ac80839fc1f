"""The counter of rows that a GPU made NaN because of a bad position."""

import pytest
import torch

import ropewalk

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_the_cpu_raises_and_counts_nothing():
    plan = ropewalk.make_plan(8)
    with pytest.raises(RuntimeError, match="position"):
        ropewalk.rotate(torch.randn(1, 2, 1, 8), plan=plan, offset=2**36)
    assert ropewalk.bad_rows(plan, "cpu") == 0


def test_a_device_without_kernels_is_refused():
    with pytest.raises(ropewalk.UnsupportedError, match="bad_rows: no kernels for meta"):
        ropewalk.bad_rows(ropewalk.make_plan(8), "meta")


@gpu
@pytest.mark.parametrize("with_table", [False, True])
def test_gpu_counts_rows(with_table):
    plan = ropewalk.make_plan(8, base=777.0 + with_table)
    limit = 6 if with_table else 2**36
    arguments = {}
    if with_table:
        arguments = dict(zip(("cos", "sin"), torch.rand(2, limit, 4, device="cuda"), strict=True))
    q = torch.randn(1, 3, 4, 8, device="cuda")
    positions = torch.tensor([0, limit, limit - 1, -limit], device="cuda")
    y = ropewalk.rotate(q, plan=plan, positions=positions, **arguments)
    is_nan = y.isnan()
    assert is_nan[:, :, [1, 3]].all() and not is_nan[:, :, [0, 2]].any()
    assert ropewalk.bad_rows(plan) == 6
    assert ropewalk.bad_rows(plan, reset=True) == 6
    assert ropewalk.bad_rows(plan) == 0
