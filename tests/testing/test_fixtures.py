"""The kit as a user has it: clusters, a clock, builders, failures."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import ssl
import subprocess
import sys
import threading
import warnings
import weakref
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from lamina.app import App
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.clock import ManualClock
from lamina.errors import Conflict, SettingsError, Unavailable
from lamina.settings import Settings
from lamina.testing import Cluster, MakeClusters, Refuse, SyncCluster
from lamina.testing.builders import config_map, custom, definition, deployment, edited, frozen, namespace, pod


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


async def test_a_writer_that_is_refused_can_see_the_cause(cluster: Cluster) -> None:
    """A client that reads again and retries on conflict does not wait for its own write."""
    made = await cluster.client.create(config_map("settings", {"colour": "red"}))
    first = asyncio.create_task(cluster.client.update({**made, "data": {"colour": "blue"}}))
    await asyncio.sleep(0)
    assert not first.done()

    with pytest.raises(Conflict):
        await cluster.client.update({**made, "data": {"colour": "green"}})

    assert (await cluster.get(made))["data"] == {"colour": "blue"}
    await first


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


async def test_events_are_of_one_object_and_in_the_order_they_were_told(cluster: Cluster) -> None:
    here = await cluster.given(deployment("web", replicas=1))
    await cluster.given(namespace("other"), deployment("web", replicas=7, namespace="other"))
    for size in (12, 2, 5, 3):
        await cluster.pass_time(minutes=1)
        await cluster.edit(here, spec={"replicas": size})
    await cluster.pass_time(minutes=1)

    told = [message.rsplit(" ", 3)[1:] for _, message in await cluster.events(here)]

    assert told == [
        ["0", "to", "1"], ["1", "to", "12"], ["12", "to", "2"], ["2", "to", "5"], ["5", "to", "3"],
    ]  # fmt: skip


async def test_what_fails_is_well_again_when_that_is_taken_back(cluster: Cluster) -> None:
    web = await cluster.given(deployment("web", replicas=1))
    await cluster.pass_time(minutes=1)
    (machine,) = await cluster.list("nodes")

    await cluster.fail(machine)
    await cluster.pass_time(minutes=1)
    silent = await cluster.condition(machine, "Ready")
    await cluster.fail(machine, on=False)
    await cluster.fail(web, ready_probability="0")
    await cluster.pass_time(minutes=1)
    failing = await cluster.get(web)
    await cluster.fail(web, on=False, ready_probability="0")
    await cluster.pass_time(minutes=1)

    assert silent is not None
    assert silent["status"] == "Unknown"
    assert failing["status"]["unavailableReplicas"] == 1
    settled = (await cluster.get(web))["status"]
    assert (settled["readyReplicas"], settled.get("unavailableReplicas")) == (1, None)


async def test_pods_of_a_cron_job_fail_too(cluster: Cluster) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "tick:1"}]}}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template, "backoffLimit": 0}}}
    tick = await cluster.given(custom("batch/v1", "CronJob", "tick", spec=spec))

    await cluster.fail(tick)
    await cluster.pass_time(minutes=2)

    assert [one["status"]["failed"] for one in await cluster.list("jobs")][:1] == [1]


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


async def test_a_watch_ends_with_its_kind_also_from_another_thread(cluster: Cluster) -> None:
    await cluster.given(definition("Thing"))
    await cluster.list("Thing")
    (kind,) = [one for one in cluster.client.known_kinds if one.kind == "Thing"]
    answer = await cluster.embedded.request(
        "GET",
        kind.path(),
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
    )
    body: Any = answer.body
    assert b"initial-events-end" in await anext(body)

    *_, watcher = list[Any](cluster.embedded.api.context.watches)

    # Where no loop runs.
    await asyncio.to_thread(watcher.retire)

    async with asyncio.timeout(30):
        assert [piece async for piece in body] == []


async def test_clusters_know_nothing_of_each_other_and_share_a_clock(clusters: MakeClusters) -> None:
    east, west = await clusters("east", "west")
    await east.given(deployment("web"))

    await west.pass_time(minutes=1)

    assert len(await east.list("pods")) == 3
    assert all(one["status"]["phase"] == "Running" for one in await east.list("pods"))
    assert await west.list("pods") == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"simulate": "some"}, "invalid simulate: 'some'"),
        ({"nodes": -1}, "invalid nodes: -1"),
        ({"families": "x"}, "x"),
    ],
)
def test_settings_that_make_no_sense_are_refused_and_leave_nothing_behind(
    settings: dict[str, Any], said: str
) -> None:
    before = threading.active_count()

    with pytest.raises(SettingsError, match=said), SyncCluster(**settings):
        pass

    assert threading.active_count() == before


def test_a_cluster_that_is_never_entered_leaves_nothing_open() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        SyncCluster()
        gc.collect()

    assert not [one for one in warned if one.category is ResourceWarning]


async def test_a_listener_that_does_not_come_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[socket.socket] = []

    async def refuse(opened: socket.socket, *others: object) -> None:
        given.append(opened)
        raise OSError("no more files")

    monkeypatch.setattr("lamina.testing.cluster.listen", refuse)
    monkeypatch.setattr("lamina.app.listen", refuse)

    with pytest.raises(OSError, match="no more files"):
        async with Cluster(simulate="off") as cluster:
            await cluster.kubeconfig()
    with pytest.raises(OSError, match="no more files"):
        async with App(Settings(ephemeral=True, simulate="off", families="none", port=0)):
            pass

    assert [opened.fileno() for opened in given] == [-1, -1]


def test_a_cluster_of_another_loop_says_so_and_does_not_hang(
    blocking_cluster: SyncCluster,
) -> None:
    async def use() -> None:
        await blocking_cluster.cluster.list("pods")

    with pytest.raises(RuntimeError, match="runs in another event loop"):
        asyncio.run(use())
    with pytest.raises(RuntimeError, match="give the test and its fixtures one loop_scope"):
        asyncio.run(blocking_cluster.cluster.pass_time(minutes=1))
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(blocking_cluster.cluster.kubeconfig())


@pytest.mark.lamina(families="metacontroller", simulate="off")
class TestMarks:
    @pytest.mark.lamina(simulate="controllers")
    async def test_a_mark_of_a_test_is_laid_over_that_of_its_class(self, cluster: Cluster) -> None:
        settings = cluster.embedded.settings

        assert (settings.families, settings.simulate) == ("metacontroller", "controllers")


@pytest.mark.lamina(families="metacontroller", simulate="controllers")
async def test_a_mark_says_what_runs_on_the_cluster(cluster: Cluster) -> None:
    assert "compositecontrollers" in {kind.plural for kind in await cluster.client.discover()}


def test_a_program_that_blocks_has_a_kubeconfig(blocking_cluster: SyncCluster) -> None:
    access = read_kubeconfig(blocking_cluster.kubeconfig)
    trust = ssl.create_default_context(cadata=access.authority.decode())
    url = f"{access.server}/api/v1/namespaces/default/configmaps"
    body = json.dumps(config_map("settings", {"colour": "red"})).encode()
    headers = {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"}

    with urlopen(Request(url, body, headers), context=trust) as answer:
        assert answer.status == 201

    assert blocking_cluster.get(config_map("settings"))["data"] == {"colour": "red"}


def test_a_program_that_blocks_can_have_things_broken_and_see_time_pass(
    blocking_cluster: SyncCluster,
) -> None:
    began = blocking_cluster.now

    with blocking_cluster.broken(Refuse(code=503, verbs=("list",))), pytest.raises(Unavailable):
        blocking_cluster.list("pods")
    blocking_cluster.pass_time(minutes=1)

    assert blocking_cluster.list("pods", labels="app=web") == []
    assert blocking_cluster.now == began + timedelta(minutes=1)


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


@pytest.mark.parametrize("families", ["none", "all"])
async def test_a_stopped_cluster_is_freed_without_garbage_collection(families: str) -> None:
    gc.disable()
    try:
        async with Cluster(families=families) as cluster:
            await cluster.given(deployment("web"), settled=True)
            left: dict[str, weakref.ref[Any]] = {
                "server": weakref.ref(cluster.embedded.api),
                "store": weakref.ref(cluster.embedded.store),
                **{
                    f"manager {number}": weakref.ref(one)
                    for number, one in enumerate(cluster.embedded.managers)
                },
            }
        del cluster
        # What was called off hears of it in the next turns of the loop.
        for _ in range(4):
            await asyncio.sleep(0)

        assert [name for name, one in left.items() if one() is not None] == []
    finally:
        gc.enable()


async def test_one_cluster_and_several_in_one_test_pass_their_time_together(
    cluster: Cluster, clusters: MakeClusters
) -> None:
    east, west = await clusters("east", "west")
    await west.given(deployment("web", replicas=40))

    await cluster.settled()

    assert len(await west.list("pods")) == 40
    await cluster.given(deployment("api", replicas=40))
    await east.settled()
    assert len(await cluster.list("pods")) == 40


LEFT = """
import gc
import weakref

ended = []

async def test_clusters_are_used(cluster, clusters):
    ended.extend(weakref.ref(one) for one in (cluster, *await clusters("east", "west")))

def test_and_are_gone_when_the_next_test_runs():
    gc.collect()
    assert [one() for one in ended] == [None] * 3
"""


def test_the_clusters_of_a_finished_test_are_freed(tmp_path: Path) -> None:
    (tmp_path / "test_left.py").write_text(LEFT)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert "2 passed" in done.stdout, done.stdout
