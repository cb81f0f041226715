"""An object that several managers write, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lamina.merge.apply import Applied, Manager, apply, track_update
from lamina.merge.field_ownership import Versions
from lamina.merge.fieldset import paths, show
from lamina.merge.schema import Schema, compile_schema

V1 = "ex.example.com/v1"
V2 = "ex.example.com/v2"

METADATA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "uid": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "generation": {"type": "integer"},
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"uid": {"type": "string"}, "name": {"type": "string"}},
            },
        },
        "managedFields": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
    },
}

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "color": {"type": "string"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"},
                    "target": {"x-kubernetes-int-or-string": True},
                },
            },
        },
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": "string"},
                    "inner": {"type": "object", "properties": {"x": {"type": "integer"}}},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}

THING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": METADATA,
        "spec": SPEC,
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}


def thing_with(**spec: Any) -> dict[str, Any]:
    """Return the schema of a Thing in which some fields of spec are of another type."""
    changed = {**SPEC, "properties": {**SPEC["properties"], **spec}}
    return {**THING, "properties": {**THING["properties"], "spec": changed}}


class Story:
    """A Thing called web, and the clock that its writes are stamped by."""

    def __init__(self, schema: dict[str, Any] = THING, versions: Versions | None = None) -> None:
        self.schema: Schema = compile_schema(schema)
        self.live: dict[str, Any] | None = None
        self.versions = versions
        self.now = ""
        self._minute = 0

    @property
    def spec(self) -> dict[str, Any]:
        assert self.live is not None
        found: dict[str, Any] = self.live["spec"]
        return found

    @property
    def entries(self) -> list[dict[str, Any]]:
        assert self.live is not None
        found: list[dict[str, Any]] = self.live["metadata"].get("managedFields", [])
        return found

    def apply(
        self,
        manager: str,
        *,
        force: bool = False,
        subresource: str = "",
        version: str = V1,
        reset_fields: Iterable[Sequence[str]] = (),
        **parts: Any,
    ) -> Applied:
        """Apply the given parts of the object, and keep what comes of it."""
        self._tick()
        metadata = {"name": "web", **parts.pop("metadata", {})}
        stated = {"apiVersion": version, "kind": "Thing", "metadata": metadata, **parts}
        outcome = apply(
            self.live,
            stated,
            self.schema,
            manager=Manager(manager, "Apply", version, subresource),
            force=force,
            now=self.now,
            reset_fields=reset_fields,
            versions=self.versions,
        )
        self._keep(outcome.obj, outcome.managed_fields)
        return outcome

    def update(
        self,
        manager: str,
        *,
        subresource: str = "",
        version: str = V1,
        reset_fields: Iterable[Sequence[str]] = (),
        **parts: Any,
    ) -> list[dict[str, Any]]:
        """Write the object with the given parts in place of those it had, and keep what comes of it."""
        self._tick()
        metadata = {**(self.live or {}).get("metadata", {"name": "web"}), **parts.pop("metadata", {})}
        new = {"apiVersion": version, "kind": "Thing", **(self.live or {}), **parts, "metadata": metadata}
        entries = track_update(
            self.live,
            new,
            self.schema,
            manager=Manager(manager, "Update", version, subresource),
            now=self.now,
            reset_fields=reset_fields,
            versions=self.versions,
        )
        self._keep(new, entries)
        return entries

    def owned(self, manager: str, operation: str = "Apply") -> list[str]:
        """Return the paths of the fields that a manager owns."""
        return [
            show(path)
            for entry in self.entries
            if (entry["manager"], entry["operation"]) == (manager, operation)
            for path in paths(entry["fieldsV1"])
        ]

    def owners_of(self, path: str) -> list[str]:
        """Return the managers who own the field at a path."""
        return [
            entry["manager"]
            for entry in self.entries
            if path in [show(found) for found in paths(entry["fieldsV1"])]
        ]

    def _tick(self) -> None:
        self._minute += 1
        self.now = f"2026-01-01T00:{self._minute:02d}:00Z"

    def _keep(self, obj: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        metadata = {"uid": "b5a7", **obj["metadata"]}
        metadata.pop("managedFields", None)
        if entries:
            metadata["managedFields"] = entries
        self.live = {**obj, "metadata": metadata}
