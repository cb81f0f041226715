"""A simulated rollout of a hub: agents are simulated, and fail on request."""

import re
from datetime import timedelta

import pytest

from lamina.control_plane.load_stages import load_stages
from lamina.errors import SettingsError
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation.scenario import FinalState, Simulation, read_failures
from lamina.testing.builders import custom, deployment

_GROUP = "cluster.open-cluster-management.io"
_HOUR = timedelta(hours=1)
_RULES = [
    {"condition": "Progressing", "type": "WellKnownConditions"},
    {"condition": "Degraded", "type": "WellKnownConditions"},
]
_WORK_GROUP = "work.open-cluster-management.io"
_AGENT_SAYS = (
    ("Applied", "True", "AppliedManifestWorkComplete"),
    ("Available", "True", "ResourcesAvailable"),
    ("Progressing", "False", "Completed"),
    ("Degraded", "False", "Completed"),
)


def hub(count: int = 4, failures: object = None) -> Simulation:
    """Return a hub with clusters that are all selected."""
    played = Simulation(
        families=chosen("manifestwork"),
        failures=read_failures(failures, "failures.yaml"),
        stages=load_stages(),
    )
    played.apply(custom(f"{_GROUP}/v1beta2", "ManagedClusterSet", "fleet", namespace=None))
    played.apply(
        custom(f"{_GROUP}/v1beta2", "ManagedClusterSetBinding", "fleet", spec={"clusterSet": "fleet"})
    )
    played.apply(custom(f"{_GROUP}/v1beta1", "Placement", "everywhere", spec={}))
    for number in range(1, count + 1):
        member = {f"{_GROUP}/clusterset": "fleet"}
        spec = {"hubAcceptsClient": True}
        played.apply(
            custom(f"{_GROUP}/v1", "ManagedCluster", f"c{number}", namespace=None, labels=member, spec=spec)
        )
    return played


def web(image: str, *, ruled: bool = True, deadline: str = "5m") -> Obj:
    strategy = {
        "type": "Progressive",
        "failureStrategy": "AbortAll",
        "progressive": {"maxConcurrency": 2, "progressDeadline": deadline},
    }
    which = {"group": "apps", "resource": "deployments", "name": "web", "namespace": "default"}
    template: Made = {"workload": {"manifests": [deployment("web", image=image)]}}
    if ruled:
        template["manifestConfigs"] = [{"resourceIdentifier": which, "conditionRules": _RULES}]
    spec = {
        "placementRefs": [{"name": "everywhere", "rolloutStrategy": strategy}],
        "manifestWorkTemplate": template,
    }
    return custom(f"{_WORK_GROUP}/v1alpha1", "ManifestWorkReplicaSet", "web", spec=spec)


def final_state(played: Simulation) -> FinalState:
    (found,) = [one for one in played.final_states() if one.owner_status is not None]
    return found


def images(played: Simulation) -> dict[str, str]:
    return {
        ref.namespace: work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"]["containers"][0][
            "image"
        ]
        for ref, work in played.cluster.objects.items()
        if ref.kind == "ManifestWork"
    }


def rolled_out(failures: object = None, *, ruled: bool = True) -> Simulation:
    """Return a hub whose clusters have all come to have the second image, if they could."""
    played = hub(failures=failures)
    played.apply(web("web:1", ruled=ruled))
    played.run(timedelta(minutes=10))
    assert final_state(played).healthy
    played.apply(web("web:2", ruled=ruled))
    played.run(_HOUR)
    return played


def taken_from_a_hub(*, ruled: bool = False, version: str = "v1alpha1", deadline: str = "5m") -> list[Made]:
    """Return what a hub holds whose agents, real ones, have all said that the first image is there and well."""
    played = hub()
    played.apply(web("web:1", ruled=ruled, deadline=deadline))
    played.run(timedelta(minutes=10))
    assert final_state(played).healthy
    return [_as_read(obj, version) for obj in played.cluster.objects.values()]


def _as_read(obj: Made, version: str) -> Made:
    if obj["kind"] == "ManifestWorkReplicaSet":
        return {**obj, "apiVersion": f"{_WORK_GROUP}/{version}"}
    if obj["kind"] != "ManifestWork":
        return obj
    about = {
        "observedGeneration": meta.generation(obj),
        "message": "",
        "lastTransitionTime": "2025-12-31T00:00:00Z",
    }
    said = [
        {"type": name, "status": status, "reason": reason, **about} for name, status, reason in _AGENT_SAYS
    ]
    return {**obj, "status": {"conditions": said}}


