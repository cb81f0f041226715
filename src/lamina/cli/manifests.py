"""Files of manifests, as a command is given them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lamina.errors import SettingsError
from lamina.objects.types import Made
from lamina.stages import documents

_ENDINGS = (".json", ".yaml", ".yml")
STDIN = "-"


class Manifest(NamedTuple):
    """One object, and the file it was read from."""

    file: Path
    obj: Made

    @property
    def source(self) -> str:
        return "standard input" if str(self.file) == STDIN else str(self.file)


def read_manifests(files: Iterable[Path]) -> list[Manifest]:
    """Return the objects in files, and in the files of folders; lists are taken apart."""
    return [Manifest(file, obj) for given in files for file in _within(given) for obj in _objects(file)]


def first_document(file: Path) -> object:
    """Return what a file says first, which may be nothing."""
    return next(iter(documents(_text(file), str(file))), None)


def refuse_two_readers(files: Iterable[Path]) -> None:
    if sum(str(one) == STDIN for one in files) > 1:
        raise SettingsError("standard input can be read only once")


def _within(given: Path) -> list[Path]:
    """Return the files that are meant: of a folder those in it that look like manifests, as kubectl takes them."""
    if str(given) == STDIN or not given.is_dir():
        return [given]
    found = sorted(one for one in given.iterdir() if one.suffix in _ENDINGS and one.is_file())
    if not found:
        raise SettingsError(f"{given}: there is no file in it that ends in {', '.join(_ENDINGS)}")
    return found


def _objects(file: Path) -> list[Made]:
    found: list[Made] = []
    for document in documents(_text(file), str(file)):
        if document is None:
            continue
        manifest = _checked(file, document, "kind")
        items = manifest.get("items") or [] if _is_list(manifest) else [manifest]
        for one in items if isinstance(items, list) else [items]:
            found.append(_checked(file, one, "kind", "apiVersion", "metadata"))
    return found


def _is_list(manifest: Made) -> bool:
    """Say whether a manifest holds others; somebody may have called a kind of their own AllowList."""
    named = manifest["kind"].endswith("List") and isinstance(manifest.get("items"), list)
    return named or manifest["kind"] == "List"


def _checked(file: Path, document: object, *needs: str) -> Made:
    if not isinstance(document, dict):
        raise SettingsError(f"{file}: expected manifests, got {type(document).__name__}")
    for name in needs:
        kind, word = (dict, "a map") if name == "metadata" else (str, "text")
        if name not in document:
            raise SettingsError(f"{file}: expected manifests, got something without {name}")
        if not isinstance(document[name], kind):
            raise SettingsError(f"{file}: {name}: expected {word}, got {document[name]!r}")
    return document


def _text(file: Path) -> str:
    if str(file) == STDIN:
        return sys.stdin.read()
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {why}") from None
