"""Endpoints and EndpointSlices in a simulated cluster."""

from typing import Any

import pytest

from lamina.actors.workloads.endpoint_address import last_trigger
from lamina.actors.workloads.endpoints import ENDPOINTS as ENDPOINTS_CONTROLLER
from lamina.actors.workloads.endpoints import subsets_of
from lamina.actors.workloads.endpointslice import SLICES
from lamina.actors.workloads.endpointslice_mirroring import MIRRORED_SLICES
from lamina.actors.workloads.endpointslice_packing import Group, SliceMetadata, pack
from lamina.core.model.plan import Create, Delete, Patch
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import ENDPOINT_SLICE, ENDPOINTS, NODE, POD, SERVICE, make

CONTROLLERS = (ENDPOINTS_CONTROLLER, SLICES, MIRRORED_SLICES)


def service(name: str = "s", **spec: Any) -> Made:
    usual = {"clusterIP": "10.96.0.9", "selector": {"app": "a"}, "ports": [{"port": 80, "protocol": "TCP"}]}
    return make(SERVICE, name, spec={**usual, "ipFamilies": ["IPv4"], **spec})


def pod(number: int, *, ready: bool = True, labels: Any = None, since: str = "", **spec: Any) -> Made:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": since or "2026-01-01T00:00:00Z"}
    containers = [{"name": "c", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}]
    address = f"10.0.{number // 250}.{number % 250 + 1}"
    return make(
        POD,
        f"p-{number:04}",
        labels=labels or {"app": "a"},
        spec={"nodeName": "n", "containers": containers, **spec},
        status={"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]},
    )


def cluster_of(*objects: Made) -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.create(make(NODE, "n", labels={"topology.kubernetes.io/zone": "z"}))
    for obj in objects:
        cluster.create(obj)
    return cluster


def endpoints_of(cluster: SimulatedCluster) -> list[Made]:
    return [one for found in cluster.listed(ENDPOINT_SLICE) for one in found["endpoints"]]


def test_a_service_leads_to_the_pods_it_selects() -> None:
    cluster = cluster_of(service(), pod(0), pod(1, ready=False), pod(2, labels={"app": "b"}))

    settle(cluster, *CONTROLLERS)

    (subset,) = cluster.listed(ENDPOINTS)[0]["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.1"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.2"]
    assert {one["targetRef"]["name"]: one["conditions"]["ready"] for one in endpoints_of(cluster)} == {
        "p-0000": True,
        "p-0001": False,
    }
    assert {one["zone"] for one in endpoints_of(cluster)} == {"z"}


def test_a_settled_service_is_left_alone() -> None:
    cluster = cluster_of(service(), service("h", clusterIP="None", ports=None), pod(0))
    settle(cluster, *CONTROLLERS)
    written = len(cluster.journal)

    settle(cluster, *CONTROLLERS)

    assert len(cluster.journal) == written


def test_a_pod_that_is_to_go_is_told_apart() -> None:
    cluster = cluster_of(service(), {**pod(0), "metadata": {**pod(0)["metadata"], "finalizers": ["x/y"]}})
    settle(cluster, *CONTROLLERS)

    cluster.delete(Ref("v1", "Pod", "default", "p-0000"))
    settle(cluster, *CONTROLLERS)

    (endpoint,) = endpoints_of(cluster)
    assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}
    assert "subsets" not in cluster.listed(ENDPOINTS)[0]


@pytest.mark.parametrize(
    ("obj", "listed"),
    [
        (pod(0), True),
        ({**pod(0), "status": {**pod(0)["status"], "phase": "Succeeded"}}, False),
        ({**pod(0), "status": {**pod(0)["status"], "podIP": "", "podIPs": []}}, False),
        (pod(0, nodeName="nowhere"), False),
    ],
    ids=["runs", "has ended", "has no address", "is on a node that is not there"],
)
def test_a_pod_is_listed_in_slices_when_it(obj: Made, listed: bool) -> None:
    cluster = cluster_of(service(), obj)

    settle(cluster, SLICES)

    assert bool(endpoints_of(cluster)) is listed


def test_a_named_port_is_found_in_the_pod() -> None:
    cluster = cluster_of(
        service(ports=[{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}]), pod(0)
    )

    settle(cluster, *CONTROLLERS)

    assert cluster.listed(ENDPOINTS)[0]["subsets"][0]["ports"] == [
        {"name": "web", "port": 8080, "protocol": "TCP"}
    ]
    assert cluster.listed(ENDPOINT_SLICE)[0]["ports"] == [{"name": "web", "protocol": "TCP", "port": 8080}]


def test_a_headless_service_names_its_pods_and_may_list_those_that_are_not_ready() -> None:
    headless = service("h", clusterIP="None", ports=None, publishNotReadyAddresses=True)
    cluster = cluster_of(headless, pod(0, ready=False, hostname="first", subdomain="h"))

    settle(cluster, *CONTROLLERS)

    (found,) = cluster.listed(ENDPOINTS)
    assert found["subsets"][0]["addresses"][0]["hostname"] == "first"
    assert meta.labels(found)["service.kubernetes.io/headless"] == ""
    (endpoint,) = endpoints_of(cluster)
    assert endpoint["hostname"] == "first"
    assert endpoint["conditions"] == {"ready": True, "serving": False, "terminating": False}


def test_a_service_that_leads_elsewhere_is_not_written_down() -> None:
    cluster = cluster_of(service("out", type="ExternalName"), service("bare", selector=None), pod(0))

    settle(cluster, *CONTROLLERS)

    assert not cluster.listed(ENDPOINTS)
    assert not cluster.listed(ENDPOINT_SLICE)


def test_what_is_written_goes_with_its_service_and_what_is_not_ours_stays() -> None:
    other = make(ENDPOINTS, "lock")
    cluster = cluster_of(service(), other)
    settle(cluster, *CONTROLLERS)

    cluster.delete(Ref("v1", "Service", "default", "s"))
    settle(cluster, *CONTROLLERS)

    assert [meta.name(one) for one in cluster.listed(ENDPOINTS)] == ["lock"]


def test_a_slice_holds_a_hundred_and_a_change_rewrites_one_of_them() -> None:
    cluster = cluster_of(service(), *(pod(number) for number in range(250)))
    settle(cluster, SLICES)
    assert sorted(len(one["endpoints"]) for one in cluster.listed(ENDPOINT_SLICE)) == [50, 100, 100]

    ref = Ref("v1", "Pod", "default", "p-0007")
    cluster.patch(ref, {"status": pod(7, ready=False)["status"]})
    cluster.journal.clear()
    settle(cluster, SLICES)

    assert [type(action) for action in cluster.journal] == [Patch]
    assert sum(one["conditions"]["ready"] for one in endpoints_of(cluster)) == 249


def test_a_pod_comes_and_goes_within_the_slice_that_has_room() -> None:
    cluster = cluster_of(service(), *(pod(number) for number in range(120)))
    settle(cluster, SLICES)
    cluster.journal.clear()

    cluster.create(pod(500))
    settle(cluster, SLICES)
    cluster.delete(Ref("v1", "Pod", "default", "p-0500"), grace=0)
    settle(cluster, SLICES)

    assert [type(action) for action in cluster.journal] == [Patch, Patch]
    assert sorted(len(one["endpoints"]) for one in cluster.listed(ENDPOINT_SLICE)) == [20, 100]


def test_traffic_that_is_to_stay_near_is_told_where_near_is() -> None:
    cluster = cluster_of(service(trafficDistribution="PreferSameNode"), pod(0), pod(1, ready=False))

    settle(cluster, SLICES)

    assert [one.get("hints") for one in endpoints_of(cluster)] == [
        {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]},
        None,
    ]


