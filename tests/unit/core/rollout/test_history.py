"""Revisions are found by content, numbered, renumbered and pruned."""

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, sampled_from, sets

from lamina.core.rollout.history import (
    History,
    Lookup,
    history,
    look_up,
    next_collision,
    prune,
    rollback_target,
)
from lamina.core.rollout.revision import Revision
from lamina.errors import RevisionNotFound
from lamina.objects.types import Ref
from tests.unit.core.rollout.revisions import past, revision, wanted

OWNER = Ref("ex.example.com/v1", "CatSet", "default", "nginx")


# ── content ──


def test_equal_numbers_in_a_snapshot_are_equal_however_they_are_written() -> None:
    assert Revision(number=1, name="r1", snapshot={"replicas": 3.0}).holds({"replicas": 3})
    assert not Revision(number=1, name="r1", snapshot={"on": True}).holds({"on": 1})


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        # digests     snapshots
        (("", "a"),   ("", "a"),   True),
        (("", "a"),   ("", "b"),   False),
        (("d1", "a"), ("d1", "b"), True),
        (("d1", "a"), ("d2", "a"), False),
        (("d1", "a"), ("", "a"),   False),
        (("", "a"),   ("d1", "a"), False),
    ],
)  # fmt: skip
def test_digests_decide_what_is_equal_and_snapshots_where_there_are_none(
    one: tuple[str, str], other: tuple[str, str], equal: bool
) -> None:
    first, second = (revision(n, held, digest=digest) for n, (digest, held) in enumerate((one, other), 1))

    assert first.equals(second) is equal


def test_equal_hashes_prove_nothing() -> None:
    assert not revision(1, "a", hash="x").equals(revision(2, "b", hash="x"))


# ── order ──


def test_a_history_is_oldest_first_and_finds_by_number_name_and_hash() -> None:
    told = history([revision(3, hash="c"), revision(1, hash="a"), revision(2, hash="a")])

    assert [one.number for one in told.revisions] == [1, 2, 3]
    assert told.newest == told.numbered(3) == told.named("r3")
    assert told.hashed("a") == told.numbered(2)
    assert told.hashed("z") is told.numbered(9) is told.named("r9") is None
    assert told.before(3) == told.numbered(2)
    assert told.before(1) is None


def test_revisions_of_one_number_are_ordered_by_creation_and_then_by_name() -> None:
    ordered = history(
        [
            revision(1, name="c", created="2026-01-01T00:00:02Z"),
            revision(1, name="b", created="2026-01-01T00:00:01Z"),
            revision(1, name="a", created="2026-01-01T00:00:02Z"),
        ]
    )

    assert [one.name for one in ordered.revisions] == ["b", "a", "c"]


def test_a_number_is_never_issued_twice_even_if_its_revision_is_gone() -> None:
    assert past().next_number == 1
    assert past(1, 2).next_number == 3
    assert past(1, 2, high_water=7).next_number == 8
    assert past(9, high_water=7).next_number == 10


# ── look up ──


def test_content_that_no_revision_holds_gets_the_next_number() -> None:
    found = look_up(past(1, 2), wanted("other"))

    assert found.is_new
    assert not found.is_renumbered
    assert found.wanted == Revision(number=3, name="new", snapshot={"spec": "other"})
    assert found.others == past(1, 2).revisions
    assert found.duplicates == ()


def test_the_first_revision_is_number_one() -> None:
    assert look_up(History(), wanted("first")).wanted.number == 1


def test_the_newest_revision_keeps_its_number() -> None:
    found = look_up(past(1, 2), wanted(2))

    assert not found.is_new
    assert not found.is_renumbered
    assert found.wanted == found.stored == revision(2)


def test_earlier_content_is_the_same_revision_under_the_next_number() -> None:
    found = look_up(past(1, 2, 3), wanted(1))

    assert found.stored == revision(1)
    assert found.is_renumbered
    assert (found.wanted.name, found.wanted.number) == ("r1", 4)
    assert [one.number for one in found.others] == [2, 3]


def test_a_number_above_all_that_are_stored_counts_as_issued() -> None:
    assert look_up(past(1, 2, high_water=9), wanted(1)).wanted.number == 10
    assert look_up(past(1, 2, high_water=9), wanted("x")).wanted.number == 10


def test_of_several_equal_revisions_the_newest_stays_and_the_others_are_duplicates() -> None:
    kept = history([revision(1, "a"), revision(2, "b"), revision(3, "a"), revision(4, "a")])

    found = look_up(kept, wanted("a"))

    assert found.stored == revision(4, "a")
    assert found.duplicates == (revision(1, "a"), revision(3, "a"))
    assert found.others == (revision(2, "b"),)


@pytest.mark.parametrize(("ties", "number"), [(False, 3), (True, 2)])
def test_a_number_that_two_revisions_have_is_replaced_unless_ties_are_allowed(
    ties: bool, number: int
) -> None:
    kept = history([revision(2, "a", name="a"), revision(2, "b", name="b")])

    assert look_up(kept, wanted("b"), ties=ties).wanted.number == number


@pytest.mark.parametrize("ties", [True, False])
def test_a_revision_that_is_not_the_newest_is_renumbered_with_or_without_ties(ties: bool) -> None:
    kept = history([revision(2, "a", name="a"), revision(2, "b", name="b")])

    assert look_up(kept, wanted("a"), ties=ties).wanted.number == 3


def test_a_revision_without_a_number_gets_one() -> None:
    found = look_up(history([revision(0, "a")]), wanted("a"))

    assert found.is_renumbered
    assert found.wanted.number == 1


