"""The differences between two revisions, as blocks of lines: one for each object or list that changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from lamina.errors import SettingsError
from lamina.families.resourcegraph.api import content
from lamina.families.resourcegraph.commands.facts import Facts, number
from lamina.families.resourcegraph.commands.rows import current_revision
from lamina.families.resourcegraph.hashes import content_hash
from lamina.objects.diff import ABSENT, is_same
from lamina.objects.paths import Path
from lamina.objects.types import Obj

_PLAIN = re.compile(r"[^\s\"](?:[^\n\r\t]*\S)?")
"""A text that is shown without quotes, unless it is JSON."""


def differences(found: Facts, older: int | None, newer: int | None) -> str:
    """
    Return the differences between two revisions; those of equal revisions are the two headers.

    Without a number, `newer` is the current revision, and `older` the one before `newer`.
    """
    after = _numbered(found, newer if newer is not None else current_revision(found))
    if older is None:
        older = max((number(one) for one in found.revisions if number(one) < number(after)), default=0)
        if not older:
            raise SettingsError(
                f"{found.title} has no revision before {number(after)}", hint="name another one with --to N"
            )
    before = _numbered(found, older)
    old, new = _content(found, before), _content(found, after)
    # Equal content may be written in another order, or with defaults stated.
    if found.is_definition and content_hash(old) == content_hash(new):
        new = old
    return text(_title(found, before), _title(found, after), old, new)


def _content(found: Facts, revision: Obj) -> Obj:
    stated: Obj = revision["spec"]
    return content(stated) if found.is_definition else stated.get("instanceSpec") or {}


def _title(found: Facts, revision: Obj) -> str:
    if found.is_definition:
        return f"revision {number(revision)}"
    return f"input revision {number(revision)} (RGD revision {revision['spec'].get('rgdRevision')})"


def _numbered(found: Facts, wanted: int) -> Obj:
    for one in found.revisions:
        if number(one) == wanted:
            return one
    have = ", ".join(str(number(one)) for one in found.revisions) or "none"
    raise SettingsError(f"{found.title} has no revision {wanted}: the available revisions are {have}")


def text(old_title: str, new_title: str, old: Any, new: Any) -> str:
    """Return the header lines and the blocks; the contents are below `spec`."""
    lines = [f"--- {old_title}", f"+++ {new_title}"]
    blocks: dict[Path, tuple[list[str], list[str]]] = {}
    for path, value, side in sorted(_lines(("spec",), old, new), key=lambda line: _order(line[0])):
        blocks.setdefault(path[:-1], ([], []))[side].append(f"{'-+'[side]} {path[-1]}: {_shown(value)}")
    for path in sorted(blocks, key=_order):
        removed, added = blocks[path]
        lines += [f"@@ {'.'.join(map(str, path))} @@", *removed, *added]
    return "\n".join(lines)


def _order(path: Path) -> tuple[tuple[bool, str | int], ...]:
    """Return what orders paths: keys alphabetically, positions as numbers."""
    return tuple((isinstance(step, str), step) for step in path)


def _lines(path: Path, old: Any, new: Any) -> Iterator[tuple[Path, Any, int]]:
    """Yield each value that only one side has: its path, the value, and 0 for the old side or 1 for the new."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            yield from _lines((*path, key), old.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            one = old[place] if place < len(old) else ABSENT
            two = new[place] if place < len(new) else ABSENT
            yield from _lines((*path, place), one, two)
    elif not is_same(old, new):
        for side, value in enumerate((old, new)):
            for inner, leaf in _leaves(path, value) if value is not ABSENT else ():
                yield inner, leaf, side


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not steps or not value:
        yield path, value
        return
    for step, inner in steps:
        yield from _leaves((*path, step), inner)


def _shown(value: Any) -> str:
    """Return a value as JSON, and a text without quotes where it cannot be taken for anything else."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
