"""What is done next about one object of a phase."""

from typing import Any

import pytest
from msgspec.structs import replace

from lamina.core.live_check import LiveCheck
from lamina.core.model.plan import Apply, Create, Patch
from lamina.core.model.queries import Answers, DryRun, Found, Read, Refused, Unserved
from lamina.core.ownership.handover import Adoption, Handover, Holder
from lamina.core.ownership.owner_record import OwnerRecord
from lamina.core.phases.manifest import Manifest
from lamina.core.phases.object_step import ObjectStep, decide, described, gains, observe
from lamina.core.phases.owner import PhaseOwner
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.core.phases.objects import (
    BROKEN,
    MARK,
    NODE,
    READY,
    REVISION,
    Server,
    body,
    live,
    manifest,
    owner,
    owner_object,
    refuses,
)


def step(
    who: PhaseOwner, found: Obj | None, wanted: Manifest | None = None, server: Server | None = None
) -> ObjectStep:
    """Return what is decided about an object once everything that is asked has been answered."""
    observed = observe(who, wanted if wanted is not None else manifest(), found)
    answering = server or Server(objects=[who.obj])
    decided = answering.answers(lambda answers: decide(who, observed, answers))
    assert isinstance(decided, ObjectStep)
    return decided


# What is observed

NEVER, ORPHANS, ANY = Adoption.NEVER, Adoption.ORPHANS, Adoption.ANY


@pytest.mark.parametrize(
    ("found", "adoption", "handover", "holder"),
    [
        (None,                       NEVER,   Handover.CREATE,  Holder.ABSENT),
        (live(controller=5),         NEVER,   Handover.KEEP,    Holder.SELF),
        (live(controller=4),         NEVER,   Handover.TAKE,    Holder.SIBLING),
        (live(controller=6),         NEVER,   Handover.YIELD,   Holder.SIBLING),
        (live(controller=4, revision=9), NEVER, Handover.TAKE,    Holder.SIBLING),
        (live(controller=6, revision=0), NEVER, Handover.YIELD,   Holder.SIBLING),
        (live(controller=7, revision=1), NEVER, Handover.COLLIDE, Holder.SIBLING),
        (live(controller=None),      NEVER,   Handover.COLLIDE, Holder.NONE),
        (live(controller=None),      ORPHANS, Handover.TAKE,    Holder.NONE),
        (live(controller="other"),   ORPHANS, Handover.COLLIDE, Holder.OTHER),
        (live(controller="other"),   ANY,     Handover.TAKE,    Holder.OTHER),
        (live(controller=5),         None,    Handover.COLLIDE, Holder.SELF),
        (None,                       None,    Handover.COLLIDE, Holder.ABSENT),
    ],
)  # fmt: skip
def test_who_controls_an_object_decides(
    found: Obj | None, adoption: Adoption | None, handover: Handover, holder: Holder
) -> None:
    who = owner(siblings={4: 4, 6: 6, 7: 5})

    observed = observe(who, manifest(adoption=adoption), found)

    assert observed.handover is handover
    assert who.holder(found) is holder
    assert observed.is_controlled == (holder is Holder.SELF)
    assert observed.is_handed_over == (handover is Handover.YIELD)


def test_an_owner_may_take_over_more_than_its_manifests_say() -> None:
    found = live(controller="other")

    assert observe(owner(), manifest(), found).handover is Handover.COLLIDE
    assert observe(owner(adoption=ANY), manifest(), found).handover is Handover.TAKE
    assert observe(owner(adoption=ANY), manifest(adoption=None), found).handover is Handover.TAKE


def test_what_a_revision_that_ended_controls_is_taken_from_it_though_it_is_newer() -> None:
    who = owner(siblings=[6], ended=[6])

    assert who.number_of(live(controller=6)) == 0
    assert observe(who, manifest(), live(controller=6)).handover is Handover.TAKE


