"""
The internal version of a CRD: what all versions share is beside them.

Messages name and print fields of this version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lamina.objects.types import Made
from lamina.server.kinds.custom.document import internal, normalised
from lamina.server.kinds.custom.go_values import same

_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def to_internal(spec: Mapping[str, Any]) -> tuple[Made, list[Made]]:
    """Return what all versions share, and the versions without it, with normalized schemas."""
    versions = [
        {field: part for field, part in one.items() if part is not None and part != []}
        for one in spec.get("versions") or ()
    ]
    for one in versions:
        if "schema" in one:
            schema = one["schema"].get("openAPIV3Schema")
            one["schema"] = {} if schema is None else {"openAPIV3Schema": normalised(schema)}
    shared: Made = {}
    for field in _SHARED:
        parts = [one.get(field) for one in versions]
        if parts and all(same(part, parts[0]) for part in parts):
            shared[field] = parts[0]
            for one in versions:
                one.pop(field, None)
    return shared, versions


def printed_versions(spec: Mapping[str, Any], versions: list[Made]) -> list[Made] | None:
    """Return versions as messages print them: every field, by its internal name."""
    if spec.get("versions") is None:
        return None
    return [
        {
            "Name": one.get("name") or "",
            "Served": bool(one.get("served")),
            "Storage": bool(one.get("storage")),
            "Deprecated": bool(one.get("deprecated")),
            "DeprecationWarning": one.get("deprecationWarning"),
            "Schema": _printed_schema(one.get("schema")),
            "Subresources": _printed_subresources(one.get("subresources")),
            "AdditionalPrinterColumns": [_printed_column(c) for c in one.get("additionalPrinterColumns", ())]
            or None,
            "SelectableFields": [
                {"JSONPath": field.get("jsonPath") or ""} for field in one.get("selectableFields", ())
            ]
            or None,
        }
        for one in versions
    ]


def _printed_schema(schema: Mapping[str, Any] | None) -> Made | None:
    if schema is None:
        return None
    document = schema.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if document is None else internal(document)}


def _printed_subresources(below: Mapping[str, Any] | None) -> Made | None:
    if below is None:
        return None
    scale = below.get("scale")
    return {
        "Status": {} if "status" in below else None,
        "Scale": None
        if scale is None
        else {
            "SpecReplicasPath": scale.get("specReplicasPath") or "",
            "StatusReplicasPath": scale.get("statusReplicasPath") or "",
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        },
    }


def _printed_column(column: Mapping[str, Any]) -> Made:
    return {
        "Name": column.get("name") or "",
        "Type": column.get("type") or "",
        "Format": column.get("format") or "",
        "Description": column.get("description") or "",
        "Priority": column.get("priority") or 0,
        "JSONPath": column.get("jsonPath") or "",
    }
