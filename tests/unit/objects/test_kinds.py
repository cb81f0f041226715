"""Kinds, and the order of the versions of a group."""

import pytest

from lamina.objects.kinds import version_rank


@pytest.mark.parametrize(
    "versions",
    [
        ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"],
        ["v2", "v1", "v1beta1"],
        ["v10", "v2", "v1", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"],
        ["v1", "v2beta2", "v2beta1", "v3alpha1", "V1", "v1gamma1"],
    ],
)
def test_versions_are_sorted_by_maturity_then_by_number(versions: list[str]) -> None:
    turned = [*versions[2:], *versions[:2]]

    assert sorted(turned, key=version_rank) == versions
