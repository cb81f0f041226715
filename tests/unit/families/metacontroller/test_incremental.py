"""What is computed from the result of the last pass equals what is computed from nothing."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.apply.children import Method
from lamina.core.model.memo import Memo
from lamina.families.metacontroller.compile import ChildRule
from lamina.families.metacontroller.sync.children import Unsettled, _unsettled
from lamina.families.metacontroller.sync.desired import Desired, DesiredIndex, key_of
from lamina.families.metacontroller.sync.gather import Owned, owned_objects
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement
from lamina.objects.types import Obj
from tests.unit.families.metacontroller.catset import POD

NAMES = "abcdef"
MOVES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["child", "mismatched", "not controlled", "gone", "same"])),
    max_size=20,
)  # fmt: skip
SELECTOR = LabelSelector((Requirement("app", "=", ("x",)),))


def pod(name: str, what: str = "child") -> Obj:
    owner = {"uid": "parent", "controller": what != "not controlled"}
    labels = {"app": "y" if what == "mismatched" else "x"}
    metadata = {"name": name, "namespace": "here", "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def owned(last: Owned | None, there: Sequence[Obj], selector: LabelSelector = SELECTOR) -> Owned:
    return owned_objects(last, there, selector, "", "parent", "here")


@given(MOVES)
def test_children_are_the_same_with_and_without_the_last_pass(moves: list[tuple[str, str]]) -> None:
    there: dict[str, Obj] = {}
    last: Owned | None = None
    for name, what in moves:
        if what == "gone":
            there.pop(name, None)
        elif what != "same":
            there[name] = pod(name, what)
        objects = list(there.values())
        last, fresh = owned(last, objects), owned(None, objects)

        assert [*map(id, last.children)] == [*map(id, fresh.children)]
        assert [*map(id, last.releasable)] == [*map(id, fresh.releasable)]
        assert owned(last, objects) is last


def test_another_selector_is_matched_against_every_object() -> None:
    there = [pod("a"), pod("b", "mismatched")]
    last = owned(None, there)

    assert [one["metadata"]["name"] for one in last.children] == ["a"]
    assert owned(last, there, EVERYTHING).children == tuple(there)


def wanted(*names: str, rolling: bool = True) -> tuple[Desired, ...]:
    rule = ChildRule(kind=POD, method=Method.RECREATE, rolling=rolling)
    objects = [pod(name) for name in names]
    return tuple(Desired(key=key_of(one), obj=one, rule=rule) for one in objects)


def index(children: tuple[Desired, ...]) -> DesiredIndex:
    return DesiredIndex(children, tuple(child.key for child in children))


def test_the_children_of_another_response_come_in_the_order_of_the_latest() -> None:
    goal, other = index(wanted("a", "b", "c")), index(wanted("c", "a"))

    theirs = other.in_order_of(goal)

    assert [child.key for child in theirs] == list(goal.keys)
    assert (theirs[0], theirs[2]) == (other.children[1], other.children[0])
    assert theirs[1] is goal.children[1]


def test_children_that_are_not_rolled_out_have_no_name_in_revisions() -> None:
    found = index(wanted("a", rolling=False))

    assert (found.names, found.rolling, len(found.by_key)) == ((None,), (), 1)


class Settled(SimpleNamespace):
    """A strategy by which a child is settled unless it says otherwise; it notes what it compares."""

    def is_settled(self, child: Desired, there: Obj) -> bool:
        self.compared.append(there)
        return not there["unsettled"]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12))
def test_settled_children_are_compared_once(moves: list[tuple[int, bool, bool]]) -> None:
    children, there = list(wanted(*"abcd")), list[Any]([None] * 4)
    last: Unsettled | None = None
    for place, exists, changes in moves:
        there[place] = {"unsettled": changes} if exists else None
        if changes:
            children[place] = wanted("abcd"[place])[0]
        strategy: Any = Settled(compared=[])

        last = _unsettled(last, tuple(children), tuple(there), strategy)

        assert last.places == tuple(at for at, one in enumerate(there) if one is None or one["unsettled"])

    strategy = Settled(compared=[])
    _unsettled(last, tuple(children), tuple(there), strategy)
    if last is not None:
        assert strategy.compared == [one for one in there if one is not None and one["unsettled"]]


def test_two_responses_that_desire_the_same_children_share_their_keys() -> None:
    memo = Memo()
    first, second = (memo.unique(tuple(child.key for child in wanted("a", "b"))) for _ in range(2))

    assert first is second
