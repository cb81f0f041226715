"""What agents that are not there say of workloads: what those would come to, if somebody ran them."""

from datetime import timedelta

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation.failures import Images
from lamina.simulation.rehearsal import SETTLES, Rehearsals
from lamina.stages import load_stages
from lamina.testing.builders import config_map, custom, deployment, edited, stateful_set
from tests.simulation.test_fleet import continued, ending, hub, images, taken_from_a_hub, web

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
def test_a_work_comes_to_what_its_workloads_come_to(
    manifests: list[Obj], least: int, most: int, waiting: str, failed: str
) -> None:
    verdict = Rehearsals(load_stages()).of(work(*manifests), ())

    assert timedelta(seconds=least) <= verdict.takes <= timedelta(seconds=most)
    assert verdict.waiting.startswith(waiting) and bool(verdict.waiting) == bool(waiting)
    assert failed in verdict.failed and bool(verdict.failed) == bool(failed)


def test_an_image_that_is_to_fail_does_and_without_stages_that_is_all_that_is_known() -> None:
    failing = (Images("web:1"),)
    sent = work(deployment("web"))

    assert "0 of 3 replicas" in Rehearsals(load_stages()).of(sent, failing).waiting
    assert Rehearsals(()).of(sent, failing).waiting == "stuck, as was asked"
    assert Rehearsals(()).of(sent, ()) == SETTLES


def test_an_image_that_nobody_can_pull_turns_the_rollout_round_as_it_does_in_earnest() -> None:
    played = hub()
    played.apply(web("web:1", ruled=False))
    played.run(timedelta(minutes=10))
    played.apply(web("web:bad", ruled=False))
    played.run(HOUR)

    assert ending(played).state == "aborted"
    assert set(images(played).values()) == {"web:1"}
    (why,) = [one for one in played.story if "turning round" in one.because]
    assert timedelta(minutes=15) <= why.after < timedelta(minutes=15, seconds=2)
    assert "not well within 5m" in why.because
    assert "c1 (progressing: deployments default/web: 0 of 3 replicas are available)" in why.because


def test_an_image_that_is_slow_takes_as_long_on_a_cluster_as_anywhere() -> None:
    played = hub(1)
    played.apply(web("web:slow", ruled=False))
    played.run(HOUR)

    assert ending(played).well
    assert any("settles after 30." in one.because for one in played.story)


def test_a_deployment_that_took_too_long_is_degraded_from_then_on() -> None:
    played = hub(1)
    played.apply(web("web:bad", ruled=False, deadline="None"))
    played.run(HOUR)

    told = [one.after for one in played.story if "degraded: deployments default/web" in one.because]
    assert told and timedelta(minutes=10) <= told[0] < timedelta(minutes=11)


def test_what_a_real_agent_calls_well_stays_well_whatever_its_image_is_called() -> None:
    found = next(one for one in taken_from_a_hub() if one["kind"] == "ManifestWork")
    spec = {"workload": {"manifests": [deployment("web", image="web:not-so-bad")]}}
    alone = {**found, "metadata": {**found["metadata"], "name": "alone", "labels": {}}, "spec": spec}
    played = continued([alone])
    played.run(HOUR)

    said = played.paper.get(meta.ref(alone))["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in said] == [
        ("Applied", "True"), ("Available", "True"), ("Progressing", "False"), ("Degraded", "False"),
    ]  # fmt: skip


def test_a_share_of_an_image_fails_on_that_share_of_the_clusters() -> None:
    played = hub(20, {"images": [{"image": "web:1", "share": "30%"}]})
    strikes = [played.failures.striking(f"c{number}") for number in range(1, 21)]

    assert 2 <= sum(map(bool, strikes)) <= 10
    assert {one.share for each in strikes for one in each} == {1.0}
