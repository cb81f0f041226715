"""What there is to know about one work on its cluster: what it asks for, what was recorded of it, what is served."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from msgspec import Struct

from lamina.core.questions import Absent, Answers, Follow, Found, Listed, Question, Read, Refused, Unserved
from lamina.core.world import Change, World, whole
from lamina.families.manifestwork.names import APPLIED_WORK, WORK
from lamina.families.manifestwork.spoke import api
from lamina.families.manifestwork.spoke.api import Terms
from lamina.families.manifestwork.spoke.manifest import Manifest, resolved
from lamina.families.manifestwork.spoke.names import HUB, Agent
from lamina.families.manifestwork.spoke.ownership import marked_anew
from lamina.families.manifestwork.spoke.said import Said, said
from lamina.families.manifestwork.spoke.sharing import Shares, nobody_else, sharing
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

_KINDS = "\0kinds"
_NAMESPACE = GroupKind("", "Namespace")


class View(Struct, frozen=True, kw_only=True):
    """One work."""

    agent: Agent
    work: Obj
    record: Obj | None
    terms: Terms
    manifests: tuple[Manifest, ...]
    kinds: Kinds
    watched: frozenset[tuple[str, str]]
    """The kinds that are watched; of others, objects are looked at now and then."""

    said: Said
    """What is said of its manifests so far."""
    shares: Shares = nobody_else

    @property
    def generation(self) -> int:
        return meta.generation(self.work)

    @property
    def status(self) -> Obj:
        return self.work.get("status") or {}


def gather(agent: Agent, world: World, ref: Ref) -> View | None:
    """Return what there is to know about a work, or None if it is not there."""
    work = world.get(ref)
    if work is None or (ref.group, ref.kind) != tuple(WORK) or ref.namespace != agent.cluster:
        return None
    terms = api.terms(work)
    return View(
        agent=agent,
        work=work,
        record=world.get(agent.record_ref(ref.name)),
        terms=terms,
        manifests=resolved(api.manifests(work), terms, world.kinds),
        kinds=world.kinds,
        watched=_watched(agent, world),
        said=said(work.get("status") or {}),
        shares=partial(sharing, agent, world),
    )


def with_kinds(obj: Obj) -> Obj:
    """Keep a work, and which kinds its manifests are of, found out once."""
    found = {
        (str(one.get("apiVersion")), str(one.get("kind")))
        for one in api.manifests(obj)
        if isinstance(one, Mapping)
    }
    return {**whole(obj), _KINDS: frozenset(found)}


def _by_kinds(work: Obj) -> tuple[str, Hashable]:
    return meta.namespace(work), work.get(_KINDS) or frozenset()


def _watched(agent: Agent, world: World) -> frozenset[tuple[str, str]]:
    # Works are many, and alike: what each of them needs is counted as they change, not in each pass.
    alike = world.on(HUB).alike(WORK, _by_kinds, agent.cluster)
    used: set[tuple[str, str]] = set()
    for kinds in alike:
        used |= cast(frozenset[tuple[str, str]], kinds)
    if len(used) > agent.options.watches:
        used = set(sorted(used)[: agent.options.watches])
    return frozenset(used)


def of_its_work(agent: Agent, world: World, change: Change) -> Iterable[Ref]:
    """A change to the record of a work concerns that work."""
    name = change.ref.name
    if change.kind.group_kind != APPLIED_WORK or not name.startswith(f"{agent.hub}-"):
        return ()
    return (agent.work_ref(name.removeprefix(f"{agent.hub}-")),)


# What is seen of an object


class Seen(Struct, frozen=True, kw_only=True):
    """What is known of an object: itself, or that it is not there, or why nobody knows; or what has to be asked."""

    obj: Obj | None = None
    unknown: str = ""
    asks: tuple[Question, ...] = ()
    is_heard_of: bool = True
    """Whether we are told when it changes."""
    looks_absent: bool = False
    """Whether it is not among those that are watched, which is yet to be looked up for real."""


def seen(kind: Kind, ref: Ref, answers: Answers, *, record: str, watches: bool) -> Seen:
    """
    Return what is known of an object, which may have the mark of this record.

    One that looks as if it were not there is looked up for real: what may not be
    listed looks like that too.
    """
    read = Read(ref, whole=True, refusable=True)
    watches = watches and kind.can("list", "watch")
    if watches:
        match answers.get(follow := following(kind, ref, record)):
            case None:
                return Seen(asks=(follow,))
            case Listed(objects=(obj, *_)):
                return Seen(obj=obj)
            case _:
                pass
    match answers.get(read):
        case None:
            return Seen(asks=(read,), looks_absent=watches)
        case Found(obj=obj):
            return Seen(obj=obj, is_heard_of=False)
        case Absent() | Unserved():
            return Seen(is_heard_of=watches)
        case Refused(because=because):
            return Seen(unknown=because, is_heard_of=False)
        case answer:
            raise AssertionError(f"a look at an object is answered {answer}")


def following(kind: Kind, ref: Ref, record: str = "") -> Follow:
    """Return the question that has us told when an object changes, its marks of other records aside."""
    return Follow(
        kind=kind,
        namespaces=(ref.namespace,) if kind.namespaced else None,
        names=(ref.name,),
        parties=marked_anew,
        party=record,
    )


def home_of(kinds: Kinds, namespace: str) -> tuple[Question, ...]:
    """Return the question that has us told when a namespace comes or goes."""
    kind = kinds.preferred(_NAMESPACE)
    return (following(kind, kind.ref("", namespace)),) if kind is not None and namespace else ()


def share(value: Any) -> float:
    """Return a number from nothing to one that is always the same for a value, and not for others."""
    return int(digest(value)[:8], 16) / 0xFFFFFFFF
