"""
The kinds of a CustomResourceDefinition, for discovery; schemas are left to the server.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Condition, GroupKind, Obj

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")

_VERBS = frozenset(("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))


def names_only(obj: Obj) -> Obj:
    """Keep the names and versions of a definition, without its schemas, which are most of it."""
    spec = obj.get("spec") or {}
    metadata = {
        field: value
        for field, value in meta.metadata(obj).items()
        if field not in ("managedFields", "annotations", "labels")
    }
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
        "spec": {
            "group": spec.get("group"),
            "scope": spec.get("scope"),
            "names": spec.get("names"),
            "versions": [
                {
                    "name": version.get("name"),
                    "served": version.get("served"),
                    "subresources": {name: {} for name in version.get("subresources") or {}},
                }
                for version in spec.get("versions") or ()
            ],
        },
        "status": {"conditions": (obj.get("status") or {}).get("conditions") or []},
    }


def conditions_of(definition: Obj) -> Sequence[Condition]:
    return (definition.get("status") or {}).get("conditions") or ()


def is_established(definition: Obj) -> bool:
    return conditions.is_true(conditions_of(definition), "Established")


def kinds_of(definition: Obj) -> tuple[Kind, ...]:
    """Return the kinds of a definition, one for each served version, in the order of its versions."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    return tuple(
        Kind(
            api_version=f"{spec.get('group')}/{version['name']}",
            kind=names.get("kind") or "",
            plural=names.get("plural") or "",
            namespaced=spec.get("scope") == "Namespaced",
            verbs=_VERBS,
            subresources=frozenset(version.get("subresources") or ()),
            short=tuple(names.get("shortNames") or ()),
        )
        for version in spec.get("versions") or ()
        if version.get("served")
    )
