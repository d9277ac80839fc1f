"""A build backend that builds nothing: it gives pip the metadata that the archive already holds."""

from __future__ import annotations

import shutil
from email.parser import HeaderParser
from pathlib import Path


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(folder: str, config_settings: object = None) -> str:
    fields = HeaderParser().parsestr(Path("PKG-INFO").read_text(encoding="utf-8"))
    name = fields["Name"].replace("-", "_")
    target = Path(folder) / f"{name}-{fields['Version']}.dist-info"
    target.mkdir()
    shutil.copy("PKG-INFO", target / "METADATA")
    return target.name


class __legacy__:  # noqa: N801 - the name that pip asks for where an archive names no backend
    get_requires_for_build_wheel = staticmethod(get_requires_for_build_wheel)
    prepare_metadata_for_build_wheel = staticmethod(prepare_metadata_for_build_wheel)
