"""Which revisions have equal content."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rollout.revision import Revision

SNAPSHOTS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 1) | st.booleans(), max_size=2)
DIGESTS = st.sampled_from(("", "d1", "d2"))


def revision(snapshot: Any = None, **more: Any) -> Revision:
    return Revision(**{"number": 1, "name": "r1", "snapshot": snapshot or {}, **more})


@given(one=SNAPSHOTS, other=SNAPSHOTS)
def test_without_digests_revisions_are_equal_where_their_snapshots_are(one: Any, other: Any) -> None:
    assert revision(one).equals(revision(other)) is revision(one).holds(other)
    assert revision(one).holds(one)


@given(one=SNAPSHOTS, other=SNAPSHOTS, first=DIGESTS, second=DIGESTS)
def test_digests_decide_where_either_has_one(one: Any, other: Any, first: str, second: str) -> None:
    found = revision(one, digest=first).equals(revision(other, digest=second))

    assert found is revision(other, digest=second).equals(revision(one, digest=first))
    if first or second:
        assert found is (first == second)


@pytest.mark.parametrize(
    "changed", [{"number": 2}, {"name": "r2"}, {"hash": "x"}, {"created": "now"}, {"obj": {}}]
)
def test_number_name_and_hash_say_nothing_about_the_content(changed: Any) -> None:
    assert revision({"a": 1}).equals(revision({"a": 1}, **changed))


def test_a_revision_whose_content_cannot_be_read_equals_none_that_has_a_digest() -> None:
    assert not revision({"a": 1}).equals(revision({"a": 1}, digest="d"))


@pytest.mark.parametrize(
    ("obj", "cause"),
    [
        (None, ""),
        ({"metadata": {"name": "r1"}}, ""),
        ({"metadata": {"annotations": {"kubernetes.io/change-cause": "a new image"}}}, "a new image"),
    ],
)
def test_the_cause_of_a_revision_is_what_its_user_noted(obj: Any, cause: str) -> None:
    assert revision(obj=obj).change_cause == cause
