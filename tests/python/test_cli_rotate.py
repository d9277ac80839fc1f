"""`ropewalk rotate`: files in, files out, and every refusal."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cli_support import CLI, assert_one_sentence

HEAD_DIM = 64


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng()
    return {
        "q": random.standard_normal((2, 5, 4, HEAD_DIM)).astype(np.float32),
        "k": random.standard_normal((2, 5, 2, HEAD_DIM)).astype(np.float32),
        "v": random.standard_normal((2, 5, 2, 48)).astype(np.float32),
        "ids": np.array([[7, 8, 9, 10, 11], [100, 200, 300, 400, 500]], dtype=np.int64),
        "bad": np.array([0, 1, 2, 3, 2**40], dtype=np.int64),
    }


def rotated_by_hand(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Half pairing in float64; x is (batch, token, head, channel), positions (batch, token)."""
    half = x.shape[-1] // 2
    omega = 10000.0 ** (-np.arange(half) / half)
    phase = positions[:, :, None, None] * omega
    a, b = x[..., :half].astype(np.float64), x[..., half:].astype(np.float64)
    c, s = np.cos(phase), np.sin(phase)
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


def close_as_float32(got: np.ndarray, want: np.ndarray) -> bool:
    """Within 16 units in the last place of the largest number."""
    scale = float(np.max(np.abs(want)))
    drift = float(np.finfo(np.float32).eps) * 16 * scale
    return float(np.max(np.abs(got - want))) <= drift


