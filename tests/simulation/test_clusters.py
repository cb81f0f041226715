"""One simulated process that watches several clusters."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from lamina.core.model.controller import EVERYWHERE, AnyController, Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Plan, change, one_stage
from lamina.core.model.queries import Answers, Follow, Found, Listed, Query, Read, Review
from lamina.core.model.world import Change, World
from lamina.errors import UnknownCluster
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import Key, Loop, Process, SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import CONFIG_MAP, WIDGET, make

CONFIG_MAPS = only("", "ConfigMap")


def report() -> AnyController:
    """Have the hub say what colour the map of its namespace `mine` has here, and copy it if there is none."""

    def gather(world: World, ref: Ref) -> tuple[Obj, Obj | None] | None:
        wanted = world.get(ref)
        return (
            (wanted, world.get(Ref("v1", "ConfigMap", "default", ref.name))) if wanted is not None else None
        )

    def plan(view: tuple[Obj, Obj | None], answers: Answers, now: datetime) -> Plan:
        wanted, there = view
        if there is None:
            made = make(CONFIG_MAP, meta.name(wanted), data=wanted["data"])
            return one_stage("copy it", [Create(obj=made)], because="the hub has it")
        said = {"seen": there["data"]["colour"]}
        if meta.annotations(wanted) == said:
            return NOTHING
        told = change(wanted, {"metadata": {"annotations": said}}, cluster="hub")
        return one_stage("write status", [told], because="it is there")

    def original(world: World, change: Change) -> Iterable[Ref]:
        yield change.ref._replace(cluster="hub", namespace="mine")

    return Controller(
        name="report",
        watches=(
            Watch(selects=CONFIG_MAPS, enqueue=itself, cluster="hub", namespace="mine"),
            Watch(selects=CONFIG_MAPS, enqueue=original),
        ),
        gather=gather,
        plan=plan,
    )


def test_a_plan_is_carried_out_on_the_clusters_it_names() -> None:
    spoke, hub = SimulatedCluster(), SimulatedCluster()
    hub.create(make(CONFIG_MAP, "a", "mine", data={"colour": "red"}))
    hub.create(make(CONFIG_MAP, "b", "yours", data={"colour": "red"}))

    settle(spoke, report(), others={"hub": hub})

    assert [ref.name for ref in spoke.objects] == ["a"]
    assert meta.annotations(hub.get(Ref("v1", "ConfigMap", "mine", "a"))) == {"seen": "red"}
    assert (
        planned(spoke, report(), Ref("v1", "ConfigMap", "mine", "a", "hub"), others={"hub": hub}) == NOTHING
    )


def test_a_process_sees_its_own_writes_on_each_cluster_however_late_news_come() -> None:
    spoke, hub = SimulatedCluster(), SimulatedCluster()
    for number in range(20):
        hub.create(make(CONFIG_MAP, f"m{number}", "mine", data={"colour": "red"}))
    process = Process(spoke, (report(),), others={"hub": hub})
    process.clusters.on("hub").informers.paused = process.informers.paused = True

    Loop(spoke, process).pass_time(timedelta(minutes=1))

    assert len(spoke.objects) == 20
    assert not [one for one in process.passes if one.failure is not None]


def test_a_change_on_one_cluster_requeues_an_owner_on_the_other() -> None:
    spoke, hub = SimulatedCluster(), SimulatedCluster()
    hub.create(make(CONFIG_MAP, "a", "mine", data={"colour": "red"}))
    play = Loop(spoke, Process(spoke, (report(),), others={"hub": hub}))
    play.pass_time(timedelta(seconds=1))

    spoke.patch(Ref("v1", "ConfigMap", "default", "a"), {"data": {"colour": "blue"}})
    play.pass_time(timedelta(seconds=1))

    assert meta.annotations(hub.get(Ref("v1", "ConfigMap", "mine", "a"))) == {"seen": "blue"}
    assert hub.now == spoke.now


def test_without_the_cluster_it_names_nothing_is_decided() -> None:
    spoke = SimulatedCluster()
    spoke.create(make(CONFIG_MAP, "a", data={"colour": "red"}))

    with pytest.raises(UnknownCluster, match="hub"):
        settle(spoke, report())


def counting() -> AnyController:
    """Write down at home how many maps there are elsewhere."""
    sums = Ref("v1", "ConfigMap", "default", "sums")

    def gather(world: World, ref: Ref) -> tuple[Obj | None, dict[str, str]]:
        counted = {name: str(world.on(name).count(CONFIG_MAP.group_kind)) for name in world.clusters}
        return world.get(sums), counted

    def plan(view: tuple[Obj | None, dict[str, str]], answers: Answers, now: datetime) -> Plan:
        there, counted = view
        if there is None:
            return one_stage("count", [Create(obj=make(CONFIG_MAP, "sums", data=counted))], because="")
        if there["data"] == counted:
            return NOTHING
        gone = {name: None for name in there["data"] if name not in counted}
        return one_stage("count again", [change(there, {"data": {**counted, **gone}})], because="")

    return Controller(
        name="counting",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=lambda world, change: (sums,), cluster=EVERYWHERE),),
        gather=gather,
        plan=plan,
    )


def test_clusters_come_and_go_while_it_runs() -> None:
    home, east, west = SimulatedCluster(), SimulatedCluster(), SimulatedCluster()
    for cluster in (east, west):
        cluster.create(make(CONFIG_MAP, "a"))
    process = Process(home, (counting(),), others={"east": east})
    play = Loop(home, process)
    play.settle()
    sums = Ref("v1", "ConfigMap", "default", "sums")
    assert home.get(sums)["data"] == {"east": "1"}

    process.bind("west", west)
    play.settle()
    assert home.get(sums)["data"] == {"east": "1", "west": "1"}

    west.create(make(CONFIG_MAP, "b"))
    process.unbind("east")
    play.settle()
    assert home.get(sums)["data"] == {"west": "2"}


def test_questions_are_put_to_the_cluster_they_name() -> None:
    spoke, hub = SimulatedCluster(), SimulatedCluster()
    hub.create(make(CONFIG_MAP, "sign"))
    spoke.create(make(CONFIG_MAP, "x"))
    asked: tuple[Query, ...] = (
        Read(Ref("v1", "ConfigMap", "default", "sign", "hub")),
        Review(body={"spec": {}}, key="may", cluster="hub"),
    )
    heard: list[Answers] = []

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        heard.append(answers)
        return NOTHING

    asking = Controller(
        name="asking",
        watches=(Watch(selects=CONFIG_MAPS, enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        queries=lambda obj, answers: () if answers.known else asked,
        plan=plan,
    )
    settle(spoke, asking, others={"hub": hub})

    read, review = (heard[0].get(one) for one in asked)
    assert isinstance(read, Found)
    assert review == Found({"spec": {}, "status": {"allowed": True}})


def test_dynamic_watches_read_from_the_informers() -> None:
    """Dynamic watches read from informers, too: while delivery is paused, their answers are stale."""
    cluster = SimulatedCluster()
    cluster.create(make(WIDGET, "w"))
    follow = Follow(kind=CONFIG_MAP, namespaces=None, names=None)
    told: list[int] = []

    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        found = answers.get(follow)
        assert isinstance(found, Listed)
        told.append(len(found.objects))
        return NOTHING

    curious: Controller[Obj] = Controller(
        name="curious",
        watches=(Watch(selects=only("ex.example.com", "Widget"), enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        queries=lambda view, answers: () if follow in answers else (follow,),
        plan=plan,
    )
    process = Process(cluster, (curious,))
    while process.step():
        pass
    process.informers.paused = True
    cluster.create(make(CONFIG_MAP, "new"))
    process.schedule.add(Key("curious", WIDGET.ref("default", "w")))
    while process.step():
        pass
    process.informers.deliver(CONFIG_MAP.group_kind)
    while process.step():
        pass

    assert told == [0, 0, 1]


def test_what_may_not_be_listed_fails_the_pass_and_is_tried_again() -> None:
    cluster = SimulatedCluster(unlisted={CONFIG_MAP.group_kind})
    cluster.create(make(WIDGET, "w"))
    cluster.create(make(CONFIG_MAP, "there"))
    follow = Follow(kind=CONFIG_MAP)
    told: list[int] = []

    def plan(view: Obj, answers: Answers, now: datetime) -> Plan:
        found = answers.get(follow)
        assert isinstance(found, Listed)
        told.append(len(found.objects))
        return NOTHING

    curious: Controller[Obj] = Controller(
        name="curious",
        watches=(Watch(selects=only("ex.example.com", "Widget"), enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        queries=lambda view, answers: () if follow in answers else (follow,),
        plan=plan,
    )
    process = Process(cluster, (curious,))
    loop = Loop(cluster, process)
    loop.until(cluster.now)
    assert told == []
    assert "list and watch of configmaps are refused" in str(process.passes[0].failure)

    cluster.unlisted.clear()
    loop.until(cluster.now + timedelta(minutes=1))
    assert told == [1]
