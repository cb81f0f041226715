"""
Strict validation of a hook's response: fields that are not known, and fields that are given twice.

Errors are in the words of `sigs.k8s.io/json`, with which Metacontroller decodes
responses. A parsed object has each field once, so the text is parsed here with
all its fields, and only where a first pass finds that there is something wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, Union

Fields: TypeAlias = Mapping[str, Union["Fields", None]]
"""
The fields of an object, with those of the objects below them.

None stands for a value of which every field is known: text, or an object of the
user. The fields of a list are those of its items.
"""

_MOST = 100


class _Object(list[tuple[str, Any]]):
    """An object of a JSON text with all its fields in their order, those that are given twice too."""


def strict_errors(body: bytes, known: Fields) -> tuple[str, ...]:
    """Return what strict validation finds in a JSON text, in the order of the text."""
    repeated = False

    def parsed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        made = dict(pairs)
        repeated = repeated or len(made) != len(pairs)
        return made

    if not _has_unknown(json.loads(body, object_pairs_hook=parsed), known) and not repeated:
        return ()
    return tuple(dict.fromkeys(_errors(json.loads(body, object_pairs_hook=_Object), known, "")))[:_MOST]


def _has_unknown(value: Any, known: Fields | None) -> bool:
    if known is None:
        return False
    if isinstance(value, list):
        return any(_has_unknown(item, known) for item in value)
    return isinstance(value, dict) and any(
        name not in known or _has_unknown(field, known[name]) for name, field in value.items()
    )


def _errors(value: Any, known: Fields | None, path: str) -> Iterator[str]:
    if isinstance(value, _Object):
        seen: set[str] = set()
        for name, field in value:
            where = f"{path}.{name}" if path else name
            if known is not None and name not in known:
                yield f'unknown field "{where}"'
                continue
            if name in seen:
                yield f'duplicate field "{where}"'
            seen.add(name)
            yield from _errors(field, known[name] if known is not None else None, where)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _errors(item, known, f"{path}[{place}]")
