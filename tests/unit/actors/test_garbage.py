"""Whose objects go with whom."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn, booleans, composite, integers, lists, randoms, sampled_from

from lamina.actors.garbage import FOREGROUND, GARBAGE
from lamina.core.plan import Delete, Emit, Patch, Propagation
from lamina.core.questions import Answers
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, OwnerRef, Ref
from lamina.paper import Crashed, Paper, planned, settle
from lamina.paper.kinds import CONFIG_MAP, ROLE, WIDGET, make
from lamina.runtime.memory import Gone

BACKGROUND, IN_FOREGROUND, ORPHANED = Propagation.BACKGROUND, Propagation.FOREGROUND, Propagation.ORPHAN


def thing(
    paper: Paper, name: str, *owners: Obj, blocks: bool = False, what: Kind = CONFIG_MAP, **more: Any
) -> Made:
    """Create an object that these own."""
    refs: dict[str, Any] = {"ownerReferences": [meta.owner_ref(owner, blocks=blocks) for owner in owners]}
    return paper.create(make(what, name, **(refs if owners else {}), **more))


def stranger(uid: str = "nobody", api_version: str = "v1", kind: str = "ConfigMap") -> OwnerRef:
    """Name an owner that nobody ever saw."""
    return OwnerRef(apiVersion=api_version, kind=kind, name="zzz", uid=uid)


def names(paper: Paper, what: Kind = CONFIG_MAP) -> set[str]:
    return {meta.name(obj) for obj in paper.listed(what)}


def owners_of(paper: Paper, obj: Obj) -> list[str]:
    return [ref["name"] for ref in meta.owner_refs(paper.get(meta.ref(obj)))]


def test_what_belongs_to_nobody_else_goes_with_its_owner_and_so_does_what_belongs_to_that() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)
    thing(paper, "grandchild", child)
    thing(paper, "other")

    paper.delete(meta.ref(owner))
    settle(paper, GARBAGE)

    assert names(paper) == {"other"}


def test_an_object_with_a_living_owner_only_loses_the_reference_to_the_dead_one() -> None:
    paper = Paper()
    dead, living = thing(paper, "dead"), thing(paper, "living")
    child = thing(paper, "child", dead, living)

    paper.delete(meta.ref(dead))
    settle(paper, GARBAGE)

    assert owners_of(paper, child) == ["living"]


@pytest.mark.parametrize("end_was_seen", [True, False])
def test_an_owner_of_the_same_name_and_another_uid_is_another_owner(end_was_seen: bool) -> None:
    paper = Paper()
    first = thing(paper, "owner")
    child = thing(paper, "child", first)
    paper.delete(meta.ref(first))
    thing(paper, "owner")
    if not end_was_seen:
        paper.gone = Gone()

    settle(paper, GARBAGE)

    assert not paper.has(child)


def test_an_owner_whose_end_was_seen_is_not_asked_about() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)
    paper.delete(meta.ref(owner))

    view = GARBAGE.gather(paper.world(GARBAGE), meta.ref(child))

    assert view is not None
    assert GARBAGE.questions(view, Answers()) == ()


def test_an_owner_that_never_was_is_looked_up_and_its_dependent_collected() -> None:
    paper = Paper()
    child = thing(paper, "child", ownerReferences=[stranger()])

    settle(paper, GARBAGE)

    assert not paper.has(child)


def test_an_owner_that_memory_has_not_seen_yet_is_not_taken_for_gone() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)

    plan = planned(paper, GARBAGE, meta.ref(child), unseen=[meta.ref(owner)])

    assert plan.actions == ()


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("foo.example.com/v1", "Foo"), ("v1", "Foo"), ("v2", "ConfigMap")],
    ids=["unknown group", "unknown kind", "unknown version"],
)
def test_nothing_is_decided_about_owners_of_kinds_that_are_not_served(api_version: str, kind: str) -> None:
    paper = Paper()
    dead = thing(paper, "dead")
    child = thing(paper, "child", ownerReferences=[stranger("x", api_version, kind), meta.owner_ref(dead)])
    paper.delete(meta.ref(dead))

    settle(paper, GARBAGE)
    plan = planned(paper, GARBAGE, meta.ref(child))

    assert paper.has(child)
    assert len(owners_of(paper, child)) == 2
    assert plan.look_again is not None


def test_the_seen_end_of_an_owner_counts_even_when_its_kind_has_gone_with_it() -> None:
    paper = Paper()
    widget = thing(paper, "widget", what=WIDGET)
    child = thing(paper, "child", widget)
    paper.delete(meta.ref(widget))
    paper.kinds = type(paper.kinds)(kind for kind in paper.kinds if kind != WIDGET)

    settle(paper, GARBAGE)

    assert not paper.has(child)


# ── in the foreground ──


def test_an_owner_deleted_in_the_foreground_goes_after_what_blocks_it() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    held = thing(paper, "held", owner, blocks=True, finalizers=["ex.example.com/hold"])

    paper.delete(meta.ref(owner), IN_FOREGROUND)
    settle(paper, GARBAGE)

    assert names(paper) == {"owner", "held"}
    assert meta.is_deleting(paper.get(meta.ref(held)))

    paper.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(paper, GARBAGE)

    assert names(paper) == set()


def test_what_does_not_block_goes_too_and_holds_nobody_up() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    thing(paper, "held", owner, finalizers=["ex.example.com/hold"])

    paper.delete(meta.ref(owner), IN_FOREGROUND)
    settle(paper, GARBAGE)

    assert names(paper) == {"held"}


def test_what_has_dependents_of_its_own_is_deleted_in_the_foreground_in_turn() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner, blocks=True)
    thing(paper, "grandchild", child, blocks=True, finalizers=["ex.example.com/hold"])

    paper.delete(meta.ref(owner), IN_FOREGROUND)
    settle(paper, GARBAGE)

    assert names(paper) == {"owner", "child", "grandchild"}
    assert FOREGROUND in meta.finalizers(paper.get(meta.ref(child)))


def test_a_dependent_with_another_living_owner_stays_and_stops_blocking() -> None:
    paper = Paper()
    going, living = thing(paper, "going"), thing(paper, "living")
    child = thing(paper, "child", going, living, blocks=True)

    paper.delete(meta.ref(going), IN_FOREGROUND)
    settle(paper, GARBAGE)

    assert names(paper) == {"living", "child"}
    assert owners_of(paper, child) == ["living"]


def ring(paper: Paper, size: int) -> list[Made]:
    """Create objects that own one another in a circle, each blocking the next."""
    made = [thing(paper, "ring-0")]
    for number in range(1, size):
        made.append(thing(paper, f"ring-{number}", made[-1], blocks=True))
    closing = [meta.owner_ref(made[-1], blocks=True)]
    paper.patch(meta.ref(made[0]), {"metadata": {"ownerReferences": closing}})
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_circle_that_waits_for_itself_does_not_wait_for_ever(size: int) -> None:
    paper = Paper()
    first, *_ = ring(paper, size)

    paper.delete(meta.ref(first), IN_FOREGROUND)
    settle(paper, GARBAGE)

    assert names(paper) == set()


def test_a_circle_all_of_whose_members_were_deleted_at_once_comes_apart_too() -> None:
    paper = Paper()
    for one in ring(paper, 3):
        paper.delete(meta.ref(one), IN_FOREGROUND)

    settle(paper, GARBAGE)

    assert names(paper) == set()


# ── orphans ──


def test_orphans_stay_without_the_reference_and_their_owner_goes_last() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)

    paper.delete(meta.ref(owner), ORPHANED)
    settle(paper, GARBAGE)

    assert names(paper) == {"child"}
    assert owners_of(paper, child) == []
    assert [action.ref.name for action in paper.journal] == ["child", "owner"]


def test_an_owner_does_not_go_while_one_orphan_could_not_be_let_go() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)
    paper.delete(meta.ref(owner), ORPHANED)
    plan = planned(paper, GARBAGE, meta.ref(owner))

    assert [stage.even_after_failure for stage in plan.stages] == [False, False]
    assert [action.ref for action in plan.stages[0].actions] == [meta.ref(child)]
    assert [action.ref for action in plan.stages[1].actions] == [meta.ref(owner)]


@pytest.mark.parametrize(
    ("finalizer", "how"),
    [("orphan", ORPHANED), ("foregroundDeletion", IN_FOREGROUND), ("ex.example.com/hold", BACKGROUND)],
)
def test_what_is_collected_goes_the_way_its_own_finalizers_say(finalizer: str, how: Propagation) -> None:
    paper = Paper()
    child = thing(paper, "child", ownerReferences=[stranger()], finalizers=[finalizer])

    (deed,) = planned(paper, GARBAGE, meta.ref(child)).actions

    assert deed == Delete(ref=meta.ref(child), uid=meta.uid(child), version="1", propagation=how)


# ── namespaces and scopes ──


def test_an_owner_in_another_namespace_is_none_and_that_is_said_once() -> None:
    paper = Paper()
    owner = thing(paper, "owner", namespace="far")
    child = thing(paper, "child", owner)

    plan = planned(paper, GARBAGE, meta.ref(child))
    say, deed = plan.actions
    settle(paper, GARBAGE)

    assert isinstance(say, Emit)
    assert say.event["type"] == "Warning"
    assert say.event["reason"] == "OwnerRefInvalidNamespace"
    assert say.event["message"] == (
        f"ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {meta.uid(owner)}] "
        'does not exist in namespace "default"'
    )
    assert say.event["source"] == {"component": "garbage-collector-controller"}
    assert isinstance(deed, Delete)
    assert not paper.has(child)


def test_a_namespaced_object_may_belong_to_one_of_the_cluster() -> None:
    paper = Paper()
    owner = thing(paper, "owner", what=ROLE)
    child = thing(paper, "child", owner)
    settle(paper, GARBAGE)
    assert paper.has(child)

    paper.delete(meta.ref(owner))
    settle(paper, GARBAGE)

    assert not paper.has(child)


def test_a_cluster_scoped_object_that_names_a_namespaced_owner_is_left_alone_and_warned_about_once() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    role = thing(paper, "role", owner, what=ROLE)

    settle(paper, GARBAGE)
    first = list(paper.journal)
    settle(paper, GARBAGE)

    assert paper.has(role)
    assert [type(action) for action in first] == [Emit]
    assert first[0].ref.namespace == "default"
    assert paper.journal == first


# ── whom a change concerns ──


def test_a_change_of_status_concerns_nobody() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)
    changed = {**child, "status": {"phase": "Done"}}

    assert paper.concerned(GARBAGE, child, changed, paper.world(GARBAGE)) == []


def test_an_object_without_owners_concerns_nobody_when_it_appears() -> None:
    paper = Paper()
    lone = thing(paper, "lone")

    assert paper.concerned(GARBAGE, None, lone, paper.world(GARBAGE)) == []


def test_an_object_whose_owners_live_concerns_nobody_when_it_appears() -> None:
    paper = Paper()
    owner = thing(paper, "owner")
    child = thing(paper, "child", owner)

    assert paper.concerned(GARBAGE, None, child, paper.world(GARBAGE)) == []


def test_an_object_one_of_whose_owners_is_not_seen_concerns_itself_when_it_appears() -> None:
    paper = Paper()
    gone, living = thing(paper, "gone"), thing(paper, "living")
    paper.delete(meta.ref(gone))
    child = thing(paper, "child", living, gone)

    assert paper.concerned(GARBAGE, None, child, paper.world(GARBAGE)) == [meta.ref(child)]


def test_actions_name_what_they_were_decided_on() -> None:
    paper = Paper()
    dead, living = thing(paper, "dead"), thing(paper, "living")
    child = thing(paper, "child", dead, living)
    paper.delete(meta.ref(dead))

    (deed,) = planned(paper, GARBAGE, meta.ref(child)).actions

    assert isinstance(deed, Patch)
    assert (deed.uid, deed.version) == (meta.uid(child), meta.resource_version(child))


# ── what is true of every graph ──


@composite
def graphs(draw: DrawFn) -> tuple[Paper, list[Made]]:
    """Make any graph of owners, circles and strangers included."""
    paper = Paper()
    size = draw(integers(1, 7))
    made = [paper.create(make(CONFIG_MAP, f"m{number}")) for number in range(size)]
    for obj in made:
        refs = [
            meta.owner_ref(made[owner], blocks=draw(booleans()))
            for owner in draw(lists(integers(0, size - 1), max_size=3, unique=True))
        ]
        if draw(integers(0, 5)) == 0:
            refs.append(stranger(f"stranger-of-{meta.name(obj)}"))
        if refs:
            paper.patch(meta.ref(obj), {"metadata": {"ownerReferences": refs}})
    return paper, [paper.get(meta.ref(obj)) for obj in made]


def survivors(objects: list[Made], deleted: str | None, how: Propagation) -> set[str]:
    """Return who is left in the end, by the plainest rule there is: whoever has only dead owners dies."""
    refs = {meta.name(obj): {ref["name"] for ref in meta.owner_refs(obj)} for obj in objects}
    alive = set(refs)
    if deleted is not None:
        alive.discard(deleted)
        if how is ORPHANED:
            for owners in refs.values():
                owners.discard(deleted)
    while doomed := {name for name in alive if refs[name] and not refs[name] & alive}:
        alive -= doomed
    return alive


@given(graphs(), randoms(use_true_random=False), sampled_from(Propagation), integers(0, 6), integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_whoever_has_only_dead_owners_dies_in_any_order_and_whatever_crashes(
    graph: tuple[Paper, list[Made]], random: Random, how: Propagation, which: int, crash: int
) -> None:
    """
    Delete one object, stop after any number of writes, start again with nothing remembered.
    """
    paper, objects = graph
    settle(paper, GARBAGE, random=random)
    # What only had strangers for owners is gone by now; the story starts with the others.
    objects = [paper.get(meta.ref(obj)) for obj in objects if paper.has(obj)]
    if not objects:
        return
    target = objects[which % len(objects)]
    paper.delete(meta.ref(target), how)

    try:
        settle(paper, GARBAGE, random=random, crash_after=crash)
    except Crashed:
        settle(paper, GARBAGE, random=random)

    left = paper.listed(CONFIG_MAP)
    assert {meta.name(obj) for obj in left} == survivors(objects, meta.name(target), how)
    uids = {meta.uid(obj) for obj in left}
    assert all({ref["uid"] for ref in meta.owner_refs(obj)} <= uids for obj in left)
    assert not any(meta.is_deleting(obj) for obj in left)


@given(graphs(), randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_a_settled_world_gives_an_empty_plan(graph: tuple[Paper, list[Made]], random: Random) -> None:
    paper, _ = graph
    settle(paper, GARBAGE, random=random)

    for obj in paper.listed(CONFIG_MAP):
        plan = planned(paper, GARBAGE, meta.ref(obj))
        assert plan is None or plan.actions == ()


def test_an_object_that_is_not_there_is_nothing_to_decide_about() -> None:
    assert GARBAGE.gather(Paper().world(GARBAGE), Ref("v1", "ConfigMap", "default", "none")) is None
