"""What it takes to run it: what it costs, what it says of itself, and what it survives."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.app import App
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.core.apply.three_way import go_json
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.bed.either import start_server
from tests.bed.fixtures import chosen_server
from tests.bed.processes import free_ports, start, until
from tests.bed.scenarios import check
from tests.bed.server import is_ready
from tests.scenarios.hook import Said, serve
from tests.scenarios.metacontroller.rolls import Roll
from tests.scenarios.metacontroller.stage import API, TIMEOUT, Stage, config_maps, desired, install
from tests.scenarios.metacontroller.wires import wired
from tests.scenarios.metacontroller.witness import witness

pytestmark = pytest.mark.asyncio(loop_scope="session")

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


def five(said: Said) -> Said:
    """A hook that wants five ConfigMaps for each parent."""
    name = said["parent"]["metadata"]["name"]
    seen = len(said["children"]["ConfigMap.v1"])
    children = [desired("ConfigMap", f"{name}-{number}", data={"of": name}) for number in range(5)]
    return {"status": {"seen": seen}, "children": children}


@check("MC-86")
async def test_looking_at_everything_again_writes_nothing_and_asks_for_nothing(stage: Stage) -> None:
    parents = 1000
    stage.hook.answer = five
    stage.own, wire = wired(stage.client)

    async def until_written(count: int, kind: str) -> None:
        await eventually(
            lambda: sum(kind in one.path for one in wire.writes),
            lambda written: written >= count,
            seconds=300,
            interval=0.1,
        )

    async with stage.running():
        await stage.given_composite("cc", childResources=config_maps(), generateSelector=True)
        for number in range(parents):
            # They go with their kind, and need not be remembered one by one.
            await stage.client.create(stage.made_parent(f"p{number}"))
        await until_written(5 * parents, "/configmaps")
        await until_written(parents, "/status")
        await stage.settled()
        assert len(await stage.listed("ConfigMap")) == 5 * parents
        assert sum("/configmaps" in one.path for one in wire.writes) == 5 * parents
        wire.sent.clear()
        stage.hook.forget()

        stage.pass_time(minutes=31)
        await stage.hook.called(parents)
        await stage.settled()

    assert len({said["parent"]["metadata"]["name"] for said in stage.hook.requests}) == parents
    assert wire.writes == []
    assert [one for one in wire.looks if stage.namespace in one.path] == []


@asynccontextmanager
async def process(kubeconfig: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run Metacontroller in a process of its own."""
    arguments = (
        "run",
        "--families",
        "metacontroller",
        "--kubeconfig",
        str(kubeconfig),
        "--no-install",
        "--no-leader-election",
        *options,
    )
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lamina", *arguments, stderr=asyncio.subprocess.DEVNULL, env=dict(os.environ)
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def page(url: str, code: int = 200) -> str:
    """Wait until a page is served with a status code, and return its text."""
    async with aiohttp.ClientSession() as session:

        async def fetch() -> tuple[int, str]:
            try:
                async with session.get(url) as answer:
                    return answer.status, await answer.text()
            except aiohttp.ClientError as error:
                return 0, str(error)

        return (await eventually(fetch, lambda answer: answer[0] == code, seconds=TIMEOUT, interval=0.05))[1]


