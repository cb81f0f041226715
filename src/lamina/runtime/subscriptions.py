"""
What is followed of a cluster: what watches and questions come down to, given the kinds it serves.

Those who ask for the same share one informer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from lamina.core.controller import EVERYWHERE, Watch, only
from lamina.core.definitions import DEFINITION, names_only
from lamina.core.questions import Follow
from lamina.core.world import Change, Keep, everything
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind

Hear: TypeAlias = Callable[[Change], None]


class Subscription(NamedTuple):
    """What is followed on one cluster: the objects of a kind, all of them or those of one name or namespace."""

    kind: Kind
    keep: Keep
    metadata_only: bool
    named: str
    namespace: str = ""

    @property
    def subject(self) -> tuple[GroupKind, Keep, bool, str, str]:
        """What is followed, whatever version it is shown in and whatever else is said about the kind."""
        return self.kind.group_kind, self.keep, self.metadata_only, self.named, self.namespace

    def covers(self, other: Subscription) -> bool:
        """Say whether whatever is followed there is followed here, too."""
        return self.named in ("", other.named) and self.namespace in ("", other.namespace)

    def carries(self, other: Subscription) -> bool:
        """Say whether what is told of this tells whoever follows the other all they want."""
        return (
            self.kind == other.kind and self.covers(other) and (other.metadata_only or not self.metadata_only)
        )

    @property
    def fields(self) -> str:
        return f"metadata.name={self.named}" if self.named else ""


def is_about(watch: Watch, cluster: str) -> bool:
    """Say whether a watch is about a cluster."""
    return watch.cluster == cluster or watch.cluster == EVERYWHERE


def named(watches: Iterable[Watch]) -> frozenset[str]:
    """Return the clusters that these watches are about by name."""
    return frozenset(watch.cluster for watch in watches if watch.cluster not in ("", EVERYWHERE))


@lru_cache(maxsize=1024)
def watched(kinds: Kinds, watch: Watch) -> tuple[Kind, ...]:
    """Return the kinds that a watch is about; managers of clusters that are alike ask for the same, often."""
    among = kinds.versions() if watch.api_version else kinds
    return tuple(
        kind
        for kind in among
        if (not watch.api_version or kind.api_version == watch.api_version)
        and kind.can("list", "watch")
        and watch.selects(kind)
    )


def subscription(kind: Kind, watch: Watch) -> Subscription:
    """Return what is followed of one kind on behalf of a watch."""
    namespace = watch.namespace if kind.namespaced else ""
    return Subscription(kind, watch.keep, watch.metadata_only, watch.named, namespace)


@lru_cache(maxsize=1024)
def subscriptions(kinds: Kinds, watch: Watch) -> tuple[Subscription, ...]:
    """Return all that is followed on behalf of a watch; the same watch of the same kinds comes down to the same."""
    return tuple(subscription(kind, watch) for kind in watched(kinds, watch))


def subscribe(
    kinds: Kinds, watches: Sequence[tuple[Watch, Hear]], wanted: dict[Subscription, list[Hear]]
) -> Mapping[GroupKind, Subscription]:
    """Add what these watches want followed, and return through what each kind is seen."""
    for watch, hear in watches:
        for what in subscriptions(kinds, watch):
            wanted.setdefault(what, []).append(hear)
    return _sees(kinds, tuple(watch for watch, _ in watches))


@lru_cache(maxsize=1024)
def _sees(kinds: Kinds, watches: tuple[Watch, ...]) -> Mapping[GroupKind, Subscription]:
    sees: dict[GroupKind, Subscription] = {}
    for watch in watches:
        for what in subscriptions(kinds, watch):
            sees.setdefault(what.kind.group_kind, what)
    return MappingProxyType(sees)


@lru_cache(maxsize=1024)
def check(whose: str, kinds: Kinds, watches: tuple[Watch, ...]) -> None:
    """Raise ValueError where objects are watched that would not be seen: of a kind, the first watch says which are."""
    for cluster in {watch.cluster for watch in watches}:
        sees: dict[GroupKind, Subscription] = {}
        for watch in watches:
            for what in subscriptions(kinds, watch) if is_about(watch, cluster) else ():
                if not sees.setdefault(what.kind.group_kind, what).covers(what):
                    raise ValueError(
                        f"{whose} watches {what.kind.plural} in several places and would see those of the first "
                        "alone: watch all of them, and leave out those that are of no concern"
                    )


@lru_cache(maxsize=32)
def definitions(kinds: Kinds) -> tuple[Subscription, ...]:
    """Return what has to be followed to know which kinds there are."""
    selects = only(*DEFINITION)
    return tuple(Subscription(kind, names_only, False, "") for kind in kinds if selects(kind))


def ways(follow: Follow) -> Iterator[Subscription]:
    """Yield the ways to follow what a key asks for: all of its kind, and, if it is one, by its name."""
    whole = Subscription(follow.kind, everything, False, "")
    yield whole
    if follow.names is not None and len(follow.names) == 1:
        yield whole._replace(named=follow.names[0])
