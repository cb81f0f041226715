"""What is carried from one pass to the next is what would have come out anyway."""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.children import Method
from lamina.families.metacontroller.desired import Desired, key_of
from lamina.families.metacontroller.ground import Rest, differing
from lamina.families.metacontroller.herd import Herd, Seen
from lamina.families.metacontroller.roster import Roster
from lamina.families.metacontroller.setup import ChildRule
from lamina.objects.types import Obj
from tests.unit.families.metacontroller.catset import POD

NAMES = "abcdef"
MOVES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["mine", "strange", "foreign", "gone", "same"])),
    max_size=20,
)


def pod(name: str, whose: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "here"},
        "whose": whose,
    }


def judged(obj: Obj) -> Seen:
    return Seen(own=obj["whose"] != "foreign", matches=obj["whose"] != "strange")


def by_name(obj: Obj, seen: Seen) -> tuple[str, Obj] | None:
    return (obj["metadata"]["name"], obj) if obj["metadata"]["name"] != "f" else None


@given(MOVES)
def test_a_herd_is_what_it_would_be_without_the_one_before(moves: list[tuple[str, str]]) -> None:
    there: dict[str, Obj] = {}
    herd: Herd | None = None
    for name, whose in moves:
        there.pop(name, None) if whose == "gone" else None
        if whose in ("mine", "strange", "foreign"):
            there[name] = pod(name, whose)
        herd, afresh = Herd(there.values(), judged, herd), Herd(there.values(), judged)

        assert [*map(id, herd.children)] == [*map(id, afresh.children)]
        assert [*map(id, herd.others)] == [*map(id, afresh.others)]
        assert same(herd.each("by name", by_name), afresh.each("by name", by_name))


def same(one: Mapping[str, Obj], two: Mapping[str, Obj]) -> bool:
    return one.keys() == two.keys() and all(one[name] is two[name] for name in one)


def test_only_those_that_have_come_are_looked_at() -> None:
    looked: list[str] = []

    def judge(obj: Obj) -> Seen:
        looked.append(obj["metadata"]["name"])
        return judged(obj)

    first, second = pod("a", "mine"), pod("b", "mine")
    before = Herd([first, second], judge)
    looked.clear()

    after = Herd([first, pod("b", "mine")], judge, before)

    assert looked == ["b"]
    assert len(after.children) == 2


def wanted(*names: str, rolling: bool = True) -> tuple[Desired, ...]:
    rule = ChildRule(kind=POD, method=Method.RECREATE, rolling=rolling)
    objects = [pod(name, "mine") for name in names]
    return tuple(Desired(key=key_of(one), obj=one, rule=rule) for one in objects)


def test_what_another_answer_wants_is_found_in_the_same_places() -> None:
    goal, other = Roster(wanted("a", "b", "c")), Roster(wanted("c", "a"))

    theirs = other.like(goal)

    assert [child.key for child in theirs] == list(goal.keys)
    assert (theirs[0], theirs[2]) == (other.children[1], other.children[0])
    assert theirs[1] is goal.children[1]


def test_children_that_do_not_roll_have_no_name_to_revisions() -> None:
    roster = Roster(wanted("a", rolling=False))

    assert (roster.names, roster.rolling, len(roster.by_key)) == ((None,), (), 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12))
def test_those_at_rest_are_asked_about_once(moves: list[tuple[int, bool, bool]]) -> None:
    """Whoever rests is not looked at again until they or what is wanted of them is another; nobody is missed."""
    children, rest = list(wanted(*"abcd")), Rest()
    there: list[Any] = [None] * 4
    for place, is_there, is_other in moves:
        there[place] = {"restless": is_other} if is_there else None
        if is_other:
            children[place] = wanted("abcd"[place])[0]

        found = rest.restless(tuple(children), tuple(there), rests)

        assert found == [at for at, one in enumerate(there) if one is None or not rests(children[at], one)]

    counted: list[Obj] = []
    rest.restless(tuple(children), tuple(there), counting(counted))
    assert counted == [one for one in there if one is not None and one["restless"]]


def rests(child: Desired, there: Obj) -> bool:
    return not there["restless"]


def counting(asked: list[Obj]) -> Callable[[Desired, Obj], bool]:
    def ask(child: Desired, there: Obj) -> bool:
        asked.append(there)
        return rests(child, there)

    return ask


def test_places_differ_where_the_objects_are_not_the_very_same() -> None:
    one, like_it = {"a": 1}, {"a": 1}

    assert [*differing((one, one, None), (one, like_it, None))] == [1]
