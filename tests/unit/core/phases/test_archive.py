"""Which revisions are archived, and which are not."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.core.phases.archive import RevisionFacts, archivable, essential, protected, working
from lamina.core.phases.contents import Contents
from lamina.core.phases.manifest import ObjectKey


def key(name: str) -> ObjectKey:
    return ObjectKey("", "ConfigMap", "default", name)


def revision(
    number: int,
    contains: str,
    controls: str = "",
    *,
    available: bool = False,
    was_available: bool | None = None,
    succeeded: bool = False,
    in_transition: bool = False,
    archived: bool = False,
    reported: bool = True,
    complete: bool = True,
    place: str = "",
) -> RevisionFacts:
    """A revision whose objects have names of one letter."""
    return RevisionFacts(
        obj={"metadata": {"name": f"web-{number}", "uid": f"uid-{number}"}},
        number=number,
        contents=Contents(dict.fromkeys(map(key, contains), place), is_complete=complete),
        controlled=frozenset(map(key, controls)),
        is_live=not archived,
        is_available=available,
        was_available=available if was_available is None else was_available,
        has_succeeded=succeeded,
        is_in_transition=in_transition,
        is_reported=available or in_transition or (reported and not archived),
    )


def ending(*sets: RevisionFacts) -> list[int]:
    return [one.number for one, _ in archivable(sets)]


@pytest.mark.parametrize(
    ("sets", "archived"),
    [
        pytest.param([revision(1, "a", "a", available=True)], [], id="the only one"),
        pytest.param([revision(1, "ab", "b", succeeded=True), revision(2, "a", "a", available=True)], [1],
                     id="the latest is available and controls all of its objects"),
        pytest.param([revision(1, "ac", "c", succeeded=True),
                      revision(2, "ac", "a", available=True, in_transition=True)], [],
                     id="the latest is available in parts"),
        pytest.param([revision(1, "a", "", succeeded=True), revision(2, "ab", "a")], [1],
                     id="it controls nothing any more"),
        pytest.param([revision(1, "a", "", succeeded=True, reported=False), revision(2, "ab", "a")], [],
                     id="what it controls is not reported yet"),
        pytest.param([revision(1, "ax", "x", succeeded=True), revision(2, "a", "a")], [],
                     id="it has succeeded, and the latest fails without its objects"),
        pytest.param([revision(1, "ac", "c", available=True), revision(2, "ab", "b"), revision(3, "ad", "a")], [2],
                     id="a failed intermediate controls nothing of the latest"),
        pytest.param([revision(1, "c", "c", available=True), revision(2, "bs", "bs"), revision(3, "as", "a")], [],
                     id="a failed intermediate controls an object that the latest contains"),
        pytest.param([revision(1, "cs", "c", available=True), revision(2, "bs", "bs"), revision(3, "a", "a")], [],
                     id="a failed intermediate controls an object that the available one contains"),
        pytest.param([revision(1, "c", "c", available=True), revision(2, "x", "x"),
                      revision(3, "y", archived=True), revision(4, "ax", "a")], [],
                     id="the latest counts, and not the next one"),
        pytest.param([revision(1, "a", "a", available=True), revision(2, "b", "b"), revision(3, "c", "c"),
                      revision(4, "d", "d")], [2, 3], id="all failed intermediates, and not the available one"),
        pytest.param([revision(1, "a", "a", succeeded=True), revision(2, "b", "b", available=True),
                      revision(3, "c", "c")], [1], id="an available one replaces those before it"),
        pytest.param([revision(1, "a", "a", succeeded=True), revision(2, "b", "b", available=True),
                      revision(3, "ca", "c")], [], id="unless a newer one contains what they control"),
        pytest.param([revision(1, "ad", succeeded=True, archived=True), revision(2, "ad", "d"), revision(3, "a", "a")], [],
                     id="a failure has an object of one that has succeeded and is archived"),
        pytest.param([revision(1, "ad", succeeded=True, archived=True), revision(2, "ad", "d"),
                      revision(3, "a", "a", available=True)], [2],
                     id="until the latest is available"),
        pytest.param([revision(1, "d", archived=True), revision(2, "ad", "d"), revision(3, "a", "a")], [2],
                     id="one that is archived and never succeeded does not count"),
        pytest.param([revision(1, "ad", "a", available=True), revision(2, "d", "d"),
                      revision(3, "b", succeeded=True, archived=True), revision(4, "c", "c")], [],
                     id="one that is available counts beside a newer one that is archived"),
        pytest.param([revision(1, "a", "a"), revision(1, "b", "b", available=True)], [],
                     id="equal numbers never archive each other"),
        pytest.param([revision(1, "a", "a"), revision(2, "b", "b", complete=False)], [],
                     id="what the latest contains is not known"),
        pytest.param([revision(1, "c", "c", was_available=True, in_transition=True), revision(2, "b", "b"), revision(3, "a", "a")],
                     [2], id="one that was available by its last report counts as such"),
        pytest.param([revision(1, "cb", "c", was_available=True, in_transition=True), revision(2, "b", "b"),
                      revision(3, "a", "a")], [], id="with what it contains"),
        pytest.param([revision(1, "c", "c"), revision(2, "b", "b", was_available=True, in_transition=True),
                      revision(3, "a", "a")], [1], id="and replaces nothing"),
        pytest.param([revision(1, "c", "c", succeeded=True), revision(2, "b", "b", was_available=True)], [],
                     id="what the latest was does not archive others"),
        pytest.param([revision(1, "a", "a"), revision(2, "b", archived=True)], [],
                     id="the latest is archived by hand"),
        pytest.param([revision(1, "a", "a", place="east"), revision(2, "a", "a", available=True)], [1],
                     id="an object of the same name on another cluster is another object"),
    ],
)  # fmt: skip
def test_revisions_are_archived_when(sets: list[RevisionFacts], archived: list[int]) -> None:
    assert ending(*sets) == archived


NAMES = st.sets(st.sampled_from("abcd")).map("".join)


@st.composite
def histories(draw: st.DrawFn) -> list[RevisionFacts]:
    """Revisions of which each controls some of its objects, and no object has two controllers."""
    left, found = set("abcd"), list[RevisionFacts]()
    for number in range(draw(st.integers(2, 5)), 0, -1):
        contains = draw(NAMES)
        controls = [one for one in contains if one in left and draw(st.booleans())]
        left -= set(controls)
        found.append(
            revision(
                number,
                contains,
                "".join(controls),
                available=draw(st.booleans()),
                succeeded=draw(st.booleans()),
                in_transition=len(controls) < len(contains),
                archived=draw(st.booleans()) and number > 1,
            )
        )
    return found[::-1]


@given(histories())
def test_no_object_is_given_up_that_the_latest_or_the_newest_working_revision_contains(
    sets: list[RevisionFacts],
) -> None:
    live = [one for one in sets if one.is_live]
    working = [one for one in sets if one.has_succeeded or (one.is_live and one.is_available)]

    for one, reason in archivable(sets):
        assert reason
        assert one is not live[-1]
        needed = live[-1].contents.places.keys() | _finished(working)
        assert not one.controlled & needed


def _finished(working: list[RevisionFacts]) -> Iterable[ObjectKey]:
    return working[-1].contents.places.keys() if working else frozenset()


# What must not be deleted


@pytest.mark.parametrize(
    ("revisions", "newest"),
    [
        ([],                                                                                       None),
        ([revision(1, "a")],                                                                       None),
        ([revision(1, "a", available=True), revision(2, "b", available=True), revision(3, "c")],   2),
        ([revision(1, "a", succeeded=True), revision(2, "b")],                                     1),
        ([revision(1, "a", available=True), revision(2, "b", succeeded=True, archived=True)],      2),
        ([revision(1, "a", available=True), revision(2, "b", available=True, archived=True)],      1),
    ],
)  # fmt: skip
def test_the_newest_revision_that_works_may_be_archived(
    revisions: list[RevisionFacts], newest: int | None
) -> None:
    found = working(revisions)

    assert (found.number if found is not None else None) == newest


def test_the_latest_and_the_newest_working_revision_are_essential() -> None:
    serving, broken, latest = revision(1, "a", available=True), revision(2, "b"), revision(3, "c")

    assert essential([serving, broken, latest]) == [latest, serving]
    assert essential([broken]) == [broken]
    assert essential([]) == []


@pytest.mark.parametrize(
    ("revisions", "kept"),
    [
        pytest.param([], "", id="nothing is live"),
        pytest.param([revision(2, "bx")], "b", id="what the latest contains"),
        pytest.param([revision(1, "a", was_available=True), revision(2, "b")], "ab",
                     id="and the newest that worked by its last report"),
        pytest.param([revision(0, "a"), revision(2, "b"), revision(0, "c")], "abc",
                     id="and those that have no number yet"),
        pytest.param([revision(1, "a", succeeded=True, archived=True), revision(2, "b")], "ab",
                     id="and the newest that has succeeded, though it is archived"),
        pytest.param([revision(1, "a", succeeded=True, archived=True), revision(9, "a", succeeded=True, archived=True),
                      revision(10, "b")], "b", id="unless that is the ended one"),
        pytest.param([revision(1, "a", succeeded=True, archived=True)], "", id="or nothing is live"),
        pytest.param([revision(1, "a", available=True), revision(2, "b")], "ab", id="and the newest that works"),
        pytest.param([revision(1, "a"), revision(2, "b")], "b", id="but no failure before it"),
        pytest.param([revision(2, "", complete=False)], "abc", id="all, where it is not known what it contains"),
        pytest.param([revision(2, "ab", place="east")], "ab", id="another place may be the same cluster"),
        pytest.param([revision(2, "ab", "a", place="east")], "b", id="unless it controls an object of its own there"),
    ],
)  # fmt: skip
def test_an_ended_revision_does_not_delete(revisions: list[RevisionFacts], kept: str) -> None:
    assert protected([(key(name), "") for name in "abc"], revisions, "uid-9") == frozenset(map(key, kept))


def test_what_a_revision_has_given_up_is_protected_only_for_one_that_takes_it_over_now() -> None:
    first, second = replace(revision(1, "ab", succeeded=True), takes_over=False), revision(2, "b")

    kept = protected([(key(name), "") for name in "ab"], [first, second], "uid-9", [*map(key, "ab")])

    assert kept == {key("b")}


def test_an_object_that_is_listed_without_namespace_is_found_by_its_name() -> None:
    contents = Contents({key("a"): "east"})

    assert contents.place(key("a")) == "east"
    assert contents.place(key("a")._replace(namespace="")) == "east"
    assert contents.place(key("a")._replace(namespace="other")) is None
    assert contents.place(key("b")._replace(namespace="")) is None
