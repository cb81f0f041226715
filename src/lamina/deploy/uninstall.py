"""
What an uninstall removes, in which order, and what forbids it.

The webhook goes first, because a webhook without a server refuses the writes that
follow. Finalizers are removed next, then the Secret of the webhook, and the Leases
last: until then they show a controller that is started again that it would not be
alone. Objects of users stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.admission.ca import Secrets
from lamina.core.model.family import Family
from lamina.deploy.roles import configuration_names
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.leader_election_lock import LeaseConfig

_LEASE_SECONDS = 60
"""How long a renewal counts where neither the Lease nor its cluster says it."""

Versions = Mapping[Ref, str]
_NONE: Versions = {}


class Installed(Struct, frozen=True, kw_only=True):
    """What an installation is found by: the namespace of its Leases and of its Secret, and the name of the Leases."""

    namespace: str
    lease_name: str

    @property
    def identity(self) -> str:
        """Return the holder of the originals' Leases that all replicas share."""
        return LeaseConfig(namespace=self.namespace, name=self.lease_name).deployment

    def is_lease(self, name: str) -> bool:
        """Say whether a Lease in the namespace is one of ours: of a shard, or of a phase class and its shards."""
        return bool(re.fullmatch(rf"{re.escape(self.lease_name)}(-.+-phase-class)?(-\d+)?", name))


class Release(Struct, frozen=True):
    """The finalizers that an object loses."""

    ref: Ref
    removed: tuple[str, ...]
    is_deleting: bool = False


class Reading(Struct, frozen=True, kw_only=True):
    """The Leases that forbid an uninstall while they are held, as they were read at one time."""

    controllers: Sequence[Obj] = ()
    """Those in the namespace of the installation."""
    originals: Sequence[Obj] = ()
    agents: Sequence[tuple[Obj, Obj]] = ()
    """Pairs of a cluster and its Lease."""


def held(read: Reading, installed: Installed, now: datetime, before: Versions) -> list[str]:
    """Return a sentence for each Lease that is held; `before` has the versions of an earlier reading."""
    return [
        *holders(read.controllers, installed, now, before),
        *agents_alive(read.agents, now, before),
        *originals(read.originals, installed, now, before),
    ]


def versions(read: Reading, installed: Installed) -> dict[Ref, str]:
    """Return the versions of the Leases with a holder: one that looks expired may be renewed by another clock."""
    leases = [
        *(one for one in read.controllers if installed.is_lease(meta.name(one))),
        *(one for one in read.originals if _holder(one) != installed.identity),
        *(lease for _, lease in read.agents),
    ]
    return {meta.ref(one): meta.resource_version(one) for one in leases if _holder(one)}


def holders(
    leases: Iterable[Obj], installed: Installed, now: datetime, before: Versions = _NONE
) -> Iterator[str]:
    """Yield a sentence for each Lease of a controller that a process holds."""
    for lease in leases:
        if installed.is_lease(meta.name(lease)) and _holder(lease) and _is_live(lease, None, now, before):
            yield f"{meta.ref(lease)} is held by {_holder(lease)}"


def originals(
    leases: Iterable[Obj], installed: Installed, now: datetime, before: Versions = _NONE
) -> Iterator[str]:
    """Yield a sentence for each Lease of an original that another process than our controllers holds."""
    for lease in leases:
        holder = _holder(lease)
        if holder and holder != installed.identity and _is_live(lease, None, now, before):
            yield f"{meta.ref(lease)} is held by {holder}"


def held_for_originals(leases: Iterable[Obj], installed: Installed) -> tuple[Ref, ...]:
    """Return the Leases of originals that our controllers held last; they let them expire."""
    return tuple(meta.ref(lease) for lease in leases if _holder(lease) == installed.identity)


def agents_alive(leases: Iterable[tuple[Obj, Obj]], now: datetime, before: Versions = _NONE) -> Iterator[str]:
    """Yield a sentence for each cluster whose agent renews its Lease; given are pairs of a cluster and its Lease."""
    for cluster, lease in leases:
        seconds = (cluster.get("spec") or {}).get("leaseDurationSeconds") or _LEASE_SECONDS
        if _is_live(lease, seconds, now, before):
            yield f"the agent of {meta.name(cluster)} renews {meta.ref(lease)}"


def _holder(lease: Obj) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _is_live(lease: Obj, seconds: int | None, now: datetime, before: Versions) -> bool:
    """Say whether a Lease has not expired, or was written since it was read before."""
    version = meta.resource_version(lease)
    if before.get(meta.ref(lease), version) != version:
        return True
    spec = lease.get("spec") or {}
    renewed, lasts = moment(spec.get("renewTime")), seconds or spec.get("leaseDurationSeconds")
    return renewed is not None and now < renewed + timedelta(seconds=lasts or _LEASE_SECONDS)


def configurations(families: Sequence[Family]) -> tuple[Ref, ...]:
    """Return the webhook configurations of families."""
    version = "admissionregistration.k8s.io/v1"
    return tuple(
        Ref(version, "ValidatingWebhookConfiguration", "", name) for name in configuration_names(families)
    )


def secret(installed: Installed) -> Ref:
    """Return the Secret with the webhook's certificate authority."""
    return Secrets(namespace=installed.namespace).ref


def own_leases(leases: Iterable[Obj], installed: Installed) -> tuple[Ref, ...]:
    """Return the Leases of the controllers, held or not."""
    return tuple(meta.ref(lease) for lease in leases if installed.is_lease(meta.name(lease)))


def is_finalizer(families: Sequence[Family]) -> Callable[[str], bool]:
    """Return a function that says whether a finalizer is one of these families."""
    return lambda finalizer: any(family.is_finalizer(finalizer) for family in families)


def releases(objects: Iterable[Obj], is_ours: Callable[[str], bool]) -> Iterator[Release]:
    """Yield what objects lose that have finalizers of ours."""
    for obj in objects:
        if removed := tuple(one for one in meta.finalizers(obj) if is_ours(one)):
            yield Release(meta.ref(obj), removed, meta.is_deleting(obj))


def patch_of(obj: Obj, removed: Sequence[str]) -> Made | None:
    """Return the patch that removes finalizers from this version of an object; None where it has none of them."""
    present = meta.finalizers(obj)
    left = [one for one in present if one not in removed]
    if len(left) == len(present):
        return None
    return {"metadata": {"finalizers": left or None, "resourceVersion": meta.resource_version(obj)}}


def remainder(objects: Iterable[Obj], families: Sequence[Family]) -> list[str]:
    """Return the definitions of families that are installed, and how many objects they have."""
    counted = Counter(meta.group_kind(obj) for obj in objects)
    found: list[str] = []
    for family in families:
        for definition in family.definitions():
            spec = definition["spec"]
            number = sum(
                count
                for (group, kind), count in counted.items()
                if (group, kind) == (spec["group"], spec["names"]["kind"])
            )
            if number:
                found.append(f"{number} {meta.name(definition)}")
    return found
