"""
Works with objects of many kinds, on a cluster that is its own hub.

What servers fill in, rewrite and refuse differs from kind to kind: whatever it is, a
work comes to rest, and then costs nothing.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.faulty import FaultyTransport
from lamina.client.transport.http import HttpTransport
from lamina.faults import Cut, Faults, Refuse
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.scenarios.manifestwork.agents import Spoke, spoke
from tests.scenarios.manifestwork.stage import Stage
from tests.unit.families.manifestwork.agent.story import config_for, config_map, strategy

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Asked:
    """A client that counts requests, without watches that are restarted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in ("get", "list", "create", "update", "patch", "delete", "apply"):
            return found

        async def ask(what: Any, *args: Any, **more: Any) -> Any:
            self.asked[f"{name}{' to pretend' if more.get('dry_run') else ''}"] += 1
            return await found(what, *args, **more)

        return ask


@pytest_asyncio.fixture(loop_scope="session")
async def west(stage: Stage) -> AsyncIterator[Spoke]:
    """A cluster that is its own hub, with its agent at work and a namespace for what is applied."""
    name = stage.cluster("west")
    await stage.given_namespace(name)
    await stage.given_namespace(stage.namespace)
    made = Spoke(name, Asked(stage.client), stage.client, stage.clock)  # type: ignore[arg-type]
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def pods(image: str) -> Made:
    containers = [
        {"name": "web", "image": image, "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}
    ]
    return {
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
        "spec": {"containers": containers},
    }


def bundle(where: str, image: str, replicas: int) -> list[Made]:
    """Return what an application is made of: much of it is not stored as it is written."""

    def made(api_version: str, kind: str, name: str, **content: Any) -> Made:
        metadata: Made = {
            "name": name,
            "namespace": where,
            "labels": {"app": "web"},
            "creationTimestamp": None,
        }
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    selector = {"matchLabels": {"app": "web"}}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "web", "namespace": where}
    job = {**pods(image)["spec"], "restartPolicy": "Never"}
    ports = [{"port": 80, "targetPort": 8080}]
    return [
        made(
            "apps/v1",
            "Deployment",
            "web",
            spec={"replicas": replicas, "selector": selector, "template": pods(image)},
        ),
        made("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": ports}),
        made("v1", "ServiceAccount", "web"),
        made("v1", "Secret", "web", stringData={"password": image}),
        made("rbac.authorization.k8s.io/v1", "Role", "web", rules=[rule]),
        made(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "web",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"},
            subjects=[subject],
        ),
        made("batch/v1", "Job", "once", spec={"template": {"spec": job}, "suspend": True}),
        made(
            "batch/v1",
            "CronJob",
            "often",
            spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": job}}}},
        ),
        made("policy/v1", "PodDisruptionBudget", "web", spec={"minAvailable": 1, "selector": selector}),
        made("networking.k8s.io/v1", "NetworkPolicy", "web", spec={"podSelector": selector}),
        made("v1", "LimitRange", "web", spec={"limits": [{"type": "Container", "max": {"cpu": "2000m"}}]}),
        made("v1", "ResourceQuota", "web", spec={"hard": {"pods": "100", "requests.cpu": "10000m"}}),
    ]


def stated(manifests: list[Made]) -> list[Made]:
    plurals = {"NetworkPolicy": "networkpolicies"}
    return [
        config_for(one, plurals.get(one["kind"], f"{one['kind'].lower()}s"), **strategy("ServerSideApply"))
        for one in manifests
    ]


async def at_rest(spoke: Spoke) -> Counter[str]:
    """Return what an agent asks its cluster for while it has nothing to do."""
    await spoke.settled()
    asked: Counter[str] = spoke.client.asked  # type: ignore[attr-defined]
    before = Counter(asked)
    assert spoke.running is not None
    spoke.running[0].resync()
    await asyncio.sleep(0)
    await spoke.settled()
    return asked - before


@pytest.mark.parametrize("manner", ["Update", "ServerSideApply"])
async def test_objects_of_many_kinds_come_to_rest_and_take_a_change(
    stage: Stage, west: Spoke, manner: str
) -> None:
    where = stage.namespace

    def configs(manifests: list[Made]) -> list[Made]:
        return stated(manifests) if manner == "ServerSideApply" else []

    first = bundle(where, "web:1", 0)
    await west.want(*first, manifestConfigs=configs(first))
    await west.until_applied()
    assert await at_rest(west) == Counter()

    second = [one for one in bundle(where, "web:2", 3) if one["kind"] != "Job"]
    await west.want(*second, manifestConfigs=configs(second))
    await west.until_applied()
    await eventually(lambda: _is_gone(west, Ref("batch/v1", "Job", where, "once")))
    deployment = await west.there(Ref("apps/v1", "Deployment", where, "web"))
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    assert deployment["spec"]["replicas"] == 3
    assert await at_rest(west) == Counter()

    await west.hub.delete(west.work_ref())
    await west.until_gone()
    for one in second:
        assert await _is_gone(west, meta.ref(one))


