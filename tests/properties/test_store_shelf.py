"""A shelf is a sorted dict, whatever is put in and taken out. Small boxes, so that a few rows fill many."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from lamina.server.shelf import Shelf, path_of
from lamina.server.store import Event, Key, Row

places = st.tuples(st.sampled_from(("a", "a-b", "b")), st.text("xyz.", min_size=1, max_size=3))
deeds = st.lists(st.tuples(places, st.booleans()), max_size=60)

Deeds: TypeAlias = list[tuple[tuple[str, str], bool]]
"""Places, and whether what is there is removed instead of put."""


def row(place: tuple[str, str], version: int) -> Row:
    return Row(Key("things", *place), version, b"{}")


@given(
    deeds=deeds,
    namespace=st.none() | st.sampled_from(("a", "a-b", "b", "c")),
    after=st.none() | places,
    limit=st.integers(0, 8),
)
def test_a_page_is_the_part_of_the_sorted_rows_that_was_asked_for(
    deeds: Deeds,
    namespace: str | None,
    after: tuple[str, str] | None,
    limit: int,
) -> None:
    shelf, model, _ = fill(deeds)

    paths = sorted(path_of(*place) for place in model if namespace in (None, place[0]))
    if after is not None:
        paths = [path for path in paths if path > path_of(*after)]
    rows, remaining = shelf.page(namespace, after, limit)

    wanted = paths[:limit] if limit else paths
    assert [path_of(row.key.namespace, row.key.name) for row in rows] == wanted
    assert all(model[row.key.namespace, row.key.name] is row for row in rows)
    assert remaining == len(paths) - len(wanted)
    assert len(shelf) == len(model)


@given(deeds=deeds, later=deeds)
def test_undoing_what_happened_later_gives_the_shelf_of_before(deeds: Deeds, later: Deeds) -> None:
    before, _, events = fill(deeds)
    after, _, more = fill([*deeds, *later])

    undone = after.undone(more[len(events) :])

    assert [r.version for r in undone.page(None, None, 0)[0]] == [
        r.version for r in before.page(None, None, 0)[0]
    ]


def fill(deeds: Deeds) -> tuple[Shelf, dict[tuple[str, str], Row], list[Event]]:
    """Return a shelf, a dict and the events of the same deeds; removing what is not there is none."""
    shelf, model, events = Shelf(box=3), dict[tuple[str, str], Row](), list[Event]()
    for version, (place, remove) in enumerate(deeds):
        previous = model.get(place)
        if remove and previous is None:
            continue
        fresh = row(place, version)
        if remove:
            shelf.remove(path_of(*place))
            del model[place]
        else:
            shelf.put(path_of(*place), fresh)
            model[place] = fresh
        events.append(Event(fresh, previous))
    return shelf, model, events
