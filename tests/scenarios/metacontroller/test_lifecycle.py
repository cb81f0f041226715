"""How controllers come, change and go."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.objects import conditions, meta
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import Made
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import Stage, config_maps, desired

pytestmark = pytest.mark.asyncio(loop_scope="session")


@check("MC-2")
async def test_a_controller_starts_when_the_kind_it_waits_for_comes(stage: Stage) -> None:
    late = {"apiVersion": f"{stage.group}/v1", "resource": "latecomers"}
    stage.hook.answer = lambda said: {"status": {"seen": True}}

    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc", parentResource=late))
        await stage.until_event(controller, "CreateError", "can't find resource latecomers")
        await stage.until(controller, is_ready("False"))

        await stage.given_kind("Latecomer")
        await stage.until_event(controller, "Started")
        await stage.given_parent("a", "Latecomer")

        await stage.until(
            stage.parent("a", "Latecomer"), lambda obj: bool(obj and obj.get("status", {}).get("seen"))
        )
        await stage.until(controller, is_ready("True"))


def is_ready(status: str) -> Callable[[Made | None], bool]:
    return lambda obj: condition(obj, "Ready") == status


def condition(obj: Made | None, name: str) -> str:
    found = conditions.find(((obj or {}).get("status") or {}).get("conditions") or (), name)
    return found["status"] if found is not None else ""


@check("MC-3")
async def test_labels_do_not_restart_a_controller_and_a_new_spec_does(stage: Stage) -> None:
    def answer(said: Said) -> Said:
        return {"status": {"rules": len(said["controller"]["spec"].get("childResources", []))}}

    stage.hook.answer = answer
    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc"))
        await stage.given_parent()
        await stage.until_event(controller, "Started")
        await stage.hook.called(1)

        await stage.client.patch(controller, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
        await stage.client.patch(controller, {"spec": {"childResources": config_maps()}})

        await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status", {}).get("rules") == 1))
        await stage.until_event(controller, "Stopped")
        await stage.settled()

    told = [one["reason"] for one in await stage.events(controller)]
    assert {reason: told.count(reason) for reason in set(told)} == {
        "Starting": 2,
        "Started": 2,
        "Stopping": 1,
        "Stopped": 1,
    }


@check("MC-3")
async def test_a_controller_that_is_deleted_says_that_it_has_stopped(stage: Stage) -> None:
    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc"))
        await stage.until_event(controller, "Started")

        await stage.client.delete(controller)

        await stage.until_event(controller, "Stopped")


@check("MC-4")
async def test_a_controller_without_hooks_is_refused(stage: Stage) -> None:
    async with stage.running():
        refused = meta.ref(await stage.given_composite("bare", hooks=None))
        await stage.until_event(refused, "CreateError", "no hooks defined")
        await stage.given_parent()

        # Another one that works shows that time has passed.
        await stage.given_composite("cc")
        await stage.until(stage.parent(), lambda obj: bool(obj and "status" in obj))

    assert meta.finalizers(await stage.client.get(stage.parent())) == ()


@check("MC-5")
async def test_a_parent_needs_a_status_and_may_get_one_later(stage: Stage) -> None:
    mute = await stage.given_kind("Mute", status=False)
    rule = {"apiVersion": f"{stage.group}/v1", "resource": "mutes"}

    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc", parentResource=rule))
        told = await stage.until_event(controller, "SyncError")
        assert told["type"] == "Warning"
        assert "does not have subresource 'Status' enabled" in told["message"]
        await stage.given_parent("a", "Mute")
        assert stage.hook.requests == []

        versions = [{**mute["spec"]["versions"][0], "subresources": {"status": {}}}]
        await stage.client.patch(meta.ref(mute), {"spec": {"versions": versions}})

        await stage.until(
            stage.parent("a", "Mute"),
            lambda obj: bool(obj and obj.get("status") == {"observedGeneration": 1}),
        )
        await stage.until_event(controller, "Started")


@check("MC-5")
async def test_a_built_in_kind_with_a_status_may_be_a_parent(stage: Stage) -> None:
    stage.hook.answer = lambda said: {"status": {"replicas": 7}}
    rule = {
        "apiVersion": "v1",
        "resource": "replicationcontrollers",
        "labelSelector": {"matchLabels": {"story": stage.namespace}},
    }

    async with stage.running():
        await stage.given_composite("cc", parentResource=rule, generateSelector=True)
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        parent = {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "a", "namespace": stage.namespace, "labels": {"story": stage.namespace}},
            "spec": {"replicas": 0, "selector": {"a": "b"}, "template": pod},
        }
        await stage.create(parent)

        said = await first_call(stage)

    assert said["parent"]["kind"] == "ReplicationController"


async def first_call(stage: Stage) -> Said:
    await stage.hook.called(1)
    return stage.hook.requests[0]


@check("MC-6")
async def test_only_controllers_with_the_labels_asked_for_run(stage: Stage) -> None:
    mine = f"shard={stage.namespace}"
    stage.options = replace(stage.options, selector=parse_label_selector(mine))
    stage.hook.answer = lambda said: {"status": {"by": said["controller"]["metadata"]["name"]}}

    async with stage.running():
        other = meta.ref(await stage.given_composite("other"))
        await stage.given_parent()
        ours = await stage.given_composite("ours")
        assert await stage.events(meta.ref(ours)) == []

        await stage.client.patch(meta.ref(ours), {"metadata": {"labels": {"shard": stage.namespace}}})
        await stage.until(stage.parent(), lambda obj: bool(obj and "status" in obj))
        await stage.settled()

    assert {said["controller"]["metadata"]["name"] for said in stage.hook.requests} == {meta.name(ours)}
    assert await stage.events(other) == []


@asynccontextmanager
async def replica(
    kubeconfig: Path, lease: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[str]]]:
    """Run Metacontroller in a process of its own, which shares the work with others by leases."""
    terms = [
        "--lease-name",
        lease,
        "--lease-duration",
        "6s",
        "--renew-deadline",
        "5s",
        "--retry-period",
        "200ms",
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lamina", "run", "--families", "metacontroller", "--kubeconfig", str(kubeconfig),
        "--no-install", *terms,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    lines: list[str] = []

    async def read() -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            lines.append(line.decode())

    reading = asyncio.create_task(read())
    try:
        yield process, lines
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def until_said(lines: list[str], phrase: str) -> None:
    await eventually(lambda: any(phrase in line for line in lines), seconds=120)


@check("MC-7")
async def test_another_replica_takes_over_from_one_that_is_killed(stage: Stage, kubeconfig: Path) -> None:
    def answer(said: Said) -> Said:
        data = {"n": str(said["parent"]["spec"].get("n", 0))}
        return {"children": [desired("ConfigMap", name, data=data) for name in ("a", "b")]}

    stage.hook.answer = answer
    await stage.given_composite("cc", childResources=config_maps())

    async with replica(kubeconfig, stage.namespace) as (first, first_said):
        await until_said(first_said, "Successfully acquired lease")
        await stage.given_parent()
        before = await stage.until_listed("ConfigMap", lambda those: len(those) == 2)
        async with replica(kubeconfig, stage.namespace) as (_, second_said):
            await until_said(second_said, "Attempting to acquire leader lease")
            await until_said(second_said, "lamina runs")
            assert not any("Successfully acquired lease" in line for line in second_said)

            first.kill()
            await stage.client.patch(stage.parent(), {"spec": {"n": 1}})

            await until_said(second_said, "Successfully acquired lease")
            after = await stage.until_listed(
                "ConfigMap", lambda those: [one["data"]["n"] for one in those] == ["1", "1"]
            )

    assert {meta.uid(one) for one in after} == {meta.uid(one) for one in before}


@check("MC-8")
async def test_hooks_around_updates_of_children_are_accepted_and_never_called(stage: Stage) -> None:
    stage.hook.answer = lambda said: {
        "children": [desired("ConfigMap", "c", data={"n": str(said["parent"]["spec"].get("n", 0))})]
    }
    hooks = {
        name: {"webhook": {"url": f"{stage.hook.url}/{name}"}}
        for name in ("sync", "preUpdateChild", "postUpdateChild")
    }

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), hooks=hooks)
        await stage.given_parent()
        await stage.until_there(stage.at("ConfigMap", "c"))
        await stage.client.patch(stage.parent(), {"spec": {"n": 1}})
        await stage.until(stage.at("ConfigMap", "c"), lambda obj: obj is not None and obj["data"]["n"] == "1")
        await stage.settled()

    assert set(stage.hook.request_paths) == {"/sync"}


async def test_a_controller_says_how_its_work_goes(stage: Stage) -> None:
    stage.hook.answer = lambda said: b"no json"

    async with stage.running():
        controller = meta.ref(await stage.given_composite("cc"))
        await stage.given_parent("a")
        await stage.given_parent("b")
        await stage.until(
            controller,
            lambda obj: (
                "cannot be read" in ((obj or {}).get("status") or {}).get("lastError", {}).get("message", "")
            ),
        )
        stage.pass_time(seconds=3)
        await stage.until(controller, lambda obj: bool(obj and obj["status"].get("parents") == 2))

        stage.hook.answer = lambda said: {}
        await stage.settled()
        stage.pass_time(minutes=20)

        await stage.until(controller, lambda obj: condition(obj, "HookReachable") == "True")
        await stage.client.patch(
            controller, {"spec": {"hooks": {"sync": {"webhook": {"url": "http://127.0.0.1:1/"}}}}}
        )
        await stage.until(controller, lambda obj: condition(obj, "HookReachable") == "False")
        assert condition(await stage.client.get(controller), "ResourcesDiscovered") == "True"


async def test_a_controller_may_let_its_parents_go_before_it_goes(stage: Stage) -> None:
    finalize = {"webhook": {"url": f"{stage.hook.url}/finalize"}}

    async with stage.running():
        controller = meta.ref(
            await stage.given_composite("cc", hooks={"sync": finalize, "finalize": finalize})
        )
        await stage.client.patch(
            controller, {"metadata": {"annotations": {"metacontroller.k8s.io/on-delete": "release"}}}
        )
        await stage.until(controller, lambda obj: bool(obj and meta.finalizers(obj)))
        await stage.given_parent()
        await stage.until(stage.parent(), lambda obj: bool(obj and meta.finalizers(obj)))

        await stage.client.delete(controller)

        await stage.until_gone(controller)
        assert meta.finalizers(await stage.client.get(stage.parent())) == ()