def test_a_node_that_moves_takes_its_pods_along() -> None:
    cluster = cluster_of(service(), pod(0))
    settle(cluster, SLICES)

    cluster.patch(Ref("v1", "Node", "", "n"), {"metadata": {"labels": {"topology.kubernetes.io/zone": "y"}}})
    settle(cluster, SLICES)

    assert [one["zone"] for one in endpoints_of(cluster)] == ["y"]


def test_what_people_write_is_mirrored_until_it_is_not_to_be() -> None:
    written = make(ENDPOINTS, "m", subsets=[{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}])
    cluster = cluster_of(service("m", selector=None), written)
    settle(cluster, *CONTROLLERS)
    assert [one["addresses"] for one in endpoints_of(cluster)] == [["10.1.0.1"]]

    skipped = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    cluster.patch(Ref("v1", "Endpoints", "default", "m"), {"metadata": {"labels": skipped}})
    settle(cluster, *CONTROLLERS)

    assert not cluster.listed(ENDPOINT_SLICE)


def test_endpoints_hold_a_thousand_and_say_that_they_left_some_out() -> None:
    cluster = cluster_of(service(), *(pod(number, ready=number >= 100) for number in range(1100)))

    plan = planned(cluster, ENDPOINTS_CONTROLLER, Ref("v1", "Service", "default", "s"))

    (action,) = plan.actions
    assert isinstance(action, Create)
    (subset,) = action.obj["subsets"]
    assert len(subset["addresses"]) == 1000
    assert "notReadyAddresses" not in subset
    assert meta.annotations(action.obj)["endpoints.kubernetes.io/over-capacity"] == "truncated"