def rotate(cli, config, source, target, *options):
    result = cli("rotate", config, "--input", source, "--output", target, "--json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_rotate_matches_the_formula_and_copies_the_rest(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source, metadata={"format": "np"})
    report = rotate(cli, config, source, target, "--positions", "1000", "--frequencies", "formula")
    assert {t["name"] for t in report["rotated"]} == {"q", "k"}
    assert set(report["copied"]) == {"v", "ids", "bad"}
    result = load_file(target)
    positions = np.broadcast_to(1000 + np.arange(5), (2, 5))
    for name in ("q", "k"):
        assert close_as_float32(result[name], rotated_by_hand(tensors[name], positions))
    for name in ("v", "ids"):
        np.testing.assert_array_equal(result[name], tensors[name])


def test_rotate_takes_positions_from_a_tensor(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    options = ["--positions", "ids", "--tensor", "q", "--frequencies", "formula"]
    rotate(cli, config, source, target, *options)
    result = load_file(target)
    assert close_as_float32(result["q"], rotated_by_hand(tensors["q"], tensors["ids"]))
    np.testing.assert_array_equal(result["k"], tensors["k"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_inverse_undoes_forward(cli, config, tensors, tmp_path, dtype):
    names = [tmp_path / f"{i}.safetensors" for i in range(3)]
    save_file({"q": tensors["q"].astype(dtype)}, names[0])
    rotate(cli, config, names[0], names[1], "--positions", "131071")
    rotate(cli, config, names[1], names[2], "--positions", "131071", "--inverse")
    before, turned, after = (load_file(n)["q"] for n in names)
    assert not np.array_equal(before, turned)
    unit = float(np.finfo(dtype).eps)
    assert np.max(np.abs(after - before)) <= 4 * unit * np.max(np.abs(before))


def test_layouts_say_the_same(cli, config, tensors, tmp_path):
    q = tensors["q"]
    files = {
        "bthd": q,
        "bhtd": np.ascontiguousarray(q.transpose(0, 2, 1, 3)),
        "thd": q[0],
    }
    results = {}
    for layout, data in files.items():
        source, target = tmp_path / f"{layout}.in", tmp_path / f"{layout}.out"
        save_file({"q": data}, source)
        rotate(cli, config, source, target, "--layout", layout, "--positions", "77")
        results[layout] = load_file(target)["q"]
    np.testing.assert_array_equal(results["bhtd"].transpose(0, 2, 1, 3), results["bthd"])
    np.testing.assert_array_equal(results["thd"], results["bthd"][0])


def test_output_may_be_the_input(cli, config, tensors, tmp_path):
    path, other = tmp_path / "qk.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, path)
    rotate(cli, config, path, other)
    rotate(cli, config, path, path)
    np.testing.assert_array_equal(load_file(path)["q"], load_file(other)["q"])


def test_every_kernel_gives_the_same_file(cli, config, tensors, tmp_path):
    source = tmp_path / "in.safetensors"
    save_file(tensors, source)
    files = set()
    kernels = json.loads(cli("kernels", "--json").stdout)["kernels"]
    for kernel in kernels:
        if kernel["supported"]:
            target = tmp_path / f"{kernel['name']}.safetensors"
            rotate(
                cli,
                config,
                source,
                target,
                "--kernel",
                kernel["name"],
                "--threads",
                "1",
            )
            files.add(target.read_bytes())
    assert len(files) == 1


def test_parity_arithmetic_is_another_arithmetic(cli, config, tensors, tmp_path):
    source = tmp_path / "in.safetensors"
    save_file(tensors, source)
    exact, parity = tmp_path / "exact.safetensors", tmp_path / "parity.safetensors"
    rotate(cli, config, source, exact, "--positions", "30000")
    rotate(cli, config, source, parity, "--positions", "30000", "--arithmetic", "parity_p2")
    a, b = load_file(exact)["q"], load_file(parity)["q"]
    assert not np.array_equal(a, b)
    # Both are the same rotation but for the fp32 angle: position · ω rounded to 24 bits.
    angle_error = 30005 * float(np.finfo(np.float32).eps)
    assert np.max(np.abs(a - b)) <= angle_error * 2 * np.max(np.abs(tensors["q"]))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--tensor", "nothing"], ["--tensor", "nothing"]),
        (["--tensor", "v"], ["--tensor", "v", "48", "64"]),
        (["--tensor", "ids"], ["--tensor", "ids", "I64"]),
        (["--positions", "nowhere"], ["--positions", "nowhere"]),
        (["--positions", "v"], ["--positions", "v"]),
        (["--layout", "thd"], ["--layout", "thd"]),
        (["--layout", "dhtb"], ["--layout"]),
        (["--positions", str(2**36)], ["--positions", str(2**36)]),
        (["--positions", str(2**40), "--arithmetic", "parity_p0"], ["--positions", "2^36"]),
        (["--positions", str(2**63 - 1), "--arithmetic", "parity_p2"], ["--positions", "2^36"]),
        (["--positions", "bad", "--arithmetic", "parity_p2"], ["--positions", str(2**40)]),
        (["--positions", "bad"], ["--positions", str(2**40)]),
        (["--tensor", "q,,k"], ["--tensor", "q,,k"]),
    ],
)
def test_rotate_refuses_in_one_sentence_and_writes_nothing(
    cli, config, tensors, tmp_path, options, names
):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    before = sorted(tmp_path.iterdir())
    result = cli("rotate", config, "--input", source, "--output", target, *options)
    assert_one_sentence(result, 2, *names)
    assert sorted(tmp_path.iterdir()) == before


def test_a_truncated_file_is_refused(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    source.write_bytes(source.read_bytes()[:-1])
    assert_one_sentence(
        cli("rotate", config, "--input", source, "--output", target),
        2,
        "in.safetensors",
    )
    assert not target.exists()


@pytest.mark.parametrize("place", ["no folder/out", "file/out", "folder", "new/"])
def test_an_output_where_no_file_can_be_is_wrong_usage(cli, config, tensors, tmp_path, place):
    source = tmp_path / "in.safetensors"
    save_file(tensors, source)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    result = cli("rotate", config, "--input", source, "--output", f"{tmp_path}/{place}")
    assert_one_sentence(result, 2, "--output", place)


def test_an_output_that_cannot_be_written_is_failed_work(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out" / "out.safetensors"
    save_file(tensors, source)
    target.parent.mkdir()
    target.write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    arguments = [str(CLI), "rotate", str(config), "--input", str(source), "--output", str(target)]
    result = subprocess.run(
        arguments, check=False, capture_output=True, text=True, preexec_fn=limit
    )
    assert_one_sentence(result, 1, "--output", "out.safetensors")
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_behind(cli, config, tmp_path, signal_number):
    source, target = tmp_path / "in.safetensors", tmp_path / "out" / "out.safetensors"
    save_file({"q": np.zeros((1, 65536, 32, HEAD_DIM), np.float16)}, source)
    target.parent.mkdir()
    process = subprocess.Popen(
        [str(CLI), "rotate", str(config), "--input", str(source), "--output", str(target)]
    )
    descriptors = Path(f"/proc/{process.pid}/fd")
    try:
        # The output is open once a descriptor points into its folder.
        while process.poll() is None and not any(
            str(target.parent) in os.readlink(d) for d in descriptors.iterdir()
        ):
            pass
        process.send_signal(signal_number)
        finished = process.wait(timeout=60) == 0
    except FileNotFoundError:  # a descriptor was closed while it was looked at
        process.kill()
        process.wait()
        finished = target.exists()
    left = [p.name for p in target.parent.iterdir()]
    if any(name.startswith(".ropewalk-") for name in left):
        pytest.skip("this file system has no files without a name")
    assert left == ([target.name] if finished else [])


def test_an_output_keeps_the_mode_it_has(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    target.write_text("old")
    target.chmod(0o600)
    rotate(cli, config, source, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    np.testing.assert_array_equal(load_file(target)["v"], tensors["v"])


@pytest.mark.parametrize("arithmetic", ["parity_p0", "parity_p2", "parity_p4"])
def test_parity_at_far_positions_needs_no_more_memory(cli, config, tensors, tmp_path, arithmetic):
    """A table holds the positions of the call, not all from 0 to the largest."""
    source = tmp_path / "in.safetensors"
    far = np.array([[2**35, 3, 2**35, -7, 2**24 + 1], [0, 1, 2, 3, 2**36 - 1]], dtype=np.int64)
    save_file(tensors | {"far": far}, source)
    files = [tmp_path / f"{i}.safetensors" for i in range(3)]
    options = ("--arithmetic", arithmetic, "--tensor", "q", "--positions")
    rotate(cli, config, source, files[0], *options, "far")
    whole = load_file(files[0])["q"]
    for row, start in ((1, 0), (0, 2**35)):  # the same places, said as a start
        rotate(cli, config, source, files[1], *options, str(start))
        np.testing.assert_array_equal(load_file(files[1])["q"][row, 0], whole[row, 0])
    if arithmetic == "parity_p2":  # below 2^24 the recipe's angle is near the exact one
        rotate(cli, config, source, files[2], "--tensor", "q", "--positions", "far")
        exact = load_file(files[2])["q"]
        for at in ((0, 1), (0, 3), (1, 1)):
            error = 8 * float(np.finfo(np.float32).eps) * np.max(np.abs(tensors["q"]))
            assert np.max(np.abs(whole[at] - exact[at])) <= error


def test_an_empty_tensor_has_no_position_to_look_up(cli, config, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"q": np.zeros((2, 0, 4, HEAD_DIM), np.float32)}, source)
    report = rotate(cli, config, source, target, "--arithmetic", "parity_p0")
    assert [t["name"] for t in report["rotated"]] == ["q"]


def test_float_positions_are_refused_unless_asked_for(cli, config, tensors, tmp_path):
    """Bug1: positions that went through a float are rounded; fractions need an explicit word."""
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors | {"places": tensors["ids"].astype(np.float32) + np.float32(0.5)}, source)
    options = ("--positions", "places", "--frequencies", "formula", "--tensor", "q")
    result = cli("rotate", config, "--input", source, "--output", target, *options)
    assert_one_sentence(result, 2, "--positions", "F32", "--fractional")
    assert not target.exists()
    rotate(cli, config, source, target, *options, "--fractional")
    want = rotated_by_hand(tensors["q"], tensors["ids"] + 0.5)
    assert close_as_float32(load_file(target)["q"], want)


def test_a_tensor_named_like_a_position_is_rotated_too(cli, config, tensors, tmp_path):
    source, target = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"0": tensors["q"], "1": tensors["k"]}, source)
    report = rotate(cli, config, source, target)
    assert {t["name"] for t in report["rotated"]} == {"0", "1"}