def continued(objects: list[Made], failures: object = None) -> Simulation:
    """Return a simulation that begins with what a hub holds."""
    return Simulation(
        families=chosen("manifestwork"),
        objects=objects,
        failures=read_failures(failures, "failures.yaml"),
        stages=load_stages(),
    )


@pytest.mark.parametrize("ruled", [True, False])
def test_a_good_change_on_what_real_agents_have_said_ends_well(ruled: bool) -> None:
    played = continued(taken_from_a_hub(ruled=ruled))

    played.apply(web("web:2", ruled=ruled))
    played.run(_HOUR)

    assert final_state(played).healthy, final_state(played).because
    assert set(images(played).values()) == {"web:2"}


@pytest.mark.parametrize(("ruled", "fails"), [(True, "crash"), (False, "crash"), (False, "unready")])
def test_a_bad_change_after_the_reports_of_real_agents_is_aborted(ruled: bool, fails: str) -> None:
    bad = {"images": [{"image": "web:2", "fails": fails}]}
    played = continued(taken_from_a_hub(ruled=ruled), bad)

    played.apply(web("web:2", ruled=ruled))
    played.run(_HOUR)

    assert final_state(played).state == "Aborted"
    assert set(images(played).values()) == {"web:1"}
    why = [one.because for one in played.timeline if "rolling back" in one.because]
    assert all("0 of 3 replicas are available" in one for one in why) and why, why


def test_agents_say_all_that_real_ones_say_about_what_they_were_sent_last() -> None:
    played = continued(taken_from_a_hub())

    played.apply(web("web:2", ruled=False))
    played.run(_HOUR)

    for work in (obj for ref, obj in played.cluster.objects.items() if ref.kind == "ManifestWork"):
        said = work["status"]["conditions"]
        assert [(one["type"], one["status"], one["reason"]) for one in said] == list(_AGENT_SAYS)
        assert {one["observedGeneration"] for one in said} == {2}


@pytest.mark.parametrize(
    "says", [("Applied", "Available"), ("Applied", "Available", "Progressing", "Degraded")]
)
def test_no_controller_repeats_what_was_done_before(says: tuple[str, ...]) -> None:
    objects = taken_from_a_hub()
    for work in (obj for obj in objects if obj["kind"] == "ManifestWork"):
        work["status"]["conditions"] = [one for one in work["status"]["conditions"] if one["type"] in says]
    played = continued(objects)

    played.run(_HOUR)

    assert final_state(played).healthy
    assert not [one.because for one in played.timeline if one.because.startswith(("moving", "waiting"))]


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_a_way_back_to_what_is_there_already_ends_well(version: str) -> None:
    played = continued(taken_from_a_hub())

    played.rollback(Ref(f"{_WORK_GROUP}/{version}", "ManifestWorkReplicaSet", "default", "web"), 1)
    played.run(_HOUR)

    assert [(one.state, one.healthy) for one in played.final_states()] == [("Healthy", True)]


@pytest.mark.parametrize("version", ["v1", "v1alpha1", "v1beta1"])
def test_a_change_in_another_version_is_a_change_of_the_same_object(version: str) -> None:
    played = continued(taken_from_a_hub(version=version))

    played.apply(web("web:2", ruled=False))
    played.run(_HOUR)

    (stored,) = [obj for ref, obj in played.cluster.objects.items() if ref.kind == "ManifestWorkReplicaSet"]
    assert (
        stored["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]["spec"]["template"]["spec"][
            "containers"
        ][0]["image"]
        == "web:2"
    )
    assert [(one.state, one.healthy) for one in played.final_states()] == [("Healthy", True)]
    assert set(images(played).values()) == {"web:2"}


def test_a_deadline_shorter_than_readiness_takes_says_how_long_that_is() -> None:
    played = continued(taken_from_a_hub(deadline="3s"))

    played.apply(web("web:2", ruled=False, deadline="3s"))
    played.run(_HOUR)

    (why,) = [one.because for one in played.timeline if "rolling back" in one.because]
    assert "not healthy within 3s" in why
    assert re.search(r"c1 \(progressing: simulated to be healthy after [5-7]\.\d s\)", why), why


