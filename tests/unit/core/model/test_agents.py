"""The agents of a family, as a value that a control plane uses."""

from datetime import timedelta

import pytest

from lamina.core.model.agents import AgentOptions, AgentSpec, WorkloadOutcome
from lamina.families.manifestwork.placement.managedcluster import NAMESPACE_LABEL
from lamina.families.registry import agents
from lamina.objects import meta
from lamina.objects.types import Made

AGENTS = agents()


@pytest.mark.parametrize(
    ("eviction", "evicts"),
    [
        (timedelta(0), True),
        (timedelta(minutes=60), True),
        (timedelta(days=36499), True),
        (timedelta(days=36500), False),
        (timedelta.max, False),
    ],
)
def test_an_eviction_after_a_hundred_years_is_none(eviction: timedelta, evicts: bool) -> None:
    assert AgentOptions(eviction=eviction).evicts is evicts


def test_a_workload_is_healthy_at_once_and_never_fails_by_default() -> None:
    assert WorkloadOutcome() == WorkloadOutcome(timedelta(0), "", "", timedelta.max)


def test_each_cluster_has_controllers_of_its_own() -> None:
    east, west = (
        AGENTS.controllers(AgentSpec(cluster=name, address="https://hub")) for name in ("east", "west")
    )

    assert {one.name for one in east} == {one.name for one in west}
    assert len({one.name for one in east}) == len(east)
    assert all(any(watch.cluster == AGENTS.hub for watch in one.watches) for one in east)


@pytest.mark.parametrize("name", ["east", "west-1"])
def test_a_registered_cluster_is_the_last_object_and_is_accepted(name: str) -> None:
    objects = AGENTS.registration(name, f"https://{name}")
    cluster = objects[-1]

    assert meta.ref(cluster) == AGENTS.cluster(name)
    assert AGENTS.is_accepted(cluster)
    assert AGENTS.addresses(cluster) == (f"https://{name}",)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("https://old", ()), ("", ()), ("https://new", ("https://new", "https://second"))],
)
def test_a_cluster_that_has_moved_gets_its_new_address_in_the_first_place(
    address: str, expected: tuple[str, ...]
) -> None:
    cluster: Made = dict(AGENTS.registration("east", "https://old")[-1])
    cluster["spec"]["managedClusterClientConfigs"].append({"url": "https://second"})
    patch = AGENTS.relocation(cluster, address)

    assert bool(patch) is bool(expected)
    if patch:
        assert AGENTS.addresses({**cluster, **patch}) == expected


def test_an_agent_may_write_in_the_namespace_of_its_cluster_only() -> None:
    everywhere, own = AGENTS.rights("east")
    version, kind = AGENTS.assigned
    group = version.rpartition("/")[0]

    assert own.allow(group, f"{kind.lower()}s", "patch")
    assert not everywhere.allow(group, f"{kind.lower()}s", "get")
    assert not everywhere.allow("", "secrets", "get")


def test_a_user_name_on_the_hub_belongs_to_one_cluster() -> None:
    (east, groups), (west, others) = AGENTS.hub_user("east"), AGENTS.hub_user("west")

    assert east != west
    assert set(groups) != set(others)


@pytest.mark.parametrize(("labelled", "expected"), [("", False), ("east", True), ("west", False)])
def test_a_namespace_that_the_hub_created_goes_with_its_cluster(labelled: str, expected: bool) -> None:
    labels = {NAMESPACE_LABEL: labelled} if labelled else {}

    assert AGENTS.owns_namespace({"metadata": {"name": "east", "labels": labels}}, "east") is expected


def test_the_lease_of_a_cluster_is_in_its_namespace() -> None:
    assert AGENTS.lease("east").namespace == "east"
