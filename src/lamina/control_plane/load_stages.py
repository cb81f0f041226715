"""Loads the stages of simulated pods: from a file, or the built-in ones."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import orjson

from lamina.actors import stages
from lamina.actors.stages import Stage
from lamina.errors import SettingsError


def load_stages(path: Path | None = None) -> tuple[Stage, ...]:
    """Return the stages in a file, or the built-in ones; raises SettingsError for an invalid file."""
    if path is None:
        return _built_in()
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read stages from {path}: {error}") from None
    found = stages.read_stages(documents(text, str(path)), str(path))
    if not found:
        raise SettingsError(f"{path}: the file has no stage", hint="a stage is a manifest of kind Stage")
    return found


@cache
def _built_in() -> tuple[Stage, ...]:
    # JSON, so that a start does not load a YAML parser.
    return stages.read_stages(
        orjson.loads(resources.files(stages).joinpath(stages.READY_MADE).read_bytes()), stages.DEFAULTS
    )


def documents(text: str, source: str) -> list[object]:
    """Return the documents in a YAML text."""
    import yaml

    # The C loader, if PyYAML has it, is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError as error:
        raise SettingsError(f"{source} is not valid YAML: {error}") from None
