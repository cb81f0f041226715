"""Claims beside the simplest model of them: a set of targets for each revision."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rollout.claims import Claims, resolve

REVISIONS = ("new", "old", "older")
TARGETS = st.sets(st.sampled_from("abcde"), max_size=5)
RECORDS = st.lists(st.tuples(st.sampled_from(REVISIONS), TARGETS), max_size=3, unique_by=lambda one: one[0])
MOVES = st.lists(st.tuples(st.sampled_from(REVISIONS), TARGETS, st.booleans()), max_size=5)


def sets(claims: Claims[str]) -> dict[str, set[str]]:
    return {name: set(claims.on(name)) for name in REVISIONS}


def resolved(records: list[tuple[str, set[str]]]) -> dict[str, set[str]]:
    """Return the targets of each revision: of those that several name, the first has each."""
    found: dict[str, set[str]] = {name: set() for name in REVISIONS}
    for name, targets in records:
        found[name] |= targets - set().union(*found.values())
    return found


@given(records=RECORDS)
def test_records_are_resolved_as_the_model_does(records: list[tuple[str, set[str]]]) -> None:
    claims = resolve([(name, sorted(targets)) for name, targets in records])

    assert sets(claims) == resolved(records)


@given(records=RECORDS, moves=MOVES)
def test_moves_and_removals_are_those_of_the_model(
    records: list[tuple[str, set[str]]], moves: list[tuple[str, set[str], bool]]
) -> None:
    claims = resolve([(name, sorted(targets)) for name, targets in records])
    model = resolved(records)
    for name, targets, removes in moves:
        model = {one: those - targets for one, those in model.items()}
        if removes:
            claims = claims.without(targets)
        else:
            claims = claims.moved(sorted(targets), name)
            model[name] |= targets
        assert sets(claims) == model


@given(records=RECORDS, moves=MOVES)
def test_a_target_is_on_one_revision_at_most_and_its_holder_is_that_one(
    records: list[tuple[str, set[str]]], moves: list[tuple[str, set[str], bool]]
) -> None:
    claims = resolve([(name, sorted(targets)) for name, targets in records])
    for name, targets, _ in moves:
        claims = claims.moved(sorted(targets), name)
    for target in "abcde":
        holders = [name for name in REVISIONS if target in claims.on(name)]

        assert holders == ([claims.holder(target)] if claims.holder(target) is not None else [])


@given(records=RECORDS, targets=TARGETS, name=st.sampled_from(REVISIONS))
def test_claims_are_values_that_a_move_does_not_change(
    records: list[tuple[str, set[str]]], targets: set[str], name: str
) -> None:
    claims = resolve([(one, sorted(those)) for one, those in records])
    before = sets(claims)
    claims.moved(sorted(targets), name)
    claims.without(targets)

    assert sets(claims) == before


@given(records=RECORDS, targets=TARGETS, name=st.sampled_from(REVISIONS))
def test_a_move_that_is_recorded_and_resolved_again_is_the_move(
    records: list[tuple[str, set[str]]], targets: set[str], name: str
) -> None:
    moved = resolve([(one, sorted(those)) for one, those in records]).moved(sorted(targets), name)
    again = resolve([(name, moved.on(name)), *((one, moved.on(one)) for one in REVISIONS if one != name)])

    assert sets(again) == sets(moved)
