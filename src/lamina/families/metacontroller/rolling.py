"""
Rolling children from one revision of their parent to the next.

Each child is claimed by the revision it is on, and a claim is written down
before its child is touched. Whatever differs only in claims moves for nothing, once
it was looked at for real: to whoever is shown the past, a child that is on its way
elsewhere may seem to be there already. The others move at the pace their kinds ask for, in the order in which the hook
names them, and only while everybody who moved before is well.

A child that is there, differs, and is claimed by no revision waits its turn like
the others and is left as it is meanwhile: whoever lost the record of a roll, or
never had one, must not have everything replaced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from operator import is_

from msgspec import Struct

from lamina.core.children import Method
from lamina.core.claims import Claims, resolve
from lamina.core.events import normal, warning
from lamina.core.history import history, prune
from lamina.core.pace import Pace, Rounding, amount
from lamina.core.plan import Action, Create, Stage, change, delete
from lamina.core.probe import Verdict, has_observed_its_spec, unknown, unwell
from lamina.core.questions import Read, ReadAll
from lamina.core.revision import Revision
from lamina.core.rollout import Standing, Step, Target, advance
from lamina.families.metacontroller.certain import is_as_seen, looks, outdated
from lamina.families.metacontroller.desired import Desired, Key
from lamina.families.metacontroller.ground import Ground, Row
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.names import MANAGER
from lamina.families.metacontroller.revisions import (
    Kept,
    kept_revisions,
    revision_name,
    says,
    snapshot,
    written,
)
from lamina.families.metacontroller.roster import Name, Roster, present, roster
from lamina.families.metacontroller.view import View
from lamina.merge.patches import create_merge_patch
from lamina.objects import conditions, meta
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

_ELSEWHERE = unknown("")


class Album(Struct, frozen=True, kw_only=True):
    """The revisions that matter: the one the spec asks for, those that still have children, and the rest."""

    latest: Kept
    others: tuple[Kept, ...]
    """The newest first, whether or not they have children."""
    duplicates: tuple[Kept, ...] = ()

    @property
    def asked(self) -> tuple[Kept, ...]:
        """Return the revisions whose wishes have to be known: the latest, and those with children."""
        return (self.latest, *(one for one in self.others if one.claimed))


def album(view: View) -> Album:
    """Return the revisions of a parent; the latest is made up where nobody has kept it yet."""
    known: Album | None = view.notes.get("album")
    if known is None:
        known = view.notes["album"] = _album(view)
    return known


def _album(view: View) -> Album:
    kept = kept_revisions(view)
    patch = snapshot(view.parent, view.setup.paths)
    same = [one for one in kept if one.revision.holds(patch)]
    others = tuple(one for one in kept if one not in same)
    if same:
        return Album(latest=same[0], others=others, duplicates=tuple(same[1:]))
    name = revision_name(view, patch)
    new = Kept(revision=Revision(number=0, name=name, snapshot=patch), obj=None)
    return Album(latest=new, others=others)


class Rolled(Struct, frozen=True, kw_only=True):
    """What a pass of a roll comes to."""

    stages: tuple[Stage, ...]
    """What is written down before any child is touched."""
    wanted: tuple[Desired, ...]
    left: frozenset[Key]
    """Children that wait their turn, and are left as they are."""
    condition: Made
    step: Step
    asks: tuple[Read | ReadAll, ...] = ()
    """What has to be looked at before anything of this is done."""
    is_old: bool = False
    """Whether what was looked at is not as it was seen, so that nothing of this may be done."""


def roll(
    view: View,
    means: Means,
    revisions: Album,
    wishes: Mapping[str, tuple[Desired, ...]],
    observed: Mapping[Key, Obj],
    now: datetime,
) -> Rolled:
    """Return who moves now; `wishes` are the children that each revision's hook wants, by its name."""
    latest = revisions.latest.name
    goal = roster(view, wishes[latest])
    wanted, found = goal.by_name, present(view, goal)
    ground = _ground(view, revisions, goal)
    claims = ground.claims

    waiting: list[Name] = []
    there_already: list[Name] = []
    for place, name, _, child in ground.elsewhere:
        there = found[place]
        if means.is_as_desired(child, there) if there is not None else name not in claims.held:
            there_already.append(name)
        else:
            waiting.append(name)
    seen = {
        name: (wanted[name].rule.kind, there)
        for name in there_already
        if (there := observed.get(wanted[name].key)) is not None
    }
    asks = looks(seen)
    old = outdated(seen, asks, means.answers)
    waiting += [name for name in there_already if name in old]
    if arrived := [name for name in there_already if name not in old]:
        claims = claims.moved(arrived, latest)

    judge = _judge(view, means, revisions, goal, claims)
    moved_at = revisions.latest.moved_at
    targets = (
        ground.targets(found, moved_at, judge)
        if claims is ground.claims and not view.setup.applies
        else tuple(map(judge, goal.rolling))
    )
    step = advance(latest, targets, _pace(view, wanted), now)
    moved = [goal.called[words] for words in step.move]
    if moved:
        claims = claims.moved(moved, latest)
    left = frozenset(wanted[name].key for name in waiting if name not in claims.held)
    others = {name: roster(view, wishes[name]).like(goal) for name in {*claims.held.values()} - {latest}}
    records = {Read(meta.ref(obj)): obj for obj in _relied_on(revisions, goal, found, claims)}
    return Rolled(
        stages=_record(view, revisions, ground.on if claims is ground.claims else claims.on, moved, now),
        wanted=_at_their_revisions(goal, claims, others),
        left=left,
        condition=_condition(latest, targets, step),
        step=step,
        asks=tuple(dict.fromkeys(one for one in (*asks.values(), *records) if one not in means.answers)),
        is_old=any(
            one in means.answers and not is_as_seen(obj, means.answers.get(one))
            for one, obj in records.items()
        ),
    )


