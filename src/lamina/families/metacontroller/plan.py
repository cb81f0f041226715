"""
What happens next to one parent and its children.

First its finalizer, then whose children are whose, then what its hook wants:
each is settled on the server before the next is looked at. What a hook wants is
carried out in an order that loses nothing: the record of a roll, then what has
to go, then what has to come, then the status, which is a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.children import Child, Deed, Method, sort_out
from lamina.core.events import warning
from lamina.core.plan import (
    NOTHING,
    Action,
    Emit,
    Plan,
    Stage,
    change_metadata,
    delete,
    one_stage,
    remove_finalizer,
)
from lamina.core.questions import Answers, Found, Question, Read
from lamina.core.world import World
from lamina.errors import HookError, LaminaError, PlanFailed
from lamina.families.metacontroller.asking import Wishes, endpoint_of, open_questions, wishes
from lamina.families.metacontroller.desired import Desired, Key, desired, in_kind_order, observed
from lamina.families.metacontroller.ground import unsettled
from lamina.families.metacontroller.hooks import Response
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.names import COMPOSITE, MANAGER
from lamina.families.metacontroller.report import last_words, let_go, report, stage
from lamina.families.metacontroller.rolling import Rolled, news, roll, with_condition
from lamina.families.metacontroller.roster import Roster, roster, strays
from lamina.families.metacontroller.setup import Setup
from lamina.families.metacontroller.standing import answered, failed
from lamina.families.metacontroller.view import View
from lamina.families.metacontroller.webhooks import credentials_of, look_in
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_COLLECTED = frozenset(("orphan", "foregroundDeletion"))
_FUTILE, _DELAYED = "RecreateFutile", "RecreateDelayed"
_SOON = timedelta(seconds=1)


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has still to be asked before it is known what happens next."""
    if view.is_let_go:
        return ()
    secrets = credentials_of(view.setup.endpoints, view.world.kinds)
    if unread := tuple(one for one in secrets if one not in answers):
        return unread
    if _hold(view) is not None or view.releases:
        return ()
    if view.adopts:
        alive = Read(meta.ref(view.parent))
        return () if alive in answers else (alive,)
    return open_questions(view, answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next."""
    if view.is_let_go:
        released = remove_finalizer(view.parent, view.setup.finalizer)
        return one_stage("let go", [released], because="there is no finalize hook any more")
    for one in view.setup.endpoints:
        # A controller whose hooks cannot be called has been refused, and touches nobody.
        one.check(look_in(answers, view.world.kinds))
    if (first := _hold(view)) is not None:
        return first
    if view.adopts or view.releases:
        return _claim(view, answers)
    if endpoint_of(view) is None:
        # A controller that only finalizes has nothing to say about the living.
        return NOTHING
    return _follow(view, answers, wishes(view, answers), now)


# Before the hook has its say


def _hold(view: View) -> Plan | None:
    """Return the plan that puts our finalizer on, where it should be and is not."""
    setup, parent = view.setup, view.parent
    if setup.finalize is not None and view.is_wanted and not view.is_deleting and not view.has_finalizer:
        held = change_metadata(parent, finalizers=[*meta.finalizers(parent), setup.finalizer])
        return one_stage("hold", [held], because="the finalize hook is to be asked before it goes")
    return None


def _claim(view: View, answers: Answers) -> Plan:
    actions: list[Action] = [
        change_metadata(obj, ownerReferences=meta.metadata(meta.without_owner(obj, meta.uid(view.parent))).get("ownerReferences"))
        for obj in view.releases
    ]  # fmt: skip
    alive = answers.get(Read(meta.ref(view.parent)))
    if (
        isinstance(alive, Found)
        and meta.uid(alive.obj) == meta.uid(view.parent)
        and not meta.is_deleting(alive.obj)
    ):
        owner = meta.owner_ref(view.parent, controller=True, blocks=True)
        actions += [
            change_metadata(obj, ownerReferences=[*meta.owner_refs(obj), owner]) for obj in view.adopts
        ]
    because = f"{len(view.releases)} no longer match its selector, {len(actions) - len(view.releases)} do and are free"
    return one_stage("claim children", actions, because=because)


# What the hook wants


class _Wanted(Struct, frozen=True, kw_only=True):
    """What all revisions' hooks come to."""

    response: Response
    children: tuple[Desired, ...]
    roster: Roster
    """What the latest wants: the same children, in the same order."""
    status: Obj | None
    finalized: bool
    again: timedelta | None
    wrong: tuple[LaminaError, ...] = ()
    rolled: Rolled | None = None

    @property
    def left(self) -> frozenset[Key]:
        return self.rolled.left if self.rolled is not None else frozenset()


def _follow(view: View, answers: Answers, said: Wishes, now: datetime) -> Plan:
    means = Means(view=view, answers=answers)
    there = observed(view)
    wanted = _combined(view, means, said, there, now)
    if wanted.rolled is not None and wanted.rolled.asks:
        return Plan(asks=wanted.rolled.asks, because=wanted.rolled.step.because)
    if wanted.rolled is not None and wanted.rolled.is_old:
        return Plan(look_again=_SOON, because="what is seen of its revisions is old")
    stages: list[Stage] = []
    ends = wanted.finalized and view.is_finalizing and view.has_finalizer
    because = "its children are as its hook wants them"
    wake: timedelta | None = None
    if _manages(view) and not (ends and view.is_deleting and view.setup.kind == COMPOSITE):
        if wanted.rolled is not None:
            stages += wanted.rolled.stages
            because = wanted.rolled.step.because
        care = _children(view, means, wanted, there, now)
        stages += care.stages
        wake, wanted = care.wake, _with_doubts(view, wanted, care.doubts)
        if wanted.rolled is not None:
            stages += stage("tell", [Emit(event=event) for event in news(view, wanted.rolled, now)])
    if ends:
        # Last of all: whoever is let go is not looked at again.
        because = "its finalize hook says that it is finalized"
        if view.is_deleting and _manages(view) and view.revisions:
            stages.append(Stage("forget its revisions", tuple(map(delete, view.revisions))))
        stages.append(Stage("let go", (let_go(view, wanted.response, wanted.status),)))
        return Plan(stages=(*stages, *last_words(view, wanted.status)), because=because)
    stages += report(view, wanted.response, wanted.status)
    stages += stage("say who answers", answered(view.world, view.setup, now))
    return Plan(
        stages=tuple(stages),
        look_again=_sooner(wake, wanted.rolled.step.look_again if wanted.rolled is not None else None),
        appointment=wanted.again,
        because=because,
        failure=_failure(wanted.wrong),
        progress=wanted.rolled.step.progress if wanted.rolled is not None else {},
    )


def _combined(view: View, means: Means, said: Wishes, there: Mapping[Key, Obj], now: datetime) -> _Wanted:
    latest = said.responses[said.latest]
    wanted: dict[str, tuple[Desired, ...]] = {}
    wrong: tuple[LaminaError, ...] = ()
    for name, response in said.responses.items():
        wanted[name], problems = desired(view, response)
        wrong = problems if name == said.latest else wrong
    resyncs = [one.resync_after for one in said.responses.values() if one.resync_after is not None]
    again = min(resyncs, default=None)
    if said.album is None:
        return _Wanted(
            response=latest,
            children=wanted[said.latest],
            roster=roster(view, wanted[said.latest]),
            status=latest.status,
            finalized=latest.finalized,
            again=again,
            wrong=wrong,
        )
    rolled = roll(view, means, said.album, wanted, there, now)
    return _Wanted(
        response=latest,
        children=rolled.wanted,
        roster=roster(view, wanted[said.latest]),
        status=with_condition(latest.status or {}, rolled.condition),
        finalized=all(one.finalized for one in said.responses.values()),
        again=again,
        wrong=wrong,
        rolled=rolled,
    )


def _manages(view: View) -> bool:
    """Say whether children are ours to manage: of a parent that is going, only while we hold it up."""
    if not view.is_deleting:
        return True
    collected = _COLLECTED & set(meta.finalizers(view.parent))
    return not collected and view.has_finalizer and view.setup.finalize is not None


class _Care(Struct, frozen=True, kw_only=True):
    """
    What is done about the children, and when to look again for those that have to wait.

    `doubts` are those that are not as they are wanted and are left so, by the
    reason; each is a sentence.
    """

    stages: tuple[Stage, ...]
    wake: timedelta | None
    doubts: Mapping[str, Sequence[str]]


def _children(view: View, means: Means, wanted: _Wanted, there: Mapping[Key, Obj], now: datetime) -> _Care:
    by_key = dict(unsettled(view, wanted.roster, wanted.children, means.is_at_rest))
    deeds = sort_out(list(_compared(means, wanted, by_key, there, strays(view, wanted.roster))))
    ends = [_seen(one) for one in deeds.get(Deed.DELETE, ())]
    waits: list[timedelta] = []
    late: list[str] = []
    for one in deeds.get(Deed.REPLACE, ()):
        wait = means.is_fresh(by_key[one.key], _seen(one), now)
        if wait is not None:
            waits.append(wait)
            late.append(f"{one.key} was changed soon after it was made, and is recreated a little later")
        else:
            ends.append(_seen(one))
    comes: list[Action] = []
    for one in deeds.get(Deed.CREATE, ()):
        taken = view.world.get(meta.ref(by_key[one.key].obj))
        comes.append(means.create(by_key[one.key]) if taken is None else _taken(view, one.key, taken, now))
    for one in deeds.get(Deed.UPDATE, ()):
        comes += means.update(by_key[one.key], _seen(one))
    futile = [
        f"{one.key} is not as its hook wants it, and recreating it would end the same: the server makes it so"
        for one in deeds.get(Deed.KEEP, ())
        if _is_futile(means, by_key[one.key], _seen(one))
    ]
    comes += [Emit(event=warning(view.parent, _FUTILE, said, by=MANAGER, now=now)) for said in futile]
    stages = [Stage("delete children", tuple(map(delete, ends)))] if ends else []
    # One that cannot be deleted holds up nobody else; a claim that could not be written down holds up everybody.
    claims = wanted.rolled is not None and bool(wanted.rolled.stages)
    stages += [Stage("make children", tuple(comes), even_after_failure=not claims)] if comes else []
    return _Care(
        stages=tuple(stages), wake=min(waits, default=None), doubts={_FUTILE: futile, _DELAYED: late}
    )


def _is_futile(means: Means, child: Desired, there: Obj) -> bool:
    """Say whether a child differs for good: what is wanted of it is not what the server makes of that."""
    if child.rule.method is not Method.RECREATE or means.is_as_merged(child, there):
        return False
    return means.would_end_the_same(child, there)


def _with_doubts(view: View, wanted: _Wanted, doubts: Mapping[str, Sequence[str]]) -> _Wanted:
    """Return what is wanted, with a status that says which children are left otherwise; a decorated object's is its own."""
    reason = next((reason for reason, said in doubts.items() if said), "")
    if not reason or view.setup.kind != COMPOSITE:
        return wanted
    said = {"type": "AsDesired", "status": "False", "reason": reason, "message": "; ".join(doubts[reason])}
    return replace(wanted, status=with_condition(wanted.status or {}, said))


def _compared(
    means: Means,
    wanted: _Wanted,
    by_key: Mapping[Key, Desired],
    there: Mapping[Key, Obj],
    unwanted: Iterable[Key],
) -> Iterator[Child[Key]]:
    """Yield children as they should be and as they are, those that should not be there first."""
    for key in in_kind_order(unwanted):
        yield Child(key=key, desired=None, observed=there[key])
    for key, child in by_key.items():
        found, left = there.get(key), key in wanted.left
        yield Child(
            key=key,
            desired=child.obj,
            observed=found,
            differs=found is not None and not left and not means.is_as_desired(child, found),
            method=Method.ON_DELETE if left else child.rule.method,
        )


def _seen(child: Child[Key]) -> Obj:
    assert child.observed is not None, "it was seen"
    return child.observed


def _taken(view: View, key: Key, taken: Obj, now: datetime) -> Emit:
    """Tell that a name is in use: what has it is not ours, and is left alone."""
    owner = meta.controller_of(taken)
    whose = (
        f"{owner['kind'].lower()} {owner['name']} controls it" if owner is not None else "it is not its own"
    )
    said = f"{meta.ref(view.parent)} cannot have {key}: {whose}"
    return Emit(event=warning(view.parent, "NameTaken", said, by=MANAGER, now=now))


def _failure(wrong: Sequence[LaminaError]) -> LaminaError | None:
    if not wrong:
        return None
    return wrong[0] if len(wrong) == 1 else PlanFailed(wrong)


def _sooner(one: timedelta | None, two: timedelta | None) -> timedelta | None:
    return min((moment for moment in (one, two) if moment is not None), default=None)


def complain(setup: Setup, world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Say on a parent that it could not be synced, and on its controller what was the last to go wrong."""
    parent = world.get(ref)
    if parent is None or (isinstance(error, HookError) and error.after is not None):
        return NOTHING
    told = warning(parent, "SyncError", f"Sync error: {error}", by=MANAGER, now=now)
    actions = [Emit(event=told, counts=True), *failed(world, setup, ref, error, now)]
    return one_stage("say so", actions, because=str(error))
