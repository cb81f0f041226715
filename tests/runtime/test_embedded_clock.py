"""The clock of an embedded cluster: one for timestamps, delays and deadlines of every part."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import pytest_asyncio

from lamina.app import App
from lamina.clock import PacedClock, WallClock, pass_time
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.errors import BadRequest, Conflict, Forbidden
from lamina.faults import Silence, Slow
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Ref
from lamina.server.identity import Identity
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.runtime.cluster import reader
from tests.server.raw_http import TIMEOUT, reach

DAY = timedelta(days=1)


def settings(speed: float = 0.0) -> Settings:
    return Settings(ephemeral=True, speed=speed, nodes=2, families="none")


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """A cluster whose clock stands still until the test winds it."""
    async with EmbeddedCluster(settings()) as running:
        yield running


async def wind(cluster: EmbeddedCluster, by: timedelta) -> None:
    assert isinstance(cluster.clock, PacedClock)
    await pass_time(cluster.clock, by, cluster.settled)


def at(api_version: str, kind: str, name: str) -> Ref:
    return Ref(api_version, kind, "default", name)


def template(image: str = "web:1", **more: Any) -> Made:
    spec = {"containers": [{"name": "c", "image": image}], **more}
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def deployment(replicas: int, image: str) -> Made:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
        },
    }


def cron_job(schedule: str) -> Made:
    job = {"spec": {"template": template(restartPolicy="Never")}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "hourly", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": job},
    }


async def test_nothing_that_takes_time_happens_while_the_clock_stands_still(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    began = cluster.clock.now()
    made = await client.create(deployment(1, "web:1"))
    await cluster.settled()

    [pod] = (await client.list(("v1", "Pod"), "default")).items
    assert pod["status"]["phase"] == "Pending"
    assert cluster.clock.now() == began
    assert made["metadata"]["creationTimestamp"] == pod["metadata"]["creationTimestamp"]

    await wind(cluster, timedelta(seconds=5))
    [pod] = (await client.list(("v1", "Pod"), "default")).items
    assert pod["status"]["phase"] == "Running"


async def test_a_day_passes_and_what_was_due_in_it_has_happened_when_it_was_due(
    cluster: EmbeddedCluster,
) -> None:
    client = cluster.client()
    began = cluster.clock.now()
    await client.create(cron_job("0 * * * *"))
    await client.create(deployment(1, "web:404"))
    await wind(cluster, timedelta(minutes=11))
    told = {meta.name(one) for one in (await client.list(("v1", "Event"), "default")).items}
    assert told
    web = await client.get(at("apps/v1", "Deployment", "web"))
    progress = conditions.find(web["status"]["conditions"], "Progressing")
    assert progress is not None and progress["reason"] == "ProgressDeadlineExceeded"
    late = moment(progress["lastTransitionTime"])
    assert late is not None and abs(late - began - timedelta(minutes=10)) < timedelta(seconds=30)
    await client.delete(meta.ref(web))

    await wind(cluster, DAY - timedelta(minutes=11))

    fired = await client.get(at("batch/v1", "CronJob", "hourly"))
    last = moment(fired["status"]["lastScheduleTime"])
    assert last is not None and began + DAY - timedelta(hours=1) <= last <= began + DAY
    assert last.minute == 0
    jobs = (await client.list(("batch/v1", "Job"), "default")).items
    assert all(conditions.is_true(job["status"]["conditions"], "Complete") for job in jobs)
    assert all(started(job) == moment(job["metadata"]["creationTimestamp"]) for job in jobs)
    left = (await client.list(("v1", "Event"), "default")).items
    oldest = min(written for one in left if (written := moment(one["lastTimestamp"])))
    assert oldest > began + DAY - timedelta(hours=1, minutes=6)
    assert not told & {meta.name(one) for one in left if one["reason"] == "Scheduled"}


def started(job: Made) -> datetime | None:
    return moment(job["status"]["startTime"])


async def test_a_fast_clock_drives_the_controllers() -> None:
    async with EmbeddedCluster(settings(speed=3600.0)) as cluster:
        client = cluster.client()
        before, began = cluster.clock.now(), datetime.now(UTC)
        await client.create(cron_job("*/30 * * * *"))
        fired = await eventually(
            reader(client, at("batch/v1", "CronJob", "hourly")),
            lambda obj: obj is not None and "lastScheduleTime" in (obj.get("status") or {}),
        )

        assert fired is not None
        last = moment(fired["status"]["lastScheduleTime"])
        assert last is not None and before < last <= cluster.clock.now()
        assert cluster.clock.now() - before > datetime.now(UTC) - began


async def test_timestamps_of_the_server_follow_the_clock(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    await wind(cluster, 30 * DAY)
    named = {"name": "v"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    volume = await client.create(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": named, "spec": spec}
    )
    await wind(cluster, DAY)
    await client.patch(meta.ref(volume), {"status": {"phase": "Failed"}}, subresource="status")
    changed = await client.get(meta.ref(volume))

    now = cluster.clock.now().replace(microsecond=0)
    assert moment(changed["metadata"]["creationTimestamp"]) == now - DAY
    assert moment(changed["status"]["lastPhaseTransitionTime"]) == now


async def test_pods_leave_a_node_that_went_away_five_minutes_later_and_others_take_their_place(
    cluster: EmbeddedCluster,
) -> None:
    client = cluster.client()
    await client.create(deployment(4, "web:1"))
    await wind(cluster, timedelta(seconds=10))
    down = {"metadata": {"annotations": {"sim/not-ready": "true"}}}
    await client.patch(Ref("v1", "Node", "", "sim-0"), down)
    await wind(cluster, timedelta(minutes=4, seconds=50))
    pods = (await client.list(("v1", "Pod"), "default")).items
    assert [meta.is_deleting(pod) for pod in pods] == [False] * 4

    await wind(cluster, timedelta(seconds=30))

    pods = (await client.list(("v1", "Pod"), "default")).items
    stuck = [pod for pod in pods if meta.is_deleting(pod)]
    assert [pod["spec"]["nodeName"] for pod in stuck] == ["sim-0"] * 2
    assert all(conditions.is_true(pod["status"]["conditions"], "DisruptionTarget") for pod in stuck)
    well = [pod for pod in pods if conditions.is_true(pod["status"]["conditions"], "Ready")]
    assert [pod["spec"]["nodeName"] for pod in well] == ["sim-1"] * 4
    reasons = {one["reason"] for one in (await client.list(("v1", "Event"), "default")).items}
    assert {"NodeNotReady", "TaintManagerEviction"} <= reasons

    await client.patch(Ref("v1", "Node", "", "sim-0"), {"metadata": {"annotations": {"sim/not-ready": None}}})
    await wind(cluster, timedelta(minutes=1))
    pods = (await client.list(("v1", "Pod"), "default")).items
    assert len(pods) == 4


async def test_a_share_of_the_pods_of_an_image_fails_when_an_object_says_so(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    await client.create(deployment(20, "web:2"))
    await wind(cluster, timedelta(seconds=10))
    assert await ready(cluster) == 20
    failures = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sim-failures", "namespace": "kube-system"},
        "data": {"half": '{"image": "web:2", "share": "50%", "how": "unready"}'},
    }

    made = await client.create(failures)
    await wind(cluster, timedelta(seconds=10))
    assert 2 < await ready(cluster) < 18

    await client.delete(meta.ref(made))
    await wind(cluster, timedelta(seconds=10))
    assert await ready(cluster) == 20


async def test_a_day_that_is_wound_does_not_wait_for_an_answer_that_never_comes(
    cluster: EmbeddedCluster,
) -> None:
    """A request without an answer waits by the system clock, which is not wound."""
    client, faults = cluster.client(), cluster.api.faults
    faults.add(Silence(resources=("pods",), verbs=("create",)))
    await client.create(deployment(1, "web:1"))

    await wind(cluster, DAY)

    [silence] = faults.entries
    assert silence.met == 1, "the first request still waits"
    web = await client.get(at("apps/v1", "Deployment", "web"))
    progress = conditions.find(web["status"]["conditions"], "Progressing")
    assert progress is not None and progress["reason"] == "ProgressDeadlineExceeded"

    faults.clear()
    await wind(cluster, timedelta(seconds=10))
    assert await ready(cluster) == 1


async def test_a_day_that_is_wound_waits_for_answers_that_are_late(cluster: EmbeddedCluster) -> None:
    """Also while other requests get no answer."""
    client, faults = cluster.client(), cluster.api.faults
    faults.add(Silence(resources=("configmaps",)))
    faults.add(Slow(seconds=0.1, resources=("pods",), verbs=("create",)))
    async with asyncio.TaskGroup() as others:
        others.create_task(client.list(("v1", "ConfigMap"), "default"))
        await client.create(deployment(1, "web:1"))

        await wind(cluster, timedelta(seconds=10))

        assert await ready(cluster) == 1
        assert [entry.met > 0 for entry in faults.entries] == [True, True]
        faults.clear()


async def ready(cluster: EmbeddedCluster) -> int:
    web = await cluster.client().get(at("apps/v1", "Deployment", "web"))
    return int(web["status"].get("readyReplicas", 0))


# ── over HTTP ──


async def clock_request(cluster: EmbeddedCluster, body: object = None, user: Identity | None = None) -> Any:
    client = cluster.client() if user is None else cluster.client(user)
    sent = orjson.dumps(body) if body is not None else None
    return orjson.loads(await client.request("GET" if body is None else "POST", "/lamina/clock", body=sent))


async def test_the_clock_of_a_server_is_shown_wound_and_paced(cluster: EmbeddedCluster) -> None:
    before = await clock_request(cluster)
    assert before["speed"] == 0
    await cluster.client().create(deployment(1, "web:1"))

    after = await clock_request(cluster, {"wind": 60})

    passed = moment(after["now"]), moment(before["now"])
    assert passed[0] is not None and passed[1] is not None
    assert passed[0] - passed[1] == timedelta(minutes=1)
    assert after["ahead"] - before["ahead"] < 60
    assert await ready(cluster) == 1
    assert (await clock_request(cluster, {"speed": 60}))["speed"] == 60


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"wind": -1}, "wind: expected a number from 0 to 316224000, got -1"),
        ({"wind": "1d"}, 'wind: expected a number from 0 to .*, got "1d"'),
        ({"speed": 1e9}, "speed: expected a number from 0 to 1000000, got 1000000000.0"),
        ({"back": 1}, "back: the clock has the fields wind"),
    ],
)
async def test_an_invalid_clock_request_is_refused(
    cluster: EmbeddedCluster, body: object, complaint: str
) -> None:
    with pytest.raises(BadRequest, match=complaint):
        await clock_request(cluster, body)


async def test_every_user_may_read_the_clock_and_only_an_administrator_may_wind_it(
    cluster: EmbeddedCluster,
) -> None:
    jane = Identity("jane", ("system:authenticated",))

    assert "now" in await clock_request(cluster, user=jane)
    with pytest.raises(Forbidden):
        await clock_request(cluster, {"wind": 1}, user=jane)


async def test_a_wall_clock_cannot_be_wound() -> None:
    async with EmbeddedCluster(Settings(simulate="off"), clock=WallClock()) as cluster:
        with pytest.raises(Conflict, match="cannot be wound"):
            await clock_request(cluster, {"wind": 1})


async def test_winding_ends_when_its_client_disconnects() -> None:
    """Winding ten years of minutes takes hours, and could not be stopped otherwise."""
    response = Settings(ephemeral=True, port=0, speed=0.0, simulate="controllers", families="none")
    async with App(response) as app:
        await app.client().create(cron_job("* * * * *"))
        began = app.clock.now()
        wire = await reach(app)
        await wire.send(wire.request_bytes("POST", "/lamina/clock", body=b'{"wind": 300000000}'))
        async with asyncio.timeout(TIMEOUT):
            await app.clock.sleep_until(began + timedelta(hours=1))

            await wire.close()

            before = began
            while before < app.clock.now():
                before = app.clock.now()
                for _ in range(5000):
                    await asyncio.sleep(0)
