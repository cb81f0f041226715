"""What the controllers of instances are made from: the definitions with a current revision, and generated kinds without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.crd.kinds import kinds_of
from lamina.core.model.world import World
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.view import revisions_of
from lamina.families.resourcegraph.instances.view import Setup, current_revision
from lamina.families.resourcegraph.labels import DEFINITION, DEFINITION_NAME, GROUP, OWNED
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj


def setups(world: World, options: Options, graphs: Graphs) -> Iterator[Setup]:
    """Yield the setup of each definition that has a current revision, and of each generated kind that has none."""
    served: set[GroupKind] = set()
    for definition in world.every(DEFINITION):
        found = _setup(world, definition, options, graphs)
        if found is not None and found.kind not in served:
            served.add(found.kind)
            yield found
    for crd in world.every(CRD):
        labels = meta.labels(crd)
        # A CRD that is a child of an instance is owned, too, and no definition generated it.
        if labels.get(OWNED) == "true" and DEFINITION_NAME in labels:
            for kind in kinds_of(crd)[:1]:
                if kind.group_kind not in served:
                    yield Setup(
                        definition="",
                        kind=kind.group_kind,
                        api_version=kind.api_version,
                        options=options,
                        graphs=graphs,
                    )


def _setup(world: World, definition: Obj, options: Options, graphs: Graphs) -> Setup | None:
    number, name = current_revision(definition), meta.name(definition)
    if not number:
        return None
    revisions = revisions_of(world, name, definition)
    schema = ((revisions.get(number) or definition).get("spec") or {}).get("schema") or {}
    if not schema.get("kind") or not schema.get("apiVersion"):
        return None
    group = schema.get("group") or GROUP
    return Setup(
        definition=name,
        kind=GroupKind(group, schema["kind"]),
        api_version=f"{group}/{schema['apiVersion']}",
        # The version that the current revision states is the one that is watched.
        children=tuple(dict.fromkeys(_kinds(revisions, number, "template"))),
        externals=tuple(dict.fromkeys(_kinds(revisions, number, "externalRef"))),
        options=options,
        graphs=graphs,
    )


def _kinds(revisions: Mapping[int, Obj], current: int, part: str) -> Iterator[tuple[str, str]]:
    """Yield the apiVersion and kind of the resources of revisions, the current one first."""
    for number in sorted(revisions, key=lambda one: (one == current, one), reverse=True):
        for resource in (revisions[number].get("spec") or {}).get("resources") or ():
            stated = resource.get(part) or {}
            if stated.get("apiVersion") and stated.get("kind"):
                yield str(stated["apiVersion"]), str(stated["kind"])
