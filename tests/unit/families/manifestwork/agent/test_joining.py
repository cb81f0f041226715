"""What a cluster does next that joins a hub."""

from base64 import b64encode

import pytest

from lamina.core import csr
from lamina.families.manifestwork.agent.agents import agents
from lamina.families.manifestwork.agent.joining import join_step
from lamina.objects.types import Made

CLUSTER: Made = {
    "apiVersion": "cluster.open-cluster-management.io/v1",
    "kind": "ManagedCluster",
    "metadata": {"name": "east"},
}


def request(*conditions: Made, certificate: bytes = b"") -> Made:
    status: Made = {"conditions": list(conditions)}
    if certificate:
        status["certificate"] = b64encode(certificate).decode()
    return {**csr.request_client_certificate("east-", b"pem", {}), "status": status}


def condition(name: str, message: str = "") -> Made:
    return {"type": name, "status": "True", "reason": "Said", "message": message}


def test_a_cluster_registers_itself_first_and_is_not_accepted() -> None:
    (made,) = join_step("east", "https://east", b"pem", None, None).creates

    assert (made["kind"], made["metadata"]) == ("ManagedCluster", {"name": "east"})
    assert made["spec"]["hubAcceptsClient"] is False
    assert made["spec"]["managedClusterClientConfigs"] == [{"url": "https://east"}]


def test_then_it_requests_a_client_certificate_in_upstreams_terms() -> None:
    (made,) = join_step("east", "", b"pem", CLUSTER, None).creates

    assert made["metadata"]["generateName"] == "east-"
    assert made["metadata"]["labels"] == {"open-cluster-management.io/cluster-name": "east"}
    assert made["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client"
    assert csr.pem_of(made) == b"pem" and csr.is_for_a_client(made)


def test_it_waits_until_an_administrator_approves_and_the_signer_signs() -> None:
    pending = join_step("east", "", b"pem", CLUSTER, request())
    approved = join_step("east", "", b"pem", CLUSTER, request(condition("Approved")))
    issued = join_step("east", "", b"pem", CLUSTER, request(condition("Approved"), certificate=b"cert"))

    assert "lamina clusters accept east" in pending.because
    assert "not signed yet" in approved.because
    assert not (pending.creates or approved.creates or pending.certificate or approved.certificate)
    assert issued.certificate == b"cert"


@pytest.mark.parametrize("name", ["Denied", "Failed"])
def test_a_refusal_ends_it_and_is_named(name: str) -> None:
    assert join_step("east", "", b"pem", CLUSTER, request(condition(name, "no"))).refused == f"{name}: no"


def test_the_bootstrap_token_may_ask_and_nothing_else() -> None:
    (role,) = [one for one in agents().joining.bootstrap if one["kind"] == "ClusterRole"]

    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "create"}
    assert sorted(resource for rule in role["rules"] for resource in rule["resources"]) == [
        "certificatesigningrequests",
        "managedclusters",
    ]


def test_what_an_accepted_cluster_is_granted_is_bound_to_its_own_group() -> None:
    granted = agents().joining.grants("east")
    subjects = [subject for one in granted for subject in one.get("subjects") or ()]

    assert {one["name"] for one in subjects} == {"system:open-cluster-management:east"}
    assert len(subjects) == 2
    assert "system:open-cluster-management:east" in agents().hub_user("east")[1]


def test_an_accepted_cluster_is_in_the_default_set_unless_it_has_another() -> None:
    label = "cluster.open-cluster-management.io/clusterset"
    elsewhere = {**CLUSTER, "metadata": {"name": "east", "labels": {label: "prod"}}}

    assert agents().joining.acceptance(CLUSTER) == {
        "spec": {"hubAcceptsClient": True},
        "metadata": {"labels": {label: "default"}},
    }
    assert agents().joining.acceptance(elsewhere) == {"spec": {"hubAcceptsClient": True}}