@check("MC-87")
async def test_counts_and_probes_are_served_under_the_names_that_dashboards_know(
    stage: Stage, kubeconfig: Path
) -> None:
    stage.hook.answer = five
    stage.hook.paths["/customize"] = lambda said: {"relatedResources": []}
    hooks = {name: {"webhook": {"url": f"{stage.hook.url}/{name}"}} for name in ("sync", "customize")}
    made = await stage.given_composite("cc", childResources=config_maps(), generateSelector=True, hooks=hooks)
    counts, health = (f"127.0.0.1:{port}" for port in free_ports(2))
    options = ("--metrics-address", counts, "--health-probe-bind-address", health)
    async with process(kubeconfig, *options) as running:
        assert await page(f"http://{health}/healthz") == "ok"
        assert await page(f"http://{health}/readyz") == "ok"
        await stage.given_parent()
        await stage.until(
            stage.parent(), lambda obj: obj is not None and (obj.get("status") or {}).get("seen") == 5
        )
        found = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(await page(f"http://{counts}/metrics"))
            for sample in family.samples
        }
        running.terminate()
        assert await running.wait() == 0

    labels = {"controller_name": meta.name(made), "controller_type": "CompositeController"}

    def value(name: str, /, **labels: str) -> float:
        matching = [
            count for (known, has), count in found.items() if known == name and labels.items() <= dict(has).items()
        ]  # fmt: skip
        assert matching, f"there is no {name} with {labels}"
        return sum(matching)

    for hook in ("sync", "customize"):
        url = f"{stage.hook.url}/{hook}"
        assert (
            value(f"metacontroller_{hook}_requests_total", **labels, url=url, code="200", method="post") >= 1
        )
        assert (
            value(f"metacontroller_{hook}_request_duration_histogram_seconds_count", **labels, method="post")
            >= 1
        )
        assert value(f"metacontroller_{hook}_in_flight_requests", **labels, url=url) >= 0
    queue = f"CompositeController-{meta.name(made)}"
    for name in ("depth", "adds_total", "queue_duration_seconds_count", "work_duration_seconds_count",
                 "retries_total", "unfinished_work_seconds", "longest_running_processor_seconds"):  # fmt: skip
        value(f"workqueue_{name}", name=queue, controller=queue)
    assert value("controller_runtime_reconcile_total", controller=queue, result="success") >= 1
    value("controller_runtime_reconcile_errors_total", controller=queue)
    for name in ("terminal_reconcile_errors", "reconcile_panics"):
        assert value(f"controller_runtime_{name}_total", controller=queue) == 0
    assert value("controller_runtime_reconcile_time_seconds_count", controller=queue) >= 1
    assert value("controller_runtime_max_concurrent_reconciles", controller=queue) == 5
    value("controller_runtime_active_workers", controller=queue)
    assert value("rest_client_requests_total", method="POST", code="201") >= 5
    assert value("rest_client_request_size_bytes_sum", verb="POST") > 0
    assert value("rest_client_response_size_bytes_sum", verb="GET") > 0
    assert value("lamina_objects_written_total", controller=queue, kind="ConfigMap", operation="created") == 5
    assert value("process_resident_memory_bytes") > 0


@check("MC-87")
async def test_a_process_that_is_to_end_finishes_what_it_has_begun(stage: Stage, kubeconfig: Path) -> None:
    released = asyncio.Event()

    async def slow(said: Said) -> Said:
        await released.wait()
        return five(said)

    stage.hook.answer = slow
    await stage.given_composite("cc", childResources=config_maps(), generateSelector=True)
    await stage.given_parent()
    async with process(kubeconfig) as running:
        await stage.hook.called(1)
        running.terminate()
        released.set()

        assert await running.wait() == 0
    assert len(await stage.listed("ConfigMap")) == 5
    assert stage.hook.count() == 1


@check("MC-88")
async def test_a_server_that_was_out_of_reach_for_a_while_and_forgot_is_followed_again(stage: Stage) -> None:
    stage.hook.answer = five
    stage.own, wire = wired(stage.client)
    async with stage.running(), witness(stage, ("v1", "ConfigMap")) as seen:
        await stage.given_composite("cc", childResources=config_maps(), generateSelector=True)
        for name in ("a", "b"):
            await stage.given_parent(name)
        await stage.until_listed("ConfigMap", lambda those: len(those) == 10)
        await stage.settled()

        wire.cut()
        await stage.client.delete(stage.at("ConfigMap", "a-0"))
        await stage.given_parent("c")
        await stage.client.patch(stage.parent("b"), {"spec": {"x": 1}})
        calls = stage.hook.count()
        stage.pass_time(minutes=31)
        # It goes on calling its hooks, and cannot write what they want.
        await stage.hook.called(calls + 2)
        stage.pass_time(minutes=5)
        wire.forgetful = True
        wire.mend()

        await stage.until_listed("ConfigMap", lambda those: len(those) == 15)
        wire.forgetful = False
        stage.pass_time(minutes=5)
        for name in ("a", "b", "c"):
            await stage.until(
                stage.parent(name),
                lambda obj: (
                    obj is not None
                    and obj.get("status") == {"seen": 5, "observedGeneration": meta.generation(obj)}
                ),
            )
        await stage.settled()
        await seen.has_seen(*await stage.listed("ConfigMap"))

    assert wire.forgotten > 0
    ours = [
        one.name for one in seen.of("ConfigMap") if one.what == "ADDED" and one.name != "kube-root-ca.crt"
    ]
    assert sorted(ours) == sorted([*(f"{name}-{number}" for name in "abc" for number in range(5)), "a-0"])


