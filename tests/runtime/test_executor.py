"""Carrying out plans, against a writer that notes what it is asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from lamina.client.client import Client, KindOrName
from lamina.client.transport.inprocess import InProcessTransport
from lamina.client.transport.ratelimited import RateLimitedTransport
from lamina.client.write_guard import WriteGuard
from lamina.core.model.effects import Written
from lamina.core.model.plan import Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Replace, Stage
from lamina.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound, NotLeading
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.ratelimit import TokenBucket, TokenBuckets
from lamina.runtime.controller.concurrency import run_concurrently
from lamina.runtime.controller.executor import Executor
from lamina.server.http.request import Response
from tests.runtime.cluster import config_map, embedded

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)


def thing(name: str, version: str = "7", **more: Any) -> Made:
    metadata = {"name": name, "namespace": "web", "uid": f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def at(name: str) -> Ref:
    return Ref("v1", "ConfigMap", "web", name)


class Notes:
    """A client that records every request, and refuses those that the test names."""

    def __init__(self, **refusals: ApiError) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.calls_in_flight = self.most_under_way = 0
        self.answer: Made | None = None
        self._refusals = refusals

    async def _note(self, name: str, *what: Any) -> Made:
        self.calls_in_flight += 1
        self.most_under_way = max(self.most_under_way, self.calls_in_flight)
        await asyncio.sleep(0)
        self.calls_in_flight -= 1
        self.asked.append(what)
        if name in self._refusals:
            raise self._refusals[name]
        return self.answer or thing(name, "8")

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made:
        self.asked.append(("get", ref.name))
        return self.answer or thing(ref.name, "8")

    async def create(self, obj: Obj, *, manager: str | None = None, guard: WriteGuard | None = None) -> Made:
        return await self._note(meta.name(obj), "create", meta.name(obj), manager)

    async def update(
        self, obj: Obj, *, subresource: str = "", manager: str | None = None, guard: WriteGuard | None = None
    ) -> Made:
        return await self._note(meta.name(obj), "update", meta.name(obj), subresource, manager)

    async def patch(
        self,
        ref: Ref,
        patch: Obj,
        *,
        subresource: str = "",
        manager: str | None = None,
        guard: WriteGuard | None = None,
    ) -> Made:
        return await self._note(ref.name, "patch", ref.name, patch, subresource, manager)

    async def apply(
        self,
        obj: Obj,
        *,
        manager: str | None = None,
        force: bool = False,
        subresource: str = "",
        guard: WriteGuard | None = None,
    ) -> Made:
        return await self._note(meta.name(obj), "apply", meta.name(obj), subresource, manager)

    async def post(
        self,
        ref: Ref,
        body: Obj,
        *,
        subresource: str,
        manager: str | None = None,
        guard: WriteGuard | None = None,
    ) -> Made:
        return await self._note(ref.name, "post", ref.name, body, subresource, manager)

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        grace: int | None = None,
        guard: WriteGuard | None = None,
    ) -> Made:
        return await self._note(ref.name, "delete", ref.name, uid, version, str(propagation))

    async def delete_collection(
        self, what: KindOrName, namespace: str = "", *, propagation: str = "", guard: WriteGuard | None = None
    ) -> Made:
        return await self._note("all", "delete all", what, namespace)


class Refusing(Notes):
    """A writer that notes every request, and refuses some verbs."""

    def __init__(self, **refusals: ApiError) -> None:
        super().__init__()
        self._verbs = refusals

    async def _note(self, name: str, *what: Any) -> Made:
        made = await super()._note(name, *what)
        if what[0] in self._verbs:
            raise self._verbs[what[0]]
        return made


def plan(*stages: Stage) -> Plan:
    return Plan(stages=stages)


async def test_an_action_is_sent_with_the_uid_and_the_version_it_was_decided_on() -> None:
    notes = Notes()
    patch = Patch(ref=at("a"), uid="uid-a", version="7", patch={"metadata": {"labels": {}}, "data": {}})
    removal = Delete(ref=at("b"), uid="uid-b", version="7")

    await Executor(notes, manager="me").run(plan(Stage("one", (patch,)), Stage("two", (removal,))))

    body = {"metadata": {"labels": {}, "uid": "uid-a", "resourceVersion": "7"}, "data": {}}
    assert notes.asked == [("patch", "a", body, "", "me"), ("delete", "b", "uid-b", "7", "Background")]


async def test_accepted_writes_are_reported() -> None:
    notes = Notes()
    create, replace = Create(obj=thing("a")), Replace(obj=thing("b"), subresource="finalize")

    outcome = await Executor(notes, manager="me").run(plan(Stage("one", (create, replace))))

    assert outcome.written == (Written(at("a"), "uid-a", 8), Written(at("b"), "uid-b", 8))
    assert outcome.refused == ()


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ({"kind": "Status", "status": "Success"}, None),
        (thing("a", "9"), 9),
    ],
    ids=["gone", "held"],
)
async def test_a_deletion_leaves_an_end_or_a_new_version_to_be_seen(
    answer: Made, version: int | None
) -> None:
    notes = Notes()
    notes.answer = answer

    outcome = await Executor(notes, manager="me").run(plan(Stage("one", (Delete(ref=at("a"), uid="uid-a"),))))

    assert outcome.written == (Written(at("a"), "uid-a", version),)


async def test_everything_a_deletion_of_all_took_along_is_to_be_seen() -> None:
    notes = Notes()
    notes.answer = {"kind": "ConfigMapList", "items": [thing("a"), thing("b")]}

    outcome = await Executor(notes, manager="me").run(
        plan(Stage("one", (DeleteAll(kind=CONFIG_MAP, namespace="web"),)))
    )

    assert outcome.written == (Written(at("a"), "uid-a", None), Written(at("b"), "uid-b", None))


async def test_a_failure_stops_the_next_stage_and_no_other_action_of_its_own() -> None:
    notes = Notes(a=Conflict("moved on"))
    first = Stage("one", (Create(obj=thing("a")), Create(obj=thing("b"))))
    second = Stage("two", (Create(obj=thing("c")),))

    outcome = await Executor(notes, manager="me").run(plan(first, second))

    assert [asked[1] for asked in notes.asked] == ["a", "b"]
    assert [written.ref.name for written in outcome.written] == ["b"]
    assert [(one.action.ref.name, type(one.error)) for one in outcome.refused] == [("a", Conflict)]


async def test_a_report_is_written_even_after_a_failure() -> None:
    notes = Notes(a=NotFound("gone"))
    first = Stage("one", (Create(obj=thing("a")),))
    report = Stage("report", (Create(obj=thing("r")),), run_after_failure=True)

    await Executor(notes, manager="me").run(plan(first, report))

    assert [asked[1] for asked in notes.asked] == ["a", "r"]


async def test_an_event_that_cannot_be_sent_blocks_nothing() -> None:
    notes = Notes(e=Forbidden("not here"))
    tell, then = Stage("say so", (Emit(event=thing("e")),)), Stage("do it", (Create(obj=thing("a")),))

    outcome = await Executor(notes, manager="me").run(plan(tell, then))

    assert outcome.refused == ()
    assert [asked[1] for asked in notes.asked] == ["e", "a"]


def counted(count: int) -> Obj:
    return {"metadata": {"resourceVersion": "7"}, "count": count, "lastTimestamp": "now"}


@pytest.mark.parametrize(
    ("counts", "asked"),
    [
        (False, [("create", "e", "me")]),
        (True, [("create", "e", "me"), ("get", "e"), ("patch", "e", counted(3), "", "me")]),
    ],
)
async def test_an_event_that_is_there_already_is_counted_if_it_is_one_that_counts(
    counts: bool, asked: list[tuple[Any, ...]]
) -> None:
    notes = Refusing(create=AlreadyExists("told before"))
    notes.answer = thing("e", count=2)

    outcome = await Executor(notes, manager="me").run(
        plan(Stage("say so", (Emit(event=thing("e", lastTimestamp="now"), counts=counts),)))
    )

    assert (outcome.refused, notes.asked) == ((), asked)


async def test_a_repeated_event_is_not_sent_again() -> None:
    notes = Notes()
    executor = Executor(notes, manager="me")
    once, counted = (Stage("say so", (Emit(event=thing("e"), counts=counts),)) for counts in (False, True))

    await executor.run(plan(once))
    await executor.run(plan(once))
    await executor.run(plan(counted))

    assert [asked[0] for asked in notes.asked] == ["create", "create"]


async def test_only_so_many_writes_are_under_way_at_once() -> None:
    notes = Notes()
    stage = Stage("many", tuple(Create(obj=thing(f"m{number}")) for number in range(20)))

    outcome = await Executor(notes, manager="me", at_once=3).run(plan(stage))

    assert notes.most_under_way == 3
    assert [written.ref.name for written in outcome.written] == [f"m{number}" for number in range(20)]


async def test_a_mistake_of_ours_is_no_result() -> None:
    async def fail(job: int) -> int:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        await run_concurrently([1, 2], fail, at_once=2)
    with pytest.raises(ZeroDivisionError):
        await run_concurrently([1], fail, at_once=2)


def patching(version: str = "7") -> Plan:
    patch = Patch(ref=at("a"), uid="uid-a", version=version, patch={"data": {"k": None}})
    return Plan(stages=(Stage("change", (patch,)),))


async def test_a_patch_that_came_to_nothing_is_not_sent_again() -> None:
    notes = Notes()
    notes.answer = thing("a", "7")
    executor = Executor(notes, manager="m")

    await executor.run(patching())
    await executor.run(patching())
    assert len(notes.asked) == 1

    # Once the object is another, it may come to something.
    await executor.run(patching("9"))
    assert len(notes.asked) == 2


async def test_an_event_is_sent_once_and_an_aggregated_one_is_counted() -> None:
    told = {**thing("e"), "kind": "Event", "count": 1, "lastTimestamp": "now"}
    notes = Notes()
    executor = Executor(notes, manager="m")
    once = Plan(stages=(Stage("tell", (Emit(event=told),)),))
    await executor.run(once)
    await executor.run(once)
    assert notes.asked == [("create", "e", "m")]

    notes = Notes(e=AlreadyExists("there"))
    notes.answer = {**told, "count": 4}
    await Executor(notes, manager="m").run(Plan(stages=(Stage("tell", (Emit(event=told, counts=True),)),)))
    assert notes.asked[-1] == ("patch", "e", counted(5), "", "m")


async def test_no_count_is_lost_when_two_controllers_count_one_event_at_once() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"namespace": "default"},
        "count": 1,
    }
    emits = plan(Stage("tell", tuple(Emit(event=event, counts=True) for _ in range(3))))
    async with embedded() as app:
        client = app.client()

        await Executor(client, manager="m").run(emits)

        assert (await client.get(meta.ref(event)))["count"] == 3


async def test_an_event_that_changes_at_every_try_is_not_counted() -> None:
    notes = Refusing(create=AlreadyExists("there"), patch=Conflict("the object has been modified"))
    notes.answer = thing("e", count=1)

    outcome = await Executor(notes, manager="m").run(
        plan(Stage("tell", (Emit(event=thing("e"), counts=True),)))
    )

    assert outcome.refused == ()
    assert [asked[0] for asked in notes.asked].count("patch") == 5


async def test_a_plan_stops_when_leadership_is_lost_in_the_middle() -> None:
    notes = Notes()
    first, second = (Delete(ref=at(name), uid=f"uid-{name}") for name in "ab")
    turns = iter([True, False])

    stages = plan(Stage("one", (first,)), Stage("two", (second,)))
    outcome = await Executor(notes, manager="me").run(stages, allowed=lambda: next(turns))

    assert [one.ref.name for one in outcome.written] == ["a"]
    assert [type(one.error) for one in outcome.refused] == [NotLeading]


async def test_a_write_that_waited_is_not_sent_after_leadership_is_lost() -> None:
    """There is a limit of requests; the deadline of the lease passes while a write waits for its turn."""
    async with embedded() as app:
        leads = True

        def lose(method: str, seconds: float) -> None:
            nonlocal leads
            leads = method == "GET"

        async def handle(
            method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
        ) -> Response:
            return await app.request(method, path, query, headers, body)

        client = Client(RateLimitedTransport(InProcessTransport(handle), TokenBucket(1000, 1), lose))
        create = Create(obj=config_map("late"))
        outcome = await Executor(client, manager="me").run(
            plan(Stage("one", (create,))), allowed=lambda: leads
        )
        left = await app.client().list(CONFIG_MAP, "default")

    assert [type(one.error) for one in outcome.refused] == [NotLeading]
    assert "late" not in [meta.name(one) for one in left.items]


async def test_events_about_one_object_are_limited() -> None:
    writer = Notes()
    executor = Executor(writer, manager="m", events=TokenBuckets(0.001, 2))
    about = [{"uid": uid} for uid in ("a", "a", "a", "b")]
    events = [thing(f"e{number}", involvedObject=one) for number, one in enumerate(about)]

    outcome = await executor.run(Plan(stages=(Stage("tell", tuple(Emit(event=one) for one in events)),)))

    assert [asked[1] for asked in writer.asked] == ["e0", "e1", "e3"]
    assert outcome.refused == ()


async def test_a_warning_about_an_object_is_not_lost_behind_its_normal_events() -> None:
    writer = Notes()
    executor = Executor(writer, manager="m", events=TokenBuckets(0.001, 2))
    types = ("Normal", "Normal", "Normal", "Warning", "Warning", "Warning")
    events = [thing(f"e{number}", involvedObject={"uid": "a"}, type=one) for number, one in enumerate(types)]

    await executor.run(Plan(stages=(Stage("emit", tuple(Emit(event=one) for one in events)),)))

    assert [asked[1] for asked in writer.asked] == ["e0", "e1", "e3", "e4"]


@pytest.mark.parametrize("optional", [True, False])
async def test_what_is_stated_though_there_may_be_no_place_for_it_holds_nothing_up(optional: bool) -> None:
    """A definition without a schema for its status makes a server refuse whatever is stated there."""
    notes = Notes(
        a=Invalid("failed to create typed patch object: .status.conditions: field not declared in schema")
    )
    first = Apply(obj=thing("a"), subresource="status", optional=optional)

    outcome = await Executor(notes, manager="m").run(
        plan(Stage("one", (first,)), Stage("two", (Create(obj=thing("b")),)))
    )

    assert [one.action for one in outcome.refused] == ([] if optional else [first])
    assert [what[1] for what in notes.asked] == (["a", "b"] if optional else ["a"])
