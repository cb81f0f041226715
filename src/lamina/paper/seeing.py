"""What controllers would see of a cluster on paper if they looked now, and whom a change there would concern."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from lamina.core.controller import Watch
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.memory import Gone, Memory, Shelf
from lamina.runtime.subscriptions import is_about


class Cluster(Protocol):
    """What there is to be seen."""

    @property
    def kinds(self) -> Kinds: ...

    @property
    def gone(self) -> Gone: ...

    def listed(self, what: Kind) -> list[Made]: ...


def remembered(
    there: Cluster,
    watches: Iterable[Watch],
    cluster: str = "",
    *,
    unseen: Collection[Ref] = (),
    others: Mapping[str, Memory] | None = None,
) -> Memory:
    """Return what informers would remember of a cluster of that name, leaving out what they have not seen yet."""
    shelves: dict[GroupKind, Shelf] = {}
    for watch in watches:
        for what in there.kinds if is_about(watch, cluster) else ():
            if watch.selects(what) and what.group_kind not in shelves:
                shelf = shelves[what.group_kind] = Shelf(what)
                for obj in there.listed(what):
                    if meta.ref(obj, cluster) not in unseen and _covers(watch, obj):
                        shelf.put(watch.keep(obj))
    memory = Memory(there.gone, others)
    memory.arrange(there.kinds, shelves)
    return memory


def concerned(
    kinds: Kinds, watches: Iterable[Watch], before: Obj | None, after: Obj | None, world: World
) -> list[Ref]:
    """Return whom a change at home concerns, as these watches see it."""
    about = after if after is not None else before
    assert about is not None, "a change is about an object"
    what = kinds.find(about["apiVersion"], about["kind"])
    keys: list[Ref] = []
    for watch in watches if what is not None else ():
        assert what is not None
        if watch.selects(what) and is_about(watch, "") and _covers(watch, about):
            was, now = (watch.keep(one) if one is not None else None for one in (before, after))
            keys += watch.concerns(world, Change(what, was, now))
    return keys


def _covers(watch: Watch, obj: Obj) -> bool:
    """Say whether a watch is about this one among the objects of a kind."""
    namespace = meta.namespace(obj)
    return watch.named in ("", meta.name(obj)) and (not namespace or watch.namespace in ("", namespace))
