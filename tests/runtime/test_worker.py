"""The one loop, with controllers made for the occasion, on a whole server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from lamina.app import App
from lamina.client.client import Client
from lamina.clock import ManualClock, WallClock
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Plan, Stage, change, one_stage
from lamina.core.model.queries import Absent, Answer, Answers, Follow, Found, Listed, Query, Read, Refused
from lamina.core.model.world import Change, World, whole
from lamina.errors import HookError, LaminaError, SpecError
from lamina.faults import Refuse
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.recorder import Recorder
from lamina.testing.waiting import eventually
from tests.runtime.cluster import (
    at,
    config_map,
    definition,
    embedded,
    reader,
    running,
    wait_created,
    wait_deleted,
)

Planner = Callable[[Obj, Answers, datetime], Plan]


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with embedded() as app:
        yield app


@pytest.fixture
def client(app: App) -> Client:
    return app.client()


@dataclass
class Toy:
    """A controller of ConfigMaps labelled `toy`, and what it was asked."""

    plan: Planner
    asks: Callable[[Obj], tuple[Query, ...]] = lambda obj: ()
    complaint: Callable[[Obj, LaminaError], Plan] = lambda obj, error: NOTHING
    passes: list[str] = field(default_factory=list)

    async def passed(self, many: int) -> None:
        """Wait until so many passes were made."""
        await eventually(lambda: len(self.passes) >= many, interval=0.005)

    def controller(self) -> Controller[Obj]:
        def gather(world: World, ref: Ref) -> Obj | None:
            obj = world.get(ref)
            if obj is not None:
                self.passes.append(meta.resource_version(obj))
            return obj

        def queries(view: Obj, answers: Answers) -> tuple[Query, ...]:
            return tuple(question for question in self.asks(view) if question not in answers)

        def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
            obj = world.get(ref)
            return self.complaint(obj, error) if obj is not None else NOTHING

        def labelled(world: World, change: Change) -> Iterable[Ref]:
            return itself(world, change) if "toy" in meta.labels(change.obj) else ()

        return Controller(
            name="toy",
            watches=(Watch(selects=only("", "ConfigMap"), enqueue=labelled, keep=whole),),
            gather=gather,
            queries=queries,
            plan=self.plan,
            complain=complain,
            manager="toy",
        )


def toy(name: str, data: dict[str, str] | None = None) -> Made:
    return {**config_map(name, labels={"toy": "yes"}), "data": data or {}}


def counted(obj: Obj) -> int:
    return int((obj.get("data") or {}).get("count", "0"))


def count_to(limit: int) -> Planner:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if counted(obj) == limit:
            return NOTHING
        step = change(obj, {"data": {"count": str(counted(obj) + 1)}})
        return one_stage("count", [step], because="there is more to count")

    return plan


async def test_a_worker_sees_what_it_wrote_before_it_plans_again(client: Client) -> None:
    """Each pass plans from the version the last one made: nothing is refused, and nothing is done twice."""
    counting = Toy(count_to(10))
    async with running(client, [counting.controller()]):
        await client.create(toy("a"))
        await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 10)

    assert len(counting.passes) - len(set(counting.passes)) <= 1
    assert counting.passes == sorted(counting.passes, key=int)


async def test_what_was_there_before_is_worked_on_too(client: Client) -> None:
    await client.create(toy("a"))

    async with running(client, [Toy(count_to(3)).controller()]):
        await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 3)


async def test_a_concurrent_write_leads_to_a_new_plan_not_to_a_lost_update(
    client: Client,
) -> None:
    async with running(client, [Toy(count_to(20)).controller()]):
        await client.create(toy("a"))
        for number in range(10):
            await client.patch(at("a"), {"data": {f"other-{number}": "x"}})
        done = await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 20)

    assert done is not None
    assert {f"other-{number}" for number in range(10)} <= set(done["data"])


async def test_a_name_that_is_taken_leads_to_a_real_look(client: Client) -> None:
    """The planner believes a name is free; the server knows better; the next plan does too."""
    taken = config_map("taken")

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        match answers.get(Read(at("taken"))):
            case Absent():
                return one_stage("make it", [Create(obj=taken)], because="it is free", again=timedelta(0))
            case Found(found) if counted(obj) == 0:
                step = change(obj, {"data": {"count": "1", "found": meta.uid(found)}})
                return one_stage("note it", [step], because="it is taken")
            case _:
                return NOTHING

    looking = Toy(plan, asks=lambda obj: (Read(at("taken")),))
    async with running(client, [looking.controller()]):
        await client.create(toy("a"))
        done = await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 1)

    assert done is not None
    assert done["data"]["found"] == meta.uid(await client.get(at("taken")))


async def test_a_refusal_is_said_on_the_object(client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        return one_stage("make it", [Create(obj=config_map("Bad_Name"))], because="why not")

    def complain(obj: Obj, error: LaminaError) -> Plan:
        if (obj.get("data") or {}).get("complaint"):
            return NOTHING
        return one_stage(
            "say so", [change(obj, {"data": {"complaint": str(error)}})], because="it was refused"
        )

    async with running(client, [Toy(plan, complaint=complain).controller()]):
        await client.create(toy("a"))
        said = await eventually(
            reader(client, at("a")), lambda obj: bool(obj and "complaint" in obj.get("data", {}))
        )

    assert said is not None
    assert "Bad_Name" in said["data"]["complaint"]


SECRETS = Kind("v1", "Secret", "secrets", True, frozenset(("list", "watch")))
NO_SECRETS = Refuse(code=403, verbs=("list", "watch"), resources=("secrets",))


async def test_what_may_not_be_listed_is_not_taken_for_absent(app: App, client: Client) -> None:
    complaints: list[str] = []
    planned: list[Answer | None] = []
    follow = Follow(kind=SECRETS)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        planned.append(answers.get(follow))
        return NOTHING

    def complain(obj: Obj, error: LaminaError) -> Plan:
        complaints.append(str(error))
        return NOTHING

    fault = app.cluster.api.faults.add(NO_SECRETS)
    async with running(client, [Toy(plan, asks=lambda obj: (follow,), complaint=complain).controller()]):
        await client.create(toy("a"))
        await eventually(lambda: bool(complaints))
        assert complaints[0].startswith("list and watch of secrets are refused: ") and not planned

        app.cluster.api.faults.remove(fault.id)
        await eventually(lambda: bool(planned))
    assert planned[0] == Listed(())


async def test_a_refused_list_is_an_answer_where_it_is_asked_for(app: App, client: Client) -> None:
    planned: list[Answer | None] = []
    follow = Follow(kind=SECRETS, refusable=True)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        planned.append(answers.get(follow))
        return NOTHING

    app.cluster.api.faults.add(NO_SECRETS)
    async with running(client, [Toy(plan, asks=lambda obj: (follow,)).controller()]):
        await client.create(toy("a"))
        await eventually(lambda: bool(planned))

    assert isinstance(planned[0], Refused) and "secrets" in planned[0].because


async def test_a_mistake_in_one_key_is_survived_and_harms_no_other(client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if meta.name(obj) == "bad":
            raise ZeroDivisionError
        return count_to(1)(obj, answers, now)

    broken = Toy(plan)
    async with running(client, [broken.controller()]):
        await client.create(toy("bad"))
        await client.create(toy("good"))
        await eventually(reader(client, at("good")), lambda obj: obj is not None and counted(obj) == 1)


class Noted(Recorder):
    """What became of passes, in order."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def worked(self, result: str, seconds: float) -> None:
        self.results.append(result)

    async def has_noted(self, many: int) -> None:
        await eventually(lambda: len(self.results) >= many, interval=0.005)


