"""
Rolling children from one revision of their parent to the next.

Each child is claimed by the revision it is on, and a claim is written down
before its child is touched. Whatever differs only in claims moves for nothing;
the others move at the pace their kinds ask for, in the order in which the hook
names them, and only while everybody who moved before is well.

A child that is there, differs, and is claimed by no revision waits its turn like
the others and is left as it is meanwhile: whoever lost the record of a roll, or
never had one, must not have everything replaced at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.children import Method
from lamina.core.claims import Claims, resolve
from lamina.core.events import normal, warning
from lamina.core.history import history, prune
from lamina.core.pace import Pace, Rounding, amount
from lamina.core.plan import Action, Create, Stage, change, delete
from lamina.core.probe import Verdict, has_observed_its_spec, unknown, unwell
from lamina.core.revision import Revision
from lamina.core.rollout import Standing, Step, Target, advance
from lamina.families.metacontroller.desired import Desired, Key
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.names import MANAGER
from lamina.families.metacontroller.revisions import Kept, kept_revisions, revision_name, snapshot, written
from lamina.families.metacontroller.view import View
from lamina.merge.patches import create_merge_patch
from lamina.objects import conditions, meta
from lamina.objects.diff import is_same
from lamina.objects.types import GroupKind, Made, Obj

Name = tuple[GroupKind, str]
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


def roll(
    view: View,
    means: Means,
    revisions: Album,
    wishes: Mapping[str, Sequence[Desired]],
    observed: Mapping[Key, Obj],
    now: datetime,
) -> Rolled:
    """Return who moves now; `wishes` are the children that each revision's hook wants, by its name."""
    latest = revisions.latest.name
    rolling = {kind for kind, rule in view.setup.children.items() if rule.rolling}
    wanted = {_name(child): child for child in wishes[latest] if child.key.kind in rolling}
    records = [(one.name, [name for name in one.claimed if name[0] in rolling]) for one in revisions.asked]
    claims = _without_undesired(resolve(records), latest, wanted)

    waiting: list[Name] = []
    there_already: list[Name] = []
    for name, child in wanted.items():
        there = observed.get(child.key)
        holder = claims.holder(name)
        if holder == latest:
            continue
        if (there is not None and means.is_as_desired(child, there)) or (holder is None and there is None):
            there_already.append(name)
        else:
            waiting.append(name)
    claims = claims.moved(there_already, latest)

    targets = _targets(view, means, revisions, wanted, claims, observed)
    step = advance(latest, targets, _pace(view, wanted), now)
    by_key = {_shown(name): name for name in wanted}
    moved = [by_key[key] for key in step.move]
    claims = claims.moved(moved, latest)
    left = frozenset(wanted[name].key for name in waiting if claims.holder(name) is None)
    others = {
        name: {child.key: child for child in wishes[name]} for name in {*claims.held.values()} - {latest}
    }
    return Rolled(
        stages=_record(view, revisions, claims, moved, now),
        wanted=tuple(_at_its_revision(child, claims, others) for child in wishes[latest]),
        left=left,
        condition=_condition(latest, targets, step),
        step=step,
    )


def _without_undesired(claims: Claims[Name], latest: str, wanted: Mapping[Name, Desired]) -> Claims[Name]:
    """
    Return the claims without the children nobody wants.

    An older revision keeps such a name while it still has a child of that kind:
    one that is wanted again in the middle of a roll comes back as it was.
    """
    busy = {(claims.holder(name), name[0]) for name in wanted}
    gone = {
        name
        for name, holder in claims.held.items()
        if name not in wanted and (holder == latest or (holder, name[0]) not in busy)
    }
    return claims.without(gone)


def _targets(
    view: View,
    means: Means,
    revisions: Album,
    wanted: Mapping[Name, Desired],
    claims: Claims[Name],
    observed: Mapping[Key, Obj],
) -> tuple[Target, ...]:
    held = _held(view, wanted)
    since = revisions.latest.moved_at
    targets = []
    for name, child in wanted.items():
        on_goal = claims.holder(name) == revisions.latest.name
        verdict = _verdict(means, name, child, observed.get(child.key)) if on_goal else _ELSEWHERE
        targets.append(
            Target(
                key=_shown(name),
                on_goal=on_goal,
                verdict=verdict,
                since=since,
                held="" if on_goal else held.get(name, ""),
            )
        )
    return tuple(targets)


