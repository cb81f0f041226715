"""What a memo returns is what the function returns; it only decides how often the function runs."""

import gc
import weakref
from typing import Any

import pytest

from lamina.core.model.memo import Memo, MemoStore
from lamina.objects.types import Obj, Ref


def name_of(obj: Obj) -> str:
    return str(obj["name"])


class Counted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        self.calls += 1
        return inputs


def test_the_same_inputs_are_computed_once() -> None:
    memo, function, obj = Memo(), Counted(), {"name": "a"}

    assert memo.call(function, obj, "x") is memo.call(function, obj, "x")
    assert function.calls == 1


def test_an_equal_object_is_another_input() -> None:
    memo, function = Memo(), Counted()
    memo.call(function, {"name": "a"})
    memo.call(function, {"name": "a"})

    assert function.calls == 2


@pytest.mark.parametrize("text", ["a name", b"a body"])
def test_text_and_bytes_are_compared_by_value(text: str | bytes) -> None:
    memo, function = Memo(), Counted()
    memo.call(function, text)
    memo.call(function, type(text)(bytearray(text)) if isinstance(text, bytes) else "".join(text))

    assert function.calls == 1


def test_functions_do_not_share_results() -> None:
    memo, obj = Memo(), {"name": "a"}

    assert memo.call(name_of, obj) == "a"
    assert memo.call(len, obj) == 1


def test_a_result_of_none_counts_too() -> None:
    memo, calls, obj = Memo(), list[Obj](), {"name": "a"}

    for _ in range(2):
        assert memo.call(calls.append, obj) is None
    memo_of_bound = len(calls)

    # A bound method is another function each time it is looked up, unless it compares as equal.
    assert memo_of_bound == 1


def test_an_error_is_not_remembered() -> None:
    memo, calls = Memo(), list[str]()

    def fail(text: str) -> None:
        calls.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            memo.call(fail, "x")
    assert calls == ["x", "x"]


def test_what_two_passes_do_not_use_is_dropped() -> None:
    memo, function, used, unused = Memo(), Counted(), {"name": "used"}, {"name": "unused"}
    memo.call(function, used)
    memo.call(function, unused)
    for _ in range(3):
        memo.next_pass()
        memo.call(function, used)
    assert function.calls == 2

    memo.call(function, unused)

    assert function.calls == 3


def test_an_input_that_is_dropped_is_not_kept_alive() -> None:
    class Input:
        """An object that can be referred to weakly."""

    memo = Memo()
    one = Input()
    alive = weakref.ref(one)
    memo.call(id, one)
    del one
    gc.collect()
    assert alive() is not None

    memo.next_pass()
    memo.next_pass()
    gc.collect()

    assert alive() is None


def test_a_result_is_computed_from_the_last_one_in_its_slot() -> None:
    memo = Memo()

    def added(last: list[int] | None, number: int) -> list[int]:
        return [*(last or ()), number]

    assert memo.update(added, "a", 1) == [1]
    assert memo.update(added, "a", 2) == [1, 2]
    assert memo.update(added, "b", 3) == [3]
    memo.next_pass()
    assert memo.update(added, "a", 4) == [1, 2, 4]
    memo.next_pass()
    memo.next_pass()
    assert memo.update(added, "a", 5) == [5]


def test_a_nested_function_gets_the_memo() -> None:
    memo, function, objects = Memo(), Counted(), ({"name": "a"}, {"name": "b"})

    def names(memo: Memo, *objects: Obj) -> list[Any]:
        return [memo.call(function, one) for one in objects]

    memo.call_nested(names, *objects)
    memo.call_nested(names, *objects)
    memo.call_nested(names, objects[0], {"name": "c"})

    assert function.calls == 3


def test_the_parts_of_a_nested_result_are_kept_however_often_it_is_found() -> None:
    memo, function, objects = Memo(), Counted(), ({"name": "a"}, {"name": "b"})

    def names(memo: Memo, *objects: Obj) -> list[Any]:
        return [memo.call(function, one) for one in objects]

    for _ in range(4):
        memo.call_nested(names, *objects)
        memo.next_pass()
    memo.call_nested(names, objects[0], {"name": "c"})

    assert function.calls == 3


def test_a_view_is_looked_at_once_in_a_pass() -> None:
    memo, function, view = Memo(), Counted(), {"name": "a"}

    memo.once(function, view)
    memo.once(function, view)
    assert function.calls == 1
    memo.once(function, {"name": "b"})
    memo.once(function, view)
    assert function.calls == 3
    memo.next_pass()
    memo.once(function, view)
    assert function.calls == 4


def test_equal_values_become_one() -> None:
    memo = Memo()
    first = memo.unique(("a", "b"))

    assert memo.unique(tuple("ab")) is first
    memo.next_pass()
    assert memo.unique(tuple("ab")) is first


def test_the_size_is_what_was_noted_in_the_last_two_passes() -> None:
    memo = Memo()
    memo.weigh("a", 10)
    memo.weigh("a", 20)
    memo.weigh("b", 5)
    assert memo.size == 25
    memo.next_pass()
    memo.weigh("b", 1)
    assert memo.size == 21
    memo.next_pass()
    assert memo.size == 1


def parent(name: str) -> Ref:
    return Ref("example.com/v1", "Parent", "default", name)


@pytest.mark.parametrize(("most", "size"), [(2, 1000), (100, 30)])
def test_the_memo_that_was_used_longest_ago_is_dropped_first(most: int, size: int) -> None:
    store = MemoStore(most, size)
    first = store.next_pass("one", parent("a"), "uid of a")
    first.weigh("text", 20)
    store.next_pass("other", parent("a"), "uid of a").weigh("text", 20)

    last = store.next_pass("one", parent("b"), "uid of b")

    assert store.next_pass("one", parent("b"), "uid of b") is last
    assert store.next_pass("one", parent("a"), "uid of a") is not first


def test_the_memo_in_use_is_kept_however_large_it_is() -> None:
    store = MemoStore(size=10)
    memo = store.next_pass("one", parent("a"), "uid")
    memo.weigh("text", 1000)

    assert store.next_pass("one", parent("a"), "uid") is memo


def test_each_controller_has_its_own_memo() -> None:
    store = MemoStore()

    assert store.next_pass("one", parent("a"), "uid") is not store.next_pass("other", parent("a"), "uid")
    assert len(store) == 2


def test_another_object_of_the_same_name_begins_with_an_empty_memo() -> None:
    store = MemoStore()
    first = store.next_pass("one", parent("a"), "first")

    assert store.next_pass("one", parent("a"), "second") is not first


def test_a_key_that_is_gone_has_no_memo() -> None:
    store = MemoStore()
    store.next_pass("one", parent("a"), "uid")
    store.forget("one", parent("a"))
    store.forget("one", parent("never there"))

    assert len(store) == 0
