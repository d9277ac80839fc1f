"""The command line as its users meet it: exit status, one-sentence errors, inspect."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess

import pytest

from cli_support import CLI, CONFIG, assert_one_sentence


def test_help_and_version(cli):
    assert "Examples:" in cli("--help").stdout
    assert cli("--version").stdout.startswith("ropewalk ")
    for command in ("run", "inspect", "rotate", "verify", "bench", "kernels"):
        result = cli(command, "--help")
        assert result.returncode == 0 and "Examples:" in result.stdout, command


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ["subcommand"]),
        (["nonsense"], ["nonsense"]),
        (["inspect"], ["CONFIG"]),
        (["inspect", "{missing}"], ["CONFIG", "missing"]),
        (["inspect", "{config}", "--length", "x"], ["--length"]),
        (["inspect", "{config}", "--length", "0"], ["--length"]),
        (
            ["inspect", "{config}", "--arithmetic", "quick"],
            ["--arithmetic", "quick", "parity_p0"],
        ),
        (["inspect", "{config}", "--layer-type", "x"], ["--layer-type", '"x"', "all"]),
        (["inspect", "{config}", "--frequencies", "x"], ["--frequencies"]),
        (["inspect", "{config}", "--bogus"], ["--bogus"]),
        (["rotate", "{config}", "--output", "o"], ["--input"]),
        (["rotate", "{config}", "--input", "{missing}", "--output", "o"], ["--input", "missing"]),
        (["bench", "--dtype", "int8"], ["--dtype", "int8"]),
        (["bench", "--layout", "hdtb"], ["--layout", "hdtb"]),
        (["bench", "--pairing", "thirds"], ["--pairing", "thirds"]),
        (["bench", "--direction", "up"], ["--direction", "up"]),
        (["bench", "--kernel", "abacus"], ["--kernel", "abacus", "scalar"]),
        (["bench", "--head-dim", "7"], ["--head-dim", "7"]),
        (["bench", "--tokens", "0"], ["--tokens"]),
        (["bench", "--tokens", "1,,2"], ["--tokens", "1,,2"]),
        (["bench", "--tokens", "1,"], ["--tokens", "1,"]),
        (["bench", "--tokens", "1,x"], ["--tokens", "x"]),
        (["bench", "--dtype", ",f32"], ["--dtype", ",f32"]),
        (["bench", "--threads", "1,4097"], ["--threads", "4097"]),
        (["bench", "--tokens", "2", "--start", str(2**36)], ["--start", str(2**36)]),
        (["bench", "--tokens", str(2**31), "--heads", str(2**31)], ["--tokens", "--heads"]),
        (["bench", "--seconds", "nan"], ["--seconds", "nan"]),
        (["run", "--seconds", "nan"], ["--seconds", "nan"]),
        (["bench", "--json", "--csv"], ["--csv"]),
        (["verify", "--kernel", "abacus"], ["--kernel", "abacus"]),
        (["verify", "--dtype", "int8"], ["--dtype", "int8"]),
        (["verify", "--quick", "--full"], ["--full", "--quick"]),
        (["verify", "--dtype", "f32,,f16"], ["--dtype", "f32,,f16"]),
        (["verify", "--shard", "0/4"], ["--shard", "0/4"]),
        (["verify", "--shard", "5/4"], ["--shard", "5/4"]),
        (["verify", "--shard", "1"], ["--shard", "1"]),
        (["verify", "--shard", "9999/9999"], ["--shard", "9999"]),
        (["run", "--configs", "{missing}"], ["--configs", "missing"]),
        (["run", "--tokens", "-1"], ["--tokens"]),
        (["run", "--dtype", "int8"], ["--dtype", "int8"]),
    ],
)
def test_wrong_usage_is_one_sentence_that_names_the_argument(
    cli, config, tmp_path, arguments, names
):
    places = {"config": config, "missing": tmp_path / "missing"}
    assert_one_sentence(cli(*(a.format(**places) for a in arguments)), 2, *names)


def test_an_unknown_rope_key_is_named(cli, config):
    config.write_text(json.dumps(CONFIG | {"rope_scaling": {"rope_type": "spiral"}}))
    assert_one_sentence(cli("inspect", config), 2, "spiral")


ESCAPES = "\x1b[31m\u009b2J\x07\u202e\n"


def assert_no_commands(text: str) -> None:
    assert not set(text) & set("\x1b\x07\x7f\u009b\u202e"), text


def test_text_of_a_config_cannot_steer_a_terminal(cli, config):
    config.write_text(json.dumps(CONFIG | {"model_type": ESCAPES}))
    for options in ([], ["--json"]):
        result = cli("inspect", config, *options)
        assert result.returncode == 0, result.stderr
        assert_no_commands(result.stdout.replace("\u202e", "") if options else result.stdout)
    assert "\\x1b[31m\\u009b2J\\x07\\u202e\\n: 2 query heads" in cli("inspect", config).stdout
    assert json.loads(cli("inspect", config, "--json").stdout)["model_type"] == ESCAPES
    layers = {f"a{ESCAPES}": {"rope_type": "default"}, "b": {"rope_type": "default"}}
    types = [f"a{ESCAPES}", "b", "b"]
    config.write_text(json.dumps(CONFIG | {"layer_types": types, "rope_parameters": layers}))
    assert_no_commands(cli("inspect", config).stdout)
    asked = cli("inspect", config, "--layer-type", f"x{ESCAPES}")
    assert_one_sentence(asked, 2, "--layer-type", "\\x1b[31m")
    assert_no_commands(asked.stderr)
    for broken in ({f"rope_{ESCAPES}": 1}, {"rope_scaling": {"type": ESCAPES}}):
        config.write_text(json.dumps(CONFIG | broken))
        result = cli("inspect", config)
        assert_one_sentence(result, 2, "\\x1b[31m")
        assert_no_commands(result.stderr)


@pytest.mark.parametrize(
    ("members", "key"),
    [
        ({"rope_theta": 1e-308}, "rope_theta"),
        ({"rope_scaling": {"type": "dynamic", "factor": 1e300}}, "rope_scaling.factor"),
        ({"rope_theta": 2.0**120, "rope_scaling": {"type": "linear", "factor": 1e9}}, "factor"),
        ({"rope_theta": 0.5, "rope_scaling": {"type": "yarn", "factor": 2}}, "rope_theta"),
    ],
)
def test_absurd_numbers_are_refused_by_their_key(cli, config, members, key):
    config.write_text(json.dumps(CONFIG | members))
    result = cli("inspect", config)
    assert_one_sentence(result, 2)
    assert result.stderr.startswith(f"ropewalk: {key}: "), result.stderr
    assert "nan" not in result.stderr


def test_standard_output_that_cannot_be_written_is_an_error(cli, config):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [str(CLI), "inspect", str(config)],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert_one_sentence(result, 1, "standard output")


@pytest.mark.parametrize("command", ["plot", "profile", "lab"])
def test_python_subcommands_say_what_to_install(cli, tmp_path, command):
    # A python3 that imports nothing.
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert_one_sentence(
        cli(command, "--help", env=environment), 2, command, "pip install --no-build-isolation"
    )


@pytest.mark.parametrize("option", ["--against=all", "--list-peers", "--fetch"])
def test_bench_with_peers_lives_in_python(cli, tmp_path, option):
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$@"\nexit 7\n')
    python.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = cli("bench", "--tokens", "4", option, env=environment)
    assert (result.returncode, result.stdout.split()[2:]) == (7, ["bench", "--tokens", "4", option])
    here = cli("bench", "--tokens", "1", "--reps", "1", "--seconds", "0.001", env=environment)
    assert here.returncode == 0, here.stderr


def test_python_subcommands_are_forwarded_with_their_arguments(cli, tmp_path):
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$@"\nexit 7\n')
    python.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = cli("plot", "--out", "a b.png", "-x", env=environment)
    assert result.returncode == 7
    assert result.stdout == "-m ropewalk plot --out a b.png -x\n"


def test_inspect_json_has_the_plan(cli, config):
    report = json.loads(cli("inspect", config, "--json").stdout)
    assert (report["model_type"], report["layers"]) == ("llama", 3)
    assert (report["query_heads"], report["key_heads"]) == (2, 1)
    assert report["layer_rotates"] == [True] * 3
    plan = report["layer_types"]["all"]
    assert (plan["rotary_dim"], plan["head_dim"], plan["pairing"]) == (64, 64, "half")
    assert plan["window"] == {"offset": 0, "width": 64}
    assert (plan["scaling"], plan["base"], plan["amplitude"]) == (
        "default",
        10000.0,
        1.0,
    )
    assert len(plan["fingerprint"]) == 32
    assert [f["pair"] for f in plan["frequencies"]] == list(range(32))
    for frequency in plan["frequencies"]:
        bits = struct.unpack(">f", bytes.fromhex(frequency["omega_fp32_bits"]))[0]
        assert bits == frequency["omega"]  # a model's frequencies are its fp32 values
        assert math.isclose(frequency["wavelength"] * frequency["omega"], 2 * math.pi)
        assert (frequency["axis"], frequency["note"]) == (0, "default")


def test_inspect_notes_scaling(cli, config):
    scaling = {"rope_type": "linear", "factor": 8.0}
    config.write_text(json.dumps(CONFIG | {"rope_scaling": scaling}))
    plan = json.loads(cli("inspect", config, "--json").stdout)["layer_types"]["all"]
    assert {f["note"] for f in plan["frequencies"]} == {"÷ 8"}
    assert "÷ 8" in cli("inspect", config).stdout


def test_inspect_knows_every_shipped_config(cli, shipped_configs):
    assert shipped_configs
    for path in shipped_configs:
        result = cli("inspect", path, "--json")
        assert result.returncode == 0, (path, result.stderr)
        report = json.loads(result.stdout)
        assert report["layer_types"], path
        assert len(report["layer_rotates"]) in (0, report["layers"]), path
        for plan in report["layer_types"].values():
            pairs = plan["rotary_dim"] // 2 if plan["rotates"] else 0
            assert len(plan["frequencies"]) == pairs, path
            assert all(0 <= f["axis"] < plan["axes"] for f in plan["frequencies"]), path
        text = cli("inspect", path)
        assert text.returncode == 0 and text.stdout, path
        assert "\x1b" not in text.stdout
