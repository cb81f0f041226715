"""
Common mistakes of controllers, each made on purpose, and what the crash explorer reports.

Each has a corrected variant, of which the explorer reports nothing.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count

import pytest

from lamina.core.model.controller import AnyController, Controller, Watch, itself, no_keys, only
from lamina.core.model.plan import Create, Delete, Plan, delete, one_stage, set_status
from lamina.core.model.queries import Absent, Answers, Found, Query, Read
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, SECRET, WIDGET, make
from lamina.testing.crash_explorer import (
    ExplorerError,
    Perturbation,
    Scenario,
    Step,
    ValuesOrFactory,
    Write,
    explore,
)

WIDGETS, MAPS = only(*WIDGET.group_kind), only(*CONFIG_MAP.group_kind)
W, CHILD = WIDGET.ref("default", "w"), CONFIG_MAP.ref("default", "w")
SECOND = timedelta(seconds=1)


def comes(cluster: SimulatedCluster) -> None:
    cluster.create(make(WIDGET, "w", spec={"size": 1}))


def goes(cluster: SimulatedCluster) -> None:
    cluster.delete(W)


def wants(size: int) -> Step:
    return lambda cluster: cluster.patch(W, {"spec": {"size": size}})


def scenario_of(
    controllers: ValuesOrFactory[AnyController],
    *steps: Step,
    others: tuple[AnyController, ...] = (),
    invariants: tuple[Callable[[Write], object], ...] = (),
) -> Scenario:
    return Scenario(
        name="a story",
        given=SimulatedCluster,
        steps=[one for step in steps for one in (step, SECOND)],
        controllers=controllers,
        others=others,
        invariants=invariants,
        outcome=lambda cluster: sorted(meta.name(one) for one in cluster.listed(CONFIG_MAP)),
    )


def said_of(told: Scenario, *perturbations: Perturbation) -> str:
    with pytest.raises(ExplorerError) as found:
        explore(told, perturbations=perturbations or tuple(Perturbation))
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

    watches = (Watch(selects=WIDGETS, enqueue=itself), Watch(selects=MAPS, enqueue=concerns))
    return Controller(name="cleaner", watches=watches, gather=gather, plan=plan)


def test_cleanup_on_the_deletion_event_alone_is_found_by_a_crash_after_it() -> None:
    said = said_of(scenario_of([cleaner(no_keys)], comes, goes))

    assert said.startswith(
        "a story: a crash after step 3 of 4: outcome differs from the unperturbed run: ['w'], expected []"
    )
    explore(scenario_of([cleaner(lambda world, change: (W,))], comes, goes))


# ── it acts when something changes, and not by how it is ──


def _wakes(widget: Obj, answers: Answers, now: datetime) -> Plan:
    patch = set_status(widget, {"ready": True})
    return one_stage("say so", [patch] if patch else [], because="it is ready")


KUBELET: AnyController = Controller(
    name="kubelet",
    watches=(Watch(selects=WIDGETS, enqueue=itself),),
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
        name="greeter", watches=(Watch(selects=WIDGETS, enqueue=concerns),
        Watch(selects=MAPS, enqueue=no_keys)), gather=gather, plan=plan,
    )  # fmt: skip


def _got_ready(world: World, change: Change) -> Iterable[Ref]:
    was, now = ((one or {}).get("status", {}).get("ready") for one in (change.before, change.after))
    return (change.ref,) if change.before is not None and now and not was else ()


def test_who_acts_on_a_change_and_not_on_a_state_is_found_by_a_death_after_the_change() -> None:
    said = said_of(scenario_of([greeter(_got_ready)], comes, others=(KUBELET,)), Perturbation.CRASH)

    assert said.startswith(
        "a story: a crash after write 1, patch widget default/w, in step 2 of 2: outcome differs"
    )
    explore(scenario_of([greeter(itself)], comes, others=(KUBELET,)))


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

    watches = (Watch(selects=WIDGETS, enqueue=itself), Watch(selects=MAPS, enqueue=no_keys))
    return Controller(name="sender", watches=watches, gather=gather, plan=plan)


@pytest.mark.parametrize(
    "perturbation", [Perturbation.CRASH, Perturbation.STALE_VIEW, Perturbation.MISSED_EVENTS]
)
def test_a_process_that_starts_after_a_perturbation_remembers_nothing_and_gives_another_name(
    perturbation: Perturbation,
) -> None:
    numbers = count()

    told = scenario_of(lambda: [sender(str(next(numbers)), remembers=True)], comes)
    with pytest.raises(ExplorerError, match="(still finds work: create|outcome differs)"):
        explore(told, perturbations=[perturbation])

    explore(scenario_of(lambda: [sender("", remembers=False)], comes))


# ── it deletes what has no owner, because it has not heard of the owner yet ──


def collector(owners: Kind, children: Kind, *, looks: bool) -> AnyController:
    """Return a controller that deletes children without an owner of their name; one that looks asks the server."""

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        child = world.get(ref)
        return (child, world.get(owners.ref("default", ref.name))) if child is not None else None

    def queries(view: tuple[Obj, Obj | None], answers: Answers) -> tuple[Query, ...]:
        child, owner = view
        asked = Read(ref=owners.ref("default", meta.name(child)), whole=True)
        return (asked,) if looks and owner is None and asked not in answers else ()

    def plan(view: tuple[Obj, Obj | None], answers: Answers, now: datetime) -> Plan:
        child, owner = view
        asked = Read(ref=owners.ref("default", meta.name(child)), whole=True)
        gone = owner is None and (not looks or isinstance(answers.get(asked), Absent))
        return one_stage("end it", [delete(child)] if gone else [], because="it has no owner")

    def concerned(world: World, change: Change) -> Iterable[Ref]:
        return (children.ref("default", meta.name(change.obj)),)

    return Controller(
        name="collector",
        watches=(
            Watch(selects=only(*children.group_kind), enqueue=itself),
            Watch(selects=only(*owners.group_kind), enqueue=concerned),
        ),
        gather=gather, queries=queries, plan=plan,
    )  # fmt: skip


@pytest.mark.parametrize(("owners", "children"), [(SECRET, CONFIG_MAP), (CONFIG_MAP, SECRET)])
def test_who_deletes_what_it_has_seen_no_owner_of_yet_is_found_whichever_it_is_told_of_first(
    owners: Kind, children: Kind
) -> None:
    def come(cluster: SimulatedCluster) -> None:
        cluster.create(make(owners, "w"))
        cluster.create(make(children, "w"))
        cluster.create(make(children, "ownerless"))

    def scenario(looks: bool) -> Scenario:
        controllers = [collector(owners, children, looks=looks)]
        return Scenario(name="a story", given=SimulatedCluster, steps=[come], controllers=controllers)

    with pytest.raises(ExplorerError) as found:
        explore(scenario(False))

    assert str(found.value).startswith(
        "a story: missed events at the start: outcome differs from the unperturbed run"
    )
    assert f"then the latest state of each {children.kind}, then {owners.kind}\n" in str(found.value)
    explore(scenario(True))


# ── it deletes by name what it saw, and meets what came after it ──


def resizer(*, looks: bool) -> AnyController:
    """Return a controller with a child while its widget has a size; one that looks asks about it before it ends one."""
    asked = Read(ref=W, whole=True)

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        owner = world.get(ref)
        return (owner, world.get(CHILD)) if owner is not None else None

    def queries(view: tuple[Obj, Obj | None], answers: Answers) -> tuple[Query, ...]:
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
        Watch(selects=WIDGETS, enqueue=itself),
        Watch(selects=MAPS, enqueue=lambda world, change: (W,)),
    )
    return Controller(name="resizer", watches=watches, gather=gather, queries=queries, plan=plan)


def nothing_wanted_is_ended(write: Write) -> None:
    if isinstance(write.action, Delete) and write.cluster.get(W)["spec"]["size"]:
        ended = write.before.get(CHILD) if CHILD not in write.cluster.objects else None
        assert ended is None, "the child of a widget that has a size was ended"


def test_who_ends_by_name_what_it_saw_long_ago_is_found_by_a_view_of_then() -> None:
    def scenario(looks: bool) -> Scenario:
        return scenario_of(
            [resizer(looks=looks)], comes, wants(0), wants(1), invariants=(nothing_wanted_is_ended,)
        )

    said = said_of(scenario(False))

    assert "a stale view" in said
    assert "the child of a widget that has a size was ended" in said
    assert "\nits view: the cluster as it was after step 3 of 6, for 5 s\n" in said
    explore(scenario(True))


def test_an_exploration_of_nothing_is_refused() -> None:
    told = scenario_of([greeter(itself)], comes, others=(KUBELET,))

    with pytest.raises(ValueError, match="nothing to explore: every 0 checkpoints"):
        explore(told, every=0)
    with pytest.raises(ValueError, match="nothing to explore"):
        explore(told, perturbations=())
