"""What a hub needs follows from what it does."""

import pytest

from lamina.families.manifestwork.labels import CLUSTER_GROUP
from lamina.families.registry import FamilyOptions, chosen

CHOOSES = (CLUSTER_GROUP, "placementdecisions", "create")
LOOKS_AFTER = {
    (CLUSTER_GROUP, "managedclusters", "patch"),
    (CLUSTER_GROUP, "managedclustersets", "create"),
    (CLUSTER_GROUP, "managedclustersets/status", "patch"),
    ("", "namespaces", "create"),
    ("coordination.k8s.io", "leases", "create"),
}
SEES = (CLUSTER_GROUP, "managedclusters", "watch")


def rights(*, schedules: bool, registers: bool) -> set[tuple[str, str, str]]:
    (family,) = chosen("manifestwork", FamilyOptions(schedules=schedules, registers=registers))
    return {
        (group, resource, verb)
        for rule in family.rights(()).rules()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("schedules", [True, False])
@pytest.mark.parametrize("registers", [True, False])
def test_a_hub_that_leaves_something_to_others_needs_no_right_to_it(schedules: bool, registers: bool) -> None:
    needed = rights(schedules=schedules, registers=registers)

    assert (CHOOSES in needed) is schedules
    assert LOOKS_AFTER & needed == (LOOKS_AFTER if registers else set())
    assert (SEES in needed) is (schedules or registers)
