"""
What several works have in common, and the marks that go on and off it together.

Each work that means an object has the mark of its record on it. Where a thousand
works mean one, and each set its own, each write would carry the marks of all, and
those who write at the same time would be in each other's way. So whoever sets its
mark sets those of all others that have the object on their list and lack one, and
whoever takes its own off takes off those of all others that let it go.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from lamina.core.world import World
from lamina.errors import SpecError
from lamina.families.manifestwork.names import APPLIED_WORK, WORK_VERSION
from lamina.families.manifestwork.spoke import api
from lamina.families.manifestwork.spoke.api import Resource
from lamina.families.manifestwork.spoke.names import Agent
from lamina.families.manifestwork.spoke.record import entries
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, OwnerRef, Ref


class Sharing(Struct, frozen=True):
    """Whose marks an object lacks, and whose it has and is to lose."""

    come: tuple[OwnerRef, ...] = ()
    go: frozenset[str] = frozenset()
    """By uid."""


ALONE = Sharing()
Shares: TypeAlias = Callable[[Resource, Kind, Obj], Sharing]
"""Says who else shares in an object of that name and kind; asked only where a mark is about to go on or off."""


def nobody_else(resource: Resource, kind: Kind, obj: Obj) -> Sharing:
    return ALONE


def sharing(agent: Agent, world: World, resource: Resource, kind: Kind, obj: Obj) -> Sharing:
    """Return whose marks an object lacks or has to no purpose, of the works of one agent."""
    marked = {owner["uid"] for owner in meta.owner_refs(obj)}
    come, go = list[OwnerRef](), set[str]()
    known = set[str]()
    for record in world.found(APPLIED_WORK, _by_uid, meta.uid(obj)):
        known.add(meta.uid(record))
        wanted = _wants(agent, world, record, resource, kind)
        if wanted is True and meta.uid(record) not in marked:
            come.append(meta.owner_ref(record))
        elif wanted is False and meta.uid(record) in marked:
            go.add(meta.uid(record))
    for record in _marking(world, obj, known):
        # It was marked for a work that took it off its list meanwhile, and which does not look after it any more.
        if _wants(agent, world, record, resource, kind) is False:
            go.add(meta.uid(record))
    return Sharing(tuple(come), frozenset(go))


def _marking(world: World, obj: Obj, known: Container[str]) -> Iterable[Obj]:
    """Yield the records whose marks an object has, but those that are known to list it."""
    for owner in meta.owner_refs(obj):
        if owner["uid"] not in known and owner["kind"] == APPLIED_WORK.kind:
            record = world.get(Ref(WORK_VERSION, APPLIED_WORK.kind, "", owner["name"]))
            if record is not None and meta.uid(record) == owner["uid"]:
                yield record


def _by_uid(record: Obj) -> Iterable[str]:
    return (entry.uid for entry in entries(record) if entry.uid)


def _wants(agent: Agent, world: World, record: Obj, resource: Resource, kind: Kind) -> bool | None:
    """Say whether the work of a record means an object as its own; None where only its own pass can tell."""
    spec = record.get("spec") or {}
    if (spec.get("agentID") or spec.get("hubHash")) != agent.id or spec.get("hubHash") != agent.hub:
        return None
    if meta.is_deleting(record):
        return False
    work = world.get(agent.work_ref(spec.get("manifestWorkName") or ""))
    if work is None or meta.is_deleting(work) or _has_completed(work):
        return None
    try:
        terms = api.terms(work)
    except SpecError:
        return None
    if not any(_is_about(one, resource, kind) for one in api.manifests(work)):
        return False
    if _could_not_apply(work, resource):
        # Whose mark is on what it cannot apply has it for good when the others go, and goes on failing.
        return None
    is_its_own = not terms.orphans(resource) and terms.config(resource).strategy.type != "ReadOnly"
    # Whoever applies in somebody's name asks first whether that one may.
    return True if is_its_own and terms.executor is None else None


def _has_completed(work: Obj) -> bool:
    """Say whether something of a work has completed, and may be left alone for that."""
    status = work.get("status") or {}
    manifests = (status.get("resourceStatus") or {}).get("manifests") or ()
    said = [status.get("conditions") or (), *(one.get("conditions") or () for one in manifests)]
    return any(one.get("type") == "Complete" for conditions in said for one in conditions)


def _could_not_apply(work: Obj, resource: Resource) -> bool:
    """Say whether a work has said of an object that it could not be applied."""
    for one in ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ():
        about = one.get("resourceMeta") or {}
        named = (about.get(key) or "" for key in ("group", "resource", "namespace", "name"))
        if tuple(named) == (resource.group, resource.resource, resource.namespace, resource.name):
            applied = conditions.find(one.get("conditions") or (), "Applied")
            if applied is not None and applied["status"] == "False":
                return True
    return False


def _is_about(manifest: object, resource: Resource, kind: Kind) -> bool:
    if not isinstance(manifest, Mapping) or manifest.get("kind") != kind.kind:
        return False
    metadata, group = manifest.get("metadata"), str(manifest.get("apiVersion") or "").rpartition("/")[0]
    if group != resource.group or not isinstance(metadata, Mapping) or metadata.get("name") != resource.name:
        return False
    return not kind.namespaced or (metadata.get("namespace") or "") == resource.namespace
