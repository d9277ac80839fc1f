"""`ropewalk rotate` on files larger than memory: killed, out of space, out of memory, resumed."""

from __future__ import annotations

import filecmp
import json
import os
import random
import resource
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from cli_support import CLI, assert_one_sentence

HEAD_DIM = 64


def file_limit(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture
def job(cli, config, tmp_path):
    """Arguments of a resumable job, and the bytes that it must come to."""
    source, once = tmp_path / "in.safetensors", tmp_path / "once.safetensors"
    numbers = np.random.default_rng()
    save_file(
        {
            "q": numbers.standard_normal((2, 1500, 8, HEAD_DIM), dtype=np.float32),
            "k": numbers.standard_normal((2, 1500, 2, HEAD_DIM)).astype(np.float16),
            "rest": numbers.integers(0, 255, 1_000_001, dtype=np.uint8),
            "ids": numbers.integers(0, 2**30, (2, 1500)),
        },
        source,
    )
    common = ["rotate", config, "--input", source, "--positions", "ids", "--threads", "1"]
    assert cli(*common, "--output", once, "--chunk", "1GiB").returncode == 0
    target = tmp_path / "out.safetensors"
    return [*common, "--output", target, "--resume", "--chunk", "32KiB"], target, once.read_bytes()


def test_killed_at_random_points_it_resumes_to_the_same_bytes(cli, job):
    arguments, target, expected = job
    kills = 0
    longest = 0.25
    while True:
        process = subprocess.Popen([CLI, *map(str, arguments), "--json"], stdout=subprocess.PIPE)
        try:
            output, _ = process.communicate(timeout=random.uniform(0.02, longest))
            assert process.returncode == 0
            resumed = json.loads(output)["resumed_at"] > 0
            if kills >= 2 and resumed:
                break
            # Too fast for two kills, or killed before the first chunk: once more, earlier or later.
            longest = 0.02 + (longest - 0.02) * (2 if kills >= 2 else 0.5)
            kills = 0
            target.unlink()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if target.exists():  # killed between the last step and its report
                assert target.read_bytes() == expected
                target.unlink()
                continue
            kills += 1
            if kills >= 12:  # the rest in one go
                arguments = [*arguments[:-1], "4MiB"]
    assert target.read_bytes() == expected
    assert not list(target.parent.glob("*.partial")) + list(target.parent.glob("*.journal"))


def test_a_full_disk_is_failed_work_that_can_be_gone_on_with(cli, job):
    arguments, target, expected = job
    # Python ignores SIGXFSZ, and the program inherits that: writing fails with EFBIG.
    limit = {"preexec_fn": file_limit(len(expected) // 2), "restore_signals": False}
    assert_one_sentence(cli(*arguments, **limit), 1, "--output", "File too large")
    assert not target.exists()
    report = json.loads(cli(*arguments, "--json").stdout)
    assert len(expected) // 4 < report["resumed_at"] <= len(expected) // 2
    assert target.read_bytes() == expected


def test_without_resume_nothing_is_left_behind(cli, job):
    arguments, target, expected = job
    arguments.remove("--resume")
    before = sorted(target.parent.iterdir())
    limit = {"preexec_fn": file_limit(len(expected) // 2), "restore_signals": False}
    assert_one_sentence(cli(*arguments, **limit), 1, "--output", "File too large")
    assert sorted(target.parent.iterdir()) == before


def test_short_memory_halves_the_chunk_and_says_so(cli, config, tmp_path):
    source, once, target = (tmp_path / f"{name}.safetensors" for name in ("in", "once", "out"))
    save_file({"q": np.ones((1, 1 << 18, 2, HEAD_DIM), np.float32)}, source)  # 128 MiB
    common = ["rotate", config, "--input", source, "--threads", "1", "--chunk", "1GiB"]
    assert cli(*common, "--output", once).returncode == 0
    memory = 96 << 20
    result = cli(
        *common, "--output", target, "--json",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "memory is short; going on with pieces of 67108864 bytes" in result.stderr
    assert json.loads(result.stdout)["chunk_bytes"] < memory
    assert target.read_bytes() == once.read_bytes()


def test_a_gpu_whose_memory_is_taken_halves_the_chunk_and_says_so(cli, config, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    source, once, target = (tmp_path / f"{name}.safetensors" for name in ("in", "once", "out"))
    left = 2 << 30  # of which the command's own context takes some hundred MB
    row = np.random.default_rng().standard_normal((1, 1, 64, HEAD_DIM), dtype=np.float32)
    save_file({"q": np.broadcast_to(row, (1, left // row.nbytes, 64, HEAD_DIM)).copy()}, source)
    common = ["rotate", config, "--input", source, "--chunk", "2GiB"]
    assert cli(*common, "--output", once).returncode == 0
    torch.cuda.empty_cache()
    taken = torch.empty(torch.cuda.mem_get_info()[0] - left, dtype=torch.uint8, device="cuda")
    result = cli(*common, "--output", target, "--device", "cuda", "--json")
    del taken
    if "this build has no CUDA kernels" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stderr
    assert f"memory is short; going on with pieces of {left // 2} bytes" in result.stderr
    assert json.loads(result.stdout)["chunk_bytes"] < left
    assert filecmp.cmp(target, once, shallow=False)


def test_an_input_that_changed_is_another_job(cli, job):
    arguments, target, expected = job
    limit = {"preexec_fn": file_limit(len(expected) // 2), "restore_signals": False}
    assert cli(*arguments, **limit).returncode == 1
    journal = target.with_name(target.name + ".journal")
    noted = journal.read_bytes()
    source = arguments[3]
    time.sleep(0.01)
    source.write_bytes(source.read_bytes())
    assert_one_sentence(cli(*arguments), 2, "--resume", "another job")
    assert journal.read_bytes() == noted and not target.exists()


def test_a_partial_file_that_differs_is_refused(cli, job):
    arguments, target, expected = job
    limit = {"preexec_fn": file_limit(len(expected) // 2), "restore_signals": False}
    assert cli(*arguments, **limit).returncode == 1
    partial = target.with_name(target.name + ".partial")
    data = bytearray(partial.read_bytes())
    data[100_000] ^= 1
    partial.write_bytes(data)
    assert_one_sentence(cli(*arguments), 2, "--resume", "differs from its journal")
    assert partial.read_bytes() == data


def test_a_table_is_kept_and_a_corrupt_or_foreign_one_refused(cli, config, tmp_path):
    source, target, table = (tmp_path / name for name in ("in", "out", "table"))
    save_file({"q": np.random.default_rng().standard_normal((5, 2, HEAD_DIM))}, source)
    common = ["rotate", config, "--input", source, "--output", target, "--table", table]
    parity = [*common, "--arithmetic", "parity_p2"]
    assert cli(*parity).returncode == 0
    first = target.read_bytes()
    assert cli(*parity).returncode == 0 and target.read_bytes() == first
    assert_one_sentence(cli(*parity, "--positions", "7"), 2, "--table", "5 rows", "12")
    assert_one_sentence(cli(*common, "--arithmetic", "parity_p1"), 2, "table")
    assert_one_sentence(cli(*common), 2, "--table", "exact")
    data = bytearray(table.read_bytes())
    data[-1] ^= 1
    table.write_bytes(data)
    assert_one_sentence(cli(*parity), 2, "table")
    assert target.read_bytes() == first


def test_the_environment_names_a_log_of_calls(cli, config, tmp_path):
    source, target, log = (tmp_path / name for name in ("in", "out", "log"))
    save_file({"q": np.ones((1, 8, 2, HEAD_DIM), np.float32)}, source)
    job = ["rotate", config, "--input", source, "--output", target, "--chunk", "2KiB"]
    assert cli(*job, env=os.environ | {"ROPEWALK_LOG": str(log)}).returncode == 0
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert [c["tokens"] for c in calls] == [4, 4] and all(c["in_place"] for c in calls)
    environment = os.environ | {"ROPEWALK_LOG": str(tmp_path / "none" / "log")}
    assert_one_sentence(cli(*job, env=environment), 2, "log")
