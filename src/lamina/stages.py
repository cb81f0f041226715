"""Stages from a file: a user's own, or those that come with the program."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import orjson

from lamina.actors import stages
from lamina.actors.stages import Stage
from lamina.errors import SettingsError


def load_stages(path: Path | None = None) -> tuple[Stage, ...]:
    """Return the stages in a file, or the usual ones; raises SettingsError, which says what is wrong and where."""
    if path is None:
        return _usual()
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read stages from {path}: {error}") from None
    found = stages.read_stages(documents(text, str(path)), str(path))
    if not found:
        raise SettingsError(f"{path}: there is no stage in it", hint="a stage is a manifest of kind Stage")
    return found


@cache
def _usual() -> tuple[Stage, ...]:
    # Every start reads these, and none should have to load a YAML parser for it.
    return stages.read_stages(
        orjson.loads(resources.files(stages).joinpath(stages.READY_MADE).read_bytes()), stages.DEFAULTS
    )


def documents(text: str, source: str) -> list[object]:
    """Return the documents in a YAML text."""
    import yaml

    # Written in C where that is to be had, which is ten times as quick.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError as error:
        raise SettingsError(f"{source} is no YAML: {error}") from None
