"""The schema of a kind, as the OpenAPI document of a server has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from lamina.objects.kinds import Kind
from lamina.objects.openapi import GROUP_VERSION_KIND, Resolver, group_version_kind
from lamina.objects.types import GroupKind, Obj


def published_schema(kind: Kind, definitions: Callable[[], Iterable[Obj]]) -> Obj | None:
    """Return the schema of a built-in kind or of one that a CRD defines, None if it is neither."""
    # The tables of the server are loaded by simulations that ask for schemas, and not by others.
    from lamina.server.kinds.builtin.catalogue import CATALOGUE
    from lamina.server.openapi.schemas import custom_schema

    for resource in CATALOGUE:
        if (resource.api_version, resource.kind) == (kind.api_version, kind.kind):
            return _resolver().component(resource.definition)
    version = _defined_version(kind, definitions())
    if version is None:
        return None
    schema = custom_schema((version.get("schema") or {}).get("openAPIV3Schema"))
    return _resolver().resolve({**schema, GROUP_VERSION_KIND: [group_version_kind(kind)]})


def _defined_version(kind: Kind, definitions: Iterable[Obj]) -> Obj | None:
    """Return the version of a CRD that defines a kind."""
    for definition in definitions:
        spec = definition.get("spec") or {}
        if GroupKind(spec.get("group") or "", (spec.get("names") or {}).get("kind") or "") == kind.group_kind:
            for version in spec.get("versions") or ():
                if f"{spec['group']}/{version['name']}" == kind.api_version:
                    found: Obj = version
                    return found
    return None


@cache
def _resolver() -> Resolver:
    """Return the resolver of references to built-in definitions, which also those of CRDs have in their metadata."""
    from lamina.server.kinds.builtin.definitions import definition

    return Resolver(definition)
