"""Rollbacks and pins as plans, for the commands that all families share."""

import pytest

from lamina.core.crd.kinds import kinds_of
from lamina.core.model.plan import Patch, Plan
from lamina.errors import RevisionNotFound, SettingsError
from lamina.families.resourcegraph.commands.plans import pin, roll_back
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.labels import PIN, ROLLBACK, ROLLBACK_INPUT
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from tests.unit.families.resourcegraph.commands.objects import (
    GROUP,
    definition,
    input_revision,
    instance,
    revision,
)

APPLICATION = Kind(f"{GROUP}/v1alpha1", "Application", "applications", True)
KINDS = Kinds([*(kind for crd in definitions() for kind in kinds_of(crd)), APPLICATION])
RGD, APP = meta.ref(definition()), meta.ref(instance())
HISTORY = (revision(1), revision(2), revision(3), input_revision(10, 2), input_revision(11, 3))


def world(*objects: Made) -> Lister:
    indexers = {kind.group_kind: Indexer(kind) for kind in KINDS}
    for number, obj in enumerate((*objects, *HISTORY), 1):
        ref = meta.ref(obj)
        stored = meta.with_metadata(obj, resourceVersion=str(number), uid=meta.uid(obj) or f"u-{number}")
        indexers[GroupKind(ref.group, ref.kind)].put(stored)
    lister = Lister(DeletedUids())
    lister.set_indexers(KINDS, indexers)
    return lister


def annotations(plan: Plan) -> Made:
    (action,) = plan.actions
    assert isinstance(action, Patch)
    found: Made = action.patch["metadata"]["annotations"]
    return found


@pytest.mark.parametrize(
    ("ref", "to", "written"),
    [
        (RGD, 1, {ROLLBACK: "1"}),
        (RGD, None, {ROLLBACK: "2"}),
        (APP, 10, {ROLLBACK_INPUT: "10"}),
        (APP, None, {ROLLBACK_INPUT: "10"}),
    ],
)
def test_a_rollback_is_an_annotation_by_default_with_the_revision_before_the_current(
    ref: Ref, to: int | None, written: Made
) -> None:
    plan = roll_back(world(definition(currentRevision=3), instance()), ref, to)

    assert annotations(plan) == written


def test_a_plan_says_what_it_does() -> None:
    there = world(definition(currentRevision=3), instance())

    assert (
        roll_back(there, RGD, 2).because == "rolling back resourcegraphdefinition application to revision 2"
    )
    assert roll_back(there, APP, 10).because == "rolling back application default/my-app to input revision 10"
    assert pin(there, APP, 2).because == "pinning application default/my-app to RGD revision 2"


@pytest.mark.parametrize(("ref", "to"), [(RGD, 9), (APP, 9)])
def test_a_rollback_to_a_revision_that_does_not_exist_is_refused(ref: Ref, to: int) -> None:
    with pytest.raises(RevisionNotFound):
        roll_back(world(definition(), instance()), ref, to)


def test_a_pin_is_an_annotation_that_unpinning_removes() -> None:
    pinned = world(definition(), instance(annotations={PIN: "2"}))

    assert annotations(pin(world(definition(), instance()), APP, 2)) == {PIN: "2"}
    assert annotations(pin(pinned, APP, None)) == {PIN: None}
    assert pin(pinned, APP, 2).actions == ()
    assert pin(world(definition(), instance()), APP, None).actions == ()


def test_a_pin_to_a_revision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RevisionNotFound, match="no revision 9: the available revisions are 1, 2, 3"):
        pin(world(definition(), instance()), APP, 9)


def test_a_definition_has_no_pins_and_an_object_has_to_exist() -> None:
    with pytest.raises(SettingsError, match="has no pins: its instances have them"):
        pin(world(definition()), RGD, 2)
    with pytest.raises(SettingsError, match="does not exist"):
        roll_back(world(), APP, 1)
