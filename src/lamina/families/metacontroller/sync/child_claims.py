"""
Which revision claims which child: as the stored revisions say, and as it is written before a child is touched.

Each child is desired as the revision that claims it desires it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from lamina.core.model.plan import Action, Create, Stage, change, delete
from lamina.core.rollout.claims import Claims, resolve
from lamina.core.rollout.history import history, prune
from lamina.families.metacontroller.compile import ChildRule
from lamina.families.metacontroller.sync.desired import Desired, DesiredIndex, Name
from lamina.families.metacontroller.sync.revisions import (
    ClaimingRevision,
    ParentRevisions,
    has_annotations,
    revision_object,
)
from lamina.families.metacontroller.sync.view import View
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import GroupKind, Obj


def stored_claims(
    rules: Mapping[GroupKind, ChildRule], goal: DesiredIndex, *in_use: ClaimingRevision
) -> Claims[Name]:
    """Return the claims that are stored, less those of children that are not desired any more."""
    rolling = {kind for kind, rule in rules.items() if rule.rolling}
    stored = [(one.name, [name for name in one.claimed if name[0] in rolling]) for one in in_use]
    return _without_undesired(resolve(stored), in_use[0].name, goal.by_name)


def _without_undesired(claims: Claims[Name], latest: str, wanted: Mapping[Name, Desired]) -> Claims[Name]:
    """
    Return the claims without the children that are not desired.

    An older revision keeps such a claim while it still has a child of that kind:
    one that is desired again in the middle of a rollout comes back as it was.
    """
    if claims.held.keys() <= wanted.keys():
        return claims
    busy = {(claims.holder(name), name[0]) for name in wanted}
    gone = {
        name
        for name, holder in claims.held.items()
        if name not in wanted and (holder == latest or (holder, name[0]) not in busy)
    }
    return claims.without(gone)


def not_on(claims: Claims[Name], revision: str, goal: DesiredIndex) -> tuple[int, ...]:
    """Return the positions of the children that roll and that this revision does not claim."""
    return tuple(position for position, name, _, _ in goal.rolling if claims.held.get(name) != revision)


def _children_of(claims: Claims[Name], revision: str) -> tuple[Name, ...]:
    return claims.on(revision)


def recreated_from(
    revisions: ParentRevisions, claims: Claims[Name], absent: Sequence[Desired]
) -> Iterator[Obj]:
    """
    Yield the stored revisions by which a missing child is created as an older revision desires it.

    A creation has no version that the server compares, and in a stale cache a
    child may still be claimed by the revision it has left.
    """
    if not absent:
        return
    holders = {claims.held.get((child.key.kind, child.key.name)) for child in absent if child.rule.rolling}
    older = [one for one in revisions.others if one.name in holders]
    yield from (one.obj for one in (revisions.latest, *older) if older and one.obj is not None)


def as_claimed(
    goal: DesiredIndex, claims: Claims[Name], others: Mapping[str, Sequence[Desired]]
) -> tuple[Desired, ...]:
    """Return each child as the revision that claims it desires it; `others` has the children of all but the latest."""
    if not others:
        return goal.children
    made = list(goal.children)
    for position, name in enumerate(goal.names):
        theirs = others.get(claims.held.get(name, "")) if name is not None else None
        if theirs is not None:
            made[position] = theirs[position]
    return tuple(made)


# The writes that store the claims


def claim_stages(
    view: View, revisions: ParentRevisions, claims: Claims[Name], moved_at: datetime | None
) -> tuple[Stage, ...]:
    """Return the stages that store the claims; the latest revision is first, and what two claim is the first one's."""

    def on(revision: str) -> tuple[Name, ...]:
        return view.memo.call(_children_of, claims, revision)

    older = [*revisions.others, *revisions.duplicates]
    first = _write(
        view, revisions.latest, on(revisions.latest.name), number=revisions.number, moved_at=moved_at
    )
    busy = {one.name for one in revisions.others if on(one.name)}
    stored = history([revisions.latest.revision, *(one.revision for one in revisions.others)])
    pruned = {
        one.name for one in prune(stored, limit=view.setup.history_limit, keep=busy | {revisions.latest.name})
    }
    deleted = [one for one in older if one.name in pruned or one in revisions.duplicates]
    later: list[Action] = []
    for one in revisions.others:
        if one.name not in pruned:
            later += _write(view, one, on(one.name), number=one.revision.number, moved_at=one.moved_at)
    later += [delete(one.obj) for one in deleted if one.obj is not None]
    stages = [("store the latest revision", first), ("store the other revisions", later)]
    return tuple(Stage(name, tuple(actions)) for name, actions in stages if actions)


def _write(
    view: View, stored: ClaimingRevision, names: tuple[Name, ...], *, number: int, moved_at: datetime | None
) -> list[Action]:
    claimed = stored.claimed
    # The order of the claims has no meaning.
    is_same_set = claimed == names or (len(claimed) == len(names) and set(claimed) == set(names))
    if (
        stored.obj is not None
        and is_same_set
        and stored.is_normalized
        and has_annotations(stored.obj, number=number, moved_at=moved_at)
    ):
        return []
    obj = revision_object(view, stored, claimed if is_same_set else names, number=number, moved_at=moved_at)
    if stored.obj is None:
        return [Create(obj=obj)]
    if is_same(obj.get("children"), stored.obj.get("children") or []) and is_same(
        obj["metadata"].get("annotations"), dict(meta.annotations(stored.obj))
    ):
        return []
    return [change(stored.obj, create_merge_patch(stored.obj, obj))]
