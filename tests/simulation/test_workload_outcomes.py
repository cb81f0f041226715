"""Simulated agents report the outcome that workloads would have on their cluster."""

from datetime import timedelta

import pytest

from lamina.control_plane.load_stages import load_stages
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation.fleet.workload_outcome import SETTLES, WorkloadOutcomes
from lamina.simulation.injected_faults import Images
from lamina.testing.builders import config_map, custom, deployment, edited, stateful_set
from tests.simulation.test_fleet import continued, final_state, hub, images, taken_from_a_hub, web

HOUR = timedelta(hours=1)
TOO_LONG = "has timed out progressing"


def work(*manifests: Obj) -> Made:
    return {"spec": {"workload": {"manifests": list(manifests)}}}


def job(*arguments: str) -> Obj:
    container = {"name": "main", "image": "job:1", "args": list(arguments)}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return custom("batch/v1", "Job", "once", spec={"backoffLimit": 0, "template": {"spec": pod}})


def with_pod(manifest: Obj, **fields: object) -> Obj:
    return edited(manifest, spec={"template": {"spec": fields}})


@pytest.mark.parametrize(
    ("manifests", "least", "most", "waiting", "failed"),
    [
        ([deployment("web")],                       0,  2,  "", ""),
        ([deployment("web", image="web:slow")],     30, 32, "", ""),
        ([deployment("web", image="web:bad")],      0,  0,  "deployments default/web: 0 of 3 replicas are available", TOO_LONG),
        ([deployment("web", image="web:crash")],    0,  0,  "deployments default/web: 0 of 3 replicas are available", TOO_LONG),
        ([stateful_set("db", image="db:bad")],      0,  0,  "statefulsets default/db: ", ""),
        ([job("crash")],                            0,  0,  "jobs default/once: ", "jobs default/once: "),
        ([job()],                                   0,  5,  "", ""),
        ([config_map("settings")],                  0,  0,  "", ""),
        ([deployment("a"), deployment("b", image="b:bad")], 0, 2, "deployments default/b: 0 of 3", TOO_LONG),
        ([with_pod(deployment("web"), nodeSelector={"disk": "ssd"})], 0, 2, "", ""),
        ([with_pod(deployment("web"), containers=[])],                0, 0, "", ""),
        ([custom("apps/v1", "Deployment", "web", spec={"template": "x"})], 0, 0, "", ""),
    ],
)  # fmt: skip
def test_the_outcome_of_a_work_is_that_of_its_workloads(
    manifests: list[Obj], least: int, most: int, waiting: str, failed: str
) -> None:
    verdict = WorkloadOutcomes(load_stages()).of(manifests, ())

    assert timedelta(seconds=least) <= verdict.takes <= timedelta(seconds=most)
    assert verdict.waiting.startswith(waiting) and bool(verdict.waiting) == bool(waiting)
    assert failed in verdict.failed and bool(verdict.failed) == bool(failed)


def test_an_image_that_is_set_to_fail_fails_with_and_without_stages() -> None:
    failing = (Images("web:1"),)
    sent = [deployment("web")]

    assert "0 of 3 replicas" in WorkloadOutcomes(load_stages()).of(sent, failing).waiting
    assert WorkloadOutcomes(()).of(sent, failing).waiting == "stuck (injected failure)"
    assert WorkloadOutcomes(()).of(sent, ()) == SETTLES


def test_an_image_that_cannot_be_pulled_aborts_the_rollout_as_on_a_server() -> None:
    played = hub()
    played.apply(web("web:1", ruled=False))
    played.run(timedelta(minutes=10))
    played.apply(web("web:bad", ruled=False))
    played.run(HOUR)

    assert final_state(played).state == "Aborted"
    assert set(images(played).values()) == {"web:1"}
    (why,) = [one for one in played.timeline if "rolling back" in one.because]
    assert timedelta(minutes=15) <= why.after < timedelta(minutes=15, seconds=2)
    assert "not healthy within 5m" in why.because
    assert "c1 (progressing: deployments default/web: 0 of 3 replicas are available)" in why.because


def test_a_slow_image_delays_the_outcome_of_its_work() -> None:
    played = hub(1)
    played.apply(web("web:slow", ruled=False))
    played.run(HOUR)

    assert final_state(played).healthy
    assert any("simulated to be healthy after 30." in one.because for one in played.timeline)


def test_a_deployment_is_degraded_from_its_progress_deadline_on() -> None:
    played = hub(1)
    played.apply(web("web:bad", ruled=False, deadline="None"))
    played.run(HOUR)

    told = [one.after for one in played.timeline if "degraded: deployments default/web" in one.because]
    assert told and timedelta(minutes=10) <= told[0] < timedelta(minutes=11)


def test_a_work_that_a_real_agent_reported_healthy_stays_healthy_whatever_its_image() -> None:
    found = next(one for one in taken_from_a_hub() if one["kind"] == "ManifestWork")
    spec = {"workload": {"manifests": [deployment("web", image="web:not-so-bad")]}}
    alone = {**found, "metadata": {**found["metadata"], "name": "alone", "labels": {}}, "spec": spec}
    played = continued([alone])
    played.run(HOUR)

    said = played.cluster.get(meta.ref(alone))["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in said] == [
        ("Applied", "True"), ("Available", "True"), ("Progressing", "False"), ("Degraded", "False"),
    ]  # fmt: skip


def test_a_share_of_an_image_fails_on_that_share_of_the_clusters() -> None:
    played = hub(20, {"images": [{"image": "web:1", "share": "30%"}]})
    failing = [played.failures.images_failing_on(f"c{number}") for number in range(1, 21)]

    assert 2 <= sum(map(bool, failing)) <= 10
    assert {one.share for each in failing for one in each} == {1.0}
