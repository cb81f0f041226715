"""Parts of structural schemas, and paths of the fields that they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.objects.types import Obj

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"

_ANYTHING: Final[Obj] = {PRESERVE: True}
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def fields_of(schema: Obj) -> Mapping[str, Obj]:
    fields: Mapping[str, Obj] = schema.get("properties") or {}
    return fields


def values_of(schema: Obj) -> Obj | None:
    """Return the schema of a map's values; None where the schema is not that of a map."""
    values: Any = schema.get("additionalProperties")
    if values is True:
        return _ANYTHING
    return values if isinstance(values, Mapping) else None


def is_open(schema: Obj) -> bool:
    """Say whether unknown fields are preserved."""
    return bool(schema.get(PRESERVE))


def rules_of(schema: Obj) -> Iterator[str]:
    for rule in schema.get(RULES) or ():
        yield rule["rule"]


def list_type(schema: Obj) -> str:
    """Return the type of a list with its keys, as in `map(name, port)`."""
    kind: str = schema.get(LIST_TYPE) or "atomic"
    return f"map({', '.join(schema.get(MAP_KEYS) or ())})" if kind == "map" else kind


def below(path: str, name: str) -> str:
    """Return the path of a field: `spec.name`, or `spec["a.b"]` for a name that is no plain word."""
    if not _PLAIN.fullmatch(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name
