"""On a cluster with the definitions of upstream, families run without what those have no fields for, and say so."""

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.control_plane.install import build_manager, install, without_lost_status
from lamina.core.model.family import Family
from lamina.families.registry import FamilyOptions, chosen
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.snapshot import Snapshot
from lamina.runtime.hooks.client import HookClient
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.unit.families.manifestwork.fleet import BAD, OK1, OK2, progressive

SETS = "manifestworkreplicasets.work.open-cluster-management.io"
FIELDS = ("updateRevision", "currentRevision", "abortedTime", "collisionCount")
WHY = f"the standard rollout runs, and no rollout is aborted, because {SETS} lacks " + ", ".join(
    f"status.{field}" for field in FIELDS
)
APP = Ref("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "default", "app")


def without_fields(definition: Made, *fields: str) -> Made:
    """Return a definition as upstream has it: its status has none of these fields."""
    theirs: Made = copy.deepcopy(dict(definition))
    # They have one version, where ours may serve the same schema under two.
    theirs["spec"]["versions"] = [one for one in theirs["spec"]["versions"] if one["storage"]]
    for version in theirs["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        for field in fields or tuple(status["properties"]):
            del status["properties"][field]
        status.pop("required", None)
    return theirs


@asynccontextmanager
async def running(client: Client, families: Sequence[Family]) -> AsyncIterator[None]:
    manager = build_manager(client, families, WallClock(), HookClient())
    task = asyncio.create_task(manager.run())
    try:
        await manager.ready()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def hub(client: Client) -> tuple[Family, ...]:
    """Return the family as it runs on a hub whose definition of replica sets is that of upstream."""
    families = chosen("manifestwork", FamilyOptions(schedules=False, registers=False))
    (sets,) = [one for one in families[0].definitions() if meta.name(one) == SETS]
    await client.create(without_fields(sets, *FIELDS), manager="clusteradm")
    await install(client, families)
    return await without_lost_status(client, families)


async def placed(client: Client) -> None:
    """Create a placement that selects two clusters, by hand."""
    group = "cluster.open-cluster-management.io"
    here = {"namespace": "default"}
    for cluster in ("c1", "c2"):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster}})
    disabled = {f"{group}/experimental-scheduling-disable": "true"}
    metadata = {"name": "place", **here, "annotations": disabled}
    await client.create(
        {"apiVersion": f"{group}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": {}}
    )
    labels = {f"{group}/placement": "place", f"{group}/decision-group-index": "0"}
    decision = await client.create(
        {
            "apiVersion": f"{group}/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {"name": "place-decision-1", **here, "labels": labels},
        }
    )
    decisions = [{"clusterName": cluster, "reason": ""} for cluster in ("c1", "c2")]
    await client.patch(meta.ref(decision), {"status": {"decisions": decisions}}, subresource="status")


async def works(client: Client) -> dict[str, Made]:
    listed = (await client.list(("work.open-cluster-management.io/v1", "ManifestWork"))).items
    return {meta.namespace(one): one for one in listed}


