"""A world in which some objects are other than the cluster has them, so that an edit can be planned before it is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

from lamina.core.model.world import Grouping, Index, World
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref


class EditedWorld:
    """
    A world with some objects of its primary cluster replaced, or added.

    An object is replaced by the one of its group, kind, namespace and name. All
    questions about other objects are answered by the world underneath.
    """

    def __init__(self, under: World, edited: Iterable[Obj]) -> None:
        self._under = under
        self._edited: dict[GroupKind, dict[tuple[str, str], Obj]] = {}
        for obj in edited:
            ref = meta.ref(obj)
            self._edited.setdefault(GroupKind(ref.group, ref.kind), {})[ref.namespace, ref.name] = obj

    @property
    def kinds(self) -> Kinds:
        return self._under.kinds

    @property
    def clusters(self) -> Collection[str]:
        return self._under.clusters

    def on(self, cluster: str) -> World:
        return self._under.on(cluster) if cluster else self

    def refusals(self) -> Mapping[GroupKind, Forbidden]:
        return self._under.refusals()

    def get(self, ref: Ref) -> Obj | None:
        edited = self._edited_at(ref) if not ref.cluster else None
        return self._under.get(ref) if edited is None else edited

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        return self._with(
            kind,
            self._under.every(kind, namespace),
            lambda obj: namespace is None or meta.namespace(obj) == namespace,
        )

    def count(self, kind: GroupKind) -> int:
        return len(self.every(kind)) if kind in self._edited else self._under.count(kind)

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Collection[Obj]]]:
        seen: set[GroupKind] = set()
        for kind, _ in self._under.in_namespace(namespace):
            seen.add(kind.group_kind)
            yield kind, self.every(kind.group_kind, namespace)
        for group_kind in self._edited.keys() - seen:
            preferred = self.kinds.preferred(group_kind)
            if preferred is not None and (found := self.every(group_kind, namespace)):
                yield preferred, found

    def owned_by(self, uid: str, kind: GroupKind | None = None) -> Collection[Obj]:
        return self._with(
            kind,
            self._under.owned_by(uid, kind),
            lambda obj: any(owner["uid"] == uid for owner in meta.owner_refs(obj)),
        )

    def unclaimed(self, kind: GroupKind, namespace: str | None) -> Collection[Obj]:
        return self._with(
            kind,
            self._under.unclaimed(kind, namespace),
            lambda obj: (
                meta.controller_of(obj) is None and (namespace is None or meta.namespace(obj) == namespace)
            ),
        )

    def by_index(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        return self._with(kind, self._under.by_index(kind, by, key), lambda obj: key in by(obj))

    def grouped(self, kind: GroupKind, by: Grouping, key: str) -> Mapping[Hashable, Collection[Obj]]:
        if kind not in self._edited:
            return self._under.grouped(kind, by, key)
        groups: dict[Hashable, list[Obj]] = {}
        for obj in self.every(kind):
            found = by(obj)
            if found is not None and found[0] == key:
                groups.setdefault(found[1], []).append(obj)
        return groups

    def is_gone(self, uid: str) -> bool:
        return self._under.is_gone(uid)

    def _with(
        self, kind: GroupKind | None, found: Collection[Obj], matches: Callable[[Obj], bool]
    ) -> Collection[Obj]:
        """Return what was found underneath, without what is edited, and what is edited and matches."""
        kinds = self._edited if kind is None else {kind: self._edited[kind]} if kind in self._edited else {}
        if not kinds:
            return found
        left = [obj for obj in found if self._edited_at(meta.ref(obj)) is None]
        return [*left, *(obj for those in kinds.values() for obj in those.values() if matches(obj))]

    def _edited_at(self, ref: Ref) -> Obj | None:
        return self._edited.get(GroupKind(ref.group, ref.kind), {}).get((ref.namespace, ref.name))
