"""Where pods are bound, and the status of those that fit no node."""

from typing import Any

import pytest

from lamina.actors.milli_resources import pod_requests
from lamina.actors.nodes import nodes
from lamina.actors.scheduling import SCHEDULING
from lamina.core.model.plan import Emit, Post
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.quantities import thousandths
from lamina.objects.types import Made, Ref
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import KINDS, NAMESPACE, POD, kind, make

NODE = kind("v1", "Node", "nodes", namespaced=False)


def cluster_of(*made: Made) -> SimulatedCluster:
    cluster = SimulatedCluster(kinds=Kinds((*KINDS, NODE)))
    for obj in made:
        cluster.create(obj)
    return cluster


def node(
    name: str = "n", *, labels: dict[str, str] | None = None, room: dict[str, str] | None = None, **spec: Any
) -> Made:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10", **(room or {})}
    return make(NODE, name, labels=labels or {}, spec=spec, status={"allocatable": allocatable})


def pod(name: str = "p", *, requests: dict[str, str] | None = None, **spec: Any) -> Made:
    container = {"name": "c", "image": "i", "resources": {"requests": requests or {}}}
    return make(POD, name, spec={"containers": [container], **spec}, status={"phase": "Pending"})


def placed(cluster: SimulatedCluster) -> dict[str, str]:
    return {meta.name(one): one["spec"].get("nodeName", "") for one in cluster.listed(POD)}


def refusal(cluster: SimulatedCluster, name: str = "p") -> str:
    found = conditions.find(
        cluster.get(Ref("v1", "Pod", "default", name))["status"].get("conditions") or (), "PodScheduled"
    )
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    return found["message"]


def emitted(cluster: SimulatedCluster) -> list[tuple[str, str]]:
    return [(one.event["reason"], one.event["message"]) for one in cluster.journal if isinstance(one, Emit)]


def test_pods_are_spread_over_nodes_that_have_room() -> None:
    cluster = cluster_of(node("a"), node("b"), *(pod(f"p-{number}") for number in range(4)))

    settle(cluster, SCHEDULING)

    assert sorted(placed(cluster).values()) == ["a", "a", "b", "b"]
    assert ("Scheduled", "Successfully assigned default/p-0 to a") in emitted(cluster)


def test_pods_that_come_together_are_placed_in_one_plan() -> None:
    cluster = cluster_of(node(), *(pod(f"p-{number}") for number in range(5)))

    plan = planned(cluster, SCHEDULING, Ref("v1", "Pod", "", ""))

    assert sum(isinstance(action, Post) for action in plan.actions) == 5


@pytest.mark.parametrize(
    ("made",                                                  "there",                                  "reasons",                                                       "freed"),
    [
        (pod(),                                               None,                                     "no nodes available to schedule pods",                           None),
        (pod(requests={"cpu": "5"}),                          node(),                                   "1 Insufficient cpu",                                            True),
        (pod(requests={"cpu": "5", "memory": "9Gi"}),         node(),                                   "1 Insufficient cpu, 1 Insufficient memory",                     True),
        (pod(requests={"example.com/gpu": "1"}),              node(),                                   "1 Insufficient example.com/gpu",                                True),
        (pod(),                                               node(room={"pods": "0"}),                 "1 Too many pods",                                               True),
        (pod(nodeSelector={"disk": "ssd"}),                   node(),                                   "1 node(s) didn't match Pod's node affinity/selector",           False),
        (pod(),                                               node(unschedulable=True),                 "1 node(s) were unschedulable",                                  False),
        (pod(),                                               node(taints=[{"key": "k", "effect": "NoSchedule"}]), "1 node(s) had untolerated taint(s)",                 False),
    ],
)  # fmt: skip
def test_a_pod_that_fits_nowhere_is_told_why(
    made: Made, there: Made | None, reasons: str, freed: bool | None
) -> None:
    cluster = cluster_of(made, *([there] if there else []))

    settle(cluster, SCHEDULING)

    after = (
        "1 No preemption victims found for incoming pod"
        if freed
        else "1 Preemption is not helpful for scheduling"
    )
    rest = f". no new claims to deallocate, preemption: 0/1 nodes are available: {after}."
    expected = reasons if freed is None else f"0/1 nodes are available: {reasons}{rest}"
    assert refusal(cluster) == expected
    assert emitted(cluster) == [("FailedScheduling", expected)]


def test_nodes_that_refuse_for_different_reasons_are_counted() -> None:
    cluster = cluster_of(pod(requests={"cpu": "5"}), node("a"), node("b"), node("c", unschedulable=True))

    settle(cluster, SCHEDULING)

    assert refusal(cluster).startswith(
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
    )


def test_a_pod_that_waits_is_placed_once_there_is_room() -> None:
    cluster = cluster_of(node(), pod("first", requests={"cpu": "3"}), pod("second", requests={"cpu": "3"}))
    settle(cluster, SCHEDULING)
    assert placed(cluster) == {"first": "n", "second": ""}

    cluster.patch(Ref("v1", "Pod", "default", "first"), {"status": {"phase": "Succeeded"}})
    settle(cluster, SCHEDULING)

    assert placed(cluster)["second"] == "n"


