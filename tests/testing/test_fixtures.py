"""The kit as a user has it: clusters, a clock, builders, failures."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from urllib.request import Request, urlopen

import pytest

from lamina.client.kubeconfig import read_kubeconfig
from lamina.clock import ManualClock
from lamina.errors import Unavailable
from lamina.testing import BlockingCluster, Cluster, Refuse
from lamina.testing.builders import config_map, custom, definition, deployment, edited, frozen, pod


async def test_a_cluster_runs_pods_when_its_time_passes(cluster: Cluster, clock: ManualClock) -> None:
    began = clock.now()
    web = await cluster.given(deployment("web", replicas=2))

    await cluster.pass_time(minutes=1)

    assert (await cluster.get(web))["status"]["readyReplicas"] == 2
    assert clock.now() == began + timedelta(minutes=1)


async def test_nothing_happens_by_itself_while_the_clock_stands_still(cluster: Cluster) -> None:
    web = await cluster.given(deployment("web"), settled=True)

    assert len(await cluster.list("pods", "default")) == 3
    assert "readyReplicas" not in (await cluster.get(web))["status"]


async def test_a_deployment_that_fails_says_so_when_its_deadline_has_passed(cluster: Cluster) -> None:
    web = await cluster.given(deployment("web"))
    await cluster.pass_time(minutes=1)

    await cluster.fail(web)
    await cluster.pass_time(minutes=11)

    progressing = await cluster.condition(web, "Progressing")
    assert progressing is not None
    assert progressing.get("reason") == "ProgressDeadlineExceeded"
    assert ("ScalingReplicaSet", "Scaled up replica set") in [
        (reason, message[:21]) for reason, message in await cluster.events(web)
    ]


async def test_what_is_broken_is_whole_again_afterwards(cluster: Cluster) -> None:
    await cluster.given(config_map("settings"))

    with cluster.broken(Refuse(code=503, verbs=("list",))), pytest.raises(Unavailable):
        await cluster.list("configmaps", "default")

    assert "settings" in [one["metadata"]["name"] for one in await cluster.list("configmaps", "default")]


async def test_kinds_of_ones_own_are_served_at_once(cluster: Cluster) -> None:
    await cluster.given(definition("Widget"), custom("example.com/v1", "Widget", "one", spec={"size": 3}))

    (widget,) = await cluster.list("widgets")

    assert widget["spec"] == {"size": 3}
    await cluster.delete(widget)
    assert await cluster.is_gone(widget)


async def test_clusters_know_nothing_of_each_other_and_share_a_clock(
    clusters: Callable[..., Awaitable[tuple[Cluster, ...]]],
) -> None:
    east, west = await clusters("east", "west")
    await east.given(deployment("web"))

    await west.pass_time(minutes=1)

    assert len(await east.list("pods")) == 3
    assert all(one["status"]["phase"] == "Running" for one in await east.list("pods"))
    assert await west.list("pods") == []


@pytest.mark.lamina(families="metacontroller", simulate="controllers")
async def test_a_mark_says_what_runs_on_the_cluster(cluster: Cluster) -> None:
    assert "compositecontrollers" in {kind.plural for kind in await cluster.client.discover()}


def test_a_program_that_blocks_has_a_kubeconfig(blocking_cluster: BlockingCluster) -> None:
    access = read_kubeconfig(blocking_cluster.kubeconfig)
    trust = ssl.create_default_context(cadata=access.authority.decode())
    url = f"{access.server}/api/v1/namespaces/default/configmaps"
    body = json.dumps(config_map("settings", {"colour": "red"})).encode()
    headers = {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"}

    with urlopen(Request(url, body, headers), context=trust) as answer:
        assert answer.status == 201

    assert blocking_cluster.get(config_map("settings"))["data"] == {"colour": "red"}


def test_what_a_builder_makes_cannot_be_changed_in_place() -> None:
    made = pod("web")

    with pytest.raises(TypeError, match="frozen"):
        made["spec"]["containers"].append({})
    with pytest.raises(TypeError, match="frozen"):
        made["spec"]["nodeName"] = "n"
    with pytest.raises(TypeError, match="frozen"):
        frozen([1]).sort()

    assert edited(made, spec={"nodeName": "n"})["spec"]["nodeName"] == "n"
    assert json.loads(json.dumps(made)) == made
