"""A revision whose object was deleted is recovered from a target that still has its content."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis.strategies import lists, sampled_from, tuples

from lamina.core.model.queries import Absent, Answer, Answers, Found, Read, Unserved
from lamina.core.rollout.history import history
from lamina.core.rollout.recovery import Copy, readable, reads, recover
from lamina.core.rollout.revision import Revision
from lamina.objects.types import Obj, Ref
from tests.unit.core.rollout.revisions import revision


def ref(name: str) -> Ref:
    return Ref("v1", "ConfigMap", "team", name)


def read(name: str) -> Read:
    return Read(ref(name), whole=True)


def target(content: str) -> Found:
    return Found({"spec": {"content": content} if content else {}})


UNREADABLE = Revision(number=3, name="r3", snapshot={}, hash="h")


@pytest.mark.parametrize(
    ("kept", "number"),
    [
        ([], None),
        ([revision(1, hash="h")], 1),
        ([revision(1, hash="other")], None),
        ([revision(1, hash="h"), revision(2, hash="h"), revision(3, hash="other")], 2),
        ([UNREADABLE], None),
        ([revision(1, hash="h"), UNREADABLE], 1),
    ],
)
def test_a_revision_is_lost_if_it_is_not_stored_or_cannot_be_read(
    kept: list[Revision], number: int | None
) -> None:
    found = readable(history(kept), "h")

    assert (found.number if found is not None else None) == number


def test_one_target_of_each_content_is_read_and_none_of_what_is_known() -> None:
    copies = [Copy("d2", ref("b")), Copy("d1", ref("a")), Copy("d2", ref("c")), Copy("known", ref("d"))]

    assert reads(copies, "known") == (read("a"), read("c"))


@given(lists(tuples(sampled_from("abc"), sampled_from("wxyz"))))
def test_as_many_are_read_as_there_are_unknown_contents(pairs: list[tuple[str, str]]) -> None:
    asked = reads([Copy(digest, ref(name)) for digest, name in pairs], "a")

    assert len(asked) == len({digest for digest, _ in pairs} - {"a"})
    assert asked == reads([Copy(digest, ref(name)) for digest, name in pairs], "a")
    assert all(one.whole for one in asked)


def recovered(answers: dict[str, Answer], asked: Iterable[str] = ("a", "b")) -> Obj | None:
    return recover(
        [read(name) for name in asked],
        Answers({read(name): answer for name, answer in answers.items()}),
        content=lambda obj: obj["spec"],
        has_hash=lambda held: held["content"] == "lost",
    )


def test_content_with_the_missing_hash_is_the_revision() -> None:
    assert recovered({"a": target("other"), "b": target("lost")}) == {"content": "lost"}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"a": target("other")},
        {"a": Absent(), "b": Unserved()},
        {"a": target(""), "b": target("other")},
        {"c": target("lost")},
    ],
)
def test_nothing_else_is_taken_for_it(answers: dict[str, Answer]) -> None:
    assert recovered(answers) is None


def test_the_first_that_matches_is_used() -> None:
    assert recovered({"a": target("lost"), "b": target("lost")}, asked=("b", "a")) == {"content": "lost"}
