"""Which pods are evicted from a node with a taint, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.actors.taint_eviction import EVICTING, evicted_at
from lamina.core.model.plan import Delete, Emit
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.times import stamp
from lamina.objects.types import Made, Ref
from lamina.simulation import START, SimulatedCluster, planned
from lamina.simulation.cluster.kinds import KINDS, POD, kind, make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GONE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": stamp(NOW)}
NODE = kind("v1", "Node", "nodes", namespaced=False)


def bears(key: str = "node.kubernetes.io/unreachable", seconds: int | None = None, **more: Any) -> Made:
    given = {"tolerationSeconds": seconds} if seconds is not None else {}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **given, **more}


def pod(*tolerations: Made, **status: Any) -> Made:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
    return make(POD, "p", spec=spec, status=status)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([],                                     0),
        ([bears(key="other")],                   0),
        ([bears()],                              None),
        ([bears(seconds=300)],                   300),
        ([bears(seconds=0)],                     0),
        ([bears(seconds=-5)],                    0),
        ([bears(seconds=300), bears()],          300),
        ([bears(effect="NoSchedule")],           0),
        ([{"operator": "Exists"}],               None),
    ],
)  # fmt: skip
def test_a_pod_leaves_when_it_bears_its_node_no_longer(tolerations: list[Made], seconds: int | None) -> None:
    leaves = evicted_at(pod(*tolerations), (GONE,), NOW)

    assert leaves == (None if seconds is None else NOW + timedelta(seconds=seconds))


def test_of_several_taints_the_first_that_is_borne_no_longer_counts() -> None:
    taints = (GONE, {"key": "k", "effect": "NoExecute", "timeAdded": stamp(NOW)})

    assert evicted_at(pod(bears(seconds=300)), taints, NOW) == NOW
    both = pod(bears(seconds=300), bears("k", seconds=60))
    assert evicted_at(both, taints, NOW) == NOW + timedelta(seconds=60)


def test_a_taint_that_does_not_say_since_when_has_been_borne_since_the_pod_started() -> None:
    started = pod(bears(seconds=300), startTime=stamp(NOW - timedelta(seconds=100)))
    taint = {key: value for key, value in GONE.items() if key != "timeAdded"}

    assert evicted_at(started, (taint,), NOW) == NOW + timedelta(seconds=200)


def cluster_of(made: Made, *taints: Made) -> SimulatedCluster:
    cluster = SimulatedCluster(kinds=Kinds((*KINDS, NODE)))
    cluster.create(make(NODE, "n", spec={"taints": list(taints)}))
    cluster.create(made)
    return cluster


def test_a_pod_is_told_why_it_goes_before_it_goes() -> None:
    plan = planned(cluster_of(pod(), GONE), EVICTING, Ref("v1", "Pod", "default", "p"))

    [why, away] = plan.stages
    said, told = why.actions
    assert conditions.find(said.patch["status"]["conditions"], "DisruptionTarget") == {  # type: ignore[union-attr]
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": stamp(START),
        "observedGeneration": 1,
    }
    assert isinstance(told, Emit)
    assert told.event["message"] == "Marking for deletion Pod default/p"
    assert [type(action) for action in away.actions] == [Delete]


def test_a_pod_that_may_stay_a_while_is_looked_at_again_then() -> None:
    taint = {**GONE, "timeAdded": stamp(START)}
    plan = planned(cluster_of(pod(bears(seconds=300)), taint), EVICTING, Ref("v1", "Pod", "default", "p"))

    assert not plan.stages
    assert plan.requeue_after == timedelta(seconds=300)


@pytest.mark.parametrize(
    ("made", "taint"),
    [
        (pod(), {"key": "k", "effect": "NoSchedule"}),
        (pod(phase="Succeeded"), GONE),
        (meta.with_metadata(pod(), deletionTimestamp=stamp(NOW), deletionGracePeriodSeconds=30), GONE),
    ],
)
def test_others_are_left_alone(made: Made, taint: Made) -> None:
    assert not planned(cluster_of(made, taint), EVICTING, Ref("v1", "Pod", "default", "p")).stages
