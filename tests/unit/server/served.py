"""Kinds for tests of documents: all built-in ones, and custom ones by their CRD."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from lamina.merge.schema import Schema
from lamina.server.kinds.builtin.catalogue import CATALOGUE, Resource
from lamina.server.kinds.kind import Kind, Shape, Subresource

CRD_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def _shape(*selectable: str) -> Shape:
    """Return the part of a shape that documents use."""
    return cast(Shape, SimpleNamespace(columns=(), field_labels=dict.fromkeys(selectable)))


def built_in(resource: Resource) -> Kind:
    return Kind(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        list_kind=resource.list_kind,
        plural=resource.plural,
        singular=resource.singular,
        namespaced=resource.namespaced,
        verbs=resource.verbs,
        bucket=resource.bucket,
        schema=Schema(),
        shape=_shape(),
        stored=resource.stored,
        preferred=resource.preferred,
        short_names=resource.short_names,
        categories=resource.categories,
        subresources=resource.subresources,
        definition=resource.definition,
        storage_hash=resource.storage_hash,
    )


def every_built_in() -> list[Kind]:
    return [built_in(resource) for resource in CATALOGUE]


def crd(group: str, kind: str, versions: Mapping[str, Any], scope: str = "Namespaced") -> dict[str, Any]:
    """Return a CRD; `versions` are the schemas by version."""
    plural = f"{kind.lower()}s"
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": name, "served": True, "schema": {"openAPIV3Schema": schema}}
                for name, schema in versions.items()
            ],
        },
    }


def custom(definition: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds of a CRD."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            list_kind=names["listKind"],
            plural=names["plural"],
            singular=names["singular"],
            namespaced=spec["scope"] == "Namespaced",
            verbs=CRD_VERBS,
            bucket=definition["metadata"]["name"],
            schema=Schema(),
            shape=_shape(*(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields", ()))),
            custom=True,
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            subresources=tuple(_subresources(spec["group"], version, names["kind"])),
            document=version["schema"]["openAPIV3Schema"],
        )
        for version in spec["versions"]
    ]


def _subresources(group: str, version: Mapping[str, Any], kind: str) -> list[Subresource]:
    verbs = ("get", "patch", "update")
    known = {"status": (group, version["name"], kind), "scale": ("autoscaling", "v1", "Scale")}
    return [
        Subresource(name=name, group=body[0], version=body[1], kind=body[2], verbs=verbs)
        for name, body in known.items()
        if name in version.get("subresources", {})
    ]
