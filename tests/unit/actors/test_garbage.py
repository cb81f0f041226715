"""Which objects are deleted with which owners."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn, booleans, composite, integers, lists, randoms, sampled_from

from lamina.actors.garbage import FOREGROUND, GARBAGE
from lamina.core.model.plan import Delete, Emit, Patch, Propagation
from lamina.core.model.queries import Answers
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, OwnerRef, Ref
from lamina.runtime.cache.indexer import DeletedUids
from lamina.simulation import Crashed, SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import CONFIG_MAP, ROLE, WIDGET, make

BACKGROUND, IN_FOREGROUND, ORPHANED = Propagation.BACKGROUND, Propagation.FOREGROUND, Propagation.ORPHAN


def thing(
    cluster: SimulatedCluster,
    name: str,
    *owners: Obj,
    blocks: bool = False,
    what: Kind = CONFIG_MAP,
    **more: Any,
) -> Made:
    """Create an object that these own."""
    refs: dict[str, Any] = {"ownerReferences": [meta.owner_ref(owner, blocks=blocks) for owner in owners]}
    return cluster.create(make(what, name, **(refs if owners else {}), **more))


def stranger(uid: str = "nobody", api_version: str = "v1", kind: str = "ConfigMap") -> OwnerRef:
    """Return a reference to an owner that never existed."""
    return OwnerRef(apiVersion=api_version, kind=kind, name="zzz", uid=uid)


def names(cluster: SimulatedCluster, what: Kind = CONFIG_MAP) -> set[str]:
    return {meta.name(obj) for obj in cluster.listed(what)}


def owners_of(cluster: SimulatedCluster, obj: Obj) -> list[str]:
    return [ref["name"] for ref in meta.owner_refs(cluster.get(meta.ref(obj)))]


def test_what_has_no_other_owner_goes_with_its_owner_and_so_do_its_dependents() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)
    thing(cluster, "grandchild", child)
    thing(cluster, "other")

    cluster.delete(meta.ref(owner))
    settle(cluster, GARBAGE)

    assert names(cluster) == {"other"}


def test_an_object_with_a_living_owner_only_loses_the_reference_to_the_dead_one() -> None:
    cluster = SimulatedCluster()
    dead, living = thing(cluster, "dead"), thing(cluster, "living")
    child = thing(cluster, "child", dead, living)

    cluster.delete(meta.ref(dead))
    settle(cluster, GARBAGE)

    assert owners_of(cluster, child) == ["living"]


@pytest.mark.parametrize("end_was_seen", [True, False])
def test_an_owner_of_the_same_name_and_another_uid_is_another_owner(end_was_seen: bool) -> None:
    cluster = SimulatedCluster()
    first = thing(cluster, "owner")
    child = thing(cluster, "child", first)
    cluster.delete(meta.ref(first))
    thing(cluster, "owner")
    if not end_was_seen:
        cluster.deleted_uids = DeletedUids()

    settle(cluster, GARBAGE)

    assert not cluster.has(child)


def test_an_owner_whose_end_was_seen_is_not_asked_about() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)
    cluster.delete(meta.ref(owner))

    view = GARBAGE.gather(cluster.world(GARBAGE), meta.ref(child))

    assert view is not None
    assert GARBAGE.queries(view, Answers()) == ()


def test_an_owner_that_never_was_is_looked_up_and_its_dependent_collected() -> None:
    cluster = SimulatedCluster()
    child = thing(cluster, "child", ownerReferences=[stranger()])

    settle(cluster, GARBAGE)

    assert not cluster.has(child)


def test_an_owner_that_memory_has_not_seen_yet_is_not_taken_for_gone() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)

    plan = planned(cluster, GARBAGE, meta.ref(child), unseen=[meta.ref(owner)])

    assert plan.actions == ()


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("foo.example.com/v1", "Foo"), ("v1", "Foo"), ("v2", "ConfigMap")],
    ids=["unknown group", "unknown kind", "unknown version"],
)
def test_nothing_is_decided_about_owners_of_kinds_that_are_not_served(api_version: str, kind: str) -> None:
    cluster = SimulatedCluster()
    dead = thing(cluster, "dead")
    child = thing(cluster, "child", ownerReferences=[stranger("x", api_version, kind), meta.owner_ref(dead)])
    cluster.delete(meta.ref(dead))

    settle(cluster, GARBAGE)
    plan = planned(cluster, GARBAGE, meta.ref(child))

    assert cluster.has(child)
    assert len(owners_of(cluster, child)) == 2
    assert plan.requeue_after is not None


def test_the_seen_end_of_an_owner_counts_even_when_its_kind_has_gone_with_it() -> None:
    cluster = SimulatedCluster()
    widget = thing(cluster, "widget", what=WIDGET)
    child = thing(cluster, "child", widget)
    cluster.delete(meta.ref(widget))
    cluster.kinds = type(cluster.kinds)(kind for kind in cluster.kinds if kind != WIDGET)

    settle(cluster, GARBAGE)

    assert not cluster.has(child)


# ── in the foreground ──


def test_an_owner_deleted_in_the_foreground_goes_after_what_blocks_it() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    held = thing(cluster, "held", owner, blocks=True, finalizers=["ex.example.com/hold"])

    cluster.delete(meta.ref(owner), IN_FOREGROUND)
    settle(cluster, GARBAGE)

    assert names(cluster) == {"owner", "held"}
    assert meta.is_deleting(cluster.get(meta.ref(held)))

    cluster.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(cluster, GARBAGE)

    assert names(cluster) == set()


def test_what_does_not_block_goes_too_and_delays_nothing() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    thing(cluster, "held", owner, finalizers=["ex.example.com/hold"])

    cluster.delete(meta.ref(owner), IN_FOREGROUND)
    settle(cluster, GARBAGE)

    assert names(cluster) == {"held"}


def test_what_has_dependents_of_its_own_is_deleted_in_the_foreground_in_turn() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner, blocks=True)
    thing(cluster, "grandchild", child, blocks=True, finalizers=["ex.example.com/hold"])

    cluster.delete(meta.ref(owner), IN_FOREGROUND)
    settle(cluster, GARBAGE)

    assert names(cluster) == {"owner", "child", "grandchild"}
    assert FOREGROUND in meta.finalizers(cluster.get(meta.ref(child)))


def test_a_dependent_with_another_living_owner_stays_and_stops_blocking() -> None:
    cluster = SimulatedCluster()
    going, living = thing(cluster, "going"), thing(cluster, "living")
    child = thing(cluster, "child", going, living, blocks=True)

    cluster.delete(meta.ref(going), IN_FOREGROUND)
    settle(cluster, GARBAGE)

    assert names(cluster) == {"living", "child"}
    assert owners_of(cluster, child) == ["living"]


def ring(cluster: SimulatedCluster, size: int) -> list[Made]:
    """Create objects that own one another in a circle, each blocking the next."""
    made = [thing(cluster, "ring-0")]
    for number in range(1, size):
        made.append(thing(cluster, f"ring-{number}", made[-1], blocks=True))
    closing = [meta.owner_ref(made[-1], blocks=True)]
    cluster.patch(meta.ref(made[0]), {"metadata": {"ownerReferences": closing}})
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_circle_that_waits_for_itself_does_not_wait_for_ever(size: int) -> None:
    cluster = SimulatedCluster()
    first, *_ = ring(cluster, size)

    cluster.delete(meta.ref(first), IN_FOREGROUND)
    settle(cluster, GARBAGE)

    assert names(cluster) == set()


def test_a_circle_all_of_whose_members_were_deleted_at_once_comes_apart_too() -> None:
    cluster = SimulatedCluster()
    for one in ring(cluster, 3):
        cluster.delete(meta.ref(one), IN_FOREGROUND)

    settle(cluster, GARBAGE)

    assert names(cluster) == set()


# ── orphans ──


def test_orphans_stay_without_the_reference_and_their_owner_goes_last() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)

    cluster.delete(meta.ref(owner), ORPHANED)
    settle(cluster, GARBAGE)

    assert names(cluster) == {"child"}
    assert owners_of(cluster, child) == []
    assert [action.ref.name for action in cluster.journal] == ["child", "owner"]


def test_an_owner_does_not_go_while_one_orphan_could_not_be_let_go() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)
    cluster.delete(meta.ref(owner), ORPHANED)
    plan = planned(cluster, GARBAGE, meta.ref(owner))

    assert [stage.run_after_failure for stage in plan.stages] == [False, False]
    assert [action.ref for action in plan.stages[0].actions] == [meta.ref(child)]
    assert [action.ref for action in plan.stages[1].actions] == [meta.ref(owner)]


@pytest.mark.parametrize(
    ("finalizer", "how"),
    [("orphan", ORPHANED), ("foregroundDeletion", IN_FOREGROUND), ("ex.example.com/hold", BACKGROUND)],
)
def test_what_is_collected_goes_the_way_its_own_finalizers_say(finalizer: str, how: Propagation) -> None:
    cluster = SimulatedCluster()
    child = thing(cluster, "child", ownerReferences=[stranger()], finalizers=[finalizer])

    (write,) = planned(cluster, GARBAGE, meta.ref(child)).actions

    assert write == Delete(ref=meta.ref(child), uid=meta.uid(child), version="1", propagation=how)


# ── namespaces and scopes ──


def test_an_owner_in_another_namespace_is_none_and_that_is_said_once() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner", namespace="far")
    child = thing(cluster, "child", owner)

    plan = planned(cluster, GARBAGE, meta.ref(child))
    say, write = plan.actions
    settle(cluster, GARBAGE)

    assert isinstance(say, Emit)
    assert say.event["type"] == "Warning"
    assert say.event["reason"] == "OwnerRefInvalidNamespace"
    assert say.event["message"] == (
        f"ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {meta.uid(owner)}] "
        'does not exist in namespace "default"'
    )
    assert say.event["source"] == {"component": "garbage-collector-controller"}
    assert isinstance(write, Delete)
    assert not cluster.has(child)


def test_a_namespaced_object_may_belong_to_one_of_the_cluster() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner", what=ROLE)
    child = thing(cluster, "child", owner)
    settle(cluster, GARBAGE)
    assert cluster.has(child)

    cluster.delete(meta.ref(owner))
    settle(cluster, GARBAGE)

    assert not cluster.has(child)


def test_a_cluster_scoped_object_that_names_a_namespaced_owner_is_left_alone_and_warned_about_once() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    role = thing(cluster, "role", owner, what=ROLE)

    settle(cluster, GARBAGE)
    first = list(cluster.journal)
    settle(cluster, GARBAGE)

    assert cluster.has(role)
    assert [type(action) for action in first] == [Emit]
    assert first[0].ref.namespace == "default"
    assert cluster.journal == first


# What a change enqueues


def test_a_change_of_status_enqueues_nothing() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)
    changed = {**child, "status": {"phase": "Done"}}

    assert cluster.keys_for(GARBAGE, child, changed, cluster.world(GARBAGE)) == []


def test_an_object_without_owners_enqueues_nothing_when_it_appears() -> None:
    cluster = SimulatedCluster()
    lone = thing(cluster, "lone")

    assert cluster.keys_for(GARBAGE, None, lone, cluster.world(GARBAGE)) == []


def test_an_object_with_solid_owners_enqueues_nothing_when_it_appears() -> None:
    cluster = SimulatedCluster()
    owner = thing(cluster, "owner")
    child = thing(cluster, "child", owner)

    assert cluster.keys_for(GARBAGE, None, child, cluster.world(GARBAGE)) == []


def test_an_object_one_of_whose_owners_is_not_seen_concerns_itself_when_it_appears() -> None:
    cluster = SimulatedCluster()
    gone, living = thing(cluster, "gone"), thing(cluster, "living")
    cluster.delete(meta.ref(gone))
    child = thing(cluster, "child", living, gone)

    assert cluster.keys_for(GARBAGE, None, child, cluster.world(GARBAGE)) == [meta.ref(child)]


def test_actions_name_what_they_were_decided_on() -> None:
    cluster = SimulatedCluster()
    dead, living = thing(cluster, "dead"), thing(cluster, "living")
    child = thing(cluster, "child", dead, living)
    cluster.delete(meta.ref(dead))

    (write,) = planned(cluster, GARBAGE, meta.ref(child)).actions

    assert isinstance(write, Patch)
    assert (write.uid, write.version) == (meta.uid(child), meta.resource_version(child))


# ── what is true of every graph ──


@composite
def graphs(draw: DrawFn) -> tuple[SimulatedCluster, list[Made]]:
    """Make any graph of owners, circles and strangers included."""
    cluster = SimulatedCluster()
    size = draw(integers(1, 7))
    made = [cluster.create(make(CONFIG_MAP, f"m{number}")) for number in range(size)]
    for obj in made:
        refs = [
            meta.owner_ref(made[owner], blocks=draw(booleans()))
            for owner in draw(lists(integers(0, size - 1), max_size=3, unique=True))
        ]
        if draw(integers(0, 5)) == 0:
            refs.append(stranger(f"stranger-of-{meta.name(obj)}"))
        if refs:
            cluster.patch(meta.ref(obj), {"metadata": {"ownerReferences": refs}})
    return cluster, [cluster.get(meta.ref(obj)) for obj in made]


def survivors(objects: list[Made], deleted: str | None, how: Propagation) -> set[str]:
    """Return the objects that are left in the end: those with only absent owners are deleted."""
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
def test_an_object_with_only_absent_owners_is_deleted_in_any_order_and_whatever_crashes(
    graph: tuple[SimulatedCluster, list[Made]], random: Random, how: Propagation, which: int, crash: int
) -> None:
    """
    Delete one object, stop after any number of writes, start again with nothing remembered.
    """
    cluster, objects = graph
    settle(cluster, GARBAGE, random=random)
    # What only had strangers for owners is gone by now; the story starts with the others.
    objects = [cluster.get(meta.ref(obj)) for obj in objects if cluster.has(obj)]
    if not objects:
        return
    target = objects[which % len(objects)]
    cluster.delete(meta.ref(target), how)

    try:
        settle(cluster, GARBAGE, random=random, crash_after=crash)
    except Crashed:
        settle(cluster, GARBAGE, random=random)

    left = cluster.listed(CONFIG_MAP)
    assert {meta.name(obj) for obj in left} == survivors(objects, meta.name(target), how)
    uids = {meta.uid(obj) for obj in left}
    assert all({ref["uid"] for ref in meta.owner_refs(obj)} <= uids for obj in left)
    assert not any(meta.is_deleting(obj) for obj in left)


@given(graphs(), randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_a_settled_world_gives_an_empty_plan(
    graph: tuple[SimulatedCluster, list[Made]], random: Random
) -> None:
    cluster, _ = graph
    settle(cluster, GARBAGE, random=random)

    for obj in cluster.listed(CONFIG_MAP):
        plan = planned(cluster, GARBAGE, meta.ref(obj))
        assert plan is None or plan.actions == ()


def test_an_object_that_is_not_there_is_nothing_to_decide_about() -> None:
    assert (
        GARBAGE.gather(SimulatedCluster().world(GARBAGE), Ref("v1", "ConfigMap", "default", "none")) is None
    )
