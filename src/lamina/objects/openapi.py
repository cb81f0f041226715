"""
The schemas in OpenAPI v3 documents of a server, with their references resolved.

A document has one schema for each type, its components. A schema refers to another one as
`{"$ref": "#/components/schemas/NAME"}`, inside an `allOf` where a description or a default
stands beside the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_not
from typing import Any, Final

from lamina.objects.kinds import Kind
from lamina.objects.types import Obj

ANY_VALUE: Final[Obj] = {"x-kubernetes-preserve-unknown-fields": True}
"""What replaces a reference to a component that contains it, or to one that is not there."""

GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"


def document_name(api_version: str) -> str:
    """Return the name of the document of a group version: `api/v1`, `apis/apps/v1`."""
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def components_of(document: Obj) -> Mapping[str, Obj]:
    """Return the components of a document by name."""
    found: Mapping[str, Obj] = (document.get("components") or {}).get("schemas") or {}
    return found


def group_version_kind(kind: Kind) -> Obj:
    """Return a kind as documents name it."""
    return {"group": kind.group, "version": kind.api_version.rpartition("/")[2], "kind": kind.kind}


def component_of(components: Mapping[str, Obj], kind: Kind) -> str | None:
    """Return the name of the component that describes a kind, None if there is none."""
    wanted = group_version_kind(kind)
    for name, schema in components.items():
        kinds = schema.get(GROUP_VERSION_KIND)
        if isinstance(kinds, list) and wanted in kinds:
            return name
    return None


class Resolver:
    """
    Resolves references to components.

    A component is resolved once and nothing is copied that does not change, so that
    schemas share the values of their common parts. A component that contains itself,
    directly or inside others, is cut where it recurs.
    """

    def __init__(self, lookup: Callable[[str], Obj | None]) -> None:
        self._lookup = lookup
        self._resolved: dict[str, Obj] = {}
        self._in_progress: set[str] = set()
        self._recurring: set[str] = set()
        """The components in progress that recur inside the innermost of them."""

    def component(self, name: str) -> Obj:
        """Return a component."""
        known = self._resolved.get(name)
        if known is not None:
            return known
        if name in self._in_progress:
            self._recurring.add(name)
            return ANY_VALUE
        schema = self._lookup(name)
        if schema is None:
            return ANY_VALUE
        outer, self._recurring = self._recurring, set()
        self._in_progress.add(name)
        resolved = self.resolve(schema)
        self._in_progress.remove(name)
        if not self._recurring:
            # Components that contain each other are cut in different places, depending on which is the outer one.
            self._resolved[name] = resolved
        self._recurring = outer | self._recurring - {name}
        return resolved

    def resolve(self, schema: Obj) -> Obj:
        """Return a schema with all its references resolved; what stands beside a reference has precedence."""
        reference, beside = _reference(schema)
        if reference is not None:
            found = self.component(reference.rpartition("/")[2])
            return {**found, **self.resolve(beside)} if beside else found
        changed = {
            key: resolved
            for key, value in schema.items()
            if (resolved := self._resolve_value(key, value)) is not value
        }
        return {**schema, **changed} if changed else schema

    def _resolve_value(self, key: str, value: Any) -> Any:
        """Return the value of a keyword, resolved; itself if nothing in it changed."""
        match key:
            case "items" | "additionalProperties" | "not" if isinstance(value, Mapping):
                return self.resolve(value)
            case "properties" | "patternProperties":
                resolved = {name: self.resolve(schema) for name, schema in value.items()}
                return resolved if any(resolved[name] is not value[name] for name in value) else value
            case "allOf" | "anyOf" | "oneOf":
                parts = [self.resolve(part) for part in value]
                return parts if any(map(is_not, parts, value)) else value
            case _:
                return value


def _reference(schema: Obj) -> tuple[str | None, Obj]:
    """Return what a schema refers to, None if nothing, and what stands beside the reference."""
    target = schema.get("$ref")
    if isinstance(target, str):
        return target, {key: value for key, value in schema.items() if key != "$ref"}
    parts = schema.get("allOf")
    if parts and len(parts) == 1 and parts[0].keys() == {"$ref"}:
        return parts[0]["$ref"], {key: value for key, value in schema.items() if key != "allOf"}
    return None, schema
