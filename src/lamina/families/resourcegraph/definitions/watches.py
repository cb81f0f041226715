"""What the controller of definitions watches, and the definitions that a change is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.crd.kinds import conditions_of
from lamina.core.model.controller import Watch, itself, only
from lamina.core.model.world import Change, World, derived
from lamina.families.resourcegraph.api import parse_definition
from lamina.families.resourcegraph.definitions.crd_cache import reduced, schema_mark, whole_or_child
from lamina.families.resourcegraph.definitions.indexes import by_crd, by_needed_kind, definitions_of
from lamina.families.resourcegraph.definitions.view import parse_revision
from lamina.families.resourcegraph.labels import API_VERSION, DEFINITION, DEFINITION_REVISION
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def _revision_changed(world: World, change: Change) -> Iterator[Ref]:
    """Yield the definition of a revision; that of a changed status is not asked, since it wrote that."""
    if not change.preserves(_without_status):
        yield from dict.fromkeys(ref for obj in change.versions for ref in definitions_of(world, obj))


def _without_status(revision: Obj) -> Any:
    metadata = {
        key: value
        for key, value in meta.metadata(revision).items()
        if key not in ("resourceVersion", "managedFields")
    }
    return metadata, revision.get("spec")


def _crd_changed(world: World, change: Change) -> Iterator[Ref]:
    """Yield the definition that generates a CRD, and those whose resources are of its kind."""
    for one in world.by_index(DEFINITION, by_crd, meta.name(change.obj)):
        yield meta.ref(one)
    if change.preserves(_served):
        return
    spec = change.obj.get("spec") or {}
    kind = f"{spec.get('group')}/{(spec.get('names') or {}).get('kind')}"
    for one in world.by_index(DEFINITION, by_needed_kind, kind):
        yield meta.ref(one)
    for one in world.by_index(DEFINITION_REVISION, by_needed_kind, kind):
        yield from definitions_of(world, one)


def _served(crd: Obj) -> Any:
    """Return what of a CRD decides whether graphs compile with its kind."""
    established = [one for one in conditions_of(crd) if one["type"] == "Established"]
    return derived(schema_mark, crd), [one["status"] for one in established], meta.is_deleting(crd)


WATCHES = (
    Watch(
        selects=only(*DEFINITION),
        api_version=API_VERSION,
        enqueue=itself,
        keep=whole_or_child,
        derive=parse_definition,
    ),
    Watch(
        selects=only(*DEFINITION_REVISION),
        api_version=API_VERSION,
        enqueue=_revision_changed,
        derive=parse_revision,
    ),
    Watch(selects=only(*CRD), enqueue=_crd_changed, keep=reduced, derive=schema_mark),
)