def test_ports_that_the_same_pods_offer_share_a_subset() -> None:
    ports = [{"name": "x", "port": 80, "targetPort": 1}, {"name": "y", "port": 81, "targetPort": 2}]

    subsets = subsets_of(service(ports=ports), [{**pod(0), "metadata": {"name": "p", "uid": "u"}}])

    assert [[port["name"] for port in one["ports"]] for one in subsets] == [["x", "y"]]


def test_the_moment_of_a_change_is_the_first_that_was_not_told() -> None:
    pods = [pod(0, since="2026-01-01T00:00:05Z"), pod(1, since="2026-01-01T00:00:09Z")]

    assert last_trigger(pods, None) == "2026-01-01T00:00:05Z"
    assert last_trigger(pods, "2026-01-01T00:00:05Z") == "2026-01-01T00:00:09Z"
    assert last_trigger(pods, "2026-01-01T00:00:09Z") is None


def test_slices_of_ports_without_endpoints_are_replaced() -> None:
    head = SliceMetadata(namespace="default", name="s", owner=meta.owner_ref(service()), labels={})
    old = make(
        ENDPOINT_SLICE, "s-old", addressType="IPv4", ports=[{"port": 1}], endpoints=[{"addresses": ["a"]}]
    )
    group = Group(family="IPv4", ports=[{"port": 2}], endpoints=[{"addresses": ["a"]}])

    actions = pack(head, [group], [old], lambda one: str(one["addresses"]))

    assert [type(action) for action in actions] == [Delete, Create]


def test_a_slice_that_is_too_full_gets_no_endpoints() -> None:
    """It may have been filled by hand, or when slices were larger."""

    def endpoints(*numbers: int) -> list[Made]:
        return [{"addresses": [f"10.0.0.{number}"]} for number in numbers]

    head = SliceMetadata(namespace="n", name="s", owner=meta.owner_ref(service()), labels={}, most=2)
    full = make(ENDPOINT_SLICE, "full", addressType="IPv4", ports=[], endpoints=endpoints(1, 2, 3, 4))

    actions = pack(
        head,
        [Group(family="IPv4", ports=(), endpoints=endpoints(1, 2, 3, 5, 6))],
        [full],
        lambda one: one["addresses"][0],
    )

    written = {type(one): one for one in actions}
    assert isinstance(patch := written[Patch], Patch)
    assert isinstance(create := written[Create], Create)
    assert patch.patch["endpoints"] == endpoints(1, 2, 3)
    assert create.obj["endpoints"] == endpoints(5, 6)
