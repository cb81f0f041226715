"""The world of a controller whose caches are in sync with a simulated cluster, and the keys that a change enqueues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from lamina.core.model.controller import Watch
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import watches_cluster


class ClusterState(Protocol):
    """The part of a simulated cluster that a world is built from."""

    @property
    def kinds(self) -> Kinds: ...

    @property
    def deleted_uids(self) -> DeletedUids: ...

    def listed(self, what: Kind) -> list[Made]: ...


def cached_world(
    state: ClusterState,
    watches: Iterable[Watch],
    cluster: str = "",
    *,
    unseen: Collection[Ref] = (),
    others: Mapping[str, Lister] | None = None,
) -> Lister:
    """Return the world of synced informers on a cluster, without the `unseen` objects."""
    indexers: dict[GroupKind, Indexer] = {}
    for watch in watches:
        for what in state.kinds if watches_cluster(watch, cluster) else ():
            if watch.selects(what) and what.group_kind not in indexers:
                indexer = indexers[what.group_kind] = Indexer(what)
                for obj in state.listed(what):
                    if meta.ref(obj, cluster) not in unseen and _covers(watch, obj):
                        indexer.put(watch.cached(obj))
    lister = Lister(state.deleted_uids, others)
    lister.set_indexers(state.kinds, indexers)
    return lister


def keys_for(
    kinds: Kinds, watches: Iterable[Watch], before: Obj | None, after: Obj | None, world: World
) -> list[Ref]:
    """Return the keys that a change on the primary cluster enqueues by these watches."""
    changed = after if after is not None else before
    assert changed is not None, "a change is about an object"
    what = kinds.find(changed["apiVersion"], changed["kind"])
    keys: list[Ref] = []
    for watch in watches if what is not None else ():
        assert what is not None
        if watch.selects(what) and watches_cluster(watch, "") and _covers(watch, changed):
            was, now = (watch.cached(one) if one is not None else None for one in (before, after))
            keys += watch.enqueue(world, Change(what, was, now))
    return keys


def _covers(watch: Watch, obj: Obj) -> bool:
    """Say whether a watch selects this object of its kind."""
    namespace = meta.namespace(obj)
    return watch.named in ("", meta.name(obj)) and (not namespace or watch.namespace in ("", namespace))
