"""Input revisions as values: numbers, names, history and retention."""

from typing import Any

import pytest

from lamina.families.resourcegraph.instances.input_revisions import (
    InputRevision,
    from_history,
    from_objects,
    history,
    names,
    numbered,
    of_instance,
    prunable,
)
from lamina.objects.types import Made

INSTANCE: Made = {
    "apiVersion": "kro.run/v1alpha1",
    "kind": "App",
    "metadata": {"name": "a1", "namespace": "ns1", "uid": "u1"},
}


def of(number: int, **fields: Any) -> InputRevision:
    return InputRevision(**{"number": number, "revision": 1, "spec": {"name": "x"}, "created": "t", **fields})


def stored(number: int, owner: str = "u1", **status: Any) -> Made:
    return {
        "metadata": {
            "name": f"a1-input-rev-{number}",
            "uid": f"r{number}",
            "creationTimestamp": f"t{number}",
            "labels": {"kro.run/input-revision": str(number)},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "App", "name": "a1", "uid": owner, "controller": True}
            ],
        },
        "spec": {"inputRevision": number, "rgdRevision": 2, "instanceSpec": {"replicas": number}},
        "status": status,
    }


def test_they_are_read_oldest_first() -> None:
    found = from_objects(
        [stored(10), stored(9, propagationStatus="Completed", specHash="h"), {"metadata": {}}]
    )

    assert [(one.number, one.revision, one.status, one.hash, one.created) for one in found] == [
        (9, 2, "Completed", "h", "t9"),
        (10, 2, "Pending", "", "t10"),
    ]
    assert numbered(found, 9) is found[0] and numbered(found, 8) is None


@pytest.mark.parametrize("value", [None, "text", {"revision": 1}, [1, "x"], [{}], [{"revision": 1}]])
def test_a_history_that_another_wrote_has_no_input_revisions(value: Any) -> None:
    assert from_history(value) == ()


@pytest.mark.check("RG-115")
def test_input_revisions_count_for_their_owner_alone() -> None:
    assert of_instance(INSTANCE, [stored(3), stored(9, owner="u2"), stored(1)]) == ("r3", "r1")


@pytest.mark.check("RG-115")
def test_the_second_name_has_the_plural_of_the_kind() -> None:
    assert names(INSTANCE, "apps", 2) == ("a1-input-rev-2", "a1-apps-input-rev-2")


def test_long_names_are_cut_and_stay_distinct() -> None:
    long = {"metadata": {"name": "n" * 250}}
    other = {"metadata": {"name": "n" * 249 + "m"}}

    found = {*names(long, "apps", 12), *names(other, "apps", 12)}

    assert len(found) == 4 and all(len(name) <= 253 for name in found)


@pytest.mark.check("RG-109")
def test_the_history_is_newest_first_and_says_what_is_superseded() -> None:
    found = history(
        [of(1, status="Completed"), of(2)], {2: of(2, status="Completed", hash="h")}, inline=False
    )

    assert found == [
        {"revision": 2, "rgdRevision": 1, "createdAt": "t", "status": "Completed", "specHash": "h"},
        {"revision": 1, "rgdRevision": 1, "createdAt": "t", "status": "Superseded"},
    ]


@pytest.mark.check("RG-111")
def test_an_inline_history_has_the_specs_and_drops_the_oldest_that_do_not_fit() -> None:
    large = {"text": "x" * (100 << 10)}
    found = history([of(n, spec=large) for n in (1, 2, 3)], {3: of(3, spec=large)}, inline=True)

    assert [one["revision"] for one in found] == [3, 2]
    assert found[0]["instanceSpec"] == large


def test_the_newest_spec_is_kept_however_large_it_is() -> None:
    found = history([], {1: of(1, spec={"text": "x" * (300 << 10)})}, inline=True)

    assert len(found) == 1


def test_an_inline_history_is_read_again() -> None:
    made = history([of(1)], {2: of(2, status="InProgress", hash="h", revision_hash="r")}, inline=True)

    assert [(one.number, one.spec, one.revision_hash) for one in from_history(made)] == [
        (1, {"name": "x"}, ""),
        (2, {"name": "x"}, "r"),
    ]


@pytest.mark.parametrize(
    ("limit", "kept", "left"),
    [
        (11, (), [1, 2, 5, 9, 12]),
        (10, (), [2, 5, 9, 12]),
        (3, (), [9, 12]),
        (0, (), [12]),
        (0, (2, 5), [2, 5, 12]),
        (7, (), [5, 9, 12]),
    ],
)
def test_the_distance_by_number_decides_what_is_kept(
    limit: int, kept: tuple[int, ...], left: list[int]
) -> None:
    inputs = [of(n) for n in (1, 2, 5, 9, 12)]
    doomed = list(prunable(inputs, kept, limit))

    assert [one.number for one in inputs if one not in doomed] == left
