"""The few words schemas are written in here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.objects.types import GroupKind, Made, Obj

ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
AMOUNT = "^((100|[0-9]{1,2})%|[0-9]+)$"


def text(**rules: Any) -> Made:
    return {"type": "string", **rules}


def choice(*values: str, **rules: Any) -> Made:
    return {"type": "string", "enum": list(values), **rules}


def whole(format: str = "int32", **rules: Any) -> Made:
    return {"type": "integer", "format": format, **rules}


def yes_or_no(**rules: Any) -> Made:
    return {"type": "boolean", **rules}


def moment(**rules: Any) -> Made:
    return {"type": "string", "format": "date-time", **rules}


def amount(pattern: str = AMOUNT, **rules: Any) -> Made:
    """A number, or a share of some whole."""
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": True,
        **rules,
    }


def several(items: Obj, **rules: Any) -> Made:
    return {"type": "array", "items": items, **rules}


def by_key(items: Obj, *keys: str, **rules: Any) -> Made:
    """A list in which no two have the same key."""
    return several(
        items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), **rules}
    )


def map_of(values: Obj, **rules: Any) -> Made:
    return {"type": "object", "additionalProperties": values, **rules}


def fields(properties: Obj, *required: str, **rules: Any) -> Made:
    made: Made = {"type": "object", "properties": dict(properties), **rules}
    return {**made, "required": list(required)} if required else made


def label_selector() -> Made:
    requirement = fields(
        {
            "key": text(),
            "operator": text(),
            "values": several(text(), **{"x-kubernetes-list-type": "atomic"}),
        },
        "key",
        "operator",
    )
    return fields(
        {
            "matchExpressions": several(requirement, **{"x-kubernetes-list-type": "atomic"}),
            "matchLabels": map_of(text()),
        },
        **{"x-kubernetes-map-type": "atomic"},
    )


CONDITION: Obj = fields(
    {
        "type": text(
            maxLength=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        "status": choice("True", "False", "Unknown"),
        "reason": text(maxLength=1024, minLength=1, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        "message": text(maxLength=32768),
        "lastTransitionTime": moment(),
        "observedGeneration": whole("int64", minimum=0),
    },
    "lastTransitionTime",
    "message",
    "reason",
    "status",
    "type",
)


def conditions(**rules: Any) -> Made:
    """Conditions as everybody has them, one of each type."""
    return by_key(CONDITION, "type", **rules)


def column(name: str, path: str, kind: str = "string", **rules: Any) -> Made:
    return {"name": name, "type": kind, "jsonPath": path, **rules}


def said(condition: str, field: str) -> str:
    """Where a condition's status or reason is found."""
    return f'.status.conditions[?(@.type=="{condition}")].{field}'


AGE: Obj = column("Age", ".metadata.creationTimestamp", "date")


def definition(
    kind: GroupKind,
    plural: str,
    shape: Obj,
    *,
    versions: Sequence[str],
    short: Sequence[str] = (),
    columns: Sequence[Obj] = (),
    namespaced: bool = True,
) -> Made:
    """Return the definition of a kind; the first version is the one that is stored, and all have one schema."""
    named = {"apiVersion": text(), "kind": text(), "metadata": {"type": "object"}}
    schema = {**shape, "type": "object", "properties": {**named, **shape["properties"]}}
    names: Made = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": plural,
        "singular": kind.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {**names, "shortNames": list(short)} if short else names,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                    **({"subresources": {"status": {}}} if "status" in shape["properties"] else {}),
                    **({"additionalPrinterColumns": list(columns)} if columns else {}),
                }
                for version in versions
            ],
        },
    }
