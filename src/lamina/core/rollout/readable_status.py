"""
The status of an owner, as far as its reader may read what it is made from.

What may not be read is not absent: targets of such a kind are Unknown, and are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from lamina.core.model.family import Family
from lamina.core.model.queries import Answers, Follow, Listed, Query, Refused
from lamina.core.model.refused_reads import RecordingWorld, Refusals
from lamina.core.model.state import State
from lamina.core.model.world import World
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.errors import Forbidden
from lamina.objects.types import GroupKind, Ref


def readable_status(
    family: Family, world: World, ref: Ref, answers: Answers, refused: Refusals
) -> OwnerStatus | tuple[Query, ...] | None:
    """
    Return the status of an owner from its objects as they are now, or what has to be asked first.

    None if it is of another family, or if it may not be read: `refused` gets the refusals.
    """
    recording = RecordingWorld(world, refused)
    if family.live_status is None:
        found = family.owner_status(recording, ref)
    else:
        status = family.live_status(recording, ref, _without_refusals(answers, refused))
        if isinstance(status, tuple):
            return tuple(replace(one, refusable=True) if isinstance(one, Follow) else one for one in status)
        found = status
    return _as_readable(found, refused, family.revision_kinds) if found is not None and refused else found


def reported_status(
    family: Family, world: World, ref: Ref, answers: Answers, refused: Refusals
) -> OwnerStatus | None:
    """
    Return the status of an owner as it and its revisions report it, without its objects as they are now.

    What they do not report, and is read from objects that a query was refused, is not known.
    """
    recording = RecordingWorld(world, refused)
    found = family.owner_status(recording, ref)
    for query, answer in answers.known.items():
        if (
            isinstance(query, Follow)
            and isinstance(answer, Refused)
            and query.kind.group_kind in recording.read
        ):
            refused.setdefault(query.kind.group_kind, Forbidden(answer.because))
    return _as_readable(found, refused, family.revision_kinds) if found is not None and refused else found


def _without_refusals(answers: Answers, refused: Refusals) -> Answers:
    """Return answers to the queries as the family states them; one that is refused has found nothing, and is recorded."""
    known = dict(answers.known)
    for query, answer in answers.known.items():
        if isinstance(query, Follow) and query.refusable:
            if isinstance(answer, Refused):
                refused[query.kind.group_kind] = Forbidden(answer.because)
                answer = Listed(())
            known[replace(query, refusable=False)] = answer
    return Answers(known)


def _as_readable(
    found: OwnerStatus, refused: Mapping[GroupKind, Forbidden], revision_kinds: tuple[GroupKind, ...]
) -> OwnerStatus:
    """Return a status without what is made of kinds that may not be read."""
    reasons = {kind: error.message for kind, error in refused.items()}
    are_revisions_read = not any(kind in reasons for kind in revision_kinds)
    targets = {
        name: _unread(reasons[one.kind]) if one.kind in reasons else one
        for name, one in found.targets.items()
    }
    if not are_revisions_read:
        targets = {name: replace(one, revision=0, is_read=False) for name, one in targets.items()}
    unread = replace(
        found,
        targets=targets,
        goal=found.goal if are_revisions_read else 0,
        unread=tuple(dict.fromkeys(reasons.values())),
        is_goal_read=are_revisions_read,
    )
    if not found.by_targets or found.state is State.DELETING:
        return unread
    return replace(unread, state=State.UNKNOWN, message="; ".join(unread.unread), has_ended=found.has_ended)


def _unread(because: str) -> TargetStatus:
    return TargetStatus(revision=0, state=State.UNKNOWN, message=because, is_read=False)
