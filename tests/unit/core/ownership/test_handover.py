"""Whether a revision takes control of an object that it wants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.ownership.controller_ref import adopt, controlled
from lamina.core.ownership.handover import Adoption, Handover, Holder, hand_over, holder
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.core.ownership.worlds import part, thing

CREATE, KEEP, TAKE, YIELD, COLLIDE = Handover


@pytest.mark.parametrize(
    ("found", "theirs", "never", "orphans", "anything"),
    [
        (Holder.ABSENT,  0, CREATE,  CREATE,  CREATE),
        (Holder.SELF,    5, KEEP,    KEEP,    KEEP),
        (Holder.SIBLING, 4, TAKE,    TAKE,    TAKE),
        (Holder.SIBLING, 6, YIELD,   YIELD,   YIELD),
        (Holder.SIBLING, 5, COLLIDE, COLLIDE, COLLIDE),
        (Holder.NONE,    0, COLLIDE, TAKE,    TAKE),
        (Holder.OTHER,   0, COLLIDE, COLLIDE, TAKE),
    ],
)  # fmt: skip
def test_revision_five_wants_the_object(
    found: Holder, theirs: int, never: Handover, orphans: Handover, anything: Handover
) -> None:
    assert hand_over(found, theirs=theirs, ours=5, adoption=Adoption.NEVER) is never
    assert hand_over(found, theirs=theirs, ours=5, adoption=Adoption.ORPHANS) is orphans
    assert hand_over(found, theirs=theirs, ours=5, adoption=Adoption.ANY) is anything


@pytest.mark.parametrize("found", [Holder.NONE, Holder.OTHER])
@pytest.mark.parametrize("adoption", list(Adoption))
def test_a_stale_number_on_an_object_without_a_sibling_changes_nothing(
    found: Holder, adoption: Adoption
) -> None:
    low = hand_over(found, theirs=0, ours=5, adoption=adoption)

    assert hand_over(found, theirs=99, ours=5, adoption=adoption) is low


@given(ours=st.integers(1, 9), theirs=st.integers(1, 9), adoption=st.sampled_from(Adoption))
def test_of_two_siblings_at_most_one_takes_the_object_from_the_other(
    ours: int, theirs: int, adoption: Adoption
) -> None:
    one = hand_over(Holder.SIBLING, theirs=theirs, ours=ours, adoption=adoption)
    other = hand_over(Holder.SIBLING, theirs=ours, ours=theirs, adoption=adoption)

    if ours != theirs:
        assert {one, other} == {TAKE, YIELD}


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        (None,                          Holder.ABSENT),
        (part(),                        Holder.NONE),
        (part(also="mine"),             Holder.NONE),
        (part(owner="mine"),            Holder.SELF),
        (part(owner="old"),             Holder.SIBLING),
        (part(owner="old", also="mine"), Holder.SIBLING),
        (part(owner="stranger"),        Holder.OTHER),
        (part(owner="stranger", also="old"), Holder.OTHER),
    ],
)  # fmt: skip
def test_who_controls_the_object(obj: Obj | None, found: Holder) -> None:
    assert holder(obj, "uid-mine", {"uid-old", "uid-older"}) is found


# Several revisions of one owner and one object, in any order

REVISIONS = [thing(f"r{number}") for number in range(1, 5)]
UIDS = [meta.uid(one) for one in REVISIONS]
ORDERS = st.lists(st.integers(0, 3), max_size=12)


class Shared:
    """One object that revisions want; it carries the number of the revision that wrote it last."""

    def __init__(self, live: Made | None = None, number: int = 0) -> None:
        self.live, self.number = live, number

    def reconcile(self, place: int, adoption: Adoption) -> Handover:
        """Have one revision do what it decides."""
        revision, uid = REVISIONS[place], UIDS[place]
        found = holder(self.live, uid, set(UIDS) - {uid})
        decided = hand_over(found, theirs=self.number, ours=place + 1, adoption=adoption)
        if decided is Handover.CREATE:
            self.live, self.number = part("shared", owner=meta.name(revision)), place + 1
        elif decided is Handover.TAKE and self.live is not None:
            self.live, self.number = merge_patch(self.live, adopt(self.live, revision).patch), place + 1
        return decided

    @property
    def controller(self) -> str:
        assert self.live is not None
        found = meta.controller_of(self.live)
        return found["uid"] if found is not None else ""


@given(order=ORDERS, adoption=st.sampled_from(Adoption))
def test_control_only_moves_to_newer_revisions(order: list[int], adoption: Adoption) -> None:
    shared, numbers = Shared(), [0]
    for place in order:
        shared.reconcile(place, adoption)
        numbers.append(shared.number)

    assert numbers == sorted(numbers)
    if order:
        assert shared.number == max(order) + 1
        assert shared.controller == UIDS[max(order)]


@given(order=ORDERS, adoption=st.sampled_from(Adoption))
def test_once_every_revision_has_decided_no_order_changes_anything(
    order: list[int], adoption: Adoption
) -> None:
    shared = Shared()
    for place in range(4):
        shared.reconcile(place, adoption)
    before = repr(shared.live)

    decided = {place: shared.reconcile(place, adoption) for place in order}

    assert repr(shared.live) == before
    assert set(decided.values()) <= {KEEP, YIELD}


@given(order=ORDERS, number=st.integers(0, 99), adoption=st.sampled_from((Adoption.NEVER, Adoption.ORPHANS)))
def test_an_object_of_another_controller_is_never_touched(
    order: list[int], number: int, adoption: Adoption
) -> None:
    live = part("shared", owner="stranger")
    shared = Shared(live, number)

    assert {shared.reconcile(place, adoption) for place in order} <= {COLLIDE}
    assert shared.live == live


@given(order=ORDERS.filter(bool), number=st.integers(0, 99))
def test_an_orphan_is_taken_by_the_first_revision_that_may_whatever_number_it_carries(
    order: list[int], number: int
) -> None:
    shared = Shared(part("shared"), number)
    first = shared.reconcile(order[0], Adoption.ORPHANS)

    assert first is TAKE
    assert shared.number == order[0] + 1


@given(order=ORDERS, adoption=st.sampled_from(Adoption))
def test_an_object_has_one_controller_and_keeps_its_other_owners(
    order: list[int], adoption: Adoption
) -> None:
    shared = Shared(part("shared", owner="r1", also="friend"), 1)
    for place in order:
        shared.reconcile(place, adoption)
    assert shared.live is not None
    owners = meta.owner_refs(shared.live)

    assert sum(bool(one.get("controller")) for one in owners) == 1
    assert "uid-friend" in {one["uid"] for one in owners}
    assert len({one["uid"] for one in owners}) == len(owners)


def test_the_former_controller_stays_an_owner_until_it_is_gone() -> None:
    references = controlled(meta.owner_refs(part(owner="r1")), REVISIONS[1])

    assert [(one["uid"], one.get("controller")) for one in references] == [
        ("uid-r1", False),
        ("uid-r2", True),
    ]
