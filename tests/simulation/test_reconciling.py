"""
A simulated process reconciles as the runtime does.

The same four promises are kept by the runtime in tests/runtime: test_executor.py
(optional applies), test_live_queries_on_servers.py (refusable reads, stale replacements)
and test_worker.py (minimal intervals).
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from lamina.core.model.controller import Controller, Source, Watch, itself, no_keys, only
from lamina.core.model.plan import NOTHING, Apply, Create, Plan, Stage, change
from lamina.core.model.queries import Answers, DryRun, Query, Read, ReadAll, Refused
from lamina.core.model.world import World
from lamina.errors import CacheNotSynced, Forbidden, LaminaError
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, SECRET, make

A = Ref("v1", "ConfigMap", "default", "a")


@pytest.fixture
def cluster() -> SimulatedCluster:
    found = SimulatedCluster()
    found.create(make(CONFIG_MAP, "a", data={"colour": "red"}))
    return found


def toy(
    plan: Callable[[Obj, Answers, datetime], Plan],
    *,
    queries: Callable[[Obj, Answers], tuple[Query, ...]] = lambda view, answers: (),
    complaints: list[LaminaError] | None = None,
) -> Controller[Obj]:
    """Return a controller of one ConfigMap that notes what it would report on it."""

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        if complaints is not None:
            complaints.append(error)
        return NOTHING

    return Controller(
        name="toy",
        watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself, named="a"),),
        gather=lambda world, ref: world.get(ref),
        queries=queries,
        plan=plan,
        complain=complain,
        manager="toy",
    )


def test_an_optional_apply_that_is_refused_does_not_hold_up_a_plan(cluster: SimulatedCluster) -> None:
    cluster.apply(make(SECRET, "disputed", data={"colour": "cmVk"}), manager="alice")
    stated = make(SECRET, "disputed", data={"colour": "Ymx1ZQ=="})
    maybe = Stage("maybe", (Apply(obj=stated, optional=True),))
    after = Stage("after", (Create(obj=make(SECRET, "after")),))
    complaints: list[LaminaError] = []
    controller = toy(lambda view, answers, now: Plan(stages=(maybe, after)), complaints=complaints)

    Process(cluster, [controller]).step()

    assert cluster.at(SECRET.ref("default", "after")) is not None
    assert cluster.get(SECRET.ref("default", "disputed"))["data"] == {"colour": "cmVk"}
    assert complaints == []


def test_a_dry_run_of_a_replacement_that_is_stale_is_tried_again_and_not_reported(
    cluster: SimulatedCluster,
) -> None:
    versions = ["1000", meta.resource_version(cluster.get(A))]
    complaints: list[LaminaError] = []

    def queries(view: Obj, answers: Answers) -> tuple[Query, ...]:
        if answers.known:
            return ()
        seen = {**view, "metadata": {**view["metadata"], "resourceVersion": versions[0]}}
        if len(versions) > 1:
            versions.pop(0)
        return (DryRun(obj=seen, manager="toy", key=meta.resource_version(seen), replaces=True),)

    done = Plan(stages=(Stage("done", (Create(obj=make(SECRET, "done")),)),))
    process = Process(cluster, [toy(lambda view, answers, now: done, queries=queries, complaints=complaints)])
    loop = Loop(cluster, process)

    loop.settle()
    assert cluster.at(SECRET.ref("default", "done")) is None
    loop.pass_time(timedelta(milliseconds=5))

    assert cluster.at(SECRET.ref("default", "done")) is not None
    assert complaints == []


def test_a_dry_run_of_a_replacement_that_is_stale_waits_for_the_cache(cluster: SimulatedCluster) -> None:
    stale = {**cluster.get(A), "metadata": {**cluster.get(A)["metadata"], "resourceVersion": "1000"}}

    with pytest.raises(CacheNotSynced):
        cluster.answer(DryRun(obj=stale, manager="toy", key="k", replaces=True))


def test_a_dry_run_of_an_object_whose_name_is_taken_is_refused(cluster: SimulatedCluster) -> None:
    answer = cluster.answer(DryRun(obj=make(CONFIG_MAP, "a"), manager="toy", key="k", creates=True))

    assert isinstance(answer, Refused) and answer.code == 409


def test_a_report_is_made_at_most_once_in_its_interval(cluster: SimulatedCluster) -> None:
    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        colour = view["data"]["colour"]
        if meta.annotations(view).get("seen") == colour:
            return NOTHING
        report = change(view, {"metadata": {"annotations": {"seen": colour}}})
        return Plan(stages=(Stage("report", (report,), min_interval=timedelta(minutes=1)),))

    def seen() -> str:
        return meta.annotations(cluster.get(A)).get("seen", "")

    loop = Loop(cluster, Process(cluster, [toy(plan)]))
    loop.settle()
    assert seen() == "red"

    for colour in ("green", "blue"):
        cluster.patch(A, {"data": {"colour": colour}})
        loop.pass_time(timedelta(seconds=20))
        assert seen() == "red"
    loop.pass_time(timedelta(seconds=20))
    assert seen() == "blue"


def test_a_refusable_read_that_is_forbidden_has_an_answer(cluster: SimulatedCluster) -> None:
    cluster.refuse = {
        Read: Forbidden("configmaps is forbidden"),
        ReadAll: Forbidden("configmaps is forbidden"),
    }

    assert cluster.answer(Read(A, refusable=True)) == Refused(403, "configmaps is forbidden")
    for query in (Read(A), ReadAll(CONFIG_MAP, "default")):
        with pytest.raises(Forbidden):
            cluster.answer(query)


def test_keys_that_fail_together_are_retried_one_after_another(cluster: SimulatedCluster) -> None:
    """As in the runtime, so that a simulation does not retry sooner than a cluster would see it."""

    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        raise Forbidden("no")

    for number in range(300):
        cluster.create(make(CONFIG_MAP, f"toy-{number}"))
    every = Watch(selects=only("", "ConfigMap"), enqueue=itself)
    controller = Controller(name="toy", watches=(every,), gather=lambda world, ref: world.get(ref), plan=plan)
    process = Process(cluster, [controller])
    loop = Loop(cluster, process)
    loop.settle()

    loop.pass_time(timedelta(milliseconds=5))

    assert len(process.passes) == 301 + 100


def test_a_controller_that_replaces_another_has_seen_what_that_one_wrote(cluster: SimulatedCluster) -> None:
    secret = make(SECRET, "s")

    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        return Plan(stages=(Stage("make", (Create(obj=secret),)),)) if view == {} else NOTHING

    def controllers(world: World) -> tuple[Controller[Obj], ...]:
        switch = world.get(A)
        assert switch is not None
        watches = (*toy(plan).watches, Watch(selects=only("", "Secret"), enqueue=no_keys))
        made = replace(toy(plan), watches=watches, config_hash=switch["data"]["colour"])
        return (replace(made, gather=lambda world, ref: world.get(meta.ref(secret)) or {}),)

    watch = Watch(selects=only("", "ConfigMap"), enqueue=no_keys)
    process = Process(cluster, sources=[Source(name="s", watches=(watch,), controllers=controllers)])
    process.informers.paused = True
    while process.step():
        pass
    assert cluster.at(meta.ref(secret)) is not None

    cluster.patch(A, {"data": {"colour": "blue"}})
    process.informers.deliver(CONFIG_MAP.group_kind)
    while process.step():
        pass

    assert [one.config_hash for one in process.controllers] == ["blue"]
    assert [one.failure for one in process.passes] == [None]


def test_a_plan_on_removal_that_is_refused_stops_at_its_stage_and_nothing_else(
    cluster: SimulatedCluster,
) -> None:
    """As in the runtime: a refusal does not hold up the controllers that go on."""
    cluster.create(make(SECRET, "taken"))
    cluster.apply(make(SECRET, "disputed", data={"colour": "cmVk"}), manager="alice")
    optional = Apply(obj=make(SECRET, "disputed", data={"colour": "Ymx1ZQ=="}), optional=True)
    removal = Plan(
        stages=(
            Stage("maybe", (optional,)),
            Stage("refused", (Create(obj=make(SECRET, "taken")), Create(obj=make(SECRET, "beside")))),
            Stage("after", (Create(obj=make(SECRET, "after")),)),
            Stage("anyway", (Create(obj=make(SECRET, "anyway")),), run_after_failure=True),
        )
    )
    going = replace(toy(lambda view, answers, now: NOTHING), on_removed=lambda now: removal)

    def controllers(world: World) -> tuple[Controller[Obj], ...]:
        return (going,) if world.get(A) is not None else ()

    watch = Watch(selects=only("", "ConfigMap"), enqueue=no_keys)
    process = Process(cluster, sources=[Source(name="s", watches=(watch,), controllers=controllers)])
    while process.step():
        pass
    cluster.delete(A)

    while process.step():
        pass

    assert process.controllers == ()
    found = {name for name in ("beside", "after", "anyway") if cluster.at(SECRET.ref("default", name))}
    assert found == {"beside", "anyway"}
