"""
A world that records which kinds were read and may not be: what was decided from them is not known.

A cache of a kind that may not be listed is empty, as that of a kind without objects is.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

from lamina.core.model.world import Grouping, Index, World
from lamina.errors import Forbidden
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

Refusals = dict[GroupKind, Forbidden]
"""Why kinds may not be read, by kind."""


class RecordingWorld:
    """
    A world under which `refused` collects the refusal of each kind that was read and may not be.

    `read` collects all kinds that were read by name; `reads_any` says that objects of any kind were read.
    """

    def __init__(self, under: World, refused: Refusals) -> None:
        self._under, self.refused = under, refused
        self.read: set[GroupKind] = set()
        self.reads_any = False

    @property
    def kinds(self) -> Kinds:
        return self._under.kinds

    @property
    def clusters(self) -> Collection[str]:
        return self._under.clusters

    def on(self, cluster: str) -> World:
        return RecordingWorld(self._under.on(cluster), self.refused) if cluster else self

    def refusals(self) -> Mapping[GroupKind, Forbidden]:
        return self._under.refusals()

    def get(self, ref: Ref) -> Obj | None:
        self._record(GroupKind(ref.group, ref.kind))
        return self._under.get(ref)

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        self._record(kind)
        return self._under.every(kind, namespace)

    def count(self, kind: GroupKind) -> int:
        self._record(kind)
        return self._under.count(kind)

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Collection[Obj]]]:
        self._record(None)
        return self._under.in_namespace(namespace)

    def owned_by(self, uid: str, kind: GroupKind | None = None) -> Collection[Obj]:
        self._record(kind)
        return self._under.owned_by(uid, kind)

    def unclaimed(self, kind: GroupKind, namespace: str | None) -> Collection[Obj]:
        self._record(kind)
        return self._under.unclaimed(kind, namespace)

    def by_index(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        self._record(kind)
        return self._under.by_index(kind, by, key)

    def grouped(self, kind: GroupKind, by: Grouping, key: str) -> Mapping[Hashable, Collection[Obj]]:
        self._record(kind)
        return self._under.grouped(kind, by, key)

    def is_gone(self, uid: str) -> bool:
        return self._under.is_gone(uid)

    def _record(self, kind: GroupKind | None) -> None:
        """Record the refusal of a kind; without one, those of all kinds."""
        if kind is not None:
            self.read.add(kind)
        else:
            self.reads_any = True
        refusals = self._under.refusals()
        for one in refusals if kind is None else (kind,):
            if one in refusals:
                self.refused[one] = refusals[one]
