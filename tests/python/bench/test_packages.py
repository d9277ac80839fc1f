"""Fetched archives: what is kept of them, and how peers are imported from them."""

from __future__ import annotations

import importlib.util
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ropewalk.bench import packages
from ropewalk.bench.judge import judge
from ropewalk.bench.packages import Packages, Source, Unavailable, fetch
from ropewalk.bench.peers import all_peers, torchtune

STAND_IN = Path(packages.__file__).parent / "stand_in" / "setuptools" / "build_meta.py"


def make_sdist(folder: Path) -> None:
    with tarfile.open(folder / "thing-1.0.tar.gz", "w:gz") as tar:
        for name in ("thing-1.0/thing/kernel.py", "thing-1.0/thing/other.py"):
            data = b"value = 7\n"
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def make_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "thing-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("thing_for_test/__init__.py", "value = 7\n")
        wheel.writestr("thing_for_test/other.py", "")


def downloading(monkeypatch, make, problem=None):
    def download(source, scratch):
        if problem is None:
            make(scratch)
        return problem

    monkeypatch.setattr(packages, "_download", download)


def test_only_the_named_files_of_a_source_archive_are_kept(monkeypatch, tmp_path):
    downloading(monkeypatch, make_sdist)
    source = Source("thing==1.0", ("thing/kernel.py",), sdist=True)
    assert fetch(tmp_path, [source, source], say=lambda text: None) == []
    kept = Packages(tmp_path).path(source)
    assert [p.relative_to(kept) for p in kept.rglob("*.py")] == [Path("thing/kernel.py")]


def test_a_wheel_becomes_importable(monkeypatch, tmp_path):
    downloading(monkeypatch, make_wheel)
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = Source("thing==1.0")
    fetch(tmp_path, [source], say=lambda text: None)
    Packages(tmp_path).make_importable(source)
    import thing_for_test

    assert thing_for_test.value == 7


def test_what_cannot_be_had_is_said_and_leaves_nothing(monkeypatch, tmp_path):
    said: list[str] = []
    downloading(monkeypatch, make_sdist, problem="no such version")
    assert fetch(tmp_path, [Source("thing==1.0")], said.append) == ["thing==1.0"]
    assert "no such version" in said[0] and list(tmp_path.iterdir()) == []
    downloading(monkeypatch, make_sdist)
    source = Source("thing==1.0", ("thing/absent.py",), sdist=True)
    assert fetch(tmp_path, [source], said.append) == ["thing==1.0"]
    assert "thing/absent.py" in said[-1]


def test_what_was_not_fetched_is_unavailable(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(Unavailable, match="--fetch"):
            Packages(folder).path(Source("thing==1.0"))


def test_every_source_pins_a_version():
    for peer in all_peers():
        for source in peer.sources:
            assert source.requirement == f"{source.project}=={source.requirement.split('==')[1]}"


def test_the_stand_in_answers_with_the_archives_own_metadata(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("stand_in_backend", STAND_IN)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    monkeypatch.chdir(tmp_path)
    Path("PKG-INFO").write_text("Metadata-Version: 2.1\nName: a-thing\nVersion: 1.0\n\ntext\n")
    name = backend.prepare_metadata_for_build_wheel(str(tmp_path))
    assert name == "a_thing-1.0.dist-info"
    assert (tmp_path / name / "METADATA").read_text() == Path("PKG-INFO").read_text()


TORCHTUNE = """
import torch
class RotaryPositionalEmbeddings(torch.nn.Module):
    def __init__(self, dim, max_seq_len, base):
        super().__init__()
        self.arguments = (dim, max_seq_len, base)
    def forward(self, x, input_pos):
        return x
"""


def test_a_single_file_is_imported_and_its_result_judged(setting, tmp_path):
    path = tmp_path / torchtune.SOURCE.requirement / torchtune.FILE
    path.parent.mkdir(parents=True)
    path.write_text(TORCHTUNE)
    made = setting(tmp_path, pairing="interleaved")
    rotate = torchtune.PEERS[0].prepare(made)
    q, k = made.inputs()[0]
    assert not judge(made, (q, k), rotate(q, k)).right, "this stand-in does not rotate"
