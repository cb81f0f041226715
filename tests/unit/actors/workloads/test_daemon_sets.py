"""DaemonSets: a pod on every eligible node."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.actors.workloads.daemonset_nodes import Eligibility, eligibility, node_of, tolerations_of
from lamina.actors.workloads.daemonset_sync import by_node, limits
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import Crashed, SimulatedCluster
from lamina.simulation.cluster.kinds import CONTROLLER_REVISION, NODE, POD, make
from tests.unit.actors.workloads.running import (
    DAEMON,
    attend,
    become,
    daemon_set,
    event_messages,
    fail,
    live,
    nodes,
    only,
    pods,
    run,
    status,
    succeed,
    template,
    well,
    wind,
)


def given_daemons(*names: str, **spec: Any) -> SimulatedCluster:
    """Return a cluster with a DaemonSet `agent` whose pods are well on every node."""
    cluster = SimulatedCluster()
    nodes(cluster, *names)
    cluster.create(daemon_set(**spec))
    live(cluster)
    cluster.journal.clear()
    return cluster


def update(cluster: SimulatedCluster, image: str) -> None:
    cluster.patch(DAEMON, {"spec": {"template": template("agent", image)}})


def images(cluster: SimulatedCluster) -> dict[str, str]:
    """Return what runs on each node; what is on its way out does not."""
    found = [pod for pod in pods(cluster) if not meta.is_deleting(pod)]
    return {str(node_of(pod)): pod["spec"]["containers"][0]["image"] for pod in found}


def going(cluster: SimulatedCluster) -> list[str]:
    return [str(node_of(pod)) for pod in pods(cluster) if meta.is_deleting(pod)]


# ── where ──


def test_every_node_has_a_pod() -> None:
    cluster = given_daemons("a", "b", "c")

    assert images(cluster) == {"a": "agent:1", "b": "agent:1", "c": "agent:1"}
    assert status(cluster, DAEMON) == {
        "observedGeneration": 1,
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }


def test_without_nodes_there_is_nothing_to_do() -> None:
    cluster = given_daemons()

    assert pods(cluster) == []
    assert status(cluster, DAEMON)["desiredNumberScheduled"] == 0


def test_a_pod_asks_for_its_node_by_name_and_puts_up_with_what_passes() -> None:
    cluster = given_daemons("a")
    [pod] = pods(cluster)

    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    assert terms == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert {one["key"].removeprefix("node.kubernetes.io/") for one in pod["spec"]["tolerations"]} == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }
    assert "controller-revision-hash" in meta.labels(pod)


def test_a_pod_on_the_network_of_its_node_puts_up_with_more() -> None:
    assert len(tolerations_of({"hostNetwork": True})) == len(tolerations_of({})) + 1


def test_the_number_of_the_template_is_on_the_pods() -> None:
    cluster = SimulatedCluster()
    nodes(cluster, "a")
    obj = daemon_set()
    obj["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "4"}
    cluster.create(obj)
    run(cluster)

    assert meta.labels(pods(cluster)[0])["pod-template-generation"] == "4"


TAINT = {"key": "ours", "value": "yes"}


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        ({}, {}, Eligibility.SHOULD_RUN),
        ({}, {"nodeSelector": {"disk": "ssd"}}, Eligibility.MUST_NOT_RUN),
        ({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, Eligibility.SHOULD_RUN),
        ({}, {"nodeName": "a"}, Eligibility.SHOULD_RUN),
        ({}, {"nodeName": "b"}, Eligibility.MUST_NOT_RUN),
        ({"spec": {"taints": [{**TAINT, "effect": "NoSchedule"}]}}, {}, Eligibility.MAY_STAY),
        ({"spec": {"taints": [{**TAINT, "effect": "NoExecute"}]}}, {}, Eligibility.MUST_NOT_RUN),
        ({"spec": {"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}}, {}, Eligibility.SHOULD_RUN),
        (
            {"spec": {"taints": [{**TAINT, "effect": "NoSchedule"}]}},
            {"tolerations": [{"operator": "Exists"}]},
            Eligibility.SHOULD_RUN,
        ),
        (
            {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}},
            {},
            Eligibility.SHOULD_RUN,
        ),
    ],
)
def test_what_a_node_is_to_a_daemon_set(node: Made, spec: Made, expected: Eligibility) -> None:
    obj = daemon_set(template=template("agent", "agent:1", **spec))

    assert eligibility(obj, make(NODE, "a", **node)) is expected


def test_a_node_that_comes_gets_a_pod_and_one_that_is_no_longer_meant_loses_it() -> None:
    selector = template("agent", "agent:1", nodeSelector={"disk": "ssd"})
    cluster = SimulatedCluster()
    nodes(cluster, "a", disk="ssd")
    nodes(cluster, "b")
    cluster.create(daemon_set(template=selector))
    live(cluster)
    assert images(cluster) == {"a": "agent:1"}

    cluster.patch(NODE.ref("", "b"), {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.patch(NODE.ref("", "a"), {"metadata": {"labels": {"disk": None}}})
    live(cluster)

    assert images(cluster) == {"b": "agent:1"}


def test_a_pod_stays_on_a_node_that_only_takes_no_new_ones_and_is_counted_as_misplaced() -> None:
    cluster = given_daemons("a")

    cluster.patch(NODE.ref("", "a"), {"spec": {"taints": [{**TAINT, "effect": "NoSchedule"}]}})
    live(cluster)

    assert images(cluster) == {"a": "agent:1"}
    assert status(cluster, DAEMON)["numberMisscheduled"] == 1
    assert status(cluster, DAEMON)["desiredNumberScheduled"] == 0


def test_a_pod_for_a_node_that_is_gone_before_it_was_placed_goes() -> None:
    cluster = SimulatedCluster()
    nodes(cluster, "a")
    cluster.create(daemon_set())
    run(cluster)
    cluster.delete(NODE.ref("", "a"))

    run(cluster)

    assert pods(cluster) == []


# ── what becomes of pods ──


def test_a_pod_that_failed_is_replaced_after_a_moment() -> None:
    cluster = given_daemons("a")
    [pod] = pods(cluster)
    fail(cluster, pod)
    run(cluster)
    assert not going(cluster)

    wind(cluster, seconds=1)
    live(cluster)

    assert [meta.uid(one) for one in pods(cluster)] != [meta.uid(pod)]
    assert event_messages(cluster, "FailedDaemonPod") == [
        f"Found failed daemon pod default/{meta.name(pod)} on node a, will try to kill it"
    ]


def test_a_pod_that_succeeded_is_replaced() -> None:
    cluster = given_daemons("a")
    succeed(cluster, pods(cluster)[0])

    live(cluster)

    assert images(cluster) == {"a": "agent:1"}
    assert len(event_messages(cluster, "SucceededDaemonPod")) == 1


def twin(pod: Made, name: str) -> Made:
    """Return another pod like one, which is not in any cache yet."""
    kept = {part: pod["metadata"][part] for part in ("namespace", "labels", "ownerReferences")}
    return {**pod, "metadata": {**kept, "name": name}}


def test_of_two_pods_on_a_node_the_older_stays() -> None:
    cluster = given_daemons("a")
    [first] = pods(cluster)
    wind(cluster, seconds=5)
    cluster.create(twin(first, "agent-twin"))

    live(cluster)

    assert [meta.uid(pod) for pod in pods(cluster)] == [meta.uid(first)]


def test_of_two_pods_of_one_second_the_one_that_serves_is_the_older() -> None:
    """Whatever their names are: a new pod takes no count away from the one it is to follow."""
    cluster = given_daemons("a", updateStrategy=SURGE)
    [first] = pods(cluster)
    for name in ("a-twin", "z-twin"):
        cluster.create({**twin(first, name), "status": {"phase": "Pending"}})
        created = {meta.metadata(pod)["creationTimestamp"] for pod in pods(cluster)}
        [there] = by_node(pods(cluster)).values()

        assert len(created) == 1
        assert [meta.name(pod) for pod in there] == [meta.name(first), name]
        cluster.delete(POD.ref("default", name), grace=0)


# ── updating ──


def test_an_update_goes_node_by_node() -> None:
    cluster = given_daemons("a", "b", "c")
    update(cluster, "agent:2")

    run(cluster)
    assert len(going(cluster)) == 1
    live(cluster)

    assert set(images(cluster).values()) == {"agent:2"}
    assert status(cluster, DAEMON)["updatedNumberScheduled"] == 3


def test_an_update_waits_for_a_pod_that_does_not_become_ready() -> None:
    cluster = given_daemons("a", "b", "c")
    update(cluster, "agent:broken")

    live(cluster, only(lambda pod: "broken" not in pod["spec"]["containers"][0]["image"]))

    assert sorted(images(cluster).values()) == ["agent:1", "agent:1", "agent:broken"]
    assert status(cluster, DAEMON)["numberUnavailable"] == 1


def test_old_pods_that_are_not_available_are_replaced_all_at_once() -> None:
    cluster = given_daemons("a", "b", "c")
    for pod in pods(cluster):
        become(cluster, pod, "Running", ready=False)
    update(cluster, "agent:2")

    run(cluster)

    assert sorted(going(cluster)) == ["a", "b", "c"]


SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def test_with_a_surge_the_new_pod_comes_first() -> None:
    cluster = given_daemons("a", "b", updateStrategy=SURGE)
    update(cluster, "agent:2")

    run(cluster)
    assert len(pods(cluster)) == 3 and not going(cluster)
    live(cluster)

    assert images(cluster) == {"a": "agent:2", "b": "agent:2"}
    assert len(pods(cluster)) == 2


def test_with_a_surge_nothing_is_lost_to_a_template_that_does_not_work() -> None:
    cluster = given_daemons("a", "b", updateStrategy=SURGE)
    update(cluster, "agent:broken")

    live(cluster, only(lambda pod: "broken" not in pod["spec"]["containers"][0]["image"]))

    assert sum(pod["spec"]["containers"][0]["image"] == "agent:1" for pod in pods(cluster)) == 2


def test_on_delete_a_pod_is_new_when_it_is_deleted() -> None:
    cluster = given_daemons("a", "b", updateStrategy={"type": "OnDelete"})
    update(cluster, "agent:2")
    live(cluster)
    assert set(images(cluster).values()) == {"agent:1"}

    cluster.delete(meta.ref(pods(cluster)[0]), grace=0)
    live(cluster)

    assert sorted(images(cluster).values()) == ["agent:1", "agent:2"]


@pytest.mark.parametrize(
    ("rolling", "nodes_wanted", "expected"),
    [
        ({}, 10, (0, 1)),
        ({"maxUnavailable": "25%"}, 10, (0, 3)),
        ({"maxUnavailable": 0, "maxSurge": "10%"}, 15, (2, 0)),
        ({"maxUnavailable": "0%"}, 10, (0, 1)),
        ({"maxUnavailable": 0, "maxSurge": 0}, 10, (0, 1)),
    ],
)
def test_how_many_at_once(rolling: Made, nodes_wanted: int, expected: tuple[int, int]) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}

    assert limits(daemon_set(updateStrategy=strategy), nodes_wanted) == expected


def test_going_back_finds_the_old_revision_and_history_is_cut() -> None:
    cluster = given_daemons("a", revisionHistoryLimit=1)
    update(cluster, "agent:2")
    live(cluster)
    update(cluster, "agent:1")
    live(cluster)
    numbers = sorted(one["revision"] for one in cluster.listed(CONTROLLER_REVISION))
    assert numbers == [2, 3]

    update(cluster, "agent:3")
    live(cluster)

    assert sorted(one["revision"] for one in cluster.listed(CONTROLLER_REVISION)) == [3, 4]


# ── promises ──


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    crash=st.integers(0, 25),
    surge=st.booleans(),
)
def test_whatever_crashes_a_node_has_one_pod_and_no_more_are_down_than_may_be(
    seed: int, crash: int, surge: bool
) -> None:
    cluster = given_daemons("a", "b", "c", **({"updateStrategy": SURGE} if surge else {}))
    random = Random(seed)
    update(cluster, "agent:2")
    crashes: list[int | None] = [None] * 40
    crashes[2] = crash
    for crash_after in crashes:
        try:
            run(cluster, random=random, crash_after=crash_after)
        except Crashed:
            continue
        serving = {node_of(pod) for pod in pods(cluster) if _serves(pod)}
        assert len(serving) >= (3 if surge else 2)
        staying = [node_of(pod) for pod in pods(cluster) if not meta.is_deleting(pod)]
        assert max(map(staying.count, staying)) <= (2 if surge else 1)
        for pod in pods(cluster):
            attend(cluster, pod, well)

    assert images(cluster) == dict.fromkeys(("a", "b", "c"), "agent:2")
    assert len(cluster.listed(POD)) == 3


def _serves(pod: Made) -> bool:
    ready = any(one["status"] == "True" for one in (pod.get("status") or {}).get("conditions") or ())
    return ready and not meta.is_deleting(pod)