@pytest.mark.parametrize(
    ("fails", "state", "well"),
    [
        ("",         "Healthy",     True),
        ("degraded", "Degraded",    False),
        ("stuck",    "Progressing", False),
        ("refused",  "Progressing", False),
        ("silent",   "Progressing", False),
    ],
)  # fmt: skip
def test_a_work_without_a_replica_set_is_healthy_when_its_agent_reports_so(
    fails: str, state: str, well: bool
) -> None:
    played = hub(failures={"clusters": [{"name": "c1", "fails": fails}]} if fails else None)

    played.apply(custom(f"{_WORK_GROUP}/v1", "ManifestWork", "one", namespace="c1", spec={
        "workload": {"manifests": [deployment("web")]},
    }))  # fmt: skip
    played.run(_HOUR)

    (told,) = [one for one in played.final_states() if one.ref.kind == "ManifestWork"]
    assert (told.state, told.healthy) == (state, well)


@pytest.mark.parametrize("ruled", [True, False])
def test_clusters_move_at_their_pace_and_stay_known_for_an_hour(ruled: bool) -> None:
    played = rolled_out(ruled=ruled)

    assert final_state(played).healthy
    assert images(played) == dict.fromkeys(("c1", "c2", "c3", "c4"), "web:2")
    moves = [one.because for one in played.timeline if one.because.startswith("moving")]
    assert moves
    assert all(len(one.split(", ")) <= 2 for one in moves), moves


@pytest.mark.parametrize("ruled", [True, False])
def test_an_image_that_crashes_aborts_the_rollout_and_every_cluster_is_back(ruled: bool) -> None:
    played = rolled_out({"images": [{"image": "web:2", "fails": "crash"}]}, ruled=ruled)

    told = final_state(played)
    assert not told.healthy
    assert told.state == "Aborted"
    assert set(images(played).values()) == {"web:1"}


def test_a_cluster_that_is_silent_for_long_is_selected_no_more() -> None:
    played = hub(failures={"clusters": [{"name": "c2", "fails": "silent", "from": "20m"}]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert set(images(played)) == {"c1", "c3", "c4"}
    said = [(one.after, one.because) for one in played.timeline if one.ref.name == "c2"]
    assert (timedelta(minutes=20), "its agent stops responding") in said
    assert (timedelta(minutes=25), "Registration agent stopped updating its lease.") in said


def test_a_cluster_that_comes_back_is_selected_again() -> None:
    fault = {"name": "c2", "fails": "silent", "from": "20m", "until": "40m"}
    played = hub(failures={"clusters": [fault]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert set(images(played)) == {"c1", "c2", "c3", "c4"}
    assert final_state(played).healthy
    told = [(one.after, one.because) for one in played.timeline if one.ref.name == "c2"]
    assert (timedelta(minutes=40), "its agent responds again") in told


def test_a_work_that_goes_wrong_later_is_told_of_then() -> None:
    played = hub(failures={"clusters": [{"name": "c2", "fails": "degraded", "from": "20m", "until": "40m"}]})
    played.apply(web("web:1"))
    played.run(timedelta(minutes=30))
    work = next(ref for ref in played.cluster.objects if ref.kind == "ManifestWork" and ref.namespace == "c2")
    said = {one["type"]: one["status"] for one in played.cluster.get(work)["status"]["conditions"]}
    assert said["Degraded"] == "True"

    played.run(timedelta(minutes=30))

    said = {one["type"]: one["status"] for one in played.cluster.get(work)["status"]["conditions"]}
    assert said["Degraded"] == "False"
    assert final_state(played).healthy
    told = [(one.after, one.because) for one in played.timeline if one.ref.name == "c2"]
    assert (timedelta(minutes=20), "its works are degraded from now on") in told
    assert (timedelta(minutes=40), "its works are no longer degraded") in told


def test_a_cluster_that_refuses_its_work_is_waited_for_until_its_time_is_up() -> None:
    played = hub(failures={"clusters": [{"name": "c1", "fails": "refused"}]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert not final_state(played).healthy
    assert "c1" in final_state(played).because


def test_a_share_of_clusters_is_the_same_every_time() -> None:
    def failing() -> set[str]:
        played = hub(20, {"clusters": [{"share": "50%", "fails": "stuck"}]})
        return {f"c{n}" for n in range(1, 21) if played.failures.fault_of(f"c{n}", timedelta(0))}

    assert failing() == failing()
    assert 4 < len(failing()) < 16


def test_what_cannot_go_wrong_with_a_cluster_is_named() -> None:
    with pytest.raises(
        SettingsError, match="clusters.fails: expected one of silent, refused, degraded, stuck"
    ):
        read_failures({"clusters": [{"fails": "crash"}]}, "failures.yaml")
