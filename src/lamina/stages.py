"""Stages from a file: a user's own, or those that come with the program."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import yaml

from lamina.actors import stages
from lamina.actors.stages import Stage
from lamina.errors import SettingsError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Written in C where that is to be had, which is ten times as quick."""


def load_stages(path: Path | None = None) -> tuple[Stage, ...]:
    """Return the stages in a file, or the usual ones; raises SettingsError, which says what is wrong and where."""
    if path is None:
        return _read(resources.files(stages).joinpath(stages.DEFAULTS).read_text(), stages.DEFAULTS)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read stages from {path}: {error}") from None
    found = _read(text, str(path))
    if not found:
        raise SettingsError(f"{path}: there is no stage in it", hint="a stage is a manifest of kind Stage")
    return found


def _read(text: str, source: str) -> tuple[Stage, ...]:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise SettingsError(f"{source} is no YAML: {error}") from None
    return stages.read_stages(documents, source)
