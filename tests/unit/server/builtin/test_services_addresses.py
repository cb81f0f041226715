"""Allocation of cluster IPs and node ports, and what an update keeps."""

from __future__ import annotations

import copy
import ipaddress
from typing import Any

import pytest

from lamina.errors import InternalError, Invalid
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.defaults import default
from lamina.server.kinds.builtin.services import Pool, allocate, allocated_by, drop_obsolete
from lamina.server.kinds.kind import Findings

POOL = Pool(ipaddress.IPv4Network("10.0.0.0/28"), range(30000, 30004))


def first(size: int) -> int:
    return 0


def service(**spec: Any) -> dict[str, Any]:
    made = decode("core/v1.Service", {"metadata": {"name": "s"}, "spec": copy.deepcopy(spec)}, Findings())
    default("core/v1.Service", made)
    return made


def given(used: set[Any] | None = None, old: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = service(**spec)
    allocate(made, old, used or set(), pool=POOL, choose=first)
    spec_made: dict[str, Any] = made["spec"]
    return spec_made


WEB = [{"port": 80}]


def test_a_service_gets_a_free_address_of_the_pool() -> None:
    one = given(ports=WEB)
    other = given({one["clusterIP"]}, ports=WEB)

    assert one["clusterIPs"] == [one["clusterIP"]]
    assert one["ipFamilies"] == ["IPv4"]
    assert one["ipFamilyPolicy"] == "SingleStack"
    assert ipaddress.IPv4Address(one["clusterIP"]) in POOL.network
    assert one["clusterIP"] != other["clusterIP"]


def test_addresses_run_out() -> None:
    used: set[Any] = {str(address) for address in POOL.network}

    with pytest.raises(InternalError, match="range is full"):
        given(used, ports=WEB)


@pytest.mark.parametrize(
    ("address", "used", "why"),
    [
        ("10.0.0.3", {"10.0.0.3"}, "failed to allocate IP 10.0.0.3: provided IP is already allocated"),
        (
            "192.0.2.1",
            set(),
            "failed to allocate IP 192.0.2.1: the provided IP (192.0.2.1) is not in the valid range. "
            "The range of valid IPs is 10.0.0.0/28",
        ),
    ],
)
def test_an_address_that_cannot_be_had_is_refused(address: str, used: set[Any], why: str) -> None:
    with pytest.raises(Invalid) as refused:
        given(used, ports=WEB, clusterIP=address)

    assert refused.value.message == (
        f'Service "s" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: {why}'
    )


def test_an_address_asked_for_by_name_is_given() -> None:
    assert given(ports=WEB, clusterIP="10.0.0.3")["clusterIPs"] == ["10.0.0.3"]


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["IPv4"], "SingleStack"),
    ],
)
def test_a_headless_service_has_no_address(spec: Any, families: list[str], policy: str) -> None:
    made = given(ports=WEB, **spec)

    assert made["clusterIPs"] == ["None"]
    assert (made["ipFamilies"], made["ipFamilyPolicy"]) == (families, policy)


def test_an_external_name_has_neither_address_nor_family() -> None:
    made = given(type="ExternalName", externalName="example.com")

    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(made)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ipFamilyPolicy": "RequireDualStack"}, "spec.ipFamilyPolicy"),
        ({"ipFamilies": ["IPv6"]}, "spec.ipFamilies[0]"),
        ({"clusterIP": "fd00::1"}, "spec.clusterIPs[0]"),
    ],
)
def test_a_family_that_is_not_served_is_refused(spec: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        given(ports=WEB, **spec)

    assert [cause.field for cause in refused.value.causes] == [field]


def test_node_ports_are_given_to_those_who_ask_and_to_each_port_its_own() -> None:
    made = given(
        {30000},
        type="NodePort",
        ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30002}],
    )

    assert [port["nodePort"] for port in made["ports"]] == [30001, 30002]


def test_one_port_over_two_protocols_has_one_node_port() -> None:
    made = given(
        type="NodePort",
        ports=[
            {"name": "a", "port": 53, "protocol": "UDP"},
            {"name": "b", "port": 53, "nodePort": 30003},
        ],
    )

    assert [port["nodePort"] for port in made["ports"]] == [30003, 30003]


@pytest.mark.parametrize(
    ("number", "used", "why"),
    [
        (30001, {30001}, "provided port is already allocated"),
        (80, set(), "provided port is not in the valid range. The range of valid ports is 30000-30003"),
    ],
)
def test_a_node_port_that_cannot_be_had_is_refused(number: int, used: set[Any], why: str) -> None:
    with pytest.raises(Invalid) as refused:
        given(used, type="NodePort", ports=[{"port": 80, "nodePort": number}])

    assert refused.value.message == (
        f'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: {number}: {why}'
    )


def test_a_balanced_service_that_keeps_addresses_has_a_port_for_health_checks() -> None:
    made = given(type="LoadBalancer", ports=WEB, externalTrafficPolicy="Local")

    assert made["healthCheckNodePort"] not in [port["nodePort"] for port in made["ports"]]
    assert allocated_by({"spec": made}) == {made["clusterIP"], 30000, 30001}


def test_a_balanced_service_may_go_without_node_ports() -> None:
    made = given(type="LoadBalancer", ports=WEB, allocateLoadBalancerNodePorts=False)

    assert "nodePort" not in made["ports"][0]


def test_what_an_update_does_not_mention_is_kept() -> None:
    old = service(type="NodePort", ports=[{"name": "a", "port": 80}])
    allocate(old, None, set(), pool=POOL, choose=first)

    made = given(old=old, type="NodePort", ports=[{"name": "a", "port": 81}, {"name": "b", "port": 82}])

    assert made["clusterIP"] == old["spec"]["clusterIP"]
    assert made["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert made["ports"][1]["nodePort"] != made["ports"][0]["nodePort"]


def test_an_external_name_that_becomes_a_service_gets_an_address() -> None:
    old = service(type="ExternalName", externalName="example.com")
    allocate(old, None, set(), pool=POOL, choose=first)

    assert given(old=old, ports=WEB)["clusterIP"].startswith("10.0.0.")


def test_what_belonged_to_the_former_type_goes_with_it() -> None:
    old = service(type="LoadBalancer", ports=WEB, externalTrafficPolicy="Local")
    allocate(old, None, set(), pool=POOL, choose=first)
    old["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}

    sent = copy.deepcopy({**old, "spec": {**old["spec"], "type": "ClusterIP"}})
    new = decode("core/v1.Service", sent, Findings())
    drop_obsolete(new, old)

    assert "nodePort" not in new["spec"]["ports"][0]
    assert not {"healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"} & set(
        new["spec"]
    )
    assert new["status"] == {"loadBalancer": {}}