def test_the_number_on_an_object_counts_where_that_of_its_controller_is_not_known() -> None:
    who = owner(siblings={4: 0})

    assert observe(who, manifest(), live(controller=4)).handover is Handover.TAKE
    assert observe(who, manifest(), live(controller=4, revision=6)).handover is Handover.YIELD
    assert observe(who, manifest(), live(controller=4, annotations={REVISION: "x"})).handover is Handover.TAKE


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        pytest.param(live(controller=None, owners=[4], revision=6), True, id="left by one that is gone"),
        pytest.param(live(controller=None, owners=[5], revision=6), True, id="that had it from this one"),
        pytest.param(live(controller=None, owners=[4], revision=8), True, id="left by one that has ended"),
        pytest.param(live(controller=None, owners=[4], revision=7), False, id="written by one that lives"),
        pytest.param(live(controller=None, owners=[5], revision=5), False, id="written by this one"),
        pytest.param(live(controller=None, owners=[4], revision=5), True, id="with an edited number"),
        pytest.param(live(controller=None, owners=[4, 7], revision=9), False, id="that a newer one had, too"),
        pytest.param(live(controller=None, owners=[3], revision=6), False, id="of another lineage"),
        pytest.param(live(controller=None, revision=6), False, id="without owners"),
        pytest.param(live(controller=None, owners=[4]), False, id="without a mark"),
    ],
)
def test_what_a_revision_left_without_a_controller_goes_back_into_its_lineage(
    found: Obj, taken: bool
) -> None:
    who = owner(siblings=[4, 7, 8], ended=[8])

    observed = observe(who, manifest(), found)

    assert observed.handover is (Handover.TAKE if taken else Handover.COLLIDE)
    assert who.holder(found) is (Holder.SIBLING if taken else Holder.NONE)


@pytest.mark.parametrize("adoption", [NEVER, ORPHANS, ANY])
def test_a_controller_that_is_recorded_in_another_way_is_one_all_the_same(adoption: Adoption) -> None:
    record = OwnerRecord("ex.com/owners")
    there = record.taken(live(controller=None), None, owner_object(4))
    here = live(controller=4)
    expected = Handover.TAKE if adoption is ANY else Handover.COLLIDE

    for who, found in ((owner(siblings=[4]), there), (owner(siblings=[4], record=record), here)):
        observed = observe(who, manifest(adoption=adoption), found)
        assert who.holder(found) is Holder.OTHER
        assert observed.handover is expected
        assert expected is Handover.TAKE or "Stack stack-4 controls it" in observed.collision


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (live(controller=None), "refusing adoption, not owned by previous revision: it exists and has no controller"),
        (live(controller="other"), "refusing adoption, not owned by previous revision: Other other controls it"),
        (live(controller=6), "revision collision: Stack stack-6 has revision number 5, too"),
        (live(controller=4), ""),
    ],
)  # fmt: skip
def test_a_collision_says_who_is_in_the_way(found: Obj, words: str) -> None:
    assert observe(owner(siblings={4: 4, 6: 5}), manifest(), found).collision == words


@pytest.mark.parametrize(
    ("found", "because"),
    [
        (None, "not found"),
        (live(conditions=[READY], deleting=True), "is being deleted"),
        (live(conditions=[BROKEN]), '.status.condition["Ready"] is False'),
        (live(), "missing .status.conditions"),
        (live(conditions=[READY]), ""),
    ],
)
def test_an_object_is_probed_as_it_is(found: Obj | None, because: str) -> None:
    observed = observe(owner(probed=True), manifest(), found)

    assert observed.result.because == because
    assert observed.result.is_healthy == (not because)
    assert observed.gates == bool(because)


def test_an_object_that_a_newer_revision_has_is_not_waited_for() -> None:
    observed = observe(owner(siblings=[6], probed=True), manifest(), live(controller=6, conditions=[BROKEN]))

    assert not observed.result.is_healthy
    assert not observed.gates


def test_failing_objects_are_described_with_their_reasons() -> None:
    who = owner(probed=True)
    failing = [observe(who, manifest("a"), None), observe(who, manifest("b"), live("b", conditions=[BROKEN]))]

    assert described(failing) == (
        'ConfigMap team/a: not found, ConfigMap team/b: .status.condition["Ready"] is False'
    )


# Creation


