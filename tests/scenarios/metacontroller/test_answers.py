"""What a hook's answer, or the want of one, leads to."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.hook import Reply, Said
from tests.scenarios.metacontroller.rolls import Roll
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired
from tests.scenarios.metacontroller.wires import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")


def one_child(said: Said) -> Said:
    return {"children": [desired("ConfigMap", "c", data={"k": "v"})], "status": {"n": 1}}


async def given_one_child(stage: Stage, **spec: Any) -> tuple[Made, Made]:
    """Have a parent with a child and a status, and return both."""
    stage.hook.answer = one_child
    await stage.given_composite("cc", childResources=config_maps(), **spec)
    await stage.given_parent()
    child = await stage.until_there(stage.at("ConfigMap", "c"))
    parent = await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status")))
    assert parent is not None
    await stage.settled()
    return parent, child


async def nothing_changed(stage: Stage, child: Made, status: Any) -> None:
    parent = await stage.client.get(stage.parent())
    assert await stage.client.get(meta.ref(child)) == child
    assert parent["status"] == status


@check("MC-16")
async def test_a_hook_that_fails_is_asked_again_later_each_time(stage: Stage) -> None:
    async with stage.running():
        parent, child = await given_one_child(stage)
        answered: list[datetime] = []

        def fail(said: Said) -> Reply:
            answered.append(stage.clock.now())
            return web.Response(status=500, text="no")

        stage.hook.answer = fail
        calls = stage.hook.count()
        await stage.client.patch(stage.parent(), {"spec": {"n": 2}})
        await stage.hook.called(calls + 1)

        pauses: list[timedelta] = []
        while sum(pauses, timedelta(0)) < timedelta(minutes=1):
            due = await stage.until_put_aside(stage.parent())
            pauses.append(due - answered[-1])
            heard = stage.hook.count()
            stage.clock.wind(max(due - stage.clock.now(), timedelta(0)))
            await stage.hook.called(heard + 1)

        late = [pause for pause in pauses if pause > timedelta(seconds=1)]
        assert len(late) >= 5
        assert all(later > sooner * 1.5 for sooner, later in pairwise(late))
        await nothing_changed(stage, child, parent["status"])
        told = await stage.until_event(stage.parent(), "SyncError", "unsupported status code: 500 body: no")
        assert told["type"] == "Warning"
        assert told["message"].startswith("Sync error: ")
        assert told["count"] > 5

        stage.hook.answer = one_child
        await stage.settled()
        stage.pass_time(minutes=3)
        await stage.until(
            stage.parent(), lambda obj: bool(obj and obj["status"] == {"n": 1, "observedGeneration": 2})
        )


@check("MC-17")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://nowhere.invalid/", "https://{hook}/"])
async def test_a_hook_that_cannot_be_reached_leaves_everything_as_it_is(stage: Stage, url: str) -> None:
    async with stage.running():
        parent, child = await given_one_child(stage)
        controller = stage.at(
            "CompositeController", stage.named("cc"), "metacontroller.k8s.io/v1alpha1", namespace=""
        )
        unreachable = url.format(hook=stage.hook.url.rpartition("/")[2])

        await stage.client.patch(controller, {"spec": {"hooks": {"sync": {"webhook": {"url": unreachable}}}}})
        await stage.until_event(stage.parent(), "SyncError", "Sync error: http error:")
        await nothing_changed(stage, child, parent["status"])

        working = {"url": f"{stage.hook.url}/sync"}
        calls = stage.hook.count()
        await stage.client.patch(controller, {"spec": {"hooks": {"sync": {"webhook": working}}}})
        await stage.hook.called(calls + 1)


@check("MC-18")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{nonsense", "cannot be read as JSON"),
        (b"", "cannot be read as JSON"),
        (b"[]", "is a list"),
        (b"null", "is null"),
        (b'{"children": [{"apiVersion": "v1", "metadata": {"name": "x"}}]}', "has no kind at children[0]"),
        (b'{"children": [null]}', "has null at children[0]"),
        (b'{"children": {}}', "an object in children"),
        (b'{"status": []}', "a list in status"),
        (b'{"resyncAfterSeconds": "soon"}', "text in resyncAfterSeconds"),
        (b'{"children": [{"apiVersion": "v1", "kind": "ConfigMap"}]}', "has no metadata.name"),
        (
            b'{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ""}}]}',
            "has no metadata.name",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_answer_that_makes_no_sense_changes_nothing(stage: Stage, body: bytes, why: str) -> None:
    async with stage.running():
        parent, child = await given_one_child(stage)

        stage.hook.answer = lambda said: body
        await stage.client.patch(stage.parent(), {"spec": {"n": 2}})
        await stage.until_event(stage.parent(), "SyncError", why)
        await nothing_changed(stage, child, parent["status"])

        stage.hook.answer = one_child
        await stage.settled()
        stage.pass_time(minutes=20)
        await stage.until(
            stage.parent(), lambda obj: bool(obj and obj["status"].get("observedGeneration") == 2)
        )


@check("MC-19")
async def test_a_slow_hook_times_out_and_delays_no_other_parent(stage: Stage) -> None:
    awake = asyncio.Event()

    async def answer(said: Said) -> Reply:
        if said["parent"]["metadata"]["name"] == "slow":
            await awake.wait()
        return {"children": [desired("ConfigMap", said["parent"]["metadata"]["name"])]}

    stage.hook.answer = answer
    webhook = {"url": f"{stage.hook.url}/sync", "timeout": "400ms"}
    try:
        async with stage.running():
            await stage.given_composite(
                "cc", childResources=config_maps(), hooks={"sync": {"webhook": webhook}}
            )
            await stage.given_parent("slow")
            for number in range(20):
                await stage.given_parent(f"p{number}")
            await stage.until_listed("ConfigMap", lambda those: len(those) == 20)
            await stage.until_event(stage.parent("slow"), "SyncError", "no answer within 0.4s")

            awake.set()
            await stage.settled()
            stage.pass_time(minutes=20)
            await stage.until_there(stage.at("ConfigMap", "slow"))
    finally:
        awake.set()


@check("MC-20")
@pytest.mark.parametrize("code", [201, 204, 404])
async def test_only_200_is_an_answer(stage: Stage, code: int) -> None:
    async with stage.running():
        parent, child = await given_one_child(stage)

        stage.hook.answer = lambda said: web.Response(status=code, text="{}" if code != 204 else None)
        await stage.client.patch(stage.parent(), {"spec": {"n": 2}})
        await stage.until_event(stage.parent(), "SyncError", f"unsupported status code: {code} body:")

        await nothing_changed(stage, child, parent["status"])


@check("MC-21")
@pytest.mark.parametrize(
    ("header", "asked"),
    [("3", 3.0), ("date", 60.0), ("", 1.0), ("soon", 1.0), ("0", 1.0)],
)
async def test_a_busy_hook_is_asked_again_when_it_says(stage: Stage, header: str, asked: float) -> None:
    answered: list[datetime] = []

    def answer(said: Said) -> Reply:
        answered.append(stage.clock.now())
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
        value = later if header == "date" else header
        return web.Response(status=429, headers={"Retry-After": value} if value else {})

    stage.hook.answer = answer
    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps())
        await stage.given_parent()
        await stage.hook.called(1)

        for _ in range(3):
            due = await stage.until_put_aside(stage.parent())
            assert due - answered[-1] > timedelta(seconds=asked * 0.9)
            heard = stage.hook.count()
            stage.clock.wind(max(due - stage.clock.now(), timedelta(0)))
            await stage.hook.called(heard + 1)
        await stage.settled()
        assert await stage.events(stage.parent()) == []

        stage.hook.answer = one_child
        stage.pass_time(seconds=61)
        await stage.until_there(stage.at("ConfigMap", "c"))


@check("MC-22")
async def test_an_empty_answer_wants_no_children_and_no_status(stage: Stage) -> None:
    async with stage.running():
        _, child = await given_one_child(stage)

        stage.hook.answer = lambda said: {}
        await stage.client.patch(stage.parent(), {"spec": {"n": 2}})

        await stage.until_gone(meta.ref(child))
        await stage.until(
            stage.parent(), lambda obj: obj is not None and obj["status"] == {"observedGeneration": 2}
        )


@check("MC-23")
async def test_a_status_of_null_empties_that_of_a_parent_and_leaves_that_of_a_target(stage: Stage) -> None:
    await stage.given_kind("Target")
    target = stage.parent("t", "Target")
    stage.hook.answer = lambda said: {"status": None, "labels": {"seen": "yes"}}

    async with stage.running():
        await stage.given_composite("cc")
        await stage.given_parent(status={"old": True})
        await stage.client.patch(stage.parent(), {"status": {"old": True}}, subresource="status")
        await stage.given_parent("t", "Target")
        await stage.client.patch(target, {"status": {"old": True}}, subresource="status")
        await stage.given_decorator(
            "dc", resources=[{"apiVersion": f"{stage.group}/v1", "resource": "targets"}]
        )

        await stage.until(
            stage.parent(), lambda obj: bool(obj and obj["status"] == {"observedGeneration": 1})
        )
        found = await stage.until(target, lambda obj: bool(obj and meta.labels(obj) == {"seen": "yes"}))
        await stage.settled()

    assert found is not None
    assert (await stage.client.get(target))["status"] == {"old": True}


@check("MC-24")
async def test_a_hook_may_ask_to_be_asked_again(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"resyncAfterSeconds": 0.2}

    async with stage.running():
        await stage.given_composite("cc")
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status")))
        await stage.settled()
        before = await stage.client.get(stage.parent())

        await stage.hook.called_again(times=3)

        assert await stage.client.get(stage.parent()) == before


@check("MC-24")
async def test_a_later_wish_does_not_postpone_an_earlier_one(stage: Stage) -> None:
    # The first of them does not fall due by itself, however slow the machine is.
    after = [1000.0, 10_000.0]
    stage.hook.answer = lambda said: {"resyncAfterSeconds": after[min(said["parent"]["spec"].get("n", 0), 1)]}

    async with stage.running():
        await stage.given_composite("cc", parentResource=quiet(stage))
        await stage.given_parent()
        await stage.hook.called(1)
        due = await stage.until_put_aside(stage.parent())
        calls = stage.hook.count()
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        # The watch event may come before the response: calls are counted from before the patch.
        await stage.hook.called(calls + 1)
        assert await stage.until_put_aside(stage.parent()) - due < timedelta(seconds=1)
        await stage.settled()
        calls = stage.hook.count()

        stage.pass_time(seconds=1001)
        await stage.hook.called(calls + 1)


def quiet(stage: Stage) -> Made:
    """Parents whose status enqueues nothing, so that calls can be counted."""
    return {"apiVersion": f"{stage.group}/v1", "resource": "things", "ignoreStatusChanges": True}


@check("MC-25")
async def test_every_parent_is_looked_at_each_period_and_nothing_is_written(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", said["parent"]["metadata"]["name"])],
        "status": {"n": 1.0},
    }
    stage.own, wire = wired(stage.client)

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), resyncPeriodSeconds=2)
        for name in ("a", "b", "c"):
            await stage.given_parent(name)
        await stage.until_listed("ConfigMap", lambda those: len(those) == 3)
        stage.pass_time(seconds=5)
        await stage.settled()

        stage.hook.requests.clear()
        stage.hook.request_paths.clear()
        wire.sent.clear()
        for time in range(1, 4):
            stage.pass_time(seconds=2.1)
            await stage.hook.called(3 * time)
            await stage.settled()

    assert wire.writes == []
    names = [said["parent"]["metadata"]["name"] for said in stage.hook.requests]
    assert {names.count(name) for name in "abc"} <= {3, 4}


@check("MC-25")
async def test_a_status_that_a_schema_cuts_short_is_not_written_again_and_again(stage: Stage) -> None:
    status = {"type": "object", "properties": {"known": {"type": "integer"}}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    await stage.given_kind("Pruned", schema=schema)
    stage.hook.answer = lambda said: {"status": {"known": 1, "unknown": 2}}
    stage.own, wire = wired(stage.client)

    async with stage.running():
        await stage.given_composite(
            "cc",
            parentResource={"apiVersion": f"{stage.group}/v1", "resource": "pruneds"},
            resyncPeriodSeconds=2,
        )
        await stage.given_parent("a", "Pruned")
        parent = stage.parent("a", "Pruned")
        await stage.until(parent, lambda obj: bool(obj and obj.get("status") == {"known": 1}))
        stage.pass_time(seconds=5)
        await stage.settled()
        stage.pass_time(seconds=5)
        await stage.settled()

        wire.sent.clear()
        stage.pass_time(seconds=2.1)
        await stage.hook.called_again()
        await stage.settled()

    assert wire.writes == []


@check("MC-26")
@pytest.mark.parametrize("unchanged", [304, 412])
async def test_an_answer_with_an_etag_is_used_again(stage: Stage, unchanged: int) -> None:
    def answer(said: Said) -> Reply:
        if len(stage.hook.requests) > 1:
            return web.Response(status=unchanged)
        body = {"children": [desired("ConfigMap", "c", data={"k": "v"})]}
        return web.json_response(body, headers={"ETag": '"one"'})

    stage.hook.answer = answer
    webhook = {"url": f"{stage.hook.url}/sync", "etag": {"enabled": True, "cacheTimeoutSeconds": 3600}}
    at = stage.at("ConfigMap", "c")

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks={"sync": {"webhook": webhook}})
        await stage.given_parent()
        await stage.until_there(at)
        await stage.settled()
        calls = stage.hook.count()
        await stage.client.delete(at)
        await stage.hook.called(calls + 1)
        await stage.until_there(at)
        await stage.settled()

    assert "If-None-Match" not in stage.hook.headers[0]
    assert {headers["If-None-Match"] for headers in stage.hook.headers[1:]} == {'"one"'}
    assert [one for one in await stage.events(stage.parent()) if one["reason"] == "SyncError"] == []


@check("MC-26")
async def test_of_two_revisions_each_has_its_own_answer_back(stage: Stage) -> None:
    """In the middle of a roll the hook is asked about both, and says of both that nothing has changed."""
    roll = Roll(stage)

    def answer(said: Said) -> Reply:
        image = said["parent"]["spec"]["template"]["image"]
        etag = f'"{image}"'
        if stage.hook.headers[-1].get("If-None-Match") == etag:
            return web.Response(status=304)
        return web.json_response({"children": roll.wanted(said["parent"])}, headers={"ETag": etag})

    webhook = {"url": f"{stage.hook.url}/sync", "etag": {"enabled": True}}
    async with stage.running():
        await roll.given("a", "b", "c", hooks={"sync": {"webhook": webhook}})
        stage.hook.answer = answer
        await roll.until_images(a="one", b="one", c="one")
        await roll.heal()
        await roll.until_updated("OnLatestRevision")
        await roll.turn_to("two")
        await roll.until_waiting("a")
        assert await roll.images() == {"a": "two", "b": "one", "c": "one"}
        async with roll.healing():
            await roll.until_all("two", 3)

    sent = {headers.get("If-None-Match") for headers in stage.hook.headers}
    assert {'"one"', '"two"'} <= sent


@check("MC-26")
async def test_unchanged_is_no_answer_where_nothing_was_said_before(stage: Stage) -> None:
    stage.hook.answer = lambda said: web.Response(status=304)
    webhook = {"url": f"{stage.hook.url}/sync", "etag": {"enabled": True}}

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks={"sync": {"webhook": webhook}})
        await stage.given_parent()

        await stage.until_event(stage.parent(), "SyncError", "unsupported status code: 304")
