"""The lifecycle of pods with the default stages."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.objects import conditions
from tests.unit.actors.stages.life import NODE, START, Life, container, pod

STARTS = ["Pulled", "Created", "Started"]


def reasons(life: Life) -> list[str]:
    return [reason for reason, _ in life.events]


def test_an_ordinary_pod_runs_and_is_ready_after_one_write() -> None:
    life = Life(pod()).pass_time(2)

    assert (life.phase, life.is_ready, life.state()) == ("Running", True, "running")
    assert life.writes == 1
    assert reasons(life) == STARTS
    assert life.pass_time(3600).writes == 1


def test_a_kubelet_says_everything_it_says_about_a_running_pod() -> None:
    life = Life(
        pod(container("registry.example/team/web:2", volumeMounts=[{"name": "v", "mountPath": "/v"}]))
    )
    life.pass_time(2)
    status = life.obj["status"]

    assert [one["type"] for one in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert {one["status"] for one in status["conditions"]} == {"True"}
    assert {one["observedGeneration"] for one in status["conditions"]} == {1}
    assert status["hostIPs"] == [{"ip": status["hostIP"]}] == [{"ip": "172.18.0.2"}]
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["podIP"].startswith("10.244.")
    assert status["qosClass"] == "BestEffort"
    [one] = status["containerStatuses"]
    assert one["image"] == "registry.example/team/web:2"
    assert one["imageID"].startswith("registry.example/team/web@sha256:")
    assert one["containerID"].startswith("containerd://")
    assert (one["started"], one["restartCount"], one["lastState"]) == (True, 0, {})
    assert one["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


def test_a_pod_starts_within_a_second_and_not_all_at_once() -> None:
    waits = {Life(pod(uid=f"uid-{number}")).step() for number in range(50)}

    assert all(wait is not None and timedelta(0.2 / 86400) <= wait < timedelta(0.8 / 86400) for wait in waits)
    assert len(waits) == 50


@pytest.mark.parametrize(
    "image",
    [
        "registry.invalid/web:1",
        "web:bad",
        "bad-image",
        "web:does-not-exist",
        "non-existent/web:1",
        "web:404",
        "web:bad@sha256:0123",
    ],
)
def test_an_image_that_is_not_to_be_had_is_tried_and_backed_off_from(image: str) -> None:
    life = Life(pod(container(image)))

    life.pass_time(1)
    assert (life.phase, life.state()) == ("Pending", "waiting ErrImagePull")
    life.pass_time(2)
    assert (life.phase, life.state(), life.is_ready) == ("Pending", "waiting ImagePullBackOff", False)
    assert reasons(life) == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]
    assert life.status()["state"]["waiting"]["message"].startswith(
        f'Back-off pulling image "{image}": ErrImagePull: '
    )


@pytest.mark.parametrize("image", ["web@sha256:0bad0bad", "web:1@sha256:0bad0bad", "web:4040", "http-404:1"])
def test_a_digest_may_spell_anything(image: str) -> None:
    life = Life(pod(container(image))).pass_time(2)

    assert (life.phase, life.is_ready) == ("Running", True)


def test_a_pull_is_tried_again_later_each_time() -> None:
    life = Life(pod(container("web:bad")))
    tried: list[float] = []
    for _ in range(30):
        again = life.step()
        assert again is not None
        if life.obj["status"].get("containerStatuses") and life.state() == "waiting ErrImagePull":
            tried.append(round((life.now - START).total_seconds()))
        life.now += again

    assert tried[1:10] == [10, 30, 70, 150, 310, 610, 910, 1210, 1510]
    assert reasons(life).count("Pulling") == len(tried)


def test_a_pod_whose_image_is_put_right_starts_after_all() -> None:
    life = Life(pod(container("web:bad"))).pass_time(60)

    life.obj["spec"]["containers"][0]["image"] = "web:good"
    life.pass_time(2)

    assert (life.phase, life.is_ready, life.status()["image"]) == ("Running", True, "web:good")


def test_one_bad_image_does_not_keep_the_other_container_from_running() -> None:
    life = Life(pod(container(name="a"), container("web:bad", name="b"))).pass_time(60)

    assert (life.phase, life.state("a"), life.state("b")) == (
        "Pending",
        "running",
        "waiting ImagePullBackOff",
    )
    assert life.condition("Ready") == ("False", "ContainersNotReady", "containers with unready status: [b]")


def test_a_crashing_container_comes_back_later_each_time_and_is_never_ready() -> None:
    life = Life(pod(container("web:crash")))
    waits: list[float] = []
    for _ in range(50):
        again = life.step()
        assert again is not None
        assert not life.is_ready
        if life.obj["status"].get("containerStatuses") and life.state() == "waiting CrashLoopBackOff":
            waits.append(again.total_seconds())
        life.now += again

    # A second of each has passed before the container is said to back off.
    assert waits[:6] == [9, 19, 39, 79, 159, 299]
    assert set(waits[5:]) == {299}
    assert life.phase == "Running"
    assert life.status()["lastState"]["terminated"]["exitCode"] == 1
    assert life.status()["restartCount"] > 10


def test_a_crash_loop_says_how_long_it_backs_off() -> None:
    life = Life(pod(container("web:crash"))).pass_time(6)

    waiting = life.status()["state"]["waiting"]
    assert waiting["message"] == "back-off 10s restarting failed container=c pod=web_default(uid-1)"
    assert ("BackOff", "Back-off restarting failed container c in pod web_default(uid-1)") in life.events
    life.pass_time(120)
    assert life.status()["state"]["waiting"]["message"].startswith("back-off 1m20s ")


@pytest.mark.parametrize("where", [{"args": ["crash"]}, {"command": ["sh", "-c", "crash-now"]}])
def test_what_a_container_is_told_to_do_may_crash_it_too(where: dict[str, Any]) -> None:
    life = Life(pod(container("busybox", **where))).pass_time(10)

    assert life.state() == "waiting CrashLoopBackOff"


@pytest.mark.parametrize(
    ("policy",    "image",     "annotations",                                    "phase",     "state"),
    [
        ("Always",    "job",       {},                                               "Running",   "running"),
        ("Never",     "job",       {},                                               "Succeeded", "terminated Completed"),
        ("OnFailure", "job",       {},                                               "Succeeded", "terminated Completed"),
        ("Never",     "crash",     {},                                               "Failed",    "terminated Error"),
        ("OnFailure", "crash",     {},                                               "Running",   "waiting CrashLoopBackOff"),
        ("Never",     "job",       {"sim/fail-after": "2s", "sim/exit-code": "7"},   "Failed",    "terminated Error"),
        ("Never",     "job",       {"sim/exit-code": "3"},                           "Failed",    "terminated Error"),
        ("OnFailure", "job",       {"sim/exit-code": "3"},                           "Running",   "waiting CrashLoopBackOff"),
        ("Never",     "job",       {"sim/complete-after": "1h"},                     "Running",   "running"),
    ],
)  # fmt: skip
def test_how_a_pod_ends(policy: str, image: str, annotations: dict[str, str], phase: str, state: str) -> None:
    life = Life(pod(container(image), policy=policy, annotations=annotations)).pass_time(8)

    assert (life.phase, life.state()) == (phase, state)


def test_a_pod_that_has_ended_says_so_in_its_conditions() -> None:
    done, failed = (
        Life(pod(policy="Never")).pass_time(5),
        Life(pod(container("crash"), policy="Never")).pass_time(5),
    )

    assert done.condition("Ready") == ("False", "PodCompleted", "")
    assert done.condition("Initialized") == ("True", "PodCompleted", "")
    assert failed.condition("Ready") == ("False", "PodFailed", "")
    assert failed.condition("PodReadyToStartContainers")[0] == "False"


def test_a_job_that_fails_on_request_ends_with_the_code_it_was_told() -> None:
    life = Life(pod(policy="Never", annotations={"sim/fail-after": "10s", "sim/exit-code": "42"}))

    assert life.pass_time(9).phase == "Running"
    ended = life.pass_time(3).status()["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (42, "Error")


@pytest.mark.parametrize(
    ("made",                                                                     "early", "late"),
    [
        (pod(container("web:slow")),                                             20,      40),
        (pod(container("web:slow"), annotations={"sim/ready-after": "5s"}),      3,       7),
        (pod(annotations={"sim/ready-after": "1m30s"}),                          80,      95),
        (pod(container(readinessProbe={"initialDelaySeconds": 15})),             12,      17),
        (pod(container(startupProbe={"initialDelaySeconds": 15})),               12,      17),
    ],
)  # fmt: skip
def test_a_pod_may_be_ready_late(made: dict[str, object], early: float, late: float) -> None:
    life = Life(made)

    assert (life.pass_time(early).is_ready, life.phase) == (False, "Running")
    assert life.pass_time(late - early).is_ready


def test_a_pod_may_stop_being_ready_and_stays_so() -> None:
    life = Life(pod(annotations={"sim/unready-after": "60s"}))

    assert life.pass_time(50).is_ready
    assert not life.pass_time(15).is_ready
    assert life.condition("Ready")[1] == "ContainersNotReady"
    assert life.state() == "running"
    assert "Unhealthy" in reasons(life)
    assert not life.pass_time(3600).is_ready


@pytest.mark.parametrize(
    ("annotations",                     "image",       "least", "most"),
    [
        ({},                            "web:flaky",   35,      65),
        ({"sim/ready-probability": "0.5"}, "web:1",    35,      65),
        ({"sim/ready-probability": "0.9"}, "web:1",    80,      98),
        ({"sim/ready-probability": "90%"}, "web:1",    80,      98),
        ({"sim/ready-probability": "0"},   "web:1",    0,       0),
        ({"sim/crash-share": "20%"},       "web:1",    65,      92),
        ({"sim/crash-share": "1"},         "web:1",    0,       0),
    ],
)  # fmt: skip
def test_a_share_of_the_pods_is_never_ready(
    annotations: dict[str, str], image: str, least: int, most: int
) -> None:
    lives = [
        Life(pod(container(image), uid=f"uid-{number}", annotations=annotations)) for number in range(100)
    ]

    assert least <= sum(life.pass_time(2).is_ready for life in lives) <= most


def test_a_share_that_crashes_crashes_in_a_loop() -> None:
    life = Life(pod(annotations={"sim/crash-share": "100%"})).pass_time(10)

    assert life.state() == "waiting CrashLoopBackOff"


def test_the_same_pod_always_has_the_same_luck() -> None:
    annotations = {"sim/ready-probability": "0.5"}
    for number in range(20):
        first, second = (
            Life(pod(uid=f"uid-{number}", annotations=annotations)).pass_time(2) for _ in range(2)
        )
        assert first.obj == second.obj


def test_init_containers_come_one_by_one_before_the_others() -> None:
    first, second = container(name="first"), container("web:slow-init", name="second")
    life = Life(pod(initContainers=[first, second]))
    seen: list[tuple[str, str, str]] = []
    for _ in range(60):
        life.pass_time(0.1)
        if "initContainerStatuses" in life.obj["status"]:
            seen.append((life.state("first"), life.state("second"), life.state("c")))

    assert seen[-1] == ("terminated Completed", "terminated Completed", "running")
    assert ("running", "waiting PodInitializing", "waiting PodInitializing") in seen
    assert life.is_ready
    assert reasons(life) == STARTS * 3


def test_a_pod_whose_init_container_fails_is_not_initialized() -> None:
    looping = Life(pod(initContainers=[container("crash", name="init")])).pass_time(10)
    ended = Life(pod(initContainers=[container("crash", name="init")], policy="Never")).pass_time(10)

    assert (looping.phase, looping.state("init"), looping.state()) == (
        "Pending",
        "waiting CrashLoopBackOff",
        "waiting PodInitializing",
    )
    message = "containers with incomplete status: [init]"
    assert looping.condition("Initialized") == ("False", "ContainersNotInitialized", message)
    assert ended.phase == "Failed"


def test_a_sidecar_runs_beside_the_others_and_does_not_keep_a_job_from_ending() -> None:
    sidecar = container(name="proxy", restartPolicy="Always")
    serving, job = Life(pod(initContainers=[sidecar])), Life(pod(initContainers=[sidecar], policy="Never"))

    assert serving.pass_time(5).is_ready
    assert (serving.state("proxy"), serving.state()) == ("running", "running")
    assert job.pass_time(5).phase == "Succeeded"
    assert job.state("proxy") == "terminated Completed"


def test_readiness_waits_for_the_gates_that_others_open() -> None:
    life = Life(pod(readinessGates=[{"conditionType": "example.com/open"}])).pass_time(5)
    missing = 'corresponding condition of pod readiness gate "example.com/open" does not exist.'
    assert life.condition("Ready") == ("False", "ReadinessGatesNotReady", missing)
    assert life.condition("ContainersReady")[0] == "True"

    life.obj["status"]["conditions"].append({"type": "example.com/open", "status": "True"})
    life.pass_time(1)

    assert life.is_ready
    assert conditions.is_true(life.obj["status"]["conditions"], "example.com/open")


def test_a_pod_past_its_deadline_is_killed() -> None:
    life = Life(pod(activeDeadlineSeconds=10)).pass_time(15)

    assert (life.phase, life.obj["status"]["reason"], life.state()) == (
        "Failed",
        "DeadlineExceeded",
        "terminated Error",
    )
    assert reasons(life)[-2:] == ["Killing", "DeadlineExceeded"]


def test_a_container_whose_image_changes_is_started_again() -> None:
    life = Life(pod()).pass_time(5)

    life.obj["spec"]["containers"][0]["image"] = "nginx:2"
    life.pass_time(5)

    status = life.status()
    assert (status["image"], status["restartCount"], status["ready"]) == ("nginx:2", 1, True)
    assert ("Killing", "Container c definition changed, will be restarted") in life.events


@pytest.mark.parametrize("grace", [30, 1])
def test_a_deleted_pod_is_gone_at_once(grace: int) -> None:
    life = Life(pod()).pass_time(5)

    life.delete(grace)
    life.pass_time(1)

    assert life.ended
    assert ("Killing", "Stopping container c") in life.events


def test_a_deleted_pod_with_a_finalizer_says_how_it_ended_and_waits() -> None:
    life = Life(pod(policy="Never", annotations={"sim/complete-after": "1h"})).pass_time(5)
    life.obj["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]

    life.delete()
    life.pass_time(3600)

    assert not life.ended
    assert (life.phase, life.status()["state"]["terminated"]["exitCode"]) == ("Failed", 137)
    assert [reason for reason in reasons(life) if reason == "Killing"] == ["Killing"]


def test_nothing_happens_to_a_pod_on_a_silent_node_but_that_it_is_not_ready() -> None:
    life = Life(pod()).pass_time(5)

    life.node = {**NODE, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    life.delete()
    life.pass_time(60)
    assert (life.is_ready, life.phase, life.ended, life.state()) == (False, "Running", False, "running")
    assert life.events[-1] == ("NodeNotReady", "Node is not ready")

    life.node = NODE
    life.pass_time(1)
    assert life.ended


def test_a_pod_comes_back_with_its_node() -> None:
    life = Life(pod()).pass_time(5)
    life.node = {**NODE, "status": {"conditions": []}}
    life.pass_time(5)
    life.node = NODE

    assert life.pass_time(1).is_ready


def test_times_of_transition_stay_while_nothing_changes() -> None:
    life = Life(pod(annotations={"sim/unready-after": "60s"})).pass_time(100)
    found = {one["type"]: one["lastTransitionTime"] for one in life.obj["status"]["conditions"]}

    assert found["Ready"] == found["ContainersReady"] == "2026-01-01T00:01:00Z"
    assert found["Initialized"] == found["PodScheduled"] == "2026-01-01T00:00:00Z"
    assert life.now == START + timedelta(seconds=100)
