"""
What can be seen, as a value.

A world is a still picture of a cluster: the informers' memory between two
events, a dict in a test, a few lists fetched by a command. It holds what its
controller watches, trimmed to what somebody reads, and it may be a little old:
whoever plans from it names the versions that were seen.

A controller may look at several clusters: the one it is at home on, whose name
is empty, and others by the names it has for them. The picture of each is a world
of its own, reached from any other. An object does not say where it is, so
whoever takes one out of another cluster's world remembers which that was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

Index: TypeAlias = Callable[[Obj], Iterable[str]]
"""Under which keys an object is found: a pure function, known by who it is, so one that is made once."""

Likeness: TypeAlias = Callable[[Obj], tuple[str, Hashable] | None]
"""
Under which key an object is counted, and what it has in common with those like it; None where it is not counted.

A pure function, known by who it is, as an index is.
"""


class World(Protocol):
    """A still picture of a cluster."""

    @property
    def kinds(self) -> Kinds:
        """Return everything the cluster serves, watched or not."""
        ...

    @property
    def clusters(self) -> Collection[str]:
        """Return the names of the clusters that are seen beside the one at home."""
        ...

    def on(self, cluster: str) -> World:
        """
        Return the picture of the cluster of that name; without one, this very picture.

        Of a cluster that nobody knows it is empty: no kinds, and nothing of any.
        """
        ...

    def get(self, ref: Ref) -> Obj | None:
        """
        Return the object of that group, kind, namespace and name, whatever version it was asked for in.

        It is looked for on the cluster that is named; everything else that can be
        asked of a world is about the one cluster it is a picture of.
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

    def found(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        """
        Return the objects of a kind for which `by` yields this key.

        The first to ask pays for a look at all of them; from then on the answer
        is kept up to date.
        """
        ...

    def alike(self, kind: GroupKind, by: Likeness, key: str) -> Mapping[Hashable, Collection[Obj]]:
        """
        Return the objects of a kind that `by` counts under this key, those that are alike together.

        For whoever has thousands of objects and only wants to know how many are
        how: what it costs to know is paid as they change, and once by the first to ask.
        """
        ...

    def is_gone(self, uid: str) -> bool:
        """
        Say whether the end of this object was seen.

        A yes is certain, since no uid is given twice; a no may mean that it was long ago.
        """
        ...


class Change(Struct, frozen=True):
    """One thing that happened to one object: it appeared, became another, or went."""

    kind: Kind
    before: Obj | None
    after: Obj | None
    cluster: str = ""
    """Where it happened: empty at home, or what the controller calls that cluster."""

    @property
    def obj(self) -> Obj:
        """Return the object as it is now, or as it last was."""
        shown = self.after if self.after is not None else self.before
        assert shown is not None, "a change is about an object"
        return shown

    @property
    def ref(self) -> Ref:
        return meta.ref(self.obj, self.cluster)


Keep: TypeAlias = Callable[[Obj], Obj]
"""What is remembered of an object: a pure function. Two watches that name the same one share a memory."""


def everything(obj: Obj) -> Obj:
    """Keep all of an object: whoever asked for it may look at anything."""
    return obj


def whole(obj: Obj) -> Obj:
    """Keep everything but the record of who wrote which field."""
    metadata = meta.metadata(obj)
    if "managedFields" not in metadata:
        return obj
    return {
        **obj,
        "metadata": {field: value for field, value in metadata.items() if field != "managedFields"},
    }


_CARD = ("name", "namespace", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp")


def card(obj: Obj) -> Obj:
    """Keep who an object is, whose it is, and whether it is on its way out."""
    metadata = meta.metadata(obj)
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {field: metadata[field] for field in _CARD if field in metadata},
    }