def test_an_object_that_is_missing_is_created_with_its_marks_and_its_owner() -> None:
    made = step(owner(), None)

    assert isinstance(made.action, Create)
    metadata = made.action.obj["metadata"]
    assert metadata["labels"] == {MARK: "True", "team": "blue"}
    assert metadata["annotations"] == {REVISION: "5"}
    assert metadata["namespace"] == "team"
    assert [(one["uid"], one["controller"]) for one in metadata["ownerReferences"]] == [("uid-5", True)]
    assert made.action.obj["data"] == {"k": "v"}
    assert made.moves_control
    assert made.changes_content


def test_the_status_of_a_manifest_is_not_written() -> None:
    stated = {**body(labels={"app": "web"}, annotations={"x": "y"}), "status": {"phase": "Done"}}

    made = step(owner(), None, manifest(obj=stated))

    assert isinstance(made.action, Create)
    assert "status" not in made.action.obj
    assert meta.labels(made.action.obj)["app"] == "web"
    assert meta.annotations(made.action.obj)["x"] == "y"


def test_an_object_of_another_cluster_has_its_owner_in_an_annotation() -> None:
    who = owner(record=OwnerRecord("ex.com/owners"), cluster="east")

    made = step(who, None)

    assert isinstance(made.action, Create)
    assert made.action.cluster == "east"
    assert not meta.owner_refs(made.action.obj)
    assert "uid-5" in meta.annotations(made.action.obj)["ex.com/owners"]


def test_a_dry_run_and_the_live_reads_are_asked_together() -> None:
    who = owner(checks=(LiveCheck(cached=owner_object(5)),))

    asked = decide(who, observe(who, manifest(), None), Answers())

    assert [type(one) for one in asked.queries] == [Read, DryRun]
    assert asked.action is None


@pytest.mark.parametrize(
    ("current", "creates"),
    [
        ([owner_object(5)], True),
        ([owner_object(5, deleting=True)], False),
        ([{**owner_object(5), "metadata": {**owner_object(5)["metadata"], "generation": 2}}], False),
        ([], False),
    ],
    ids=["as it was", "it is being deleted", "it has another spec", "it is gone"],
)
def test_nothing_is_created_before_a_live_read_confirms_the_owner(current: list[Obj], creates: bool) -> None:
    who = owner(checks=(LiveCheck(cached=owner_object(5)),))

    assert (step(who, None, server=Server(objects=current)).action is not None) == creates


@pytest.mark.parametrize(("holder", "creates"), [(6, False), (4, True), (5, True), (None, True)])
def test_nothing_is_gained_once_a_newer_revision_has_an_object_of_another_phase(
    holder: int | None, creates: bool
) -> None:
    who = owner(siblings=[4, 6], shared=(Read(manifest("b").ref("")),))

    made = step(who, None, server=Server(objects=[live("b", controller=holder)]))

    assert (made.action is not None) == creates


@pytest.mark.parametrize(("uid", "gained"), [("uid-6", False), ("uid of one after it", True)])
def test_only_a_controller_that_still_exists_is_a_revision_that_a_cache_lacks(uid: str, gained: bool) -> None:
    known = owner(adoption=Adoption.ANY)
    who = replace(known, siblings=replace(known.siblings, links=lambda one: meta.name(one) == "stack-6"))
    there = meta.with_metadata(owner_object(6), uid=uid)

    taken = step(who, live(controller=6), server=Server(objects=[who.obj, there]))

    assert (taken.action is not None) == gained


@pytest.mark.parametrize(
    ("fields", "found", "gained"),
    [
        ({}, None, True),
        ({}, live(controller=4), True),
        ({"creates": False}, None, False),
        ({"creates": False}, live(controller=4), False),
        ({"taken": ["a"]}, None, False),
        ({"taken": ["b"]}, None, True),
        ({}, live(controller=6), False),
        ({}, live(controller=5), False),
    ],
)
def test_what_is_missing_or_older_is_gained_unless_a_newer_revision_has_it(
    fields: Made, found: Obj | None, gained: bool
) -> None:
    who = owner(siblings=[4, 6], **fields)

    assert gains(who, observe(who, manifest(), found)) == gained


# Take-over


