"""
Embedded resources: `x-kubernetes-embedded-resource`.

Their kind, apiVersion and metadata are decoded and validated like those of any object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.server.field_errors import invalid, required
from lamina.server.kinds import metadata
from lamina.server.kinds.builtin.decode import decode_metadata
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.custom.document import Document, item_schema, value_schema
from lamina.server.kinds.custom.schema_errors import shown_value
from lamina.server.kinds.kind import Findings


class MetadataMismatch(ValueError):
    """Kind, apiVersion or metadata of an embedded resource have the wrong type."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"{cause.field}: {cause.message}")
        self.cause = cause


class Embedded:
    """The positions of embedded resources in a schema."""

    __slots__ = ("_fields", "_items", "_resource", "_values")

    def __init__(self, document: Document) -> None:
        self._resource = bool(document.get("x-kubernetes-embedded-resource"))
        self._items = embedded(item_schema(document))
        self._values = embedded(value_schema(document))
        self._fields = {
            name: found
            for name, part in document.get("properties", {}).items()
            if (found := embedded(part)) is not None
        }

    @property
    def is_used(self) -> bool:
        return bool(self._resource or self._items or self._values or self._fields)

    def _below(self, value: Any, path: str) -> Iterator[tuple[Embedded, Any, str]]:
        if isinstance(value, dict):
            for name, part in value.items():
                if name in self._fields:
                    yield self._fields[name], part, f"{path}.{name}" if path else name
                elif self._values is not None:
                    yield self._values, part, f"{path}[{name}]"
        elif isinstance(value, list) and self._items is not None:
            for index, item in enumerate(value):
                yield self._items, item, f"{path}[{index}]"

    def decode(self, value: Any, findings: Findings, path: str = "") -> None:
        """
        Decode the metadata of embedded resources in place, and report unknown fields.

        Raises MetadataMismatch.
        """
        if self._resource and isinstance(value, dict):
            for name in ("apiVersion", "kind"):
                if name in value and not isinstance(value[name], str):
                    raise MetadataMismatch(
                        invalid(_at(path, name), shown_value(value[name]), "must be a string")
                    )
            if "metadata" in value:
                value["metadata"] = self._metadata(value["metadata"], findings, _at(path, "metadata"))
        for below, part, where in self._below(value, path):
            below.decode(part, findings, where)

    def _metadata(self, given: Any, findings: Findings, path: str) -> dict[str, Any]:
        try:
            return decoded_metadata(given, findings, path)
        except TypeMismatch as problem:
            raise MetadataMismatch(invalid(path, shown_value(given), str(problem))) from None

    def repair(self, value: Any) -> None:
        """Drop what is invalid today from the embedded resources of a stored object."""
        if self._resource and isinstance(value, dict):
            for name in ("apiVersion", "kind"):
                if name in value and not isinstance(value[name], str):
                    del value[name]
            if isinstance(value.get("metadata"), dict):
                value["metadata"] = _readable(value["metadata"])
        for below, part, _ in self._below(value, ""):
            below.repair(part)

    def causes(self, value: Any, path: str = "") -> Iterator[Cause]:
        """Yield the errors of kind, apiVersion and metadata of embedded resources."""
        if self._resource and isinstance(value, dict):
            yield from _identity(value, path)
        for below, part, where in self._below(value, path):
            yield from below.causes(part, where)


def embedded(document: Document | None) -> Embedded | None:
    """Return the positions of embedded resources in a schema, None if it has none."""
    if document is None:
        return None
    made = Embedded(document)
    return made if made.is_used else None


def decoded_metadata(given: Any, findings: Findings, path: str) -> dict[str, Any]:
    """Return decoded metadata; raises Undecodable, whose message has no path."""
    try:
        made: dict[str, Any] = decode_metadata({} if given is None else given, findings, path)
    except TypeMismatch as problem:
        if problem.fields[:1] == [path]:
            del problem.fields[0]
            if not problem.fields:
                problem.struct = ""
        raise
    if made.get("creationTimestamp", "") is None:
        del made["creationTimestamp"]
    return made


def _readable(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return decoded_metadata(given, Findings(), "metadata")
    except TypeMismatch:
        made: dict[str, Any] = {}
        for name, part in given.items():
            try:
                made |= decoded_metadata({name: part}, Findings(), "metadata")
            except TypeMismatch:
                continue
        return made


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _identity(value: dict[str, Any], path: str) -> Iterator[Cause]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield required(_at(path, name))
    for name, part in value.items():
        where = _at(path, name)
        if name == "metadata":
            yield from _metadata_causes(part, where)
        elif name in ("apiVersion", "kind"):
            if not isinstance(part, str):
                yield invalid(where, shown_value(part), "must be a string")
            elif not part:
                yield invalid(where, part, "must not be empty")
            elif name == "apiVersion" and part.count("/") > 1:
                yield invalid(where, part, f"unexpected GroupVersion string: {part}")
            elif name == "kind" and (complaints := names.label_1035(part.lower())):
                detail = "may have mixed case, but should otherwise match: " + ",".join(complaints)
                yield invalid(where, part, detail)


def _metadata_causes(given: Any, path: str) -> Iterator[Cause]:
    try:
        decoded = decoded_metadata(dict(given) if isinstance(given, dict) else given, Findings(), path)
    except TypeMismatch as problem:
        yield invalid(path, shown_value(given), str(problem))
        return
    yield from metadata.object_meta(
        {**decoded, "name": decoded.get("name") or "fakename"},
        path,
        namespaced=bool(decoded.get("namespace")),
        rule=names.path_segment,
        strict=False,
    )
