"""
The kinds a server serves, with their verbs and subresources.

A `Kind` is the discovery entry of one kind in one version. It knows the paths
of its objects, and nothing about their content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lamina.objects.types import GroupKind, Ref

_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_MATURITY: Final = {"": 0, "beta": 1, "alpha": 2}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a group's versions: stable ones first, newer ones first, invalid names last."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (len(_MATURITY), 0, 0, version)
    number, maturity, step = match.groups()
    return (_MATURITY[maturity or ""], -int(number), -int(step or 0), "")


class Kind(NamedTuple):
    """One kind in one version: its resource name, scope, verbs and subresources."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    short: tuple[str, ...] = ()
    """Its short names."""

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
        """Return the reference of an object of this kind; the namespace is dropped where the kind is cluster-scoped."""
        return Ref(self.api_version, self.kind, namespace if self.namespaced else "", name, cluster)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the API path of the collection, of one object in it, or of a subresource."""
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
    All kinds a server serves, as a value: the REST mapper.

    They are given in order of preference: where a kind is served in several
    versions, the first is the preferred one.
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
        """Return the kind in its preferred version."""
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
