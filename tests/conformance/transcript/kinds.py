"""
The custom kinds of stories: Widget has one of every feature, Blob has almost none.

They are created once per server, before the first story.
"""

import json
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.wire import JSON
from tests.conformance.transcript.reach import Wire

GROUP = "verbs.example.com"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define_kinds(wire: Wire) -> None:
    """Create the CRDs and wait until the kinds are served."""
    for one in (widget_definition(), blob_definition()):
        made = wire.call("POST", _CRDS, {"Content-Type": JSON}, json.dumps(one).encode())
        assert made.code in (201, 409), made.text
    for plural in ("widgets", "blobs"):
        path = f"/apis/{GROUP}/v1/{plural}"
        eventually_sync(lambda path=path: wire.call("GET", path, {}, None).code, lambda found: found == 200)  # type: ignore[misc]


def widget_definition() -> dict[str, Any]:
    """Return the CRD of Widget: defaults, every list type, status, scale, columns, selectable fields."""
    text, number = {"type": "string"}, {"type": "integer"}
    entry = {"type": "object", "required": ["name"], "properties": {"name": text, "port": number}}
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10, "description": "from small to large"},
            "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
            "replicas": {"type": "integer", "default": 1, "minimum": 0},
            "note": {"type": "string", "nullable": True, "maxLength": 20, "pattern": "^[a-z ]*$"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": True},
            "ports": _list("map", entry, keys=["name"]),
            "tags": _list("set", text),
            "whole": _list("atomic", text),
            "labels": {"type": "object", "additionalProperties": text},
            "opaque": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "single": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"a": text, "b": text},
            },
            "deep": {
                "type": "object",
                "properties": {"level": {"type": "string", "default": "low"}, "other": text},
            },
        },
    }
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {"type": text, "status": text, "reason": text},
    }
    status = {
        "type": "object",
        "properties": {
            "replicas": number,
            "selector": text,
            "observedGeneration": number,
            "phase": text,
            "conditions": _list("map", condition, keys=["type"]),
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": "Widget is what the stories are about.",
                "required": ["spec"],
                "properties": {"spec": spec, "status": status},
            }
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    names = {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    return _definition(names, [version])


def blob_definition() -> dict[str, Any]:
    """Return the CRD of Blob, which accepts any content and has no subresources."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return _definition({"plural": "blobs", "kind": "Blob"}, [version])


def _definition(names: dict[str, Any], versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions},
    }


def _list(kind: str, items: dict[str, Any], keys: list[str] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return made | {"x-kubernetes-list-map-keys": keys} if keys else made
