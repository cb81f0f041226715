"""A mapping that is computed from the last one equals one that is computed anew."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.object_map import ObjectMap, differing, object_map
from lamina.objects.types import Obj

NAMES = "abcdef"


def entry(obj: Obj) -> tuple[str, int] | None:
    return (obj["name"], obj["n"]) if obj["n"] % 3 else None


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-1, 5)), max_size=30))
def test_it_equals_one_that_is_computed_anew(moves: list[tuple[str, int]]) -> None:
    there: dict[str, Obj] = {}
    last: ObjectMap[str, int] | None = None
    for name, number in moves:
        there.pop(name, None)
        if number >= 0:
            there[name] = {"name": name, "n": number}
        objects = list(there.values())

        last, fresh = object_map(last, objects, entry), object_map(None, objects, entry)

        assert last.entries == fresh.entries
        assert [*last.objects.values()] == objects


def test_only_objects_that_came_are_computed() -> None:
    computed: list[str] = []

    def counted(obj: Obj) -> tuple[str, int]:
        computed.append(obj["name"])
        return obj["name"], obj["n"]

    first, second = {"name": "a", "n": 1}, {"name": "b", "n": 1}
    last = object_map(None, [first, second], counted)
    computed.clear()

    made = object_map(last, [first, {"name": "b", "n": 2}, {"name": "c", "n": 3}], counted)

    assert computed == ["b", "c"]
    assert made.entries == {"a": 1, "b": 2, "c": 3}
    assert last.entries == {"a": 1, "b": 1}


def test_the_very_same_objects_have_the_very_same_map() -> None:
    objects = [{"name": "a", "n": 1}, {"name": "b", "n": 3}]
    last = object_map(None, objects, entry)

    assert object_map(last, list(objects), entry) is last
    assert object_map(last, objects[::-1], entry) is not last


def test_positions_differ_where_the_objects_are_not_the_very_same() -> None:
    one, like_it = {"a": 1}, {"a": 1}

    assert [*differing((one, one, None), (one, like_it, None))] == [1]