@pytest.mark.parametrize(
    ("wrong", "counts_as", "comes_back"),
    [
        (ZeroDivisionError("a mistake of ours"), "panic", True),
        (SpecError("spec.x: makes no sense"), "terminal", False),
        (HookError("no answer"), "error", True),
        (HookError("busy", after=1.0), "requeue_after", True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_the_result_of_a_failed_pass_is_reported_to_the_metrics(
    client: Client, wrong: Exception, counts_as: str, comes_back: bool
) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        raise wrong

    meter, clock = Noted(), ManualClock()
    manager = Manager(
        client, [Toy(plan).controller()], clock, structlog.get_logger(), meters=lambda name: meter
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.ready()
        await client.create(toy("a"))
        await meter.has_noted(1)
        due = manager.due(at("a"))
        task.cancel()

    assert meter.results[0] == counts_as
    assert (due is not None) is comes_back


async def test_later_is_by_the_clock_that_was_given(client: Client) -> None:
    clock, looked = ManualClock(), asyncio.Event()
    due = clock.now() + timedelta(hours=1)

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if now < due:
            looked.set()
            return Plan(requeue_after=due - now)
        return count_to(1)(obj, answers, now)

    waiting = Toy(plan)
    async with running(client, [waiting.controller()], clock) as manager:
        await client.create(toy("a"))
        async with asyncio.timeout(60):
            await looked.wait()
        assert manager.is_idle
        assert counted(await client.get(at("a"))) == 0

        clock.wind(timedelta(hours=1))
        await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 1)


async def test_a_report_that_can_wait_is_made_once_in_its_time_with_all_that_came_together(
    client: Client,
) -> None:
    clock = ManualClock()

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        seen, said = obj["data"]["seen"], obj["data"].get("said")
        if said == seen:
            return NOTHING
        report = change(obj, {"data": {"said": seen}})
        return Plan(stages=(Stage("say so", (report,), min_interval=timedelta(minutes=1)),))

    reporting = Toy(plan)
    async with running(client, [reporting.controller()], clock) as manager:
        await client.create(toy("a", {"seen": "1"}))
        await eventually(
            reader(client, at("a")), lambda obj: obj is not None and obj["data"].get("said") == "1"
        )

        for seen in ("2", "3", "4"):
            await client.patch(at("a"), {"data": {"seen": seen}})
        due = await next_due(manager)
        before = await client.get(at("a"))
        clock.wind(timedelta(minutes=1))
        after = await eventually(
            reader(client, at("a")), lambda obj: obj is not None and obj["data"]["said"] == "4"
        )

    assert due == clock.now()
    assert before["data"] == {"seen": "4", "said": "1"}
    assert after is not None


async def test_a_report_that_is_refused_is_tried_again_later_each_time(client: Client) -> None:
    clock, waits = ManualClock(), list[timedelta]()

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        report = change(obj, {"data": {"no key!": "x"}})
        return Plan(stages=(Stage("say so", (report,), min_interval=timedelta(minutes=1)),))

    async with running(client, [Toy(plan).controller()], clock) as manager:
        await client.create(toy("a"))
        for _ in range(4):
            waits.append(await next_due(manager, after=clock.now()) - clock.now())
            clock.wind(waits[-1])

    assert waits == sorted(set(waits))


async def test_a_kind_that_does_not_exist_yet_is_watched_once_it_does_and_again_after_it_was_gone(
    app: App,
) -> None:
    """Watches follow what is served: nothing has to be restarted for a new kind."""
    client = app.client()
    ref = Ref("runtime.example.com/v1", "Widget", "default", "w")

    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if obj.get("seen"):
            return NOTHING
        return one_stage("note it", [change(obj, {"seen": meta.uid(obj)})], because="it is new")

    watcher: Controller[Any] = replace(
        Toy(plan).controller(),
        watches=(Watch(selects=only("runtime.example.com", "Widget"), enqueue=itself, keep=whole),),
    )
    async with running(client, [watcher]):
        for _ in range(2):
            made = await client.create(definition("widgets", "Widget"))
            await eventually(reader(client, meta.ref(made)), _established)
            await client.create({"apiVersion": ref.api_version, "kind": "Widget", "metadata": _named(ref)})
            await eventually(reader(client, ref), lambda obj: bool(obj and obj.get("seen") == meta.uid(obj)))

            await client.delete(meta.ref(made))
            await wait_deleted(client, meta.ref(made))


async def test_stopping_stops_everything(client: Client) -> None:
    counting = Toy(count_to(1))
    async with running(client, [counting.controller()]):
        await client.create(toy("a"))
        await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 1)
    passes = len(counting.passes)

    await client.create(toy("b"))
    await wait_created(client, at("b"))

    assert len(counting.passes) == passes


def _established(obj: Made | None) -> bool:
    found = ((obj or {}).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)


def _named(ref: Ref) -> dict[str, str]:
    return {"name": ref.name, "namespace": ref.namespace}


def nonsense(obj: Obj, answers: Answers, now: datetime) -> Plan:
    raise SpecError("it makes no sense")


def busy(obj: Obj, answers: Answers, now: datetime) -> Plan:
    raise HookError("busy", after=0.0)


@pytest.mark.parametrize("plan", [nonsense, lambda obj, answers, now: NOTHING], ids=["failed", "well"])
async def test_every_key_is_looked_at_each_period_however_its_last_pass_ended(
    client: Client, plan: Planner
) -> None:
    clock, made = ManualClock(), Toy(plan)
    async with running(
        client, [replace(made.controller(), period=timedelta(minutes=1))], clock=clock
    ) as manager:
        await client.create(toy("a"))
        for passes in (1, 2, 3):
            await made.passed(passes)
            await next_due(manager)
            clock.wind(timedelta(minutes=1))


async def test_a_busy_hook_that_does_not_say_when_is_left_alone_longer_each_time(client: Client) -> None:
    clock, made = ManualClock(), Toy(busy)
    async with running(client, [made.controller()], clock=clock) as manager:
        await client.create(toy("a"))
        pauses = []
        for passes in range(1, 5):
            await made.passed(passes)
            pauses.append(await next_due(manager) - clock.now())
            clock.wind(pauses[-1])

    assert [pause.total_seconds() for pause in pauses] == [1, 2, 4, 8]


async def test_a_pass_with_repeated_conflicts_is_retried_soon(client: Client) -> None:
    def late(obj: Obj, answers: Answers, now: datetime) -> Plan:
        old = meta.with_metadata(obj, resourceVersion="1")
        return one_stage("count", [change(old, {"data": {"count": "1"}})], because="it looks like that")

    clock, made = ManualClock(), Toy(late)
    async with running(client, [made.controller()], clock=clock) as manager:
        await client.create(toy("a"))
        pauses = []
        for passes in range(1, 14):
            await made.passed(passes)
            pauses.append(await next_due(manager) - clock.now())
            clock.wind(pauses[-1])

    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == timedelta(seconds=1)


async def next_due(manager: Manager, after: datetime | None = None) -> datetime:
    """Wait until the manager is idle with a new due time of the toy, and return that time."""
    due = await eventually(
        lambda: manager.due(at("a")),
        lambda due: due is not None and manager.is_idle and (after is None or due > after),
        interval=0.005,
    )
    assert due is not None
    return due


@dataclass
class Follower:
    """A replica that holds no lease until the test grants it."""

    leads: bool = False

    def holds(self, uid: str) -> bool:
        return self.leads


async def test_a_replica_reconciles_nothing_before_it_leads_and_everything_after(client: Client) -> None:
    lead, counting = Follower(), Toy(count_to(2))
    manager = Manager(client, [counting.controller()], WallClock(), structlog.get_logger(), lead=lead)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.ready()
        await client.create(toy("a"))
        async with running(client, [replace(Toy(count_to(1)).controller(), name="other")]):
            await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 1)
        assert counting.passes == []

        lead.leads = True
        manager.resync()

        await eventually(reader(client, at("a")), lambda obj: obj is not None and counted(obj) == 2)
        task.cancel()