@asynccontextmanager
async def restartable(folder: Path) -> AsyncIterator[tuple[Path, Callable[[], Awaitable[None]]]]:
    """Run a server of one's own, and yield the way there and how to have it restarted."""
    if chosen_server() == "real":
        with start_server("real") as server:
            (old,) = [one for one in server.programs if one.name == "kube-apiserver"]
            fresh = []

            async def again() -> None:
                command = [str(one) for one in old.process.args]  # type: ignore[union-attr]  # it is a list
                await asyncio.to_thread(old.stop)
                fresh.append(start("kube-apiserver", command, folder / "apiserver.log"))
                await asyncio.to_thread(until, "it was ready again", lambda: is_ready(server.api()))

            try:
                yield server.kubeconfig, again
            finally:
                for one in fresh:
                    await asyncio.to_thread(one.stop)
        return
    (port,) = free_ports(1)
    settings = Settings(data=folder / "data", port=port, simulate="off", kubeconfig=folder / "kubeconfig")
    running = [await App(settings).__aenter__()]

    async def restart() -> None:
        await running.pop().stop()
        running.append(await App(settings).__aenter__())

    try:
        yield folder / "kubeconfig", restart
    finally:
        await running.pop().stop()


@check("MC-88")
async def test_a_server_that_is_restarted_is_followed_again(tmp_path: Path) -> None:
    async with restartable(tmp_path) as (kubeconfig, restart), serve(five) as hook:
        client = Client(HttpTransport(read_kubeconfig(kubeconfig)))
        try:
            await install(client)
            name = f"s-{uuid4().hex[:10]}"
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            stage = Stage(client, name, hook, f"{name}.example.com")
            await stage.given_kind("Thing")
            async with stage.running():
                await stage.given_composite("cc", childResources=config_maps(), generateSelector=True)
                await stage.given_parent("a")
                await stage.until_listed("ConfigMap", lambda those: len(those) == 5)
                uids = {meta.uid(one) for one in await stage.listed("ConfigMap")}
                await stage.settled()

                await restart()
                await stage.given_parent("b")
                await stage.client.delete(stage.at("ConfigMap", "a-0"))
                await stage.until_listed("ConfigMap", lambda those: len(those) == 10)
                kept = {meta.uid(one) for one in await stage.listed("ConfigMap")} & uids
                assert len(kept) == 4
        finally:
            await client.close()


def as_the_original_writes(obj: Made, parent: Made) -> Made:
    """Return a child as Metacontroller 4.17 leaves it: its record, sorted and escaped, and its owner."""
    record = go_json(obj)
    annotations = {**meta.annotations(obj), LAST_APPLIED: record}
    owner = {
        "apiVersion": parent["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": parent["kind"],
        "name": meta.name(parent),
        "uid": meta.uid(parent),
    }
    metadata = {**obj["metadata"], "annotations": annotations, "ownerReferences": [owner]}
    return {**obj, "metadata": metadata}


@check("MC-89")
@pytest.mark.parametrize("method", ["InPlace", "Recreate", "RollingInPlace", "RollingRecreate", "OnDelete"])
async def test_a_cluster_that_ran_the_original_is_taken_over_without_touching_a_child(
    stage: Stage, method: str
) -> None:
    roll = Roll(stage)
    await stage.given_kind("Part")
    hooks = {name: {"webhook": {"url": f"{stage.hook.url}/{name}"}} for name in ("sync", "finalize")}
    await roll.given_controller(method=method, hooks=hooks)
    finalizer = f"metacontroller.io/compositecontroller-{stage.named('roll')}"
    spec = {"parts": ["a", "b"], "template": {"image": "one"}, "extra": {"text": "<a&b>", "n": 3, "empty": {}, "nothing": None}}  # fmt: skip
    parent = await stage.given_parent(metadata={"finalizers": [finalizer]}, spec=spec)
    stage.hook.answer = roll.answer
    for wanted in roll.wanted({**parent, "spec": spec}):
        wanted["metadata"]["namespace"] = stage.namespace
        await stage.client.create(as_the_original_writes(wanted, parent), manager="metacontroller")
    await roll.heal()
    if method.startswith("Rolling"):
        await stage.client.create(_revision(roll, parent, ["a", "b"]))
    status = {"parts": 2, "observedGeneration": 1}
    await stage.client.patch(stage.parent(), {"status": status}, subresource="status")
    before = await roll.parts()

    stage.own, wire = wired(stage.client)
    async with witness(stage, roll.kind) as seen, stage.running():
        await stage.hook.called(1)
        await stage.until(
            stage.parent(),
            lambda obj: (
                obj is not None and (not method.startswith("Rolling") or "conditions" in obj["status"])
            ),
        )
        await stage.settled()

    assert list(await roll.parts()) == list(before)
    assert seen.history == []
    assert [one for one in wire.writes if "/parts/" in one.path] == []
    after = await stage.client.get(stage.parent())
    assert meta.finalizers(after) == [finalizer]
    if method.startswith("Rolling"):
        assert [meta.name(one) for one in await roll.revisions()] == [meta.name(_revision(roll, parent, []))]


def _revision(roll: Roll, parent: Made, names: Sequence[str]) -> Made:
    """Return a revision as the original leaves it."""
    patch = {"spec": {"template": parent["spec"]["template"]}}
    text = meta.uid(parent) + json.dumps(patch, sort_keys=True, separators=(",", ":"))
    return {
        "apiVersion": API,
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"things.{roll.stage.group}-{hashlib.sha1(text.encode()).hexdigest()}",
            "namespace": roll.stage.namespace,
            "labels": {
                "app": "x",
                "metacontroller.k8s.io/apiGroup": roll.stage.group,
                "metacontroller.k8s.io/resource": "things",
            },
            "ownerReferences": [meta.owner_ref(parent, controller=True, blocks=True)],
        },
        "parentPatch": patch,
        "children": [{"apiGroup": roll.stage.group, "kind": "Part", "names": list(names)}],
    }


