"""
The registry of served kinds.

Built-in kinds are given; custom kinds are derived from the stored CRDs, again whenever one
of them has changed. The registry compares the version of the last change on each lookup,
so it needs no notification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol
from weakref import WeakSet

import orjson

from lamina.objects.types import Obj
from lamina.server.kinds.kind import Kind
from lamina.server.storage.store import Listing

CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class CrdStore(Protocol):
    """The part of a store that the registry needs."""

    def changed(self, bucket: str) -> int: ...

    def list(self, bucket: str) -> Listing: ...


class KindObserver(Protocol):
    """Notified when a kind is no longer served."""

    def retire(self) -> None: ...


class Registry:
    """
    The served kinds of one cluster.

    `edition` counts the changes, so that documents derived from all kinds (discovery,
    OpenAPI) are rebuilt.
    """

    def __init__(
        self,
        store: CrdStore,
        builtin: Iterable[Kind],
        custom: Callable[[Obj], Sequence[Kind]],
        bucket: str = CRDS,
    ) -> None:
        self._store = store
        self._bucket = bucket
        self._custom = custom
        self._builtin = tuple(builtin)
        self._seen = -1
        self._by_crd: dict[str, tuple[int, Sequence[Kind]]] = {}
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._kinds: tuple[Kind, ...] = ()
        self._minding: dict[Kind, WeakSet[KindObserver]] = {}
        self.edition = 0

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served at a path."""
        self.refresh()
        return self._by_path.get((group, version, plural))

    def kinds(self) -> tuple[Kind, ...]:
        """Return all served kinds."""
        self.refresh()
        return self._kinds

    def named(self, group: str, kind: str) -> Kind | None:
        """Return the preferred version of a kind."""
        found = [one for one in self.kinds() if one.kind == kind and one.group == group]
        return next((one for one in found if one.preferred), found[0] if found else None)

    def versions(self, kind: Kind) -> list[Kind]:
        """Return all served versions with the same storage, in any group."""
        return [one for one in self.kinds() if one.bucket == kind.bucket]

    def groups(self) -> set[str]:
        return {kind.group for kind in self.kinds()}

    def observe(self, kind: Kind, observer: KindObserver) -> None:
        """Notify an observer when a kind is no longer served as it is now; soon, if it is not any more."""
        if self._by_path.get((kind.group, kind.version, kind.plural)) is kind:
            self._minding.setdefault(kind, WeakSet()).add(observer)
        else:
            observer.retire()

    def refresh(self) -> None:
        """Derive the kinds again if a CRD has changed; kinds of unchanged CRDs stay the same values."""
        changed = self._store.changed(self._bucket)
        if changed == self._seen:
            return
        self._seen = changed
        served_kinds: dict[str, tuple[int, Sequence[Kind]]] = {}
        for row in self._store.list(self._bucket).rows:
            known = self._by_crd.get(row.key.name)
            if known is None or known[0] != row.version:
                known = (row.version, self._kinds_of(orjson.loads(row.value), known))
            served_kinds[row.key.name] = known
        self._by_crd = served_kinds
        self._kinds = (*self._builtin, *(kind for _, kinds in served_kinds.values() for kind in kinds))
        # Built-in kinds come last: a CRD never replaces one.
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in reversed(self._kinds)}
        self.edition += 1
        served = set(self._kinds)
        for kind in [kind for kind in self._minding if kind not in served]:
            for one in self._minding.pop(kind):
                one.retire()

    def _kinds_of(self, crd: Obj, known: tuple[int, Sequence[Kind]] | None) -> Sequence[Kind]:
        """Return the kinds of a CRD; the previous values if only its status or labels changed."""
        kinds = self._custom(crd)
        if known is not None and len(known[1]) == len(kinds):
            pairs = list(zip(known[1], kinds, strict=True))
            if all(before is after for before, after in pairs):
                return known[1]
        return kinds
