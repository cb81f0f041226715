"""A hub's rollout on paper: agents that are not there are played, and fail as they are told."""

from datetime import timedelta

import pytest

from lamina.errors import SettingsError
from lamina.families.every import chosen
from lamina.objects.types import Made, Obj
from lamina.simulation import Ending, Simulation, read_failures
from lamina.testing.builders import custom, deployment

_GROUP = "cluster.open-cluster-management.io"
_HOUR = timedelta(hours=1)
_RULES = [
    {"condition": "Progressing", "type": "WellKnownConditions"},
    {"condition": "Degraded", "type": "WellKnownConditions"},
]


def hub(count: int = 4, failures: object = None) -> Simulation:
    """Return a hub with clusters that are all selected."""
    played = Simulation(families=chosen("manifestwork"), failures=read_failures(failures, "failures.yaml"))
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


def web(image: str, *, ruled: bool = True) -> Obj:
    strategy = {
        "type": "Progressive",
        "failureStrategy": "AbortAll",
        "progressive": {"maxConcurrency": 2, "progressDeadline": "5m"},
    }
    which = {"group": "apps", "resource": "deployments", "name": "web", "namespace": "default"}
    template: Made = {"workload": {"manifests": [deployment("web", image=image)]}}
    if ruled:
        template["manifestConfigs"] = [{"resourceIdentifier": which, "conditionRules": _RULES}]
    spec = {
        "placementRefs": [{"name": "everywhere", "rolloutStrategy": strategy}],
        "manifestWorkTemplate": template,
    }
    return custom("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web", spec=spec)


def ending(played: Simulation) -> Ending:
    (found,) = [one for one in played.endings() if one.account is not None]
    return found


def images(played: Simulation) -> dict[str, str]:
    return {
        ref.namespace: work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"]["containers"][0][
            "image"
        ]
        for ref, work in played.paper.objects.items()
        if ref.kind == "ManifestWork"
    }


def rolled_out(failures: object = None, *, ruled: bool = True) -> Simulation:
    """Return a hub whose clusters have all come to have the second image, if they could."""
    played = hub(failures=failures)
    played.apply(web("web:1", ruled=ruled))
    played.run(timedelta(minutes=10))
    assert ending(played).well
    played.apply(web("web:2", ruled=ruled))
    played.run(_HOUR)
    return played


@pytest.mark.parametrize("ruled", [True, False])
def test_clusters_move_at_their_pace_and_stay_known_for_an_hour(ruled: bool) -> None:
    played = rolled_out(ruled=ruled)

    assert ending(played).well
    assert images(played) == dict.fromkeys(("c1", "c2", "c3", "c4"), "web:2")
    moves = [one.because for one in played.story if one.because.startswith("moving")]
    assert moves
    assert all(len(one.split(", ")) <= 2 for one in moves), moves


@pytest.mark.parametrize("ruled", [True, False])
def test_an_image_that_crashes_aborts_the_rollout_and_everybody_is_back(ruled: bool) -> None:
    played = rolled_out({"images": [{"image": "web:2", "fails": "crash"}]}, ruled=ruled)

    told = ending(played)
    assert not told.well
    assert told.state == "aborted"
    assert set(images(played).values()) == {"web:1"}


def test_a_cluster_that_is_silent_for_long_is_selected_no_more() -> None:
    played = hub(failures={"clusters": [{"name": "c2", "fails": "silent", "from": "20m"}]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert set(images(played)) == {"c1", "c3", "c4"}
    said = [(one.after, one.because) for one in played.story if one.ref.name == "c2"]
    assert (timedelta(minutes=20), "its agent falls silent") in said
    assert (timedelta(minutes=25), "Registration agent stopped updating its lease.") in said


def test_a_cluster_that_comes_back_is_selected_again() -> None:
    spell = {"name": "c2", "fails": "silent", "from": "20m", "until": "40m"}
    played = hub(failures={"clusters": [spell]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert set(images(played)) == {"c1", "c2", "c3", "c4"}
    assert ending(played).well


def test_a_cluster_that_refuses_its_work_is_waited_for_until_its_time_is_up() -> None:
    played = hub(failures={"clusters": [{"name": "c1", "fails": "refused"}]})
    played.apply(web("web:1"))
    played.run(_HOUR)

    assert not ending(played).well
    assert "c1" in ending(played).because


def test_a_share_of_clusters_is_the_same_every_time() -> None:
    def failing() -> set[str]:
        played = hub(20, {"clusters": [{"share": "50%", "fails": "stuck"}]})
        return {f"c{n}" for n in range(1, 21) if played.failures.ails(f"c{n}", (), timedelta(0))}

    assert failing() == failing()
    assert 4 < len(failing()) < 16


def test_what_cannot_go_wrong_with_a_cluster_is_named() -> None:
    with pytest.raises(
        SettingsError, match="clusters.fails: expected one of silent, refused, degraded, stuck"
    ):
        read_failures({"clusters": [{"fails": "crash"}]}, "failures.yaml")
