"""The least rights of the controllers of this family: their own kinds, generated kinds, and the kinds of resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lamina.core.rbac import Rights
from lamina.families.resourcegraph.labels import DEFINITION, FINALIZER, GROUP
from lamina.graph.language.pluralize import pluralize
from lamina.objects.types import Obj

_READ = ("get", "list", "watch")
_MANAGE = (*_READ, "create", "patch", "delete")
_OWN = ("resourcegraphdefinitionrevisions", "resourcegraphinputrevisions")


def rights(objects: Iterable[Obj] = ()) -> Rights:
    """Return the rights that these definitions need."""
    needed = Rights()
    needed.add(GROUP, ("resourcegraphdefinitions",), (*_READ, "patch"))
    needed.add(GROUP, _OWN, _MANAGE)
    for plural in ("resourcegraphdefinitions", *_OWN):
        needed.add(GROUP, (f"{plural}/status",), ("patch",))
        # Owner references to them block their deletion.
        needed.add(GROUP, (f"{plural}/finalizers",), ("update",))
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), _MANAGE)
    needed.add("", ("events",), ("create", "get", "patch"))
    # The namespace of the input revisions of cluster-scoped instances.
    needed.add("", ("namespaces",), ("create", "patch"))
    definitions = [one for one in objects if one.get("kind") == DEFINITION.kind]
    for definition in definitions:
        _add(needed, definition)
    if not definitions:
        needed.note("the kinds of ResourceGraphDefinitions: give their manifests to list them")
    return needed


def is_finalizer(text: str) -> bool:
    """Say whether a finalizer is the one of definitions, revisions and instances."""
    return text == FINALIZER


def edits(objects: Iterable[Obj] = ()) -> Rights:
    """Return the rights to edit the instances of these definitions."""
    needed = Rights()
    for definition in objects:
        if definition.get("kind") == DEFINITION.kind:
            needed.add(*_instances(definition), ("update", "patch"))
    return needed


def _instances(definition: Obj) -> tuple[str, tuple[str]]:
    """Return the group and the resource of the kind that a definition generates."""
    schema = (definition.get("spec") or {}).get("schema") or {}
    return str(schema.get("group") or GROUP), (pluralize(str(schema.get("kind") or "").lower()),)


def _add(needed: Rights, definition: Obj) -> None:
    spec = definition.get("spec") or {}
    group, (plural,) = _instances(definition)
    needed.add(group, (plural,), (*_READ, "patch", "update"))
    needed.add(group, (f"{plural}/status",), ("patch",))
    needed.add(group, (f"{plural}/finalizers",), ("update",))
    for part, verbs in (("template", _MANAGE), ("externalRef", _READ)):
        for group, kind in sorted(_kinds(spec, part)):
            # Only discovery knows the resource of a kind; nearly all are its plural.
            needed.add(group, (pluralize(kind.lower()),), verbs)


def _kinds(spec: Obj, part: str) -> Iterator[tuple[str, str]]:
    for resource in spec.get("resources") or ():
        stated = resource.get(part) or {}
        if stated.get("kind"):
            yield str(stated.get("apiVersion") or "").rpartition("/")[0], str(stated["kind"])
