"""
Objects that several works apply: their owner references are set and removed together.

The record of each work is an owner of the object. Each write carries the owner
references of all, so a thousand works that set their own would conflict a thousand
times. A work that sets its own therefore also sets those of the other records that list
the object, and one that removes its own also removes those of works that drop it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from lamina.core.model.world import World
from lamina.errors import SpecError
from lamina.families.manifestwork.agent import api
from lamina.families.manifestwork.agent.api import Resource
from lamina.families.manifestwork.agent.applied_manifestwork import entries, resource_of
from lamina.families.manifestwork.agent.labels import HUB, Agent
from lamina.families.manifestwork.agent.manifest import WAITS
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, OwnerRef


class Sharing(Struct, frozen=True):
    """The owner references that an object lacks, and those that it is to lose."""

    add: tuple[OwnerRef, ...] = ()
    drop: frozenset[str] = frozenset()
    """By uid."""


UNSHARED = Sharing()


class Sharers(Struct, frozen=True, kw_only=True, dict=True):
    """
    The records on a cluster and the works of its agent, from which it follows which of them share an object.

    They are gathered as they are. Only an owner reference that is about to be set or removed
    depends on them, so they are searched then, and not in each pass.
    """

    agent: Agent
    records: tuple[Obj, ...] = ()
    works: tuple[Obj, ...] = ()
    listing: Mapping[str, tuple[Obj, ...]] = field(default_factory=dict)
    """The records that list an object, by its uid."""

    @cached_property
    def _records(self) -> Mapping[str, Obj]:
        return {meta.name(one): one for one in self.records}

    @cached_property
    def _works(self) -> Mapping[str, Obj]:
        return {meta.name(one): one for one in self.works}

    def sharing(self, resource: Resource, kind: Kind, obj: Obj | None) -> Sharing:
        """Return the owner references that a live object lacks or does not need, of the works of one agent."""
        if obj is None:
            return UNSHARED
        owning = {owner["uid"] for owner in meta.owner_refs(obj)}
        add, drop = list[OwnerRef](), set[str]()
        known = set[str]()
        for record in self.listing.get(meta.uid(obj), ()):
            known.add(meta.uid(record))
            wanted = self._wants(record, resource, kind)
            if wanted is True and meta.uid(record) not in owning:
                add.append(meta.owner_ref(record))
            elif wanted is False and meta.uid(record) in owning:
                drop.add(meta.uid(record))
        for owner in meta.owner_refs(obj):
            # The work set its owner reference, and has removed the object from its record since.
            if owner["uid"] not in known and owner["kind"] == APPLIED_WORK.kind:
                unlisted = self._records.get(owner["name"])
                if unlisted is None or meta.uid(unlisted) != owner["uid"]:
                    continue
                if self._wants(unlisted, resource, kind) is False:
                    drop.add(owner["uid"])
        return Sharing(tuple(add), frozenset(drop))

    def _wants(self, record: Obj, resource: Resource, kind: Kind) -> bool | None:
        """Say whether the work of a record is to own an object; None where only a reconcile of that work can decide it."""
        spec, agent = record.get("spec") or {}, self.agent
        if (spec.get("agentID") or spec.get("hubHash")) != agent.id or spec.get("hubHash") != agent.hub:
            return None
        if meta.is_deleting(record):
            return False
        work = self._works.get(spec.get("manifestWorkName") or "")
        if work is None or meta.is_deleting(work) or _has_completed(work):
            return None
        try:
            terms = api.terms(work)
        except SpecError:
            return None
        if not any(is_about(one, resource, kind) for one in api.manifests(work)):
            return False
        if could_not_apply(work, resource):
            # It would own what it cannot apply once the others are gone, and go on failing.
            return None
        is_its_own = not terms.orphans(resource) and terms.config(resource).strategy.type != "ReadOnly"
        # A work with an executor needs an access review first.
        return True if is_its_own and terms.executor is None else None


def sharers(agent: Agent, world: World, record: Obj | None) -> Sharers:
    """Return the other owners of the objects that a record lists; nothing where none of them was observed yet."""
    uids = _by_uid(record) if record is not None else ()
    if not uids:
        return Sharers(agent=agent)
    return Sharers(
        agent=agent,
        records=tuple(world.every(APPLIED_WORK)),
        works=tuple(world.on(HUB).every(WORK, agent.cluster)),
        listing={uid: tuple(world.by_index(APPLIED_WORK, _by_uid, uid)) for uid in uids},
    )


def _by_uid(record: Obj) -> set[str]:
    return {entry.uid for entry in entries(record) if entry.uid}


def _has_completed(work: Obj) -> bool:
    """Say whether a manifest of a work has completed, so that it is not applied any more."""
    status = work.get("status") or {}
    manifests = (status.get("resourceStatus") or {}).get("manifests") or ()
    reported = [status.get("conditions") or (), *(one.get("conditions") or () for one in manifests)]
    return any(one.get("type") == "Complete" for conditions in reported for one in conditions)


def could_not_apply(work: Obj, resource: Resource) -> bool:
    """Say whether a work reports of an object that it could not be applied; one that waits for it may apply it yet."""
    for one in ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ():
        if resource_of(one.get("resourceMeta") or {}) == resource:
            applied = conditions.find(one.get("conditions") or (), "Applied")
            if applied is not None and applied["status"] == "False":
                message = applied.get("message", "")
                return not message.endswith(WAITS)
    return False


def is_about(manifest: object, resource: Resource, kind: Kind) -> bool:
    """Say whether a manifest, as it was written, is about an object."""
    if not isinstance(manifest, Mapping) or manifest.get("kind") != kind.kind:
        return False
    metadata, group = manifest.get("metadata"), str(manifest.get("apiVersion") or "").rpartition("/")[0]
    if group != resource.group or not isinstance(metadata, Mapping) or metadata.get("name") != resource.name:
        return False
    return not kind.namespaced or (metadata.get("namespace") or "") == resource.namespace
