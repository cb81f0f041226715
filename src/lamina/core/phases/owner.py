"""The owner of the objects of phases: a revision, or what reconciles one phase of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.core.health.probe_spec import Probes
from lamina.core.live_check import LiveCheck
from lamina.core.model.queries import Answers, Found, Read
from lamina.core.ownership.handover import Adoption, Holder, holder
from lamina.core.ownership.owner_record import OWNER_REFERENCES, OwnerRecord, controller_uid
from lamina.core.phases.conventions import Conventions
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.objects import meta
from lamina.objects.types import Obj, OwnerRef, Ref


class Siblings(Struct, frozen=True, kw_only=True):
    """The other revisions of the same thing, as far as a decision about an object depends on them."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    """Their numbers by uid, also by those of what reconciles their phases; 0 as long as one has none."""
    ended: frozenset[str] = frozenset()
    """Those of the revisions that are archived or being deleted; what they control is taken from them."""
    taken: frozenset[ObjectKey] = frozenset()
    """The objects that newer revisions report as theirs; where one is missing, it is theirs to create."""
    links: Callable[[Obj], bool] = lambda live: False
    """Says whether what was read live is one of them, though a cache may lack it, or reconciles a phase of one."""
    shared: tuple[Read, ...] = ()
    """Live reads of objects in other phases of a revision that never succeeded, which a newer one may have."""


class PhaseOwner(Struct, frozen=True, kw_only=True):
    """Everything that a decision about an object depends on, besides the object."""

    obj: Obj
    revision: int
    conventions: Conventions
    siblings: Siblings = Siblings()
    adoption: Adoption | None = None
    """What it may take over, whatever its manifests say; None for what each of them says."""
    probes: Probes = Probes()
    checks: tuple[LiveCheck, ...] = ()
    """What live reads have to confirm before an object is created or taken over."""
    is_paused: bool = False
    is_superseded: bool = False
    """Whether a newer revision controls an object that this one contains."""
    creates: bool = True
    """Whether objects are created and taken over; a superseded revision that never succeeded gains none."""
    record: OwnerRecord = OWNER_REFERENCES
    cluster: str = ""
    confines: bool = False
    """Whether objects have to be in the namespace of the owner."""

    @property
    def uid(self) -> str:
        return meta.uid(self.obj)

    def controls(self, live: Obj | None) -> bool:
        return live is not None and self.record.controls(live, self.uid)

    def controller(self, live: Obj) -> OwnerRef | None:
        """Return the owner that controls an object, also where it is recorded as that of another cluster."""
        other = OWNER_REFERENCES if self.record.annotation else OwnerRecord(self.conventions.owners)
        return self.record.controller(live) or other.controller(live)

    def holder(self, live: Obj | None) -> Holder:
        """Return which controller an object has, relative to this owner."""
        found = holder(live, self.uid, self.siblings.numbers, controller=controller_uid(self.record))
        if live is None or found is not Holder.NONE:
            return found
        if self.controller(live) is not None:
            return Holder.OTHER
        return Holder.SIBLING if self._is_released(live) else Holder.NONE

    def number_of(self, live: Obj) -> int:
        """
        Return the number of the revision that has an object; one that is archived or being deleted is older than any.

        The number on the object, which anything may edit, counts only where that of its controller is not known.
        """
        uid = controller_uid(self.record)(live)
        if uid in self.siblings.ended or (not uid and self._is_released(live)):
            return 0
        return self.siblings.numbers.get(uid) or self.conventions.written_by(live)

    def unknown_controller(self, live: Obj | None) -> Read | None:
        """Return the live read of a controller that is no known revision, and that may be one that a cache lacks."""
        if live is None or self.holder(live) is not Holder.OTHER:
            return None
        found, group = self.record.controller(live), meta.group_kind(self.obj).group
        if found is None or meta.group_kind(found).group != group:
            return None
        ref = Ref(found["apiVersion"], found["kind"], meta.namespace(self.obj), found["name"])
        return Read(ref, whole=True)

    def is_shared(self, live: Obj) -> bool:
        """Say whether a sibling is an owner of an object."""
        return any(self.record.has(live, uid) for uid in self.siblings.numbers)

    def _is_released(self, live: Obj) -> bool:
        """
        Say whether a revision that is gone had an object, and this one or an older sibling had it before.

        The garbage collector removes the reference of an owner that is deleted in the foreground. Where
        a controller was removed by hand, the number is that of the owner, and the object is left alone.
        """
        if self.controller(live) is not None or not self.conventions.is_marked(live):
            return False
        wrote, siblings = self.conventions.written_by(live), self.siblings
        alive = {uid: number for uid, number in siblings.numbers.items() if uid not in siblings.ended}
        if self.record.has(live, self.uid):
            return wrote not in (0, self.revision, *alive.values())
        had = (number for uid, number in alive.items() if number == wrote or self.record.has(live, uid))
        return self.is_shared(live) and all(number < self.revision for number in had)


def is_handed_over(owner: PhaseOwner, live: Obj | None) -> bool:
    """Say whether a newer revision controls an object."""
    return (
        live is not None and owner.number_of(live) > owner.revision and owner.holder(live) is Holder.SIBLING
    )


def superseded(
    owner: PhaseOwner,
    wanted: Iterable[Manifest],
    lives: Mapping[ObjectKey, Obj],
    *,
    elsewhere: bool = False,
    succeeded: bool = False,
) -> PhaseOwner:
    """
    Return an owner that knows whether a newer revision controls one of these objects, or did until it was deleted.

    `elsewhere` says whether one has an object of another phase. A superseded revision gains
    objects only if it has `succeeded` before.
    """
    taken = owner.siblings.taken
    replaced = elsewhere or any(
        is_handed_over(owner, lives.get(one.key)) or (one.key not in lives and one.key in taken)
        for one in wanted
    )
    return replace(owner, is_superseded=replaced, creates=not replaced or succeeded)


def has_lost(owner: PhaseOwner, answers: Answers) -> bool:
    """Say whether a newer revision has an object of another phase, by the live reads of `owner.siblings.shared`."""
    found = map(answers.get, owner.siblings.shared)
    return any(isinstance(one, Found) and is_handed_over(owner, one.obj) for one in found)


def has_unknown_sibling(owner: PhaseOwner, live: Obj | None, answers: Answers) -> bool:
    """Say whether a revision that a cache lacks controls an object, by the live read of `owner.unknown_controller`."""
    read = owner.unknown_controller(live)
    found = answers.get(read) if read is not None else None
    if live is None or not isinstance(found, Found) or not owner.siblings.links(found.obj):
        return False
    # It is read by name: one that was created again controls nothing of the one before.
    return meta.uid(found.obj) == controller_uid(owner.record)(live)