def test_what_digests_ignore_is_rolled_out_as_it_is_wanted_now() -> None:
    old = Revision(number=1, name="r1", snapshot={"stamp": 1}, digest="d")

    found = look_up(history([old]), Revision(number=0, name="n", snapshot={"stamp": 2}, digest="d"))

    assert found.wanted.snapshot == {"stamp": 2}
    assert found.stored == old


def test_the_history_with_the_wanted_revision_has_it_once_under_its_new_number() -> None:
    renumbered = look_up(past(1, 2), wanted(1)).with_wanted
    new = look_up(past(1, 2), wanted("x")).with_wanted

    assert [(one.name, one.number) for one in renumbered.revisions] == [("r2", 2), ("r1", 3)]
    assert [(one.name, one.number) for one in new.revisions] == [("r1", 1), ("r2", 2), ("new", 3)]


CONTENTS = lists(sampled_from("abcd"), max_size=8)


@given(CONTENTS, sampled_from("abcde"), integers(0, 12), booleans())
def test_the_wanted_revision_holds_what_is_wanted_and_has_the_highest_number(
    contents: list[str], content: str, high_water: int, ties: bool
) -> None:
    kept = history([revision(n, held) for n, held in enumerate(contents, 1)], high_water)

    found = look_up(kept, wanted(content), ties=ties)

    assert found.wanted.holds({"spec": content})
    assert found.is_new is (content not in contents)
    assert all(one.number < found.wanted.number for one in (*found.others, *found.duplicates))
    assert sorted(parts(found)) == sorted(one.name for one in kept.revisions)
    if found.is_new or found.is_renumbered:
        assert found.wanted.number == max(len(contents), high_water) + 1


def parts(found: Lookup) -> list[str]:
    stored = [found.stored] if found.stored is not None else []
    return [one.name for one in (*found.others, *found.duplicates, *stored)]


@given(lists(sampled_from("abc"), min_size=1, max_size=20))
def test_an_owner_that_follows_its_spec_numbers_without_gaps_and_stores_each_content_once(
    edits: list[str],
) -> None:
    kept, issued = History(), list[int]()
    for content in edits:
        found = look_up(kept, wanted(content, name=content))
        if found.is_new or found.is_renumbered:
            issued.append(found.wanted.number)
        kept = found.with_wanted
        assert kept.newest is not None
        assert kept.newest.holds({"spec": content})

    assert issued == list(range(1, len(issued) + 1))
    assert {one.name for one in kept.revisions} == set(edits)
    assert len(kept.revisions) == len(set(edits))


# ── collisions ──


@pytest.mark.parametrize(
    ("taken", "start", "first"), [(set(), 0, 0), ({0}, 0, 1), ({0, 1, 3}, 0, 2), ({0, 2}, 1, 1), ({5}, 5, 6)]
)
def test_a_collision_is_counted_until_a_name_is_free(taken: set[int], start: int, first: int) -> None:
    assert next_collision(taken.__contains__, start) == first


# ── prune ──


@given(numbers=sets(integers(1, 40)).map(sorted), keep=sets(integers(1, 40)), limit=integers(0, 10))
def test_pruning_deletes_the_oldest_idle_revisions_and_no_others(
    numbers: list[int], keep: set[int], limit: int
) -> None:
    pruned = {one.number for one in prune(past(*numbers), limit=limit, keep={f"r{n}" for n in keep})}
    remaining = set(numbers) - pruned

    assert not pruned & keep
    assert len(remaining - keep) == min(limit, len(set(numbers) - keep))
    assert all(gone < idle for gone in pruned for idle in remaining - keep)


@pytest.mark.parametrize(
    ("limit", "keep", "counted", "pruned"),
    [
        (10, [], [], []),
        (2, [], [], [1, 2, 3]),
        (0, [], [], [1, 2, 3, 4, 5]),
        (0, [5], [], [1, 2, 3, 4]),
        (2, [1, 5], [], [2]),
        (2, [1, 5], [1], [2, 3]),
        (2, [1, 5], [1, 5], [2, 3, 4]),
        (0, [1, 2, 5], [1, 2], [3, 4]),
        (1, [1, 2, 3, 4, 5], [1, 2, 3], []),
        (3, [5], [4], [1]),
    ],
)  # fmt: skip
def test_what_is_kept_does_not_count_unless_it_is_said_to(
    limit: int, keep: list[int], counted: list[int], pruned: list[int]
) -> None:
    names = [f"r{n}" for n in keep]

    found = prune(past(1, 2, 3, 4, 5), limit=limit, keep=names, counted=[f"r{n}" for n in counted])

    assert [one.number for one in found] == pruned


def test_pruning_again_deletes_nothing() -> None:
    kept = past(*range(1, 9))
    gone = prune(kept, limit=3, keep={"r1"})

    left = history(one for one in kept.revisions if one not in gone)

    assert prune(left, limit=3, keep={"r1"}) == ()


# ── roll back ──


def test_a_rollback_goes_to_the_revision_before_the_current_or_to_the_wanted_one() -> None:
    assert rollback_target(OWNER, past(3, 4, 5), 5, None).number == 4
    assert rollback_target(OWNER, past(3, 4, 5), 5, 3).number == 3


def test_a_rollback_to_a_revision_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(RevisionNotFound) as refused:
        rollback_target(OWNER, past(3, 4, 5), 5, 7)

    assert str(refused.value) == "catset default/nginx has no revision 7: the available revisions are 3, 4, 5"
    assert refused.value.hint == "show them with `lamina revisions list catset/nginx`"
    with pytest.raises(RevisionNotFound, match="no earlier revision to go back to"):
        rollback_target(OWNER, past(3), 3, None)