def _relied_on(
    revisions: Album, goal: Roster, found: Sequence[Obj | None], claims: Claims[Name]
) -> Iterator[Obj]:
    """
    Yield the records by which a child that is missing is made anew as an older revision has it.

    A server compares no version where something is made: to whoever is shown the past,
    a child may seem to be still where it was.
    """
    if not any(map(is_, found, repeat(None))):
        return
    missing = {claims.held.get(name) for place, name, _, _ in goal.rolling if found[place] is None}
    older = [one for one in revisions.others if one.name in missing]
    yield from (one.obj for one in (revisions.latest, *older) if older and one.obj is not None)


def _ground(view: View, revisions: Album, goal: Roster) -> Ground:
    """Return who has which child, as the records say."""
    known, asked = view.recall.ground, revisions.asked
    if known is not None and known.holds(goal, asked):
        return known
    rolling = {kind for kind, rule in view.setup.children.items() if rule.rolling}
    records = [(one.name, [name for name in one.claimed if name[0] in rolling]) for one in asked]
    claims = _without_undesired(resolve(records), revisions.latest.name, goal.by_name)
    view.recall.ground = Ground(goal, asked, claims)
    return view.recall.ground


def _without_undesired(claims: Claims[Name], latest: str, wanted: Mapping[Name, Desired]) -> Claims[Name]:
    """
    Return the claims without the children nobody wants.

    An older revision keeps such a name while it still has a child of that kind:
    one that is wanted again in the middle of a roll comes back as it was.
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


def _judge(
    view: View, means: Means, revisions: Album, goal: Roster, claims: Claims[Name]
) -> Callable[[Row], Target]:
    """Return how a child is made a target of."""
    held, found = _held(view, goal.by_name), present(view, goal)
    latest, since = revisions.latest.name, revisions.latest.moved_at

    def judged(row: Row) -> Target:
        place, name, shown, child = row
        if claims.held.get(name) == latest:
            verdict = _verdict(means, shown, child, found[place])
            return Target(key=shown, on_goal=True, verdict=verdict, since=since)
        return Target(key=shown, on_goal=False, verdict=_ELSEWHERE, since=since, held=held.get(name, ""))

    return judged


def _verdict(means: Means, shown: str, child: Desired, there: Obj | None) -> Verdict:
    if there is None:
        return unknown(f"missing child {shown}")
    if not means.is_as_desired(child, there):
        return unknown(f"child {shown} is not updated yet")
    known = child.notes.verdict.find(there)
    return known if known is not None else child.notes.verdict.keep(_checked(shown, child, there), there)


def _checked(shown: str, child: Desired, there: Obj) -> Verdict:
    """Return what the status of a child says that is as it should be."""
    if child.rule.method is Method.IN_PLACE and not (seen := has_observed_its_spec(there)).is_well:
        return unknown(f"child {shown} {seen.because}")
    checked = child.rule.check(there)
    if not checked.is_well:
        return unwell(f"child {shown} failed status check: {checked.because}")
    return checked


def _held(view: View, wanted: Mapping[Name, Desired]) -> Mapping[Name, str]:
    """Return which children stay where they are, and why: the last few of a kind, or all of them."""
    held: dict[Name, str] = {}
    for kind, rule in view.setup.children.items():
        if not rule.rolling or not (rule.pace.paused or rule.pace.partition):
            continue
        names = [name for name in wanted if name[0] == kind]
        if rule.pace.paused:
            held |= dict.fromkeys(names, "the roll is paused")
        else:
            kept = names[-rule.pace.partition :]
            held |= dict.fromkeys(kept, f"the last {rule.pace.partition} are kept back by partition")
    return held


def _pace(view: View, wanted: Mapping[Name, Desired]) -> Pace:
    """Return the pace of a roll over all rolling kinds: the slowest of them."""
    rules = [rule for rule in view.setup.children.values() if rule.rolling]
    counts = [
        max(1, amount(rule.pace.max_unavailable, len(wanted), Rounding.DOWN, field=f"{rule.kind.plural}: maxUnavailable"))
        if rule.pace.max_unavailable is not None
        else 1
        for rule in rules
    ]  # fmt: skip
    deadlines = [
        timedelta(seconds=rule.pace.progress_deadline_seconds)
        for rule in rules
        if rule.pace.progress_deadline_seconds is not None
    ]
    return Pace(at_once=min(counts, default=1), deadline=min(deadlines, default=None))


def _condition(latest: str, targets: Sequence[Target], step: Step) -> Made:
    if step.breached:
        return _updated("False", "RolloutStalled", step.because)
    if step.move:
        return _updated("False", "RolloutProgressing", f"updating {', '.join(step.move)}")
    if step.done and Standing.HELD in step.standing.values():
        return _updated("False", "RolloutPaused", step.because)
    if step.done:
        return _updated("True", "OnLatestRevision", f"latest ControllerRevision: {latest}")
    late = next(target for target in targets if step.standing[target.key] is Standing.MOVING)
    return _updated("False", "RolloutWaiting", late.verdict.because or step.because)


def news(view: View, rolled: Rolled, now: datetime) -> Iterator[Made]:
    """Yield the events of a roll: who moves, that nobody can any more, that all have."""
    said = rolled.condition
    before = conditions.find(conditions.of(view.parent), said["type"])
    occasion = str(meta.generation(view.parent))
    was = before.get("reason", "") if before is not None else ""
    match said["reason"]:
        case "RolloutProgressing":
            yield normal(view.parent, said["reason"], said["message"], by=MANAGER, now=now, occasion=occasion)
        case "RolloutStalled" if was != "RolloutStalled":
            yield warning(
                view.parent, said["reason"], said["message"], by=MANAGER, now=now, occasion=occasion
            )
        case "OnLatestRevision" if was not in ("", "OnLatestRevision"):
            yield normal(
                view.parent, "RolloutComplete", said["message"], by=MANAGER, now=now, occasion=occasion
            )


def _updated(status: str, reason: str, message: str) -> Made:
    return {"type": "Updated", "status": status, "reason": reason, "message": message}


def _at_their_revisions(
    goal: Roster, claims: Claims[Name], others: Mapping[str, Sequence[Desired]]
) -> tuple[Desired, ...]:
    """Return each child as the revision that has it wants it; `others` say how all but the latest want them."""
    if not others:
        return goal.children
    made = list(goal.children)
    for place, name in enumerate(goal.names):
        theirs = others.get(claims.held.get(name, "")) if name is not None else None
        if theirs is not None:
            made[place] = theirs[place]
    return tuple(made)


def _record(
    view: View,
    revisions: Album,
    on: Callable[[str], tuple[Name, ...]],
    moved: Sequence[Name],
    now: datetime,
) -> tuple[Stage, ...]:
    """Return what is written before any child is touched: the latest first, so that it wins what is half done."""
    past = [*revisions.others, *revisions.duplicates]
    top = max((one.revision.number for one in [revisions.latest, *past]), default=0)
    number = revisions.latest.revision.number
    if number == 0 or any(one.revision.number >= number for one in past):
        number = top + 1
    moved_at = now if moved else revisions.latest.moved_at
    first = _write(view, revisions.latest, on(revisions.latest.name), number=number, moved_at=moved_at)
    busy = {one.name for one in revisions.others if on(one.name)}
    told = history([revisions.latest.revision, *(one.revision for one in revisions.others)])
    dropped = {
        one.name for one in prune(told, limit=view.setup.history_limit, keep=busy | {revisions.latest.name})
    }
    ended = [one for one in past if one.name in dropped or one in revisions.duplicates]
    kept = [one for one in revisions.others if one.name not in dropped]
    later: list[Action] = []
    for one in kept:
        later += _write(view, one, on(one.name), number=one.revision.number, moved_at=one.moved_at)
    later += [delete(one.obj) for one in ended if one.obj is not None]
    stages = [("record the newest revision", first), ("record the others", later)]
    return tuple(Stage(name, tuple(actions)) for name, actions in stages if actions)


def _write(
    view: View, kept: Kept, names: tuple[Name, ...], *, number: int, moved_at: datetime | None
) -> list[Action]:
    claimed = kept.claimed
    # Who is on a revision matters; in what order they are written down does not.
    is_same_set = claimed == names or (len(claimed) == len(names) and set(claimed) == set(names))
    ordered = claimed if is_same_set else names
    if (
        kept.obj is not None
        and is_same_set
        and kept.is_plain
        and says(kept.obj, number=number, moved_at=moved_at)
    ):
        return []
    obj = written(view, kept, ordered, number=number, moved_at=moved_at)
    if kept.obj is None:
        return [Create(obj=obj)]
    if is_same(obj.get("children"), kept.obj.get("children") or []) and is_same(
        obj["metadata"].get("annotations"), dict(meta.annotations(kept.obj))
    ):
        return []
    return [change(kept.obj, create_merge_patch(kept.obj, obj))]


def with_condition(status: Obj, condition: Made) -> Made:
    """Return a status with a condition in it, in place of any of its type that a hook may have written."""
    others = [one for one in conditions.of({"status": status}) if one.get("type") != condition["type"]]
    return {**status, "conditions": [*others, condition]}


def paced(step: Step, resync: timedelta | None) -> timedelta | None:
    """Return when to look again: when time alone changes the roll, or when the hook asked, whichever is sooner."""
    moments = [one for one in (step.look_again, resync) if one is not None]
    return min(moments, default=None)
