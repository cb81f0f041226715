"""What a control plane is given to register clusters and to run their agents."""

from datetime import timedelta

import pytest

from lamina.core.model.agents import AgentOptions, AgentSpec
from lamina.families.manifestwork.agent.agents import addresses, agents, relocation
from lamina.families.manifestwork.agent.labels import HUB, hub_hash
from lamina.families.manifestwork.placement.managedcluster import NAMESPACE_LABEL, registration
from lamina.objects import meta
from lamina.objects.types import Made, Obj


def test_a_cluster_is_registered_after_the_sets_that_every_hub_has() -> None:
    made = registration("east", "https://east.test")

    assert [(one["kind"], meta.name(one)) for one in made] == [
        ("ManagedClusterSet", "default"),
        ("ManagedClusterSet", "global"),
        ("ManagedCluster", "east"),
    ]
    assert agents().is_accepted(made[-1])
    assert addresses(made[-1]) == ("https://east.test",)
    assert meta.ref(made[-1]) == agents().cluster("east")


def test_a_cluster_may_be_registered_without_an_address() -> None:
    assert addresses(registration("east")[-1]) == ()


def with_addresses(*urls: str) -> Obj:
    return {"spec": {"managedClusterClientConfigs": [{"url": url, "caBundle": "eA=="} for url in urls]}}


@pytest.mark.parametrize(
    ("known", "address", "patch"),
    [
        (with_addresses("a", "b"), "b", {}),
        (with_addresses("a"),      "",  {}),
        ({"spec": {}},             "b", {"spec": {"managedClusterClientConfigs": [{"url": "b"}]}}),
        (
            with_addresses("a", "b"), "c",
            {"spec": {"managedClusterClientConfigs": [{"url": "c", "caBundle": "eA=="}, {"url": "b", "caBundle": "eA=="}]}},
        ),
    ],
)  # fmt: skip
def test_a_registered_cluster_gets_the_address_it_has_now(known: Obj, address: str, patch: Made) -> None:
    assert relocation(known, address) == patch


def test_the_controllers_of_an_agent_call_its_hub_by_name() -> None:
    found = agents().controllers(AgentSpec(cluster="east", address="https://hub.test"))

    assert {one.name for one in found} >= {"work-agent", "applied-work-agent"}
    named = {watch.cluster for one in found for watch in one.watches}
    assert named == {"", HUB} == {"", agents().hub}


def test_two_hubs_are_told_apart_by_their_addresses() -> None:
    assert hub_hash("https://a.test") != hub_hash("https://b.test")


def test_an_agent_may_not_write_outside_its_own_namespace_but_its_own_status() -> None:
    everywhere, inside = agents().rights("east")

    assert not everywhere.allow("work.open-cluster-management.io", "manifestworks", "get")
    assert inside.allow("work.open-cluster-management.io", "manifestworks/status", "patch")
    named = [rule for rule in everywhere.rules() if "patch" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in named] == [["east"]]


def test_only_the_namespace_that_the_hub_made_goes_with_its_cluster() -> None:
    def namespace(**labels: str) -> Obj:
        return {"metadata": {"name": "east", "labels": labels}}

    owns = agents().owns_namespace
    assert not owns(namespace(), "east")
    assert owns(namespace(**{NAMESPACE_LABEL: "east"}), "east")
    assert not owns(namespace(**{NAMESPACE_LABEL: "west"}), "east")


@pytest.mark.parametrize(("days", "evicts"), [(1, True), (36499, True), (36500, False)])
def test_a_hundred_years_mean_that_nothing_is_evicted(days: int, evicts: bool) -> None:
    assert AgentOptions(eviction=timedelta(days=days)).evicts is evicts
