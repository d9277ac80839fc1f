"""bench/parallel/run.py on gloo: the checks that a machine with several GPUs runs on NCCL."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bench" / "parallel" / "run.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), "--backend", "gloo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=[2, 4])
def result(request):
    dtypes = ["float64", "float32", "bfloat16"] if request.param == 2 else ["float64", "bfloat16"]
    done = run("--world", request.param, "--dtypes", *dtypes, "--timeout", 10)
    report = json.loads(done.stdout)["results"][0]
    assert report["world"] == request.param
    assert done.returncode == 0, json.dumps(report, indent=1)
    return report


def test_every_check_passes(result):
    checks = {item["check"]: item for item in result["checks"]}
    assert all(item["passed"] for item in checks.values())
    for words in (
        "block by heads, 4 KV heads divided, float64", "block by heads, 1 KV heads replicated",
        "rotated heads", "rotated tokens, contiguous", "rotated tokens, packed_zigzag"
        if result["world"] == 2 else "rotated tokens, packed", "rotated tokens, zigzag, three axes",
        "block by tokens, zigzag",
    ):  # fmt: skip
        assert any(words in name for name in checks), words


def test_the_block_is_compared_in_full(result):
    blocks = [item for item in result["checks"] if item["check"].startswith("block")]
    for item in blocks:
        assert set(item["worst_share_of_bound"]) == {"y", "x", "q", "k", "v", "o"}


def test_times_are_reported(result):
    block = result["timings"][0]
    assert 0 < block["rotation_us"] < block["block_us"] and block["all_reduce_us"] > 0


def test_a_killed_rank_ends_the_others(result):
    others = result["failure"]["others"]
    assert len(others) == result["world"] - 1
    for other in others:
        assert other["error"] and other["seconds_until_error"] < 15


def test_started_again_they_go_on_behind_the_last_chunk_that_all_had_finished(result):
    failure = result["failure"]
    assert [r["resumed_at"] for r in failure["resumed"]] == [160] * result["world"]
    assert [r["resumed_at"] for r in failure["uninterrupted"]] == [0] * result["world"]
    everyone = failure["resumed"] + failure["uninterrupted"]
    assert len({r["logits_sha256"] for r in everyone}) == 1


def test_wrong_usage_is_named():
    done = run("--world", 0)
    assert done.returncode == 2 and "--world" in done.stderr