@check("MC-89")
async def test_a_decorator_of_the_original_is_taken_over_without_touching_an_attachment(stage: Stage) -> None:
    wanted = desired("ConfigMap", "x", data={"k": "v"})
    stage.hook.answer = lambda said: {"attachments": [wanted], "labels": {"done": "yes"}}
    resources = [{"apiVersion": f"{stage.group}/v1", "resource": "things"}]
    made = await stage.given_decorator("dec", resources=resources, attachments=config_maps())
    parent = await stage.given_parent(metadata={"labels": {"done": "yes"}})
    metadata = {
        **wanted["metadata"],
        "namespace": stage.namespace,
        "annotations": {"metacontroller.k8s.io/decorator-controller": meta.name(made)},
    }
    await stage.client.create(as_the_original_writes({**wanted, "metadata": metadata}, parent))
    stage.own, wire = wired(stage.client)
    async with stage.running():
        await stage.hook.called(1)
        await stage.settled()

    assert [one for one in wire.writes if f"/namespaces/{stage.namespace}/" in one.path] == []
    assert list(stage.hook.requests[0]["attachments"]["ConfigMap.v1"]) == ["x"]


def _has_seen(number: int, obj: Made | None) -> bool:
    return obj is not None and (obj.get("status") or {}).get("seen") == number


@check("MC-90")
async def test_a_hook_that_answers_with_garbage_or_not_at_all_is_no_trouble_for_another_controller(
    stage: Stage,
) -> None:
    """Whatever the one hook does, the other is called as soon as there is reason to, and as often."""
    stuck = asyncio.Event()
    await stage.given_kind("Other")

    async def trouble(said: Said) -> bytes:
        if said["parent"]["metadata"]["name"].startswith("slow"):
            await stuck.wait()
        return b"}{ garbage"

    stage.hook.paths["/bad"] = trouble
    bad = {"sync": {"webhook": {"url": f"{stage.hook.url}/bad", "timeout": "60s"}}}
    stage.hook.answer = lambda said: {"status": {"seen": said["parent"]["spec"]["n"]}}
    others = {"apiVersion": f"{stage.group}/v1", "resource": "others"}
    async with stage.running():
        await stage.given_composite("bad", parentResource=others, hooks=bad, generateSelector=True)
        await stage.given_composite("good", generateSelector=True)
        for number in range(10):
            await stage.given_parent(f"slow{number}", "Other")
            await stage.given_parent(f"wrong{number}", "Other")
        # Every hand of the bad controller is held by a hook that does not answer.
        await stage.hook.called(5, "/bad")
        for number in range(10):
            name = f"p{number}"
            await stage.given_parent(name, spec={"n": number})
            await stage.until(stage.parent(name), partial(_has_seen, number))
        stuck.set()
        await stage.until_event(stage.parent("slow0", "Other"), "SyncError", "cannot be read as JSON")
        await stage.client.patch(stage.parent("p0"), {"spec": {"n": 99}})
        await stage.until(
            stage.parent("p0"), lambda obj: obj is not None and (obj.get("status") or {}).get("seen") == 99
        )
