"""
What happens next to one replica set.

A rollout goes forward at its own pace. Once it is aborted the goal turns round:
the revision that everybody was well on goes back out, to everybody at once, and
the spec stays as the user wrote it.

What is about to be done is in the status before it is done: which revision goes
out before any work has it, and that a rollout is aborted before anybody turns
round. Only how far the way back has come is said afterwards. And before anything
goes out, somebody has looked whether the replica set asks for it still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from lamina.core.plan import (
    Action,
    Delete,
    Plan,
    Stage,
    change_metadata,
    delete,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.core.questions import Answer, Answers, Found, Question, Read
from lamina.core.rollout import Standing
from lamina.families.manifestwork import album as albums
from lamina.families.manifestwork.album import Album, album
from lamina.families.manifestwork.because import because as why
from lamina.families.manifestwork.because import named, no_way_back
from lamina.families.manifestwork.names import CLEANUP
from lamina.families.manifestwork.news import collision, missing, news
from lamina.families.manifestwork.progress import Progress, progress
from lamina.families.manifestwork.proof import PROVEN, looked_at, proof
from lamina.families.manifestwork.situation import (
    APPLIED,
    INVALID_NAME,
    NOT_FOUND,
    PROGRESSING,
    Findings,
    Said,
    Situation,
    situation,
)
from lamina.families.manifestwork.status import Outcome, is_report, status, with_only
from lamina.families.manifestwork.view import Placed, View
from lamina.families.manifestwork.work import create, relabel, rewrite, work_name, work_ref
from lamina.objects import conditions, meta
from lamina.objects.types import Made

_LONGEST_LABEL = 63
_NO_TIME, _SOON = timedelta(0), timedelta(seconds=1)
_A_CLUSTER, _MANY = timedelta(milliseconds=10), 200
"""For how long, for each of so many clusters, it may go unsaid how many have come how far."""


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has still to be asked: for a revision that was lost, what the works hold that were made of it."""
    if meta.is_deleting(view.obj) or CLEANUP not in meta.finalizers(view.obj):
        return ()
    return tuple(one for one in albums.questions(view) if one not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next."""
    if meta.is_deleting(view.obj):
        return _farewell(view)
    if CLEANUP not in meta.finalizers(view.obj):
        held = change_metadata(view.obj, finalizers=[*meta.finalizers(view.obj), CLEANUP])
        return one_stage("hold", [held], because="its works are to go before it does")
    if len(view.key) > _LONGEST_LABEL:
        return _unnameable(view, now)
    revisions = album(view, answers)
    if revisions.collides:
        return _collided(view, revisions, now)
    return _roll(looked_at(view, answers), revisions, answers, now)


# The ends


def _farewell(view: View) -> Plan:
    """Let the works go, and then the replica set: at once, or, in the foreground, when the last work has gone."""
    if CLEANUP not in meta.finalizers(view.obj):
        return Plan(because="somebody else holds it up")
    going: list[Action] = [delete(work.obj) for work in view.works if not work.is_deleting]
    waits = view.limits.cascade_deletion_policy == "Foreground" and view.works
    stages = [Stage("delete works", tuple(going))] if going else []
    if waits:
        return Plan(stages=tuple(stages), because=f"waiting for {len(view.works)} works to go")
    if "orphan" not in meta.finalizers(view.obj) and view.revisions:
        # A cluster without a collector would keep them for ever.
        ours = [one for one in view.revisions if one.is_controlled and not meta.is_deleting(one.obj)]
        stages += [Stage("forget its revisions", tuple(delete(one.obj) for one in ours))] if ours else []
    stages.append(Stage("let go", (remove_finalizer(view.obj, CLEANUP),)))
    return Plan(stages=tuple(stages), because="it is deleted, and its works with it")


def _unnameable(view: View, now: datetime) -> Plan:
    because = (
        f'works are found by the label "{view.key}", which has {len(view.key)} characters, '
        f"{_LONGEST_LABEL} at most: give the ManifestWorkReplicaSet or its namespace a shorter name"
    )
    return _say(view, with_only(view, APPLIED, Said("False", INVALID_NAME), because, now), because)


def _collided(view: View, revisions: Album, now: datetime) -> Plan:
    """Count a collision: the next pass looks for another name."""
    because = f"somebody else has {revisions.wanted.name}; another name is taken"
    said = _say(view, {**view.status, "collisionCount": view.collisions + 1}, because)
    told = Stage("tell", (collision(view, because, now),))
    return replace(said, stages=(*said.stages, told))


def _say(view: View, wanted: Made, because: str) -> Plan:
    patch = set_status(view.obj, wanted)
    return one_stage("say so", [patch] if patch is not None else [], because=because)


# The rollout


def _roll(view: View, revisions: Album, answers: Answers, now: datetime) -> Plan:
    wanted, stable = revisions.wanted, revisions.stable
    # A template under another mark is the same template, and an abort of it stands.
    changed = wanted.tag != view.update and not albums.is_renamed(view, revisions)
    recorded = None if changed else view.aborted_at
    goal = wanted
    if recorded is not None:
        goal = stable or albums.Picture(
            tag=revisions.current, name=named(view, revisions.current), holds="", template={}
        )
    marches = [progress(one, goal, wanted, now, turned=recorded is not None) for one in view.placed]
    over = [one.toll.overdue for one in marches if one.toll.overdue]
    causes = [] if changed or recorded is not None else _causes(revisions, marches)
    can_return = stable is not None and stable.holds != wanted.holds
    if causes and can_return:

        def standings(placed: Placed) -> Mapping[str, Standing]:
            return progress(placed, goal, wanted, now, turned=False).step.standing

        evidence = [proof(one, answers, standings) for one in causes]
        if PROVEN not in evidence:
            # Nobody takes an abort back, and whoever is shown the past hears of nobody who got well.
            asks = tuple(dict.fromkeys(ask for one in evidence for ask in one.asks))
            because = causes[0].toll.overdue if asks else "what is seen of those that are late is old"
            return Plan(asks=asks, look_again=_SOON, because=because)
        causes = [causes[evidence.index(PROVEN)]]
    breach = causes[0].toll.overdue if causes else ""
    aborted_at = recorded or (now if breach and can_return else None)
    if aborted_at is not None and recorded is None:
        assert stable is not None, "there is a way back"
        goal = stable
    findings = Findings(
        is_aborted=aborted_at is not None,
        was_recorded=recorded is not None,
        changed=changed,
        is_new=revisions.is_new,
        was=_reason(view),
        is_current=revisions.current == wanted.tag,
        desired=sum(one.counts.desired for one in marches),
        updated=sum(one.counts.updated for one in marches),
        overdue=bool(over),
        failing=any(one.toll.failing for one in marches),
        unknown=any(one.placed.reason == NOT_FOUND for one in marches),
    )
    here = situation(findings)
    forward = recorded is None and aborted_at is None
    movers = _restored(marches, goal) if not forward else _moved(marches)
    because = why(view, revisions, marches, here, breach)
    works = list(_writes(view, marches, movers, goal, now)) if goal.template else []
    removals, forgotten = list(_removals(view, marches)), list(albums.forget(view, revisions))
    if works or forgotten:
        # What goes out and what is in use the replica set says; whoever is shown the past may see what it said once.
        known = Read(meta.ref(view.obj))
        if known not in answers:
            return Plan(asks=(known,), because=because)
        if not _is_still(view, answers.get(known)):
            return Plan(look_again=_SOON, because="what is seen of it is old")
    outcome = Outcome(
        situation=here,
        findings=findings,
        because=because,
        aborted_at=aborted_at,
        moves=sum(len(those) for those in movers),
        tries=bool(works or removals or forgotten),
    )
    wanted_status = status(view, revisions, marches, outcome, now)
    said = set_status(view.obj, wanted_status)
    patience = (
        _A_CLUSTER * min(findings.desired, _MANY) if is_report(view.status, wanted_status) else _NO_TIME
    )
    told = list(news(view, revisions, outcome, now))
    if breach and not can_return:
        told.append(missing(view, no_way_back(view, revisions), now))
    deeds: list[tuple[str, Sequence[Action]]] = [("write works", works), ("remove works", removals)]
    stages = _stages(
        revisions, said, told, deeds, forgotten, after=here is Situation.TURNED, patience=patience
    )
    return Plan(
        stages=stages,
        look_again=_sooner(marches) if forward else None,
        because=because,
        progress=_gathered(marches),
    )


def _is_still(view: View, answer: Answer | None) -> bool:
    """Say whether a replica set is the one that was seen."""
    version = meta.resource_version(view.obj)
    return isinstance(answer, Found) and meta.resource_version(answer.obj) == version


def _reason(view: View) -> str:
    said = conditions.find(view.status.get("conditions") or (), PROGRESSING)
    return said.get("reason", "") if said is not None else ""


def _causes(revisions: Album, marches: Sequence[Progress]) -> list[Progress]:
    """Return whose fault it is if the rollout is to be aborted: the placements that want that and have cause."""
    if not revisions.current or revisions.current == revisions.wanted.tag:
        return []
    return [
        one
        for one in marches
        if one.toll.overdue
        and one.placed.strategy.aborts
        and one.placed.strategy.deadline is not None
        # Of one whose groups are not known, nobody can say how many are tolerated where.
        and not one.placed.frozen
    ]


def _stages(
    revisions: Album,
    said: Action | None,
    told: Sequence[Action],
    deeds: Sequence[tuple[str, Sequence[Action]]],
    forgotten: Sequence[Action],
    *,
    after: bool,
    patience: timedelta,
) -> tuple[Stage, ...]:
    """Return the stages of a pass, from the record to the deed."""
    report: list[tuple[str, Sequence[Action]]] = [("say so", [said])] if said is not None else []
    report += [("tell", told)] if said is not None else []
    order: list[tuple[str, Sequence[Action]]] = [("record the revision", revisions.records)]
    order += [*deeds, *report] if after else [*report, *deeds]
    order.append(("forget revisions", forgotten))
    return tuple(
        # How far the way back has come is a report, and is made whatever became of it.
        Stage(
            name,
            tuple(actions),
            even_after_failure=after and name in ("say so", "tell"),
            patience=patience if name == "say so" else _NO_TIME,
        )
        for name, actions in order
        if actions
    )


def _moved(marches: Sequence[Progress]) -> list[tuple[str, ...]]:
    """Return who of each placement's clusters is to be written: those that move, and are not there already."""
    return [tuple(name for name in one.step.move if name not in one.standing) for one in marches]


def _restored(marches: Sequence[Progress], goal: albums.Picture) -> list[tuple[str, ...]]:
    """Return who of each placement's clusters has to turn round: everybody who is not there already."""
    return [
        tuple(
            name
            for name in one.clusters
            if (work := one.placed.works.get(name)) is None or not (work.is_deleting or goal.is_on(work))
        )
        for one in marches
    ]


def _writes(
    view: View,
    marches: Sequence[Progress],
    movers: Sequence[Sequence[str]],
    goal: albums.Picture,
    now: datetime,
) -> Iterator[Action]:
    for one, names in zip(marches, movers, strict=True):
        placement, selected = one.placed.name, set(one.clusters)
        for name in names:
            work = one.placed.works.get(name)
            if work is None:
                free = _free_name(view, name, placement)
                yield create(view.obj, name, placement, free, goal.tag, goal.template, now)
            elif not work.is_deleting:
                yield rewrite(view.obj, work, goal.tag, goal.template, now)
        for work in one.placed.works.values():
            if (
                work.tag != goal.tag
                and goal.is_on(work)
                and not work.is_deleting
                and work.cluster in selected
            ):
                yield relabel(work, goal.tag)


def _free_name(view: View, cluster: str, placement: str) -> str:
    attempt = 0
    while view.world.get(work_ref(cluster, name := work_name(view.obj, placement, attempt))) is not None:
        attempt += 1
    return name


def _removals(view: View, marches: Sequence[Progress]) -> Iterator[Delete]:
    """Yield the end of works that are nobody's: of placements and clusters that are not selected any more."""
    kept = {one.placed.name: set(one.clusters) for one in marches}
    surplus = {id(work) for one in marches for work in one.placed.surplus}
    for work in view.works:
        if not work.is_deleting and (work.cluster not in kept.get(work.placement, ()) or id(work) in surplus):
            yield delete(work.obj)


def _sooner(marches: Sequence[Progress]) -> timedelta | None:
    return min((one.step.look_again for one in marches if one.step.look_again is not None), default=None)


def _gathered(marches: Sequence[Progress]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in marches:
        for where, number in one.step.progress.items():
            counts[where] = counts.get(where, 0) + number
    return counts
