"""
The cached state of clusters, as a value.

A world is a snapshot of a cluster: the informers' caches between two events, a
dict in a test, a few lists fetched by a command. It holds what its controller
watches, trimmed to the fields that are read, and it may be stale: a plan names
the versions it was made from.

A controller may watch several clusters: its primary one, whose name is empty, and
others by names that it chose. Each has a world of its own, reachable from any
other. An object does not name its cluster, so the caller keeps that beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

Value = TypeVar("Value")

Index: TypeAlias = Callable[[Obj], Iterable[str]]
"""Returns the index keys of an object: a pure function, identified by itself, so one that is defined once."""

Grouping: TypeAlias = Callable[[Obj], tuple[str, Hashable] | None]
"""
Returns the key of an object and its group below that key; None where it is in no group.

A pure function, identified by itself, as an index is.
"""


class World(Protocol):
    """A snapshot of a cluster."""

    @property
    def kinds(self) -> Kinds:
        """Return everything the cluster serves, watched or not."""
        ...

    @property
    def clusters(self) -> Collection[str]:
        """Return the names of the clusters beside the primary one."""
        ...

    def on(self, cluster: str) -> World:
        """
        Return the world of the cluster of that name; without a name, this world.

        The world of an unknown cluster is empty: no kinds and no objects.
        """
        ...

    def refusals(self) -> Mapping[GroupKind, Forbidden]:
        """Return why kinds of this world may not be read; they have no objects here, and may have some."""
        ...

    def get(self, ref: Ref) -> Obj | None:
        """
        Return the object of that group, kind, namespace and name, whatever the API version of the ref.

        The cluster is the one that the ref names; every other method is about the
        one cluster of this world.
        """
        ...

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        """Return the objects of a kind, in one namespace or in all of them."""
        ...

    def count(self, kind: GroupKind) -> int:
        """Return how many objects of a kind there are."""
        ...

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Collection[Obj]]]:
        """Yield each kind that has objects in a namespace, and those objects."""
        ...

    def owned_by(self, uid: str, kind: GroupKind | None = None) -> Collection[Obj]:
        """Return the objects that name this uid among their owners, of one kind or of all."""
        ...

    def unclaimed(self, kind: GroupKind, namespace: str | None) -> Collection[Obj]:
        """Return the objects of a kind that no controller owns, in one namespace or in all of them."""
        ...

    def by_index(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        """
        Return the objects of a kind for which `by` yields this key.

        The first call builds the index; from then on it is kept up to date.
        """
        ...

    def grouped(self, kind: GroupKind, by: Grouping, key: str) -> Mapping[Hashable, Collection[Obj]]:
        """
        Return the objects of a kind that have this key, by their group.

        It serves counts of thousands of objects: the cost is one update for each
        change, and one pass over all objects at the first call.
        """
        ...

    def is_gone(self, uid: str) -> bool:
        """
        Say whether the deletion of this object was seen.

        True is certain, since no uid is used twice; False may mean that it was deleted long ago.
        """
        ...


class Change(Struct, frozen=True):
    """One change of one object: it was added, modified or deleted."""

    kind: Kind
    before: Obj | None
    after: Obj | None
    cluster: str = ""
    """The cluster of the object: empty for the primary one, or the name the controller uses."""

    @property
    def obj(self) -> Obj:
        """Return the object as it is now, or as it last was."""
        shown = self.after if self.after is not None else self.before
        assert shown is not None, "a change is about an object"
        return shown

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)

    @property
    def versions(self) -> tuple[Obj, ...]:
        """Return the object before and after, as far as it existed."""
        return tuple(one for one in (self.before, self.after) if one is not None)

    def preserves(self, fact: Callable[[Obj], Any]) -> bool:
        """Say whether the object existed before and after and `fact` returns the same of both."""
        before, after = self.before, self.after
        return before is not None and after is not None and bool(fact(before) == fact(after))


Keep: TypeAlias = Callable[[Obj], Obj]
"""Returns what a cache holds of an object: a pure function. Two watches with the same one share a cache."""

Derive: TypeAlias = Callable[[Obj], Any]
"""What is derived from an object: a pure function, identified by itself, so one that is defined once."""


class CachedObject(dict[str, Any]):
    """
    An object as a cache keeps it, with what its watch derives from it.

    A copy is a plain dict: what was derived from one version never belongs to another.
    """

    __slots__ = ("derive", "derived")

    derive: Derive
    derived: Any


class KeepDerived(Struct, frozen=True):
    """Keeps what `keep` does of an object, and what `derive` makes of all of it."""

    keep: Keep
    derive: Derive

    def __call__(self, obj: Obj) -> Obj:
        kept = CachedObject(self.keep(obj))
        kept.derive, kept.derived = self.derive, self.derive(obj)
        return kept


def derived(derive: Callable[[Obj], Value], obj: Obj) -> Value:
    """Return what is derived from an object: as the cache keeps it, or computed where no cache derives it."""
    if isinstance(obj, CachedObject) and obj.derive is derive:
        value: Value = obj.derived
        return value
    return derive(obj)


def everything(obj: Obj) -> Obj:
    """Keep all of an object: a Follow query may read any field."""
    return obj


def whole(obj: Obj) -> Obj:
    """Keep everything but the managed fields."""
    metadata = meta.metadata(obj)
    if "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {field: value for field, value in metadata.items() if field != "managedFields"},
    }


_IDENTITY_FIELDS = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "ownerReferences",
    "finalizers",
    "deletionTimestamp",
)


def identity_only(obj: Obj) -> Obj:
    """Keep the identity of an object, its owners, and whether it is being deleted."""
    metadata = meta.metadata(obj)
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {field: metadata[field] for field in _IDENTITY_FIELDS if field in metadata},
    }
