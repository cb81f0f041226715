"""
Confirmation by live reads, before a write that cannot be taken back.

A cache may be stale, and most writes are safe all the same: the server refuses
a write to an outdated version. A creation has no version, and an abort or a
pruned revision cannot be undone. What such a write depends on is therefore read
from the server first: few objects one by one, many of one kind and namespace by
one list. An object is confirmed when the server has the very version that was
cached, and outdated when it has another one or none.

Where more than a tolerated number of facts must hold, only as many are read as
that takes: a few at first, more for each answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from lamina.core.model.queries import Answer, Answers, Found, Listed, Read, ReadAll
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj

Name = TypeVar("Name")
LiveRead: TypeAlias = Read | ReadAll

_FEW = 16
"""How many objects of one kind and namespace are read one by one; more are listed."""
_BATCH = 8
"""How many facts are read at first, and how many refuted ones show that the cache is stale."""


class Cached(NamedTuple):
    """An object as a cache has it; without a kind it is never listed."""

    obj: Obj
    kind: Kind | None = None


class Confirmation(Struct, Generic[Name], frozen=True):
    """The queries that are still to be asked, what is known to be outdated, and whether too few facts hold."""

    pending: tuple[LiveRead, ...] = ()
    outdated: frozenset[Name] = frozenset()
    too_few: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Say whether everything was read and is as it was cached."""
        return not (self.pending or self.outdated or self.too_few)


def confirm(objects: Mapping[Name, Cached], answers: Answers) -> Confirmation[Name]:
    """Return which objects are outdated, as far as it was answered, and what has still to be read."""
    if not objects:
        return Confirmation()
    reads = _live_reads(objects)
    asked = dict.fromkeys(reads.values())
    versions = {read: _versions(answer) for read in asked if (answer := answers.get(read)) is not None}
    return Confirmation(
        pending=tuple(read for read in asked if read not in versions),
        outdated=frozenset(
            name
            for name, read in reads.items()
            if read in versions and _version(objects[name].obj) not in versions[read]
        ),
    )


def _live_reads(objects: Mapping[Name, Cached]) -> dict[Name, LiveRead]:
    places = {name: (one.kind, meta.namespace(one.obj)) for name, one in objects.items()}
    counts = Counter(places.values())
    reads: dict[Name, LiveRead] = {}
    for name, (kind, namespace) in places.items():
        is_listed = kind is not None and counts[kind, namespace] > _FEW
        reads[name] = ReadAll(kind, namespace) if is_listed and kind else Read(meta.ref(objects[name].obj))
    return reads


def _versions(answer: Answer) -> set[tuple[str, str]]:
    match answer:
        case Found(obj=found):
            return {_version(found)}
        case Listed(objects=there):
            return {_version(one) for one in there}
        case _:
            return set()


def _version(obj: Obj) -> tuple[str, str]:
    return meta.uid(obj), meta.resource_version(obj)


# What has to be true of a live object


def has_same_spec(live: Obj, cached: Obj) -> bool:
    """Say whether an object that was read live is the cached one, with the same spec."""
    return meta.uid(live) == meta.uid(cached) and meta.generation(live) == meta.generation(cached)


def is_current(live: Obj, cached: Obj) -> bool:
    """Say whether an object that was read live is the cached one, with the same spec, and is not being deleted."""
    return has_same_spec(live, cached) and not meta.is_deleting(live)


class LiveCheck(Struct, frozen=True, kw_only=True):
    """A cached object, and what has to be true of it once it is read live: its metadata, or all of it if `whole`."""

    cached: Obj
    holds: Callable[[Obj, Obj], bool] = is_current
    """A function of the live object and of the cached one."""
    whole: bool = False

    @property
    def read(self) -> Read:
        return Read(meta.ref(self.cached), self.whole)


def check_live(checks: Iterable[LiveCheck], answers: Answers) -> Confirmation[str]:
    """Return the uids of the objects of which a check does not hold, and what has still to be read."""
    found = [(one, answers.get(one.read)) for one in checks]
    return Confirmation(
        pending=tuple(one.read for one, answer in found if answer is None),
        outdated=frozenset(
            meta.uid(one.cached)
            for one, answer in found
            if answer is not None and not (isinstance(answer, Found) and one.holds(answer.obj, one.cached))
        ),
    )


def lists_the_same(live: Iterable[Obj], cached: Iterable[Obj], owner: str) -> bool:
    """Say whether a cache has exactly those objects of a live list that the owner of this uid controls."""
    return {meta.uid(one) for one in live if meta.is_controlled_by(one, owner)} == set(map(meta.uid, cached))


class Fact(Struct, frozen=True):
    """Something that follows from a few objects, and whether it does once they are read."""

    reads: tuple[Read, ...]
    holds: Callable[[], bool]


def confirm_more_than(
    tolerated: int, facts: Iterable[Fact], answers: Answers, *, refuted: int = 0
) -> Confirmation[Any]:
    """
    Return whether more facts hold than are tolerated, and which reads that still takes.

    `refuted` counts what the cache suggested and reads have refuted. A few are
    read at first, and more for each fact that holds or was refuted: a stale cache
    shows soon, and a current one needs few rounds. Too many that were refuted end
    the check as too few that can hold do.
    """
    confirmed, unread = 0, list[tuple[Read, ...]]()
    for fact in facts:
        if any(one not in answers for one in fact.reads):
            unread.append(fact.reads)
        elif fact.holds():
            confirmed += 1
    needed = tolerated + 1 - confirmed
    if needed <= 0:
        return Confirmation()
    if needed > len(unread) or refuted >= _BATCH:
        return Confirmation(too_few=True)
    batch = unread[: min(max(needed, refuted), max(confirmed, _BATCH))]
    return Confirmation(
        pending=tuple(dict.fromkeys(one for few in batch for one in few if one not in answers))
    )
