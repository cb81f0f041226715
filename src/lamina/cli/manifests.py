"""Reads manifests from files, folders and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lamina.control_plane.load_stages import documents
from lamina.errors import ApiError, SettingsError
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made

_SUFFIXES = (".json", ".yaml", ".yml")
STDIN = "-"


class Manifest(NamedTuple):
    """One object, and the file it was read from."""

    file: Path
    obj: Made

    @property
    def source(self) -> str:
        return _source(self.file)


def read_manifests(files: Iterable[Path]) -> list[Manifest]:
    """Return the objects in files, and in the files of folders; a list yields its items."""
    return [Manifest(file, obj) for path in files for file in _expand(path) for obj in _objects(file)]


def first_document(file: Path) -> object:
    """Return the first document of a file; None for an empty one."""
    return next(iter(documents(_text(file), _source(file))), None)


def check_stdin_once(files: Iterable[Path]) -> None:
    if sum(str(one) == STDIN for one in files) > 1:
        raise SettingsError("standard input can be read only once")


@contextmanager
def naming_source(manifest: Manifest) -> Iterator[None]:
    """Put the file of a manifest before the message of an error about it."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{manifest.source}: {error}", hint=error.hint) from None
    except ApiError as error:
        error.message = f"{manifest.source}: {error.message}"
        raise


def with_namespace(kinds: Kinds, manifest: Made, namespace: str, *, hint: str) -> Made:
    """Return a manifest with a namespace, if its kind is namespaced; `hint` is the remedy for an unknown kind."""
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    if kind is None:
        raise SettingsError(
            f"no matches for kind {manifest['kind']} in version {manifest['apiVersion']}", hint=hint
        )
    metadata = meta.metadata(manifest)
    if not metadata.get("name"):
        lack = "with a generateName" if metadata.get("generateName") else "without a name"
        raise SettingsError(f"a {kind.kind} {lack} cannot be applied", hint="set metadata.name")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            raise SettingsError(
                f"{kind.kind}: metadata.{field}: expected text, got {metadata[field]!r}",
                hint="put it in quotes",
            )
    if not kind.namespaced or meta.namespace(manifest):
        return manifest
    return meta.with_metadata(manifest, namespace=namespace)


def _expand(path: Path) -> list[Path]:
    """Return a file itself, and of a folder the files with the suffixes that kubectl reads."""
    if str(path) == STDIN or not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES and one.is_file())
    if not found:
        raise SettingsError(f"{path}: the folder has no file with suffix {', '.join(_SUFFIXES)}")
    return found


def _objects(file: Path) -> list[Made]:
    found: list[Made] = []
    for document in documents(_text(file), _source(file)):
        if document is None:
            continue
        manifest = _checked(file, document, "kind")
        items = manifest.get("items") or [] if _is_list(manifest) else [manifest]
        for one in items if isinstance(items, list) else [items]:
            found.append(_checked(file, one, "kind", "apiVersion", "metadata"))
    return found


def _is_list(manifest: Made) -> bool:
    """Say whether a manifest is a list of objects; the name of its kind does not decide: a custom kind may be an AllowList."""
    has_items = manifest["kind"].endswith("List") and isinstance(manifest.get("items"), list)
    return has_items or manifest["kind"] == "List"


def _checked(file: Path, document: object, *required: str) -> Made:
    if not isinstance(document, dict):
        raise SettingsError(f"{_source(file)}: expected manifests, got {type(document).__name__}")
    for name in required:
        expected, described = (dict, "a map") if name == "metadata" else (str, "text")
        if name not in document:
            raise SettingsError(f"{_source(file)}: expected manifests, got a document without {name}")
        if not isinstance(document[name], expected):
            raise SettingsError(f"{_source(file)}: {name}: expected {described}, got {document[name]!r}")
    return document


def _source(file: Path) -> str:
    return "standard input" if str(file) == STDIN else str(file)


def _text(file: Path) -> str:
    if str(file) == STDIN:
        return sys.stdin.read()
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {reason}") from None
