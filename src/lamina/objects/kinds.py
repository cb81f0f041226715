"""
Which kinds a server serves, and what can be done with each.

A `Kind` is what discovery says of one kind in one version. It knows where its
objects are found, and nothing about what is inside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lamina.objects.types import GroupKind, Ref


class Kind(NamedTuple):
    """One kind in one version: what its objects are called, where they live, what may be done with them."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    short: tuple[str, ...] = ()
    """What people call it for short."""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def can(self, *verbs: str) -> bool:
        """Say whether the server offers all of these verbs for the kind."""
        return self.verbs.issuperset(verbs)

    def ref(self, namespace: str, name: str, cluster: str = "") -> Ref:
        """Return where an object of this kind is; the namespace is dropped where the kind has none."""
        return Ref(self.api_version, self.kind, namespace if self.namespaced else "", name, cluster)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, of one object in it, or of something below that object."""
        parts = ["/apis/" if "/" in self.api_version else "/api/", self.api_version]
        if self.namespaced and namespace:
            parts += ["/namespaces/", namespace]
        parts += ["/", self.plural]
        if name:
            parts += ["/", name]
        if subresource:
            parts += ["/", subresource]
        return "".join(parts)


class Kinds:
    """
    Everything a server serves, as a value.

    Given in order of preference: where a kind is served in several versions,
    the first is the one to use when only the kind is known.
    """

    __slots__ = ("_exact", "_hash", "_preferred")

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._exact: dict[tuple[str, str], Kind] = {}
        self._preferred: dict[GroupKind, Kind] = {}
        for kind in kinds:
            self._exact.setdefault((kind.api_version, kind.kind), kind)
            self._preferred.setdefault(kind.group_kind, kind)
        self._hash = hash(frozenset(self._exact.values()))

    def find(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind in exactly this version."""
        return self._exact.get((api_version, kind))

    def preferred(self, kind: GroupKind) -> Kind | None:
        """Return the kind in the version to use when any will do."""
        return self._preferred.get(kind)

    def versions(self) -> Iterator[Kind]:
        """Yield every kind in every version."""
        return iter(self._exact.values())

    def __iter__(self) -> Iterator[Kind]:
        """Yield every kind once, in its preferred version."""
        return iter(self._preferred.values())

    def __len__(self) -> int:
        return len(self._preferred)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Kinds) and self._exact == other._exact and self._preferred == other._preferred
        )

    def __hash__(self) -> int:
        return self._hash
