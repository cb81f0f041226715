"""
The sets of one lineage, as plans for one of them depend on the others.

No object is deleted that the latest revision contains, or the newest one that is available
or has succeeded. The sets are read live before anything is deleted: a cache may lack one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct, field

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers, Read
from lamina.core.model.world import World
from lamina.core.phases import archive
from lamina.core.phases.contents import Contents
from lamina.core.phases.live_revisions import linked_to, live_revisions
from lamina.core.phases.manifest import ObjectKey, reported
from lamina.core.phases.owner import Siblings
from lamina.families.objectset import lineage
from lamina.families.objectset.contents import contents, slices_of
from lamina.families.objectset.reporting import read_controller_of
from lamina.families.objectset.set_facts import facts
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Obj


class Lineage(Struct, frozen=True, kw_only=True):
    """The other sets of a lineage, oldest first, and what of them a set depends on."""

    others: tuple[Obj, ...] = ()
    slices: Mapping[str, Obj] = field(default_factory=dict)
    """The slices of the set and of the others, by name."""
    siblings: Siblings = Siblings()
    taken: frozenset[tuple[ObjectKey, str]] = frozenset()
    """The objects that newer sets report as theirs, each with its place."""
    replaced: frozenset[ObjectKey] = frozenset()
    """Those that available ones report at the places that the set has for them."""
    is_superseded: bool = False
    """Whether one of them is an object of the set, in whatever phase."""
    unrelated: Callable[[], frozenset[str]] = frozenset
    """Returns the uids of the sets of the namespace that are of other lineages, for a set that has ended."""


def gather(
    world: World, obj: Obj, shown: Collection[ObjectKey] | None = None, place: str = "", cluster: str = ""
) -> Lineage:
    """
    Return the lineage of a set.

    `shown` are the objects at a place that a plan follows; those that it does not and that a newer
    live set contains are read live, because that set may have taken one since its last report.
    """
    others = lineage.siblings(world, obj)
    newer = [one for one in others if lineage.is_live(one) and lineage.number(one) > lineage.number(obj)]
    slices, kinds = slices_of(world, (obj, *others)), world.on(cluster).kinds
    own = contents(obj, slices, kinds) if newer else Contents({})
    theirs = [(one, contents(one, slices, kinds)) for one in newer]
    taken = frozenset(
        (key, next((at for at in (has.place(key), own.place(key)) if at is not None), place))
        for one, has in theirs
        for key in read_controller_of(one)
    )
    served = {key for one in newer if lineage.is_available(one) for key in read_controller_of(one)}
    shared = (
        reported(key, kinds)
        for key, where in own.places.items()
        if shown is not None and where == place and key not in shown and not lineage.has_succeeded(obj)
        if any(has.may_contain(key, place, ()) for _, has in theirs)
    )
    ended = (one for one in others if not lineage.is_live(one))
    namespace = meta.group_kind(obj), meta.namespace(obj)
    return Lineage(
        others=others,
        slices=slices,
        siblings=Siblings(
            numbers=lineage.controller_numbers(world, others),
            ended=frozenset(lineage.controller_numbers(world, ended)),
            taken=frozenset(key for key, where in taken if where == place),
            links=lambda live: any(lineage.are_linked(one, live) for one in (obj, *others)),
            shared=tuple(Read(one.ref(cluster)) for one in shared if one.kind is not None),
        ),
        taken=taken,
        replaced=frozenset(key for key, where in taken if key in served and own.place(key) == where),
        is_superseded=any(own.place(key) == where for key, where in taken),
        # Until it is called, the cache may get another set of the lineage.
        unrelated=lambda: frozenset(
            map(meta.uid, () if lineage.is_live(obj) else world.every(*namespace))
        ).difference(map(meta.uid, (obj, *others, *lineage.siblings(world, obj)))),
    )


def protected(
    obj: Obj,
    own: Iterable[tuple[ObjectKey, str]],
    answers: Answers,
    known: Lineage,
    kinds: Kinds,
    target: Kinds,
    given_up: Collection[ObjectKey],
) -> frozenset[ObjectKey] | Plan:
    """
    Return which of its own objects, each with its place, a set must not delete, or the plan that asks which.

    What it has `given_up` waits for no set that is paused. `kinds` are those of the cluster of the set, and `target` those of the cluster of the objects.
    """
    kind = kinds.preferred(meta.group_kind(obj))
    if kind is None:
        # It is not served any more, so there is no other set.
        return frozenset()
    # What has been archived stays so, and only links others.
    over = [one for one in known.others if lineage.is_archived(one)]
    there = live_revisions(kind, meta.namespace(obj), {*known.unrelated(), *map(meta.uid, over)}, answers)
    if isinstance(there, Plan):
        return there
    sets = [*over, *there]
    related = linked_to(obj, lambda one: (each for each in sets if lineage.are_linked(one, each)))
    # The set itself is live where the cache does not know yet that its archival was taken back.
    itself = [one for one in sets if meta.uid(one) == meta.uid(obj)]
    left = [one for one in (*itself, *related) if not meta.is_deleting(one)]
    return archive.protected(own, facts(left, known.slices, target), meta.uid(obj), given_up)


def protected_from_phase(
    set_kind: GroupKind,
    phase: Obj,
    own: Iterable[tuple[ObjectKey, str]],
    answers: Answers,
    slices: Mapping[str, Obj],
    kinds: Kinds,
    target: Kinds,
) -> frozenset[ObjectKey] | Plan:
    """
    Return which of its own objects an ObjectSetPhase without a set must not delete, or the plan that asks which.

    Which lineage it was of is not known any more, so that those of all sets of its namespace count.
    """
    kind = kinds.preferred(set_kind)
    if kind is None:
        return frozenset()
    there = live_revisions(kind, meta.namespace(phase), (), answers)
    if isinstance(there, Plan):
        return there
    left, listed = [one for one in there if not meta.is_deleting(one)], list(own)
    kept = frozenset[ObjectKey]()
    for one in left:
        related = linked_to(one, lambda this: (each for each in left if lineage.are_linked(this, each)))
        kept |= archive.protected(listed, facts((one, *related), slices, target), meta.uid(phase))
    return kept