def _verdict(means: Means, name: Name, child: Desired, there: Obj | None) -> Verdict:
    if there is None:
        return unknown(f"missing child {_shown(name)}")
    if not means.is_as_desired(child, there):
        return unknown(f"child {_shown(name)} is not updated yet")
    known = child.notes.verdict.find(there)
    return known if known is not None else child.notes.verdict.keep(_checked(name, child, there), there)


def _checked(name: Name, child: Desired, there: Obj) -> Verdict:
    """Return what the status of a child says that is as it should be."""
    shown = _shown(name)
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
        names = [name for name in wanted if name[0] == kind]
        if rule.rolling and rule.pace.paused:
            held |= dict.fromkeys(names, "the roll is paused")
        elif rule.rolling and rule.pace.partition:
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
    before = conditions.find((view.parent.get("status") or {}).get("conditions") or (), said["type"])
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


def _at_its_revision(
    child: Desired, claims: Claims[Name], others: Mapping[str, Mapping[Key, Desired]]
) -> Desired:
    """Return a child as the revision that has it wants it; `others` are the wishes of all but the latest."""
    if not child.rule.rolling:
        return child
    return others.get(claims.holder(_name(child)) or "", {}).get(child.key, child)


def _record(
    view: View, revisions: Album, claims: Claims[Name], moved: Sequence[Name], now: datetime
) -> tuple[Stage, ...]:
    """Return what is written before any child is touched: the latest first, so that it wins what is half done."""
    past = [*revisions.others, *revisions.duplicates]
    top = max((one.revision.number for one in [revisions.latest, *past]), default=0)
    number = revisions.latest.revision.number
    if number == 0 or any(one.revision.number >= number for one in past):
        number = top + 1
    moved_at = now if moved else revisions.latest.moved_at
    first = _write(view, revisions.latest, claims.on(revisions.latest.name), number=number, moved_at=moved_at)
    busy = {one.name for one in revisions.others if claims.on(one.name)}
    told = history([revisions.latest.revision, *(one.revision for one in revisions.others)])
    dropped = {
        one.name for one in prune(told, limit=view.setup.history_limit, keep=busy | {revisions.latest.name})
    }
    ended = [one for one in past if one.name in dropped or one in revisions.duplicates]
    kept = [one for one in revisions.others if one.name not in dropped]
    later: list[Action] = []
    for one in kept:
        later += _write(view, one, claims.on(one.name), number=one.revision.number, moved_at=one.moved_at)
    later += [delete(one.obj) for one in ended if one.obj is not None]
    stages = [("record the newest revision", first), ("record the others", later)]
    return tuple(Stage(name, tuple(actions)) for name, actions in stages if actions)


def _write(
    view: View, kept: Kept, names: Sequence[Name], *, number: int, moved_at: datetime | None
) -> list[Action]:
    claimed = kept.claimed
    # Who is on a revision matters; in what order they are written down does not.
    ordered = claimed if set(claimed) == set(names) and len(claimed) == len(names) else tuple(names)
    obj = written(view, kept, ordered, number=number, moved_at=moved_at)
    if kept.obj is None:
        return [Create(obj=obj)]
    if is_same(obj.get("children"), kept.obj.get("children") or []) and is_same(
        obj["metadata"].get("annotations"), dict(meta.annotations(kept.obj))
    ):
        return []
    return [change(kept.obj, create_merge_patch(kept.obj, obj))]


def _name(child: Desired) -> Name:
    return child.key.kind, child.key.name


def _shown(name: Name) -> str:
    return f"{name[0].kind} {name[1]}"


def with_condition(status: Obj, condition: Made) -> Made:
    """Return a status with a condition in it, in place of any of its type that a hook may have written."""
    others = [one for one in status.get("conditions") or () if one.get("type") != condition["type"]]
    return {**status, "conditions": [*others, condition]}


def paced(step: Step, resync: timedelta | None) -> timedelta | None:
    """Return when to look again: when time alone changes the roll, or when the hook asked, whichever is sooner."""
    moments = [one for one in (step.look_again, resync) if one is not None]
    return min(moments, default=None)
