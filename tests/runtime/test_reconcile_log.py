"""What the log says of reconciles: what was done, what is wrong, and nothing twice."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from lamina.app import App
from lamina.cli.signals import run_until
from lamina.client.client import Client
from lamina.clock import ManualClock, WallClock
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import NOTHING, Create, Delete, Emit, Plan, Stage, change
from lamina.core.model.queries import Answers, Call, HookResponse
from lamina.errors import LaminaError, SpecError
from lamina.faults import Refuse
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.runtime.controller.manager import Manager
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, embedded, reader, running
from tests.runtime.test_worker import Toy, toy

Lines = Iterable[Mapping[str, Any]]


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with embedded() as app:
        yield app


@pytest.fixture
def client(app: App) -> Client:
    return app.client()


def said(lines: Lines, level: str) -> list[tuple[str, str, str]]:
    """Return the event, the objects and the reason of each line of a level that is about the object."""
    return [
        (one["event"], one.get("objects", ""), one["because"])
        for one in lines
        if one["log_level"] == level and one.get("object") == "configmap default/a"
    ]


async def test_a_line_names_what_was_done_and_the_objects_it_was_done_to(client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if obj["data"].get("step") == "last":
            return NOTHING
        if obj["data"].get("step") == "first":
            done = change(obj, {"data": {"step": "last"}})
            gone = Delete(ref=at("x-0"), uid="")
            return Plan(stages=(Stage("end", (done, gone)),), because="it was first")
        made = [Create(obj=config_map(f"x-{number}")) for number in range(7)]
        step = Stage("step", (change(obj, {"data": {"step": "first"}}),))
        return Plan(stages=(Stage("create", tuple(made)), step), because="there is none")

    with capture_logs() as lines:
        async with running(client, [Toy(plan).controller()]):
            await client.create(toy("a", {"step": ""}))
            await eventually(
                reader(client, at("a")), lambda obj: obj is not None and obj["data"]["step"] == "last"
            )
            await eventually(lambda: len(said(lines, "info")) >= 4)

    names = ", ".join(f"configmap default/x-{number}" for number in range(5))
    assert said(lines, "info") == [
        ("created", f"{names} and 2 more", "there is none"),
        ("patched", "configmap default/a", "there is none"),
        ("patched", "configmap default/a", "it was first"),
        ("deleted", "configmap default/x-0", "it was first"),
    ]


async def test_a_warning_event_is_a_warning_in_the_log_and_a_normal_event_is_not(client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        events = (
            Emit(event=normal(obj, "RolloutProgressing", "two of three", by="toy", now=now)),
            Emit(event=warning(obj, "RolloutAborted", "image:2 crashes", by="toy", now=now)),
        )
        return Plan(stages=(Stage("emit events", events),), because="it is over")

    aborted = Toy(plan)
    with capture_logs() as lines:
        async with running(client, [aborted.controller()]) as manager:
            await client.create(toy("a"))
            await aborted.passed(1)
            # The same event again is the same occurrence.
            manager.resync()
            await aborted.passed(2)
            await eventually(lambda: manager.is_idle)

    assert said(lines, "warning") == [("rollout aborted", "", "image:2 crashes")]
    assert said(lines, "info") == []


@pytest.mark.parametrize("wrong", [LaminaError("no quota"), SpecError("spec.x: unknown")], ids=type)
async def test_an_unchanged_error_is_logged_once_for_each_step_of_its_backoff(
    client: Client, wrong: LaminaError
) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        raise wrong

    failing, clock = Toy(plan), ManualClock()
    with capture_logs() as lines:
        async with running(client, [failing.controller()], clock) as manager:
            await client.create(toy("a"))
            await _settled(manager, failing, 1)
            for count in range(2, 6):
                manager.resync()
                await _settled(manager, failing, count)
            assert len(said(lines, "warning")) == 1

            if isinstance(wrong, SpecError):
                return
            clock.wind(timedelta(hours=1))
            await _settled(manager, failing, 6)

    assert said(lines, "warning") == [("reconcile failed", "", "no quota")] * 2


async def _settled(manager: Manager, toy: Toy, passes: int) -> None:
    await toy.passed(passes)
    await eventually(lambda: manager.is_idle, interval=0.005)


async def test_another_error_is_logged_at_once_and_so_is_the_same_one_after_a_success(client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        if wrong := obj["data"]["wrong"]:
            raise SpecError(wrong)
        return NOTHING

    failing = Toy(plan)
    with capture_logs() as lines:
        async with running(client, [failing.controller()]) as manager:
            await client.create(toy("a", {"wrong": "first"}))
            await _settled(manager, failing, 1)
            for count, wrong in enumerate(("second", "", "second"), 2):
                await client.patch(at("a"), {"data": {"wrong": wrong}})
                await _settled(manager, failing, count)

    assert [because for _, _, because in said(lines, "warning")] == ["first", "second", "second"]


async def test_a_write_that_keeps_conflicting_backs_off_and_says_so(app: App, client: Client) -> None:
    def plan(obj: Obj, answers: Answers, now: datetime) -> Plan:
        step = change(obj, {"data": {"step": "done"}})
        return Plan(stages=(Stage("step", (step,)),), because="it is not done")

    app.cluster.api.faults.add(Refuse(code=409, verbs=("patch",), resources=("configmaps",)))
    fighting, clock = Toy(plan), ManualClock()
    with capture_logs() as lines:
        async with running(client, [fighting.controller()], clock) as manager:
            await client.create(toy("a"))
            end = clock.now() + timedelta(hours=1)
            while True:
                count = len(fighting.passes)
                await eventually(lambda: manager.is_idle and manager.due(at("a")), interval=0.001)
                due = manager.due(at("a"))
                assert due is not None
                if due > end:
                    break
                clock.wind(due - clock.now())
                await fighting.passed(count + 1)

    # Twenty delays of at most a second, nine that double to five minutes, and one every five minutes.
    assert len(fighting.passes) < 50
    warned = said(lines, "warning")
    assert warned and all("its writes keep conflicting: " in because for _, _, because in warned)
    assert meta.name(await client.get(at("a"))) == "a"


class Slow:
    """Answers a hook's call once it may."""

    def __init__(self) -> None:
        self.called, self.may_answer = asyncio.Event(), asyncio.Event()

    async def call(self, call: Call) -> HookResponse:
        self.called.set()
        await self.may_answer.wait()
        return HookResponse(b"{}")


async def test_a_stop_says_for_how_many_reconciles_it_waits(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, stop = Slow(), asyncio.Event()
    call = Call(url="http://hook/sync", body=b"", seconds=60.0, purpose="sync")
    waiting = Toy(lambda obj, answers, now: NOTHING, asks=lambda obj: (call,))
    manager = Manager(client, [waiting.controller()], WallClock(), caller=slow)
    await client.create(toy("a"))
    async with asyncio.TaskGroup() as group:
        ended = group.create_task(run_until(stop, manager, [group.create_task(manager.run())]))
        await slow.called.wait()
        stop.set()
        await eventually(lambda: "\n" in said_so_far(capsys))
        assert not ended.done()
        slow.may_answer.set()


def said_so_far(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said in ("", "lamina stops, waiting up to 10s for 1 reconcile in progress\n")
    return said