def test_an_object_is_taken_over_in_one_apply_at_the_version_that_was_seen() -> None:
    taken = step(owner(siblings=[4]), live(controller=4))

    assert isinstance(taken.action, Apply)
    metadata = taken.action.obj["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-of-a", "7")
    assert metadata["annotations"][REVISION] == "5"
    assert {one["uid"]: one.get("controller", False) for one in metadata["ownerReferences"]} == {
        "uid-4": False,
        "uid-5": True,
    }
    assert taken.action.force
    assert taken.action.manager == "ex"
    assert taken.moves_control


# What is kept


def applied(**fields: Any) -> Made:
    """Return a live object as the owner has applied it."""
    return live(
        labels={MARK: "True", "team": "blue"},
        managedFields=[
            {"manager": "ex", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:ownerReferences": {}}}}
        ],
        **fields,
    )


def test_a_dry_run_that_changes_nothing_leads_to_no_write() -> None:
    found = applied()

    kept = step(owner(), found, server=Server(judges=lambda asked: Found(found)))

    assert kept.action is None
    assert not kept.moves_control
    assert not kept.gates


def test_what_differs_is_applied_again() -> None:
    found = {**applied(), "data": {"k": "drifted"}}

    kept = step(owner(), found)

    assert isinstance(kept.action, Apply)
    assert kept.action.obj["data"] == {"k": "v"}
    assert kept.changes_content
    assert not kept.moves_control


@pytest.mark.parametrize(("value", "kept"), [("upstream", True), ("other", False)])
def test_a_label_that_is_tolerated_stays_as_long_as_it_has_that_value(value: str, kept: bool) -> None:
    found = {**applied(), "data": {}}
    found["metadata"]["labels"]["made-by"] = value

    action = step(owner(), found).action

    assert isinstance(action, Apply)
    assert ("made-by" in meta.labels(action.obj)) == kept


def test_a_take_over_removes_a_label_that_is_tolerated() -> None:
    found = live(controller=4, labels={MARK: "True", "made-by": "upstream"})

    action = step(owner(siblings=[4]), found).action

    assert isinstance(action, Apply)
    assert "made-by" not in meta.labels(action.obj)


@pytest.mark.parametrize("manager", ["ex", "old-ex"])
def test_what_was_created_becomes_what_was_applied(manager: str) -> None:
    fields: Made = {"f:data": {"f:k": {}}}
    found = live(managedFields=[{"manager": manager, "operation": "Update", "fieldsV1": fields}])

    merged = step(owner(), found).action

    assert isinstance(merged, Patch)
    [entry] = merged.patch["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("ex", "Apply")


def test_a_patch_of_managed_fields_is_no_change_of_content() -> None:
    found = live(managedFields=[{"manager": "old-ex", "operation": "Update", "fieldsV1": {}}])

    assert not step(owner(), found).changes_content


# What a server refuses


def test_what_a_server_refuses_is_a_violation() -> None:
    refused = step(owner(), None, server=Server(judges=refuses(422, "spec.x: unknown")))

    assert refused.violation == "spec.x: unknown"
    assert refused.action is None


def test_a_refusal_of_something_that_exists_by_now_is_none() -> None:
    refused = step(owner(), None, server=Server(objects=[live()], judges=refuses(422)))

    assert refused.violation == ""
    assert refused.action is None


def test_a_conflict_leads_to_the_next_pass_and_is_no_violation() -> None:
    refused = step(owner(siblings=[4]), live(controller=4), server=Server(judges=refuses(409)))

    assert refused.violation == ""
    assert refused.action is None


def test_a_refusal_that_may_be_old_is_asked_again() -> None:
    server = Server(judges=lambda asked: None if asked.fresh else Refused(422, "not yet"))

    taken = step(owner(siblings=[4]), live(controller=4), server=server)

    assert isinstance(taken.action, Apply)
    assert [one.fresh for one in server.asked if isinstance(one, DryRun)] == [False, True]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (manifest(), 'namespace "team" not found; create it in an earlier phase'),
        (manifest(obj=body(kind=NODE)), "its kind is not served any more"),
    ],
    ids=["namespaced", "cluster-scoped"],
)
def test_an_object_that_cannot_be_created_says_what_is_missing(wanted: Manifest, words: str) -> None:
    refused = step(owner(), None, wanted, Server(judges=lambda asked: Unserved()))

    assert refused.violation == words
