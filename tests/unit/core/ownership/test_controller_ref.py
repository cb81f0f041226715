"""Which objects an owner holds, adopts and releases."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.plan import Patch
from lamina.core.model.queries import Answers, Read
from lamina.core.model.world import Change
from lamina.core.ownership.controller_ref import (
    Claim,
    adopt,
    changes,
    claim,
    claimants,
    complete_claim,
    controlled,
    controllers_of,
    controls,
    members,
    owner_among,
    owner_of,
    queries,
    release,
)
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj
from tests.unit.core.ownership.worlds import (
    PART,
    ROOT,
    THING,
    made,
    names,
    part,
    read,
    reference,
    thing,
    world,
)

NO_ANSWERS = Answers()
RED = from_object({"matchLabels": {"colour": "red"}})


def claim_on(owner: Obj, *parts: Obj) -> Claim:
    return claim(world(owner, *parts), owner, PART.group_kind, RED)


def selector_of(owner: Obj) -> LabelSelector:
    return from_object(owner["spec"]["selector"])


# The table


@pytest.mark.parametrize(
    ("owner", "colour", "deleting", "held", "released", "adopted"),
    [
        ("other", "red",  False, False, False, False),
        ("t",     "red",  False, True,  False, False),
        ("t",     "blue", False, False, True,  False),
        ("",      "red",  False, False, False, True),
        ("",      "blue", False, False, False, False),
        ("other", "red",  True,  False, False, False),
        ("t",     "red",  True,  True,  False, False),
        ("t",     "blue", True,  False, False, False),
        ("",      "red",  True,  False, False, False),
    ],
)  # fmt: skip
def test_whose_an_object_is(
    owner: str, colour: str, deleting: bool, held: bool, released: bool, adopted: bool
) -> None:
    found = claim_on(thing(deleting=deleting, colour="red"), part(owner=owner, colour=colour))

    assert bool(found.held) is held
    assert bool(found.releasable) is released
    assert bool(found.adoptable) is adopted


def test_an_object_that_is_being_deleted_is_not_adopted() -> None:
    assert not claim_on(thing(), part(deleting=True, colour="red")).adoptable


def test_an_object_that_is_being_deleted_is_still_held() -> None:
    assert names(claim_on(thing(), part(owner="t", deleting=True, colour="red")).held) == ["p"]


def test_an_owner_without_control_does_not_hold() -> None:
    found = claim_on(thing(), part(owner="other", also="t", colour="red"))

    assert found == Claim(owner=thing())


def test_an_object_of_another_namespace_is_not_adopted() -> None:
    assert not claim_on(thing(), part(namespace="two", colour="red")).adoptable


def test_an_owner_without_a_namespace_adopts_in_all_of_them() -> None:
    root = made(ROOT, "r")
    seen = world(root, part("p", "one", colour="red"), part("q", "two", colour="red"))

    assert names(claim(seen, root, PART.group_kind, RED).adoptable) == ["p", "q"]


def test_an_object_that_does_not_count_is_neither_held_nor_adopted() -> None:
    owner = thing()
    seen = world(owner, part("p", owner="t", colour="red"), part("q", colour="red"), part("r", owner="t"))

    found = claim(seen, owner, PART.group_kind, RED, counts=lambda obj: False)

    assert found == Claim(owner=owner)


def test_a_claim_is_completed_with_what_may_be_adopted() -> None:
    owner, mine, stray = thing(), part("m", owner="t", colour="red"), part("s", owner="t")
    seen = world(owner, mine, stray, part("o", colour="red"))

    whole = complete_claim(seen, owner, PART.group_kind, RED, [mine], [stray])

    assert whole == claim(seen, owner, PART.group_kind, RED)


@pytest.mark.parametrize(
    ("obj", "says"),
    [(part(owner="t"), True), (part(also="t"), False), (part(owner="u"), False), (part(), False)],
)
def test_who_controls(obj: Obj, says: bool) -> None:
    assert controls("uid-t", obj) is says
    assert meta.is_controlled_by(obj, "uid-t") is says


# The live read before an adoption


def test_the_owner_is_read_before_an_adoption() -> None:
    owner = thing()

    assert queries(NO_ANSWERS, claim_on(owner, part(colour="red"))) == (Read(meta.ref(owner)),)


def test_the_owner_is_read_once() -> None:
    owner = thing()

    assert queries(read(owner, owner), claim_on(owner, part(colour="red"))) == ()


def test_nothing_is_read_where_there_is_nothing_to_adopt() -> None:
    assert queries(NO_ANSWERS, claim_on(thing(), part(owner="t"), part("q", owner="t", colour="red"))) == ()


@pytest.mark.parametrize(
    ("live", "adopts"),
    [
        (thing(),                                         True),
        (thing(deleting=True),                            False),
        ({**thing(), "metadata": {**thing()["metadata"], "uid": "another"}}, False),
        (None,                                            False),
    ],
)  # fmt: skip
def test_only_an_owner_that_is_alive_adopts(live: Obj | None, adopts: bool) -> None:
    owner = thing()
    found = claim_on(owner, part(colour="red"))

    assert bool(changes(found, read(owner, live))) is adopts
    assert names(members(found, read(owner, live))) == (["p"] if adopts else [])


def test_without_a_live_read_nothing_is_adopted_and_releases_are_written() -> None:
    found = claim_on(thing(), part("p", colour="red"), part("q", owner="t", colour="blue"))

    assert [one.ref.name for one in changes(found, NO_ANSWERS)] == ["q"]
    assert members(found, NO_ANSWERS) == ()


def test_releases_are_written_before_adoptions() -> None:
    owner = thing()
    found = claim_on(owner, part("p", colour="red"), part("q", owner="t", colour="blue"))

    assert [one.ref.name for one in changes(found, read(owner, owner))] == ["q", "p"]


def test_what_is_held_stays_a_member_and_what_is_released_is_none() -> None:
    found = claim_on(thing(), part("p", owner="t", colour="red"), part("q", owner="t", colour="blue"))

    assert names(members(found, NO_ANSWERS)) == ["p"]


# The writes


def owners_after(patch: Patch) -> Any:
    return patch.patch["metadata"]["ownerReferences"]


def test_an_adopted_object_has_the_owner_as_its_controller() -> None:
    patch = adopt(part(), thing())

    assert owners_after(patch) == [reference("t")]


def test_an_adoption_names_the_version_that_was_seen() -> None:
    obj = part()
    obj["metadata"]["resourceVersion"] = "7"

    patch = adopt(obj, thing())

    assert (patch.uid, patch.version) == ("uid-p", "7")


def test_an_adoption_keeps_other_owners() -> None:
    assert owners_after(adopt(part(also="other"), thing())) == [
        reference("other", controller=False),
        reference("t"),
    ]


def test_an_owner_that_did_not_control_is_named_once() -> None:
    assert owners_after(adopt(part(also="t"), thing())) == [reference("t")]


def test_the_last_owner_that_is_released_leaves_an_orphan() -> None:
    assert owners_after(release(part(owner="t"), "uid-t")) is None


def test_a_release_keeps_other_owners() -> None:
    assert owners_after(release(part(owner="t", also="other"), "uid-t")) == [
        reference("other", controller=False)
    ]


def test_a_handover_leaves_the_old_controller_an_owner() -> None:
    before = [reference("old"), reference("older", controller=False)]

    assert controlled(before, thing()) == [
        reference("old", controller=False),
        reference("older", controller=False),
        reference("t"),
    ]


@given(st.lists(st.tuples(st.sampled_from("tuvw"), st.booleans()), unique_by=lambda one: one[0], max_size=4))
def test_there_is_one_controller_and_no_owner_is_lost(owners: list[tuple[str, bool]]) -> None:
    before = [reference(name, controller=is_controller) for name, is_controller in owners]

    after = controlled(before, thing())

    assert [one["uid"] for one in after if one.get("controller")] == ["uid-t"]
    assert {one["uid"] for one in after} == {one["uid"] for one in before} | {"uid-t"}
    assert controlled(after, thing()) == after


# Finding the owner


def test_the_controller_of_an_object_is_found() -> None:
    owner = thing()

    assert owner_of(world(owner), part(owner="t"), THING.group_kind) is owner


@pytest.mark.parametrize(
    "dependent",
    [
        part(),
        part(also="t"),
        part(owner="gone"),
        made(PART, "p", "one", metadata={"ownerReferences": [reference("t", kind=ROOT)]}),
        made(PART, "p", "one", metadata={"ownerReferences": [{**reference("t"), "uid": "before"}]}),
        made(
            PART, "p", "one", metadata={"ownerReferences": [{**reference("t"), "apiVersion": "other.com/v1"}]}
        ),
        part(namespace="two", owner="t"),
    ],
)
def test_another_object_is_not_taken_for_the_controller(dependent: Obj) -> None:
    assert owner_of(world(thing()), dependent, THING.group_kind) is None
    assert owner_among(world(thing()), dependent, {THING.group_kind: THING}) is None


def test_the_controller_is_found_among_several_kinds() -> None:
    owner, root = thing(), made(ROOT, "r")
    kinds = {THING.group_kind: THING, ROOT.group_kind: ROOT}
    roots = made(PART, "q", "one", metadata={"ownerReferences": [reference("r", kind=ROOT)]})

    assert owner_among(world(owner, root), part(owner="t"), kinds) is owner
    assert owner_among(world(owner, root), roots, kinds) is root
    assert owner_among(world(owner, root), roots, {THING.group_kind: THING}) is None


def test_a_kind_that_is_not_served_has_no_owners() -> None:
    unserved = THING.group_kind._replace(kind="Unserved")
    dependent = made(PART, "p", "one", metadata={"ownerReferences": [{**reference("t"), "kind": "Unserved"}]})

    assert owner_of(world(thing()), dependent, unserved) is None


# Which owners a change enqueues


def enqueued(before: Obj | None, after: Obj | None, *owners: Obj, matters: bool = True) -> list[str]:
    enqueue = claimants(THING.group_kind, selector_of, matters=lambda old, new: matters)
    return [ref.name for ref in enqueue(world(*owners), Change(PART, before, after))]


def test_a_change_enqueues_the_controller() -> None:
    assert enqueued(part(owner="t"), part(owner="t", colour="red"), thing("t"), thing("u")) == ["t"]


def test_a_change_enqueues_the_controller_there_was() -> None:
    assert enqueued(part(owner="t"), part(owner="u"), thing("t"), thing("u")) == ["t", "u"]


def test_a_deletion_enqueues_the_controller() -> None:
    assert enqueued(part(owner="t"), None, thing("t")) == ["t"]


def test_an_orphan_that_appears_enqueues_every_owner_that_selects_it() -> None:
    red, blue = thing("red", colour="red"), thing("blue", colour="blue")

    assert enqueued(None, part(colour="red"), red, blue, thing("any")) == ["red", "any"]


def test_an_object_that_is_released_enqueues_every_owner_that_selects_it() -> None:
    red = thing("red", colour="red")

    assert enqueued(part(owner="t", colour="red"), part(colour="red"), thing("t", colour="x"), red) == [
        "t",
        "red",
    ]


def test_other_labels_enqueue_the_owners_that_select_them() -> None:
    red, blue = thing("red", colour="red"), thing("blue", colour="blue")

    assert enqueued(part(colour="red"), part(colour="blue"), red, blue) == ["blue"]


def test_an_orphan_with_the_same_labels_enqueues_nothing() -> None:
    assert enqueued(part(colour="red"), part(colour="red"), thing("red", colour="red")) == []


def test_an_orphan_that_is_being_deleted_enqueues_nothing() -> None:
    assert enqueued(None, part(colour="red", deleting=True), thing("red", colour="red")) == []


def test_an_orphan_that_is_deleted_enqueues_nothing() -> None:
    assert enqueued(part(colour="red"), None, thing("red", colour="red")) == []


def test_a_change_that_does_not_matter_enqueues_nothing() -> None:
    assert enqueued(part(owner="t"), part(owner="t"), thing("t"), matters=False) == []


@pytest.mark.parametrize("after", [part(owner="t", colour="blue"), part(owner="t", also="u", colour="red")])
def test_labels_and_owners_always_matter(after: Obj) -> None:
    assert enqueued(part(owner="t", colour="red"), after, thing("t"), matters=False) == ["t"]


def test_a_dependent_of_another_kind_enqueues_nothing() -> None:
    theirs = made(PART, "p", "one", metadata={"ownerReferences": [reference("t", kind=ROOT)]})

    assert enqueued(None, theirs, thing("t")) == []
    assert enqueued(theirs, {**theirs, "spec": {}}, thing("t")) == []


def test_another_object_of_the_same_name_enqueues_the_owners_of_both() -> None:
    again = part(owner="u")
    again["metadata"]["uid"] = "uid-again"

    assert enqueued(part(owner="t"), again, thing("t"), thing("u")) == ["t", "u"]


# What holds of every world

PARTS = st.lists(
    st.tuples(st.sampled_from(["", "t", "other"]), st.sampled_from(["red", "blue"]), st.booleans()),
    max_size=8,
)


@given(parts=PARTS, deleting=st.booleans())
def test_after_its_writes_an_owner_controls_what_matches_and_nothing_else(
    parts: list[tuple[str, str, bool]], deleting: bool
) -> None:
    owner = thing(deleting=deleting)
    objects = {
        f"p{number}": part(f"p{number}", owner=whose, colour=colour, deleting=going)
        for number, (whose, colour, going) in enumerate(parts)
    }
    found = claim_on(owner, *objects.values())

    answers = read(owner, owner)
    after = {
        **objects,
        **{one.ref.name: patched(objects[one.ref.name], one) for one in changes(found, answers)},
    }

    ours = {name for name, obj in after.items() if controls("uid-t", obj)}
    assert set(names(members(found, answers))) <= ours
    if not deleting:
        assert ours == set(names(members(found, answers)))
        assert not changes(claim_on(owner, *after.values()), answers), "a second pass writes nothing"
    strangers = {name for name, obj in objects.items() if controls("uid-other", obj)}
    assert all(after[name] == objects[name] for name in strangers)


def patched(obj: Obj, patch: Patch) -> Obj:
    return meta.with_metadata(obj, ownerReferences=owners_after(patch) or [])


def test_the_same_answers_lead_to_the_same_writes() -> None:
    owner = thing()
    found = claim_on(owner, part("p", colour="red"), part("q", owner="t"))
    answers: Answers = read(owner, owner)

    assert changes(found, answers) == changes(found, answers)


# The controllers of a changed object


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (None,                       part("p", owner="a"),        ["a"]),
        (part("p", owner="a"),       None,                        ["a"]),
        (part("p", owner="a"),       part("p", owner="b"),        ["a", "b"]),
        (part("p", owner="a"),       part("p"),                   ["a"]),
        (part("p"),                  part("p", also="a"),         []),
        (None,                       part("p"),                   []),
    ],
)  # fmt: skip
def test_who_controls_a_changed_object_or_did(
    before: Obj | None, after: Obj | None, found: list[str]
) -> None:
    change = Change(PART, before, after)

    assert [one.name for one in controllers_of([THING.group_kind], change)] == found
    assert list(controllers_of([ROOT.group_kind], change)) == []


def test_a_controller_is_on_the_cluster_of_the_changed_object() -> None:
    change = Change(PART, None, part("p", "two", owner="a"), "east")

    [found] = controllers_of([THING.group_kind], change)

    assert found == (THING.api_version, "Thing", "two", "a", "east")