async def _is_gone(spoke: Spoke, ref: Ref) -> bool:
    return await spoke.there(ref) is None


async def test_a_job_that_runs_once_is_applied_by_replacing_it_with_itself(stage: Stage, west: Spoke) -> None:
    where = stage.namespace
    jobs = [one for one in bundle(where, "web:1", 0) if one["kind"] == "Job"]
    await west.want(*jobs)
    await west.until_applied()
    changed = [
        {**one, "spec": {**one["spec"], "template": {"spec": {**_spec(one), "dnsPolicy": "Default"}}}}
        for one in jobs
    ]
    await west.want(*changed)
    report = await west.until(lambda now: now.denies("Applied"))
    assert "immutable" in report.message_of(0, "Applied")
    await west.want(*jobs)
    await west.until_applied()


def _spec(job: Obj) -> Made:
    return dict(job["spec"]["template"]["spec"])


async def test_a_definition_and_what_it_defines_fit_into_one_work(stage: Stage, west: Spoke) -> None:
    group = f"g{stage.id}.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition: Made = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    gadget: Made = {
        "apiVersion": f"{group}/v1",
        "kind": "Gadget",
        "metadata": {"name": "g", "namespace": stage.namespace},
        "spec": {"size": 1},
    }
    await west.want(gadget, definition)
    await west.until_applied()
    assert await at_rest(west) == Counter()

    await west.hub.delete(west.work_ref())
    await west.until_gone()


async def test_a_work_without_rules_is_progressing_until_its_pods_are_there(stage: Stage) -> None:
    name = stage.cluster("east")
    await stage.given_namespace(name)
    async with spoke(name, stage.client, stage.clock, simulate="pods") as east:
        manifests = [one for one in bundle("default", "web:1", 2) if one["kind"] == "Deployment"]
        told = [{"type": "WellKnownStatus"}]
        await east.want(
            *manifests, manifestConfigs=[config_for(manifests[0], "deployments", feedbackRules=told)]
        )
        report = await east.until(lambda now: now.denies("Progressing"))

        assert report.values() == {"ReadyReplicas": 2, "Replicas": 2, "AvailableReplicas": 2}
        assert report.said("Degraded") == ("False", "Completed")


async def test_an_agent_that_is_cut_off_from_its_hub_keeps_things_as_it_was_told_and_says_so_later(
    stage: Stage, kubeconfig: Path
) -> None:
    name, faults = stage.cluster("east"), Faults()
    await stage.given_namespace(name)
    way = Client(FaultyTransport(HttpTransport(read_kubeconfig(kubeconfig)), faults, timeout=1.0))
    manifest = config_map(a="1")
    mood = {"type": "JSONPaths", "jsonPaths": [{"name": "mood", "path": ".metadata.labels.mood"}]}
    async with closing(way), spoke(name, stage.client, stage.clock, way=way) as east:
        await east.want(manifest, manifestConfigs=[config_for(manifest, feedbackRules=[mood])])
        await east.until_applied()
        await east.settled()
        said = meta.resource_version((await east.work()).obj)

        faults.add(Refuse(code=503))
        faults.add(Cut())
        await east.client.patch(
            meta.ref(manifest), {"metadata": {"labels": {"mood": "fine"}}, "data": {"a": "drifted"}}
        )
        await eventually(lambda: _has(east))
        await eventually(lambda: _tried_to_write(faults))
        assert meta.resource_version((await east.work()).obj) == said, "the hub knows nothing of it"

        faults.clear()
        report = await east.until(lambda now: bool(now.values()))
        assert report.values() == {"mood": "fine"}
        assert report.holds("Applied")

        await east.want(config_map(a="2"))
        await east.until_applied()
        assert await east.data() == {"a": "2"}, "and it hears again what it is told"


@asynccontextmanager
async def closing(client: Client) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.close()


async def _has(east: Spoke) -> bool:
    return bool(await east.data() == {"a": "1"})


async def _tried_to_write(faults: Faults) -> bool:
    return all(entry.met for entry in faults.entries)
