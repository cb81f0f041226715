"""What the controllers of this family share: kinds of both scopes, the keys of a change, and how an error is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.core.model.world import Change, World
from lamina.families.objectset import lineage
from lamina.families.objectset.contents import by_slice
from lamina.families.objectset.labels import SETS
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def shared_facts(obj: Obj) -> Any:
    """Return what of a set the plans for its siblings depend on."""
    return (
        meta.uid(obj),
        lineage.is_live(obj),
        lineage.number(obj),
        lineage.is_available(obj),
        lineage.was_available(obj),
        lineage.has_succeeded(obj),
        (obj.get("status") or {}).get("remotePhases"),
        (obj.get("status") or {}).get("controllerOf"),
    )


def sets_of_slice(world: World, change: Change) -> Iterator[Ref]:
    """Yield the sets that name a slice that appeared or is gone."""
    if change.before is not None and change.after is not None:
        return
    key = f"{meta.namespace(change.obj)}/{meta.name(change.obj)}"
    for kind in SETS:
        yield from (meta.ref(one) for one in world.by_index(kind, by_slice, key))