def test_the_more_important_pod_is_placed_first() -> None:
    cluster = cluster_of(
        node(), pod("a", requests={"cpu": "3"}), pod("b", requests={"cpu": "3"}, priority=10)
    )

    settle(cluster, SCHEDULING)

    assert placed(cluster) == {"a": "", "b": "n"}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"zone": "east"}}, True),
        ({"nodeSelector": {"zone": "west"}}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"schedulerName": "mine"}, False),
        ({"schedulingGates": [{"name": "wait"}]}, False),
        ({"affinity": [{"key": "zone", "operator": "In", "values": ["east", "west"]}]}, True),
        ({"affinity": [{"key": "zone", "operator": "NotIn", "values": ["east"]}]}, False),
        ({"affinity": [{"key": "zone", "operator": "Exists"}]}, True),
        ({"affinity": [{"key": "disk", "operator": "DoesNotExist"}]}, True),
        ({"affinity": [{"key": "cores", "operator": "Gt", "values": ["7"]}]}, True),
        ({"affinity": [{"key": "cores", "operator": "Lt", "values": ["8"]}]}, False),
        ({"affinity": [{"key": "zone", "operator": "Gt", "values": ["7"]}]}, False),
    ],
)
def test_a_pod_chooses_among_nodes(spec: dict[str, Any], fits: bool) -> None:
    if "affinity" in spec:
        terms = {"nodeSelectorTerms": [{"matchExpressions": spec["affinity"]}]}
        spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    cluster = cluster_of(node(labels={"zone": "east", "cores": "8"}), pod(**spec))

    settle(cluster, SCHEDULING)

    assert bool(placed(cluster)["p"]) is fits


@pytest.mark.parametrize(
    ("toleration",                                                    "tolerated"),
    [
        ({"key": "k", "operator": "Exists"},                          True),
        ({"key": "k", "operator": "Equal", "value": "v"},             True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"},          True),
        ({"key": "k", "value": "v", "effect": "NoExecute"},           False),
        ({"key": "k", "operator": "Equal", "value": "w"},             False),
        ({"key": "other", "operator": "Exists"},                      False),
    ],
)  # fmt: skip
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(toleration: dict[str, str], tolerated: bool) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    cluster = cluster_of(node(taints=[taint]), pod(tolerations=[toleration]))

    settle(cluster, SCHEDULING)

    assert bool(placed(cluster)["p"]) is tolerated


def test_two_pods_do_not_share_a_port_of_the_node() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    made = [
        make(POD, name, spec={"containers": [{"name": "c", "ports": ports}]}, status={})
        for name in ("a", "b")
    ]
    cluster = cluster_of(node(), *made)

    settle(cluster, SCHEDULING)

    assert sorted(placed(cluster).values()) == ["", "n"]
    assert "1 node(s) didn't have free ports for the requested pod ports" in refusal(cluster, "b")


def test_a_settled_cluster_gives_an_empty_plan() -> None:
    cluster = cluster_of(node(), pod(), pod("big", requests={"cpu": "9"}))
    settle(cluster, SCHEDULING)
    written = len(cluster.journal)

    settle(cluster, SCHEDULING)

    assert len(cluster.journal) == written


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1", 1000), ("250m", 250), ("1Ki", 1024_000), ("2G", 2 * 10**12), ("1e3", 10**6), ("0.1", 100), ("1n", 1), ("x", 0)],
)  # fmt: skip
def test_amounts_are_counted_in_thousandths(text: str, amount: int) -> None:
    assert thousandths(text) == amount


def test_a_pod_asks_for_what_it_needs_at_its_worst_moment() -> None:
    def asking(cpu: str, **more: str) -> Made:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    assert pod_requests({"containers": [asking("1"), asking("500m")]}) == {"cpu": 1500}
    assert pod_requests({"containers": [asking("1")], "initContainers": [asking("3")]}) == {"cpu": 3000}
    sidecar = asking("1", restartPolicy="Always")
    assert pod_requests({"containers": [asking("1")], "initContainers": [sidecar, asking("3")]}) == {
        "cpu": 4000
    }
    assert pod_requests({"containers": [{}], "overhead": {"cpu": "1"}}) == {"cpu": 1000}


# ── nodes ──


def simulated(count: int = 1) -> SimulatedCluster:
    return cluster_of(make(NAMESPACE, "kube-system"))


def test_as_many_nodes_are_there_as_were_asked_for_and_all_are_ready() -> None:
    cluster = simulated()

    settle(cluster, nodes(3))

    there = cluster.listed(NODE)
    assert [meta.name(one) for one in there] == ["sim-0", "sim-1", "sim-2"]
    assert all(conditions.is_true(one["status"]["conditions"], "Ready") for one in there)
    assert len({one["status"]["addresses"][0]["address"] for one in there}) == 3


def test_a_node_that_is_new_to_its_server_loses_the_mark_of_one_that_is_not_ready() -> None:
    cluster = simulated()
    settle(cluster, nodes(1))
    ref = Ref("v1", "Node", "", "sim-0")
    cluster.patch(
        ref, {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}}
    )

    settle(cluster, nodes(1))

    assert "taints" not in cluster.get(ref)["spec"]


def test_a_node_falls_silent_on_request_and_comes_back() -> None:
    cluster = simulated()
    settle(cluster, nodes(1))
    ref = Ref("v1", "Node", "", "sim-0")

    cluster.patch(ref, {"metadata": {"annotations": {"sim/not-ready": "true"}}})
    settle(cluster, nodes(1))
    silent = cluster.get(ref)
    ready = conditions.find(silent["status"]["conditions"], "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert [one["effect"] for one in silent["spec"]["taints"]] == ["NoSchedule", "NoExecute"]

    cluster.patch(ref, {"metadata": {"annotations": {"sim/not-ready": None}}})
    settle(cluster, nodes(1))
    assert conditions.is_true(cluster.get(ref)["status"]["conditions"], "Ready")
    assert "taints" not in cluster.get(ref)["spec"]
