"""Revisions, and the history they make."""

import pytest
from hypothesis import given
from hypothesis.strategies import integers, sets

from lamina.core.history import History, history, prune, to_return_to
from lamina.core.revision import Revision
from lamina.errors import RevisionNotFound
from lamina.objects.types import Ref

OWNER = Ref("ex.example.com/v1", "CatSet", "default", "nginx")


def revision(number: int, **snapshot: object) -> Revision:
    return Revision(number=number, name=f"r{number}", snapshot=snapshot or {"spec": number})


def past(*numbers: int, high_water: int = 0) -> History:
    return history(map(revision, numbers), high_water)


def test_a_snapshot_is_the_same_whatever_way_its_numbers_are_written() -> None:
    assert revision(1, spec={"replicas": 3.0}).holds({"spec": {"replicas": 3}})
    assert not revision(1, spec={"on": True}).holds({"spec": {"on": 1}})


def test_history_is_told_oldest_first_and_finds_what_it_holds() -> None:
    told = history([revision(3, a=1), revision(1, a=1), revision(2, a=2)])

    assert [one.number for one in told.revisions] == [1, 2, 3]
    assert told.newest == revision(3, a=1)
    assert told.like({"a": 1}) == revision(3, a=1)
    assert told.like({"a": 9}) is None
    assert told.numbered(2) == revision(2, a=2) == told.named("r2")
    assert told.before(3) == revision(2, a=2)
    assert told.before(1) is None


def test_a_number_is_never_given_twice_even_if_its_revision_is_gone() -> None:
    assert past().next_number == 1
    assert past(1, 2).next_number == 3
    assert past(1, 2, high_water=7).next_number == 8


@given(numbers=sets(integers(1, 40)).map(sorted), keep=sets(integers(1, 40)), limit=integers(0, 10))
def test_pruning_forgets_the_oldest_idle_revisions_and_no_others(
    numbers: list[int], keep: set[int], limit: int
) -> None:
    forgotten = {one.number for one in prune(past(*numbers), limit=limit, keep={f"r{n}" for n in keep})}
    remaining = set(numbers) - forgotten

    assert not forgotten & keep
    assert len(remaining - keep) == min(limit, len(set(numbers) - keep))
    assert all(gone < idle for gone in forgotten for idle in remaining - keep)


def test_who_asks_to_go_back_gets_the_one_before_or_the_one_they_name() -> None:
    assert to_return_to(OWNER, past(3, 4, 5), 5, None).number == 4
    assert to_return_to(OWNER, past(3, 4, 5), 5, 3).number == 3


def test_who_asks_for_a_revision_that_is_not_kept_is_told_which_are() -> None:
    with pytest.raises(RevisionNotFound) as refused:
        to_return_to(OWNER, past(3, 4, 5), 5, 7)

    assert str(refused.value) == "catset default/nginx has no revision 7: the revisions kept are 3, 4, 5"
    assert refused.value.hint == "see what each one holds with `lamina revisions list catset/nginx`"
    with pytest.raises(RevisionNotFound, match="no earlier revision to go back to"):
        to_return_to(OWNER, past(3), 3, None)
