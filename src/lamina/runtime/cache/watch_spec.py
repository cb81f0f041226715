"""
Resolves the watches of controllers, and the objects that keys follow, to the kinds that a cluster serves.

Equal specs share one informer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from lamina.core.crd.kinds import DEFINITION, names_only
from lamina.core.model.controller import EVERYWHERE, Selects, Watch, only
from lamina.core.model.queries import Follow
from lamina.core.model.world import Change, Keep, everything
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind

ChangeHandler: TypeAlias = Callable[[Change], None]


class WatchSpec(NamedTuple):
    """The objects of a kind on one cluster: all of them, or those of one name or namespace."""

    kind: Kind
    keep: Keep
    metadata_only: bool
    named: str
    namespace: str = ""

    @property
    def subject(self) -> tuple[GroupKind, Keep, bool, str, str]:
        """The same for every version in which the kind is served."""
        return self.kind.group_kind, self.keep, self.metadata_only, self.named, self.namespace

    def covers(self, other: WatchSpec) -> bool:
        """Return whether every object that the other selects is selected here."""
        return self.named in ("", other.named) and self.namespace in ("", other.namespace)

    def can_feed(self, other: WatchSpec) -> bool:
        """Return whether a watch of this holds all that an informer of the other needs."""
        return (
            self.kind == other.kind and self.covers(other) and (other.metadata_only or not self.metadata_only)
        )

    @property
    def fields(self) -> str:
        return f"metadata.name={self.named}" if self.named else ""


def watches_cluster(watch: Watch, cluster: str) -> bool:
    return watch.cluster == cluster or watch.cluster == EVERYWHERE


def named_clusters(watches: Iterable[Watch]) -> frozenset[str]:
    """Return the clusters that these watches name."""
    return frozenset(watch.cluster for watch in watches if watch.cluster not in ("", EVERYWHERE))


def watched_kinds(kinds: Kinds, watch: Watch) -> tuple[Kind, ...]:
    """Return the kinds that a watch selects."""
    return _selected_kinds(kinds, watch.selects, watch.api_version)


@lru_cache(maxsize=1024)
def _selected_kinds(kinds: Kinds, selects: Selects, api_version: str) -> tuple[Kind, ...]:
    """Cached by what decides it: controllers that differ otherwise watch the same kinds, on clusters that serve the same."""
    among = kinds.versions() if api_version else kinds
    return tuple(
        kind
        for kind in among
        if (not api_version or kind.api_version == api_version)
        and kind.can("list", "watch")
        and selects(kind)
    )


def watch_spec(kind: Kind, watch: Watch) -> WatchSpec:
    namespace = watch.namespace if kind.namespaced else ""
    return WatchSpec(kind, watch.cached, watch.metadata_only, watch.named, namespace)


@lru_cache(maxsize=1024)
def watch_specs(kinds: Kinds, watch: Watch) -> tuple[WatchSpec, ...]:
    """Return a spec for each kind that a watch selects."""
    return tuple(watch_spec(kind, watch) for kind in watched_kinds(kinds, watch))


def add_watches(
    kinds: Kinds,
    watches: Sequence[tuple[Watch, ChangeHandler]],
    wanted: dict[WatchSpec, list[ChangeHandler]],
) -> Mapping[GroupKind, WatchSpec]:
    """Add the specs and handlers of these watches, and return the spec through which each kind is read."""
    for watch, handle in watches:
        for spec in watch_specs(kinds, watch):
            wanted.setdefault(spec, []).append(handle)
    return _spec_by_kind(kinds, tuple(watch for watch, _ in watches))


@lru_cache(maxsize=1024)
def _spec_by_kind(kinds: Kinds, watches: tuple[Watch, ...]) -> Mapping[GroupKind, WatchSpec]:
    found: dict[GroupKind, WatchSpec] = {}
    for watch in watches:
        for spec in watch_specs(kinds, watch):
            found.setdefault(spec.kind.group_kind, spec)
    return MappingProxyType(found)


@lru_cache(maxsize=1024)
def check_watches(controller: str, kinds: Kinds, watches: tuple[Watch, ...]) -> None:
    """Raise ValueError where the first watch of a kind, through which it is read, hides objects of another."""
    for cluster in {watch.cluster for watch in watches}:
        first: dict[GroupKind, WatchSpec] = {}
        for watch in watches:
            for spec in watch_specs(kinds, watch) if watches_cluster(watch, cluster) else ():
                if not first.setdefault(spec.kind.group_kind, spec).covers(spec):
                    raise ValueError(
                        f"{controller} watches {spec.kind.plural} in several places and would read those of the "
                        "first alone: watch all of them, and ignore those that do not matter"
                    )


@lru_cache(maxsize=32)
def crd_watches(kinds: Kinds) -> tuple[WatchSpec, ...]:
    """Return the watches of CRDs, by which changes to the served kinds are noticed."""
    selects = only(*DEFINITION)
    return tuple(WatchSpec(kind, names_only, False, "") for kind in kinds if selects(kind))


def specs_to_follow(follow: Follow) -> Iterator[WatchSpec]:
    """Yield the specs that select what a key follows: all of its kind, and a single object by its name."""
    whole = WatchSpec(follow.kind, everything, False, "")
    yield whole
    if follow.names is not None and len(follow.names) == 1:
        yield whole._replace(named=follow.names[0])
