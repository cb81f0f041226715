"""
Mistakes that controllers are known for, each made on purpose, and what the sieve says of them.

Beside each is the same controller without it: the sieve says nothing of that one.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count

import pytest

from lamina.core.controller import AnyController, Controller, Watch, itself, nobody, only
from lamina.core.plan import Create, Delete, Plan, delete, one_stage, set_status
from lamina.core.questions import Absent, Answers, Found, Question, Read
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref
from lamina.paper import Paper
from lamina.paper.kinds import CONFIG_MAP, SECRET, WIDGET, make
from lamina.testing.sieve import Mishap, Scenario, SieveError, Staff, Step, Wrote, sieve

WIDGETS, MAPS = only(*WIDGET.group_kind), only(*CONFIG_MAP.group_kind)
W, CHILD = WIDGET.ref("default", "w"), CONFIG_MAP.ref("default", "w")
SECOND = timedelta(seconds=1)


def comes(paper: Paper) -> None:
    paper.create(make(WIDGET, "w", spec={"size": 1}))


def goes(paper: Paper) -> None:
    paper.delete(W)


def wants(size: int) -> Step:
    return lambda paper: paper.patch(W, {"spec": {"size": size}})


def story(
    controllers: Staff[AnyController],
    *steps: Step,
    others: tuple[AnyController, ...] = (),
    promises: tuple[Callable[[Wrote], object], ...] = (),
) -> Scenario:
    return Scenario(
        name="a story",
        given=Paper,
        steps=[one for step in steps for one in (step, SECOND)],
        controllers=controllers,
        others=others,
        promises=promises,
        outcome=lambda paper: sorted(meta.name(one) for one in paper.listed(CONFIG_MAP)),
    )


def said_of(told: Scenario, *mishaps: Mishap) -> str:
    with pytest.raises(SieveError) as found:
        sieve(told, mishaps=mishaps or tuple(Mishap))
    return str(found.value)


def made(name: str) -> Create:
    return Create(obj=make(CONFIG_MAP, name))


# ── it counts on hearing of the end of something ──


def cleaner(concerns: Callable[[World, Change], Iterable[Ref]]) -> AnyController:
    """Return a controller with a child for its widget, and none without, that looks when a child concerns it."""

    def gather(world: World, ref: Ref) -> tuple[Obj | None, Obj | None]:
        return world.get(ref), world.get(CHILD)

    def plan(view: tuple[Obj | None, Obj | None], answers: Answers, now: datetime) -> Plan:
        owner, child = view
        if owner is not None and child is None:
            return one_stage("make it", [made("w")], because="there is none")
        if owner is None and child is not None:
            return one_stage("end it", [delete(child)], because="its widget is gone")
        return Plan(because="all is well")

    watches = (Watch(selects=WIDGETS, concerns=itself), Watch(selects=MAPS, concerns=concerns))
    return Controller(name="cleaner", watches=watches, gather=gather, plan=plan)


def test_who_cleans_up_only_when_it_hears_of_the_end_is_found_by_a_death_after_it() -> None:
    said = said_of(story([cleaner(nobody)], comes, goes))

    assert said.startswith(
        "a story: a death after step 3 of 4: another end than undisturbed: ['w'], where it should be []"
    )
    sieve(story([cleaner(lambda world, change: (W,))], comes, goes))


# ── it acts when something changes, and not by how it is ──


def _wakes(widget: Obj, answers: Answers, now: datetime) -> Plan:
    patch = set_status(widget, {"ready": True})
    return one_stage("say so", [patch] if patch else [], because="it is ready")


KUBELET: AnyController = Controller(
    name="kubelet",
    watches=(Watch(selects=WIDGETS, concerns=itself),),
    gather=lambda world, ref: world.get(ref),
    plan=_wakes,
)


def greeter(concerns: Callable[[World, Change], Iterable[Ref]]) -> AnyController:
    """Return a controller that makes something once its widget is ready."""

    def plan(view: tuple[Obj, Obj | None], answers: Answers, now: datetime) -> Plan:
        owner, child = view
        due = (owner.get("status") or {}).get("ready") and child is None
        return one_stage("make it", [made("w")] if due else [], because="it is ready")

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        owner = world.get(ref)
        return (owner, world.get(CHILD)) if owner is not None else None

    return Controller(
        name="greeter", watches=(Watch(selects=WIDGETS, concerns=concerns),
        Watch(selects=MAPS, concerns=nobody)), gather=gather, plan=plan,
    )  # fmt: skip


def _got_ready(world: World, change: Change) -> Iterable[Ref]:
    was, now = ((one or {}).get("status", {}).get("ready") for one in (change.before, change.after))
    return (change.ref,) if change.before is not None and now and not was else ()


def test_who_acts_on_a_change_and_not_on_a_state_is_found_by_a_death_after_the_change() -> None:
    said = said_of(story([greeter(_got_ready)], comes, others=(KUBELET,)), Mishap.DEATH)

    assert said.startswith(
        "a story: a death after write 1, patch widget default/w, in step 2 of 2: another end"
    )
    sieve(story([greeter(itself)], comes, others=(KUBELET,)))


# ── it remembers what it should have written down ──


def sender(mark: str, *, remembers: bool) -> AnyController:
    """Return a controller that sends one message for its widget, by a name of its own or by a new one."""
    sent: set[str] = set()

    def plan(view: tuple[Obj, tuple[Obj, ...]], answers: Answers, now: datetime) -> Plan:
        owner, there = view
        name = f"sent-{mark}" if remembers else "sent"
        if (meta.uid(owner) in sent) if remembers else any(meta.name(one) == name for one in there):
            return Plan(because="it was sent")
        sent.add(meta.uid(owner))
        return one_stage("send it", [made(name)], because="it was not")

    def gather(world: World, ref: Ref) -> tuple[Obj, tuple[Obj, ...]] | None:
        owner = world.get(ref)
        return (owner, tuple(world.every(CONFIG_MAP.group_kind))) if owner is not None else None

    watches = (Watch(selects=WIDGETS, concerns=itself), Watch(selects=MAPS, concerns=nobody))
    return Controller(name="sender", watches=watches, gather=gather, plan=plan)


@pytest.mark.parametrize("mishap", [Mishap.DEATH, Mishap.STALE, Mishap.UNSEEN])
def test_whoever_starts_after_a_mishap_remembers_nothing_and_gives_another_name(mishap: Mishap) -> None:
    numbers = count()

    told = story(lambda: [sender(str(next(numbers)), remembers=True)], comes)
    with pytest.raises(SieveError, match="(still finds something to do: create|another end)"):
        sieve(told, mishaps=[mishap])

    sieve(story(lambda: [sender("", remembers=False)], comes))


# ── it deletes what has no owner, because it has not heard of the owner yet ──


def collector(owners: Kind, children: Kind, *, looks: bool) -> AnyController:
    """Return a controller that deletes children without an owner of their name; one that looks asks the server."""

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        child = world.get(ref)
        return (child, world.get(owners.ref("default", ref.name))) if child is not None else None

    def questions(view: tuple[Obj, Obj | None], answers: Answers) -> tuple[Question, ...]:
        child, owner = view
        asked = Read(ref=owners.ref("default", meta.name(child)), whole=True)
        return (asked,) if looks and owner is None and asked not in answers else ()

    def plan(view: tuple[Obj, Obj | None], answers: Answers, now: datetime) -> Plan:
        child, owner = view
        asked = Read(ref=owners.ref("default", meta.name(child)), whole=True)
        gone = owner is None and (not looks or isinstance(answers.get(asked), Absent))
        return one_stage("end it", [delete(child)] if gone else [], because="it belongs to nobody")

    def concerned(world: World, change: Change) -> Iterable[Ref]:
        return (children.ref("default", meta.name(change.obj)),)

    return Controller(
        name="collector",
        watches=(
            Watch(selects=only(*children.group_kind), concerns=itself),
            Watch(selects=only(*owners.group_kind), concerns=concerned),
        ),
        gather=gather, questions=questions, plan=plan,
    )  # fmt: skip


@pytest.mark.parametrize(("owners", "children"), [(SECRET, CONFIG_MAP), (CONFIG_MAP, SECRET)])
def test_who_deletes_what_it_has_seen_no_owner_of_yet_is_found_whichever_it_is_told_of_first(
    owners: Kind, children: Kind
) -> None:
    def come(paper: Paper) -> None:
        paper.create(make(owners, "w"))
        paper.create(make(children, "w"))
        paper.create(make(children, "nobodys"))

    def told(looks: bool) -> Scenario:
        controllers = [collector(owners, children, looks=looks)]
        return Scenario(name="a story", given=Paper, steps=[come], controllers=controllers)

    with pytest.raises(SieveError) as found:
        sieve(told(False))

    assert str(found.value).startswith("a story: unseen states as it begins: another end than undisturbed")
    assert f"then the last word on each {children.kind}, then {owners.kind}\n" in str(found.value)
    sieve(told(True))


# ── it deletes by name what it saw, and meets what came after it ──


def resizer(*, looks: bool) -> AnyController:
    """Return a controller with a child while its widget has a size; one that looks asks about it before it ends one."""
    asked = Read(ref=W, whole=True)

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        owner = world.get(ref)
        return (owner, world.get(CHILD)) if owner is not None else None

    def questions(view: tuple[Obj, Obj | None], answers: Answers) -> tuple[Question, ...]:
        owner, child = view
        ends = child is not None and not owner["spec"]["size"]
        return (asked,) if looks and ends and asked not in answers else ()

    def plan(view: tuple[Obj, Obj | None], answers: Answers, now: datetime) -> Plan:
        owner, child = view
        if isinstance(real := answers.get(asked), Found):
            owner = real.obj
        if owner["spec"]["size"] and child is None:
            return one_stage("make it", [made("w")], because="it has a size")
        if not owner["spec"]["size"] and child is not None:
            return one_stage("end it", [Delete(ref=CHILD, uid="")], because="it has none")
        return Plan(because="all is well")

    watches = (
        Watch(selects=WIDGETS, concerns=itself),
        Watch(selects=MAPS, concerns=lambda world, change: (W,)),
    )
    return Controller(name="resizer", watches=watches, gather=gather, questions=questions, plan=plan)


def nothing_wanted_is_ended(wrote: Wrote) -> None:
    if isinstance(wrote.action, Delete) and wrote.paper.get(W)["spec"]["size"]:
        ended = wrote.before.get(CHILD) if CHILD not in wrote.paper.objects else None
        assert ended is None, "the child of a widget that has a size was ended"


def test_who_ends_by_name_what_it_saw_long_ago_is_found_by_a_view_of_then() -> None:
    def told(looks: bool) -> Scenario:
        return story([resizer(looks=looks)], comes, wants(0), wants(1), promises=(nothing_wanted_is_ended,))

    said = said_of(told(False))

    assert "a stale view" in said
    assert "the child of a widget that has a size was ended" in said
    assert "\nwhat it saw: the cluster as it was after step 3 of 6, for 5 s\n" in said
    sieve(told(True))


def test_a_sieve_through_which_nothing_goes_is_refused() -> None:
    told = story([greeter(itself)], comes, others=(KUBELET,))

    with pytest.raises(ValueError, match="nothing would be tried at every 0 of its moments"):
        sieve(told, every=0)
    with pytest.raises(ValueError, match="nothing would be tried"):
        sieve(told, mishaps=())
