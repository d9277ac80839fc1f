"""folders.toml: the folders of transformers that rotate, by family, and what is special about some."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tomllib

_FILE = Path(__file__).parent / "folders.toml"


class Folder(NamedTuple):
    name: str
    family: str
    rule: str
    #: Keys to set on default configs, where those cannot be built or switch rope off.
    settings: dict
    #: The same for the configs of text models alone.
    text_settings: dict
    #: Rotary class → the config class to build it from, where its annotation names another.
    configs: dict
    #: Rotary class → the attribute of that config which it is built from.
    parts: dict
    #: Rotary classes to leave out, with the reason.
    skip: dict
    #: What a reader should know beside the status.
    note: str


def folders() -> list[Folder]:
    """All folders, in alphabetical order."""
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    special = content.pop("special")
    found = [
        Folder(name, family, entry["rule"], special.get(name, {}).get("set", {}),
               special.get(name, {}).get("set_text", {}),
               special.get(name, {}).get("configs", {}),
               special.get(name, {}).get("parts", {}), special.get(name, {}).get("skip", {}),
               special.get(name, {}).get("note", ""))
        for family, entry in content.items() for name in entry["folders"]
    ]  # fmt: skip
    unknown = set(special) - {folder.name for folder in found}
    if unknown:
        raise ValueError(f"folders.toml: special entries for unknown folders: {sorted(unknown)}")
    return sorted(found)
