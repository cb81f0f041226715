"""Validation of printer columns, subresources and selectable fields of a CRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lamina.errors import Cause
from lamina.objects.jsonpath import column_path_errors
from lamina.server.field_errors import duplicate, invalid, required, too_many
from lamina.server.kinds.custom.document import Document
from lamina.server.kinds.custom.fieldpath import BadPath, resolve_path

MOST_SELECTABLE: Final = 8
_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def validate_columns(columns: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    """Yield the errors of printer columns."""
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        kind, form, json_path = column.get("type"), column.get("format"), column.get("jsonPath")
        if not kind:
            yield required(f"{where}.type", f"must be one of {','.join(_TYPES)}")
        elif kind not in _TYPES:
            yield invalid(f"{where}.type", kind, f"must be one of {','.join(_TYPES)}")
        if form and form not in _FORMATS:
            yield invalid(f"{where}.format", form, f"must be one of {','.join(_FORMATS)}")
        if not json_path:
            yield required(f"{where}.JSONPath")
        else:
            yield from _path(json_path, f"{where}.JSONPath")


def _path(text: str, where: str) -> Iterator[Cause]:
    for error in column_path_errors(text):
        yield invalid(where, text, error)


def validate_subresources(below: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of the scale subresource's paths."""
    scale = below.get("scale")
    if scale is None:
        return
    for field, part in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, text = f"{path}.scale.{field}", scale.get(field) or ""
        if not text:
            yield required(where)
        else:
            yield from _below(text, where, (part,), f"should be a json path under {part[:-1]}")
    if selector := scale.get("labelSelectorPath"):
        where, detail = (
            f"{path}.scale.labelSelectorPath",
            "should be a json path under either .spec or .status",
        )
        yield from _below(selector, where, (".spec.", ".status."), detail)


def _below(text: str, where: str, parts: tuple[str, ...], detail: str) -> Iterator[Cause]:
    causes = list(_path(text, where))
    if not causes and not text.startswith(parts):
        causes.append(invalid(where, text, detail))
    yield from causes


def validate_selectable(
    fields: Sequence[Mapping[str, Any]], document: Document, path: str
) -> Iterator[Cause]:
    """Yield the errors of selectable fields."""
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            found = resolve_path(text, document, brackets=False)
        except BadPath as problem:
            yield invalid(where, text, f"is an invalid path: {problem}")
            continue
        if found.root == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found.schema is None or found.schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(
                where,
                text,
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed.",
            )
        if found.path in seen:
            yield duplicate(where, text)
        seen.add(found.path)
    if len(seen) > MOST_SELECTABLE:
        yield too_many(path, len(seen), MOST_SELECTABLE)
