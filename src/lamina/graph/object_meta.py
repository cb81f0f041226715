"""Schemas that are the same for all kinds: ObjectMeta, which expressions may read, and external references."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made, Obj

_TEXT: Final[Obj] = {"type": "string"}
_FLAG: Final[Obj] = {"type": "boolean"}
_WHOLE: Final[Obj] = {"type": "integer", "format": "int64"}
_TIME: Final[Obj] = {"type": "string", "format": "date-time"}
_TEXTS: Final[Obj] = {"type": "object", "additionalProperties": _TEXT}

_OWNER: Final[Obj] = {
    "type": "object",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("blockOwnerDeletion", "controller"), _FLAG),
    },
}
_MANAGED: Final[Obj] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "fieldsType", "manager", "operation", "subresource"), _TEXT),
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "time": _TIME,
    },
}

OBJECT_META: Final[Obj] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _WHOLE,
        "deletionTimestamp": _TIME,
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "generateName": _TEXT,
        "generation": _WHOLE,
        "labels": _TEXTS,
        "managedFields": {"type": "array", "items": _MANAGED},
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}

_REQUIREMENT: Final[Obj] = {
    "type": "object",
    "properties": {"key": _TEXT, "operator": _TEXT, "values": {"type": "array", "items": _TEXT}},
}
_SELECTOR: Final[Obj] = {
    "type": "object",
    "properties": {"matchLabels": _TEXTS, "matchExpressions": {"type": "array", "items": _REQUIREMENT}},
}
_REFERENCE: Final[Obj] = {
    "type": "object",
    "properties": {"name": _TEXT, "namespace": _TEXT, "selector": _SELECTOR},
}
REFERENCE_SCHEMA: Final[Obj] = {
    "type": "object",
    "properties": {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _REFERENCE},
}
"""The schema of an external reference."""


def with_object_meta(schema: Obj, *, namespaced: bool = True) -> Made:
    """Return the schema of a kind with the properties that each object has."""
    metadata = OBJECT_META
    if not namespaced:
        properties = {name: one for name, one in OBJECT_META["properties"].items() if name != "namespace"}
        metadata = {**OBJECT_META, "properties": properties}
    own = schema.get("properties") or {}
    return {
        **schema,
        "type": "object",
        "properties": {**own, "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata},
    }