async def reported(client: Client, cluster: str, *, degraded: bool = False) -> None:
    """Report for an agent that a work is applied and available, and whether it is degraded."""
    work = (await works(client))[cluster]
    states = {"Applied": True, "Available": True, "Progressing": degraded, "Degraded": degraded}
    made = [
        {
            "type": name,
            "status": str(value),
            "reason": "Reported",
            "message": "",
            "observedGeneration": meta.generation(work),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for name, value in states.items()
    ]
    await client.patch(meta.ref(work), {"status": {"conditions": made}}, subresource="status")


async def until(client: Client, condition: str, reason: str) -> Made:
    """Wait until a condition of the replica set has a reason."""

    def has(obj: Made) -> bool:
        found = conditions.find(conditions.of(obj), condition)
        return found is not None and found.get("reason") == reason

    return await eventually(lambda: client.get(APP), has)


async def until_sent(client: Client, cluster: str, template: Made) -> None:
    async def sent() -> bool:
        work = (await works(client)).get(cluster) or {"spec": {}}
        return bool(work["spec"].get("workload") == template["workload"])

    await eventually(sent)


def replica_set(template: Made) -> Made:
    strategy = progressive(maxConcurrency=1, progressDeadline="1s")
    return {
        "apiVersion": APP.api_version,
        "kind": APP.kind,
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {
            "placementRefs": [{"name": "place", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": template,
        },
    }


async def test_a_hub_without_the_new_status_fields_rolls_out_without_abort_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        capsys.readouterr()
        families = await hub(client)
        logged = capsys.readouterr().err
        assert logged.count("status fields are not stored") == 1
        assert WHY in logged
        await placed(client)
        async with running(client, families):
            await client.create(replica_set(OK1))
            for name in ("c1", "c2"):
                await until_sent(client, name, OK1)
                await reported(client, name)
            done = await until(client, "Progressing", "NewManifestWorkAvailable")
            assert not done["status"].keys() & {*FIELDS}

            await client.patch(APP, {"spec": {"manifestWorkTemplate": OK2}})
            for name in ("c1", "c2"):
                await until_sent(client, name, OK2)
                await reported(client, name)
            await until(client, "Progressing", "NewManifestWorkAvailable")

            (family,) = chosen("manifestwork")
            watches = [watch for one in family.controllers for watch in one.watches]
            back = family.rollback(await (await Snapshot.of(client)).world(watches), APP, None)
            await Executor(client, manager="lamina").run(back)
            for name in ("c1", "c2"):
                await until_sent(client, name, OK1)
                await reported(client, name)
            await until(client, "Progressing", "NewManifestWorkAvailable")

            await client.patch(APP, {"spec": {"manifestWorkTemplate": BAD}})
            await until_sent(client, "c1", BAD)
            await reported(client, "c1", degraded=True)
            failed = await until(client, "Progressing", "ProgressDeadlineExceeded")
            await until(client, "PlacementRolledOut", "RolloutDegraded")
            sent = await works(client)
            events = (await client.list(("v1", "Event"), "default")).items

    progressing = conditions.find(conditions.of(failed), "Progressing")
    assert progressing is not None and progressing["message"].endswith(f"; {WHY}")
    assert sent["c1"]["spec"]["workload"] == BAD["workload"], "nothing is rolled back"
    assert sent["c2"]["spec"]["workload"] == OK1["workload"], "the rollout has stopped"
    warnings = [one for one in events if one["reason"] == "AbortUnavailable"]
    assert [(one["type"], one["message"]) for one in warnings] == [("Warning", WHY)]
    assert not [one for one in events if re.search("Aborted|RevisionMissing", one["reason"])]


async def test_controllers_whose_status_upstream_prunes_say_where_their_state_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    families = chosen("metacontroller")
    why = (
        "the state of controllers is in the log and in events only, because "
        "compositecontrollers.metacontroller.k8s.io lacks status.conditions and "
        "decoratorcontrollers.metacontroller.k8s.io lacks status.conditions"
    )
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        client = cluster.client()
        for one in families[0].definitions():
            if meta.name(one) in families[0].optional_status_fields:
                await client.create(without_fields(dict(one)), manager="helm")
        await install(client, families)
        capsys.readouterr()
        found = await without_lost_status(client, families)
        logged = capsys.readouterr().err
        spec = {
            "parentResource": {"apiVersion": "v1", "resource": "configmaps"},
            "hooks": {"sync": {"webhook": {"url": "https://hook/sync"}}},
        }
        kind = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController"}
        async with running(client, found):
            made = await client.create({**kind, "metadata": {"name": "maps"}, "spec": spec})

            async def statements() -> list[Made]:
                listed = (await client.list(("v1", "Event"), "default")).items
                return [one for one in listed if one["reason"] == "StatusNotStored"]

            (event,) = await eventually(statements)
            now = await client.get(meta.ref(made))

    assert logged.count("status fields are not stored") == 1 and why in logged
    assert (event["type"], event["message"], event["involvedObject"]["name"]) == ("Warning", why, "maps")
    assert not conditions.of(now)


async def test_with_our_definitions_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    async with EmbeddedCluster(Settings(families="none")) as cluster:
        families = chosen("all")
        await install(cluster.client(), families)
        capsys.readouterr()

        assert await without_lost_status(cluster.client(), families) == families

    assert "not stored" not in capsys.readouterr().err
