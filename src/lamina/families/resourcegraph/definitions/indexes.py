"""How definitions, their revisions and what they depend on are found from one another."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.core.model.world import World
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.labels import DEFINITION, RGD_NAME
from lamina.graph.language.pluralize import pluralize
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def by_definition(revision: Obj) -> tuple[str, ...]:
    """Index revisions by the label that names their definition."""
    label = meta.labels(revision).get(RGD_NAME)
    return (label,) if label else ()


def by_label(definition: Obj) -> tuple[str, ...]:
    """Index definitions by their name as labels have it."""
    return (label_value(meta.name(definition)),)


def by_crd(definition: Obj) -> tuple[str, ...]:
    """Index definitions by the name of the CRD that they generate."""
    schema = (definition.get("spec") or {}).get("schema") or {}
    kind, group = str(schema.get("kind") or ""), schema.get("group") or "kro.run"
    return (f"{pluralize(kind.lower())}.{group}",) if kind else ()


def by_needed_kind(obj: Obj) -> Iterator[str]:
    """Index definitions and revisions by the kinds of their resources, as `group/kind`."""
    for resource in (obj.get("spec") or {}).get("resources") or ():
        target = resource.get("template") or resource.get("externalRef") or {}
        group = str(target.get("apiVersion") or "").rpartition("/")[0]
        yield f"{group}/{target.get('kind')}"


def definitions_of(world: World, revision: Obj) -> Iterator[Ref]:
    """Yield the definitions that a revision belongs to, or may be adopted by."""
    controller = meta.controller_of(revision)
    version = str(revision["apiVersion"])
    if controller is not None and controller["kind"] == DEFINITION.kind:
        yield Ref(version, DEFINITION.kind, "", controller["name"])
    for label in by_definition(revision):
        for one in world.by_index(DEFINITION, by_label, label):
            yield meta.ref(one)
