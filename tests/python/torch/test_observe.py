"""The log and the counters of the Python package."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

import ropewalk


@pytest.fixture(autouse=True)
def off_afterwards():
    ropewalk.reset_call_counters()
    yield
    ropewalk.log_calls(None)
    ropewalk.count_calls(False)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_describes_each_call(tmp_path, rotary, device):
    log = tmp_path / "log"
    q, k = torch.randn(2, 4, 6, 16, device=device), torch.randn(2, 1, 6, 16, device=device)
    rotary(q, k)
    ropewalk.log_calls(log)
    rotary(q.bfloat16(), k.bfloat16(), positions=torch.arange(6, device=device))
    rotary(q.clone(), inplace=True)
    q.requires_grad_()
    rotary(q).sum().backward()
    ropewalk.log_calls(None)
    rotary(q.detach())
    calls = lines_of(log)
    assert [c["direction"] for c in calls] == ["forward", "forward", "forward", "inverse"]
    first = calls[0]
    assert first["device"] == device and first["kernel"]
    assert first["positions"] == "per_token" and first["dtype"] == "bfloat16"
    assert (first["views"], first["batch"], first["tokens"], first["heads"]) == (2, 2, 6, 5)
    assert first["bytes"] == 2 * 2 * 2 * 6 * 5 * 16
    assert first["fingerprint"] == rotary.plan.fingerprint
    assert [c["in_place"] for c in calls[:2]] == [False, True]


def test_counters_count_only_while_on(rotary, device):
    q = torch.randn(1, 2, 3, 16, device=device)
    rotary(q)
    assert ropewalk.call_counters() == ropewalk.CallCounters()
    ropewalk.count_calls()
    for _ in range(3):
        rotary(q)
    counters = ropewalk.call_counters()
    assert counters.cpu_calls + counters.cuda_launches == 3
    assert counters.tokens == 9 and counters.bytes == 3 * 2 * q.nbytes
    ropewalk.count_calls(False)
    rotary(q)
    assert ropewalk.call_counters() == counters


def test_streams_count_too(tmp_path):
    save_file({"q": torch.randn(8, 2, 16)}, tmp_path / "in")
    ropewalk.count_calls()
    ropewalk.stream_rotate(
        ropewalk.make_plan(16), tmp_path / "in", tmp_path / "out", chunk_bytes=256
    )
    assert ropewalk.call_counters().cpu_calls == 4


def test_the_environment_names_a_log(tmp_path):
    program = (
        "import torch, ropewalk; ropewalk.RotaryEmbedding(16)(torch.zeros(1, 1, 2, 16))"
    )  # fmt: skip
    log = tmp_path / "log"
    subprocess.run(
        [sys.executable, "-c", program], check=True, env=os.environ | {"ROPEWALK_LOG": str(log)}
    )
    assert [c["tokens"] for c in lines_of(log)] == [2]


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match="log: cannot write"):
        ropewalk.log_calls(tmp_path / "none" / "log")
