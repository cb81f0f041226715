"""Sorted rows equal a sorted dict after any inserts and deletes. Small chunks, so that a few rows fill many."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from lamina.server.storage.sorted_rows import SortedRows, path_of
from lamina.server.storage.store import Event, Key, Row

places = st.tuples(st.sampled_from(("a", "a-b", "b")), st.text("xyz.", min_size=1, max_size=3))
changes = st.lists(st.tuples(places, st.booleans()), max_size=60)

Changes: TypeAlias = list[tuple[tuple[str, str], bool]]
"""Places, and whether what is there is removed instead of put."""


def row(place: tuple[str, str], version: int) -> Row:
    return Row(Key("things", *place), version, b"{}")


@given(
    changes=changes,
    namespace=st.none() | st.sampled_from(("a", "a-b", "b", "c")),
    after=st.none() | places,
    limit=st.integers(0, 8),
)
def test_a_page_is_the_part_of_the_sorted_rows_that_was_asked_for(
    changes: Changes,
    namespace: str | None,
    after: tuple[str, str] | None,
    limit: int,
) -> None:
    kept, model, _ = fill(changes)

    paths = sorted(path_of(*place) for place in model if namespace in (None, place[0]))
    if after is not None:
        paths = [path for path in paths if path > path_of(*after)]
    rows, remaining = kept.page(namespace, after, limit)

    wanted = paths[:limit] if limit else paths
    assert [path_of(row.key.namespace, row.key.name) for row in rows] == wanted
    assert all(model[row.key.namespace, row.key.name] is row for row in rows)
    assert remaining == len(paths) - len(wanted)
    assert len(kept) == len(model)


@given(changes=changes, later=changes)
def test_undoing_later_events_gives_the_earlier_rows(changes: Changes, later: Changes) -> None:
    before, _, events = fill(changes)
    after, _, more = fill([*changes, *later])

    undone = after.undone(more[len(events) :])

    assert [r.version for r in undone.page(None, None, 0)[0]] == [
        r.version for r in before.page(None, None, 0)[0]
    ]


def fill(changes: Changes) -> tuple[SortedRows, dict[tuple[str, str], Row], list[Event]]:
    """Return sorted rows, a dict and the events of the same changes; removing an absent row is none."""
    kept, model, events = SortedRows(size=3), dict[tuple[str, str], Row](), list[Event]()
    for version, (place, remove) in enumerate(changes):
        previous = model.get(place)
        if remove and previous is None:
            continue
        fresh = row(place, version)
        if remove:
            kept.remove(path_of(*place))
            del model[place]
        else:
            kept.put(path_of(*place), fresh)
            model[place] = fresh
        events.append(Event(fresh, previous))
    return kept, model, events
