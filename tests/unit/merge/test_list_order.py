"""The order of a merged list."""

import pytest

from tests.unit.merge.stories import Story


@pytest.mark.parametrize(
    ("live", "stated", "merged"),
    [
        ("a b c", "", "a b c"),
        ("", "a b", "a b"),
        ("a b c", "a b c", "a b c"),
        ("a b c", "c b a", "c b a"),
        ("a b c", "b", "a b c"),
        ("a b c", "d", "a b c d"),
        ("a b c", "d a", "d a b c"),
        ("a b c", "c d", "a b c d"),
        ("a b c", "c a", "b c a"),
        ("a b c d", "d b", "a c d b"),
        ("a b c d", "c x a y", "b c d x a y"),
        ("a b", "x y", "a b x y"),
        ("x a y b z", "b a", "x y b z a"),
        ("s1 a s2 b s3", "a b", "s1 a s2 b s3"),
    ],
)
def test_stated_elements_keep_their_order_and_the_others_theirs(live: str, stated: str, merged: str) -> None:
    story = Story()
    story.update("ctl", spec={"tags": live.split(), "parts": [{"name": name} for name in live.split()]})

    story.apply("alice", spec={"tags": stated.split(), "parts": [{"name": name} for name in stated.split()]})

    assert story.spec["tags"] == merged.split()
    assert [part["name"] for part in story.spec["parts"]] == merged.split()


def test_elements_that_cannot_be_told_apart_give_way_to_the_stated_one() -> None:
    story = Story()
    story.update(
        "ctl", spec={"parts": [{"name": "a", "value": "1"}, {"name": "b"}, {"name": "a", "value": "2"}]}
    )

    story.apply("alice", spec={"parts": [{"name": "a", "value": "3"}]}, force=True)

    assert story.spec["parts"] == [{"name": "a", "value": "3"}, {"name": "b"}]


def test_unapplied_elements_are_left_alone() -> None:
    story = Story()
    twice = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    story.update("ctl", spec={"parts": twice})

    story.apply("alice", spec={"parts": [{"name": "b"}]})

    assert story.spec["parts"] == [*twice, {"name": "b"}]
