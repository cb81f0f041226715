"""Rollbacks and pins: what is written, and when and how their result is recognized."""

from typing import Any

import pytest

from lamina.core.model.revision_commands import AnnotationEdit, Result, Wait
from lamina.errors import SettingsError
from lamina.families.resourcegraph.commands.requests import pin, rollback
from lamina.families.resourcegraph.labels import (
    PIN,
    RECONCILE,
    ROLLBACK,
    ROLLBACK_INPUT,
    ROLLBACK_SCOPE,
    UPDATE_POLICY,
)
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.commands.objects import (
    content,
    definition,
    facts,
    input_revision,
    instance,
    revision,
)

pytestmark = pytest.mark.check("RG-108")

NEW, SETTLED, LATE = Wait.JUST_CHANGED, Wait.SETTLED, Wait.TIMED_OUT


def condition(name: str, status: str, reason: str, message: str, generation: int = 1) -> Made:
    return {
        "type": name,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def rolled_back(status: str, reason: str, message: str, generation: int = 1) -> Made:
    return condition("RollbackSucceeded", status, reason, message, generation)


def resolved(status: str, reason: str, message: str) -> Made:
    return condition("RevisionResolved", status, reason, message)


def annotated(obj: Made, generation: int = 1, **changes: Any) -> Made:
    metadata = {**obj["metadata"], "generation": generation, "annotations": changes.pop("annotations", {})}
    return {**obj, "metadata": metadata, **changes}


CREATED = rolled_back("True", "RolledBack", "Created revision 4 (content from revision 2)", 2)
MISSING = rolled_back("False", "RevisionNotFound", "there is no revision 9")
NO_CHANGE = rolled_back("True", "NoChange", "revision 2 has the content of the current revision 3")


def definition_rollback(*before: Made, to: int = 2, instances: tuple[Made, ...] = ()) -> AnnotationEdit:
    owner = definition(currentRevision=3, conditions=list(before))
    kept = (revision(1, content(1)), revision(2, content(2)), revision(3, content(3)))
    return rollback(facts(owner, *kept, instances=instances), to, None)


def test_a_rollback_of_a_definition_annotates_it() -> None:
    edit = definition_rollback()

    assert edit.annotations == {ROLLBACK: "2"}
    assert edit.announced == "Rolling back to revision 2..."


def test_a_rollback_of_an_instance_annotates_it() -> None:
    edit = rollback(facts(instance(), input_revision(10, 2)), None, 10)

    assert edit.annotations == {ROLLBACK_INPUT: "10"}
    assert edit.announced == "Rolling back to input revision 10..."


@pytest.mark.parametrize(("to", "to_input"), [(None, None), (None, 2), (2, 2)])
def test_a_definition_is_rolled_back_to_a_revision_only(to: int | None, to_input: int | None) -> None:
    with pytest.raises(SettingsError, match="^rgd/application is rolled back with --to-revision N$"):
        rollback(facts(definition()), to, to_input)
    with pytest.raises(SettingsError, match="^application/my-app is rolled back with --to-input-revision N$"):
        rollback(facts(instance()), to_input, to)


def test_a_rollback_has_a_result_once_its_annotation_is_gone_and_its_condition_is_there() -> None:
    edit = definition_rollback()
    conditions = {"conditions": [CREATED]}

    assert edit.result(annotated(definition(), annotations={ROLLBACK: "2"}), SETTLED) is None
    assert edit.result(annotated(definition(), 2), SETTLED) is None
    done = edit.result(annotated(definition(), 2, status=conditions), NEW)
    assert done == Result(
        lines=("Created revision 4 (content from revision 2)", "0 instances will reconcile to new revision")
    )


@pytest.mark.parametrize(
    ("annotations", "current", "moves"),
    [
        ({}, 3, True),
        ({}, 1, True),
        ({}, 2, False),
        # Where the status is lost, it is taken to be on the current revision.
        ({}, 0, True),
        ({UPDATE_POLICY: "Auto"}, 3, True),
        ({UPDATE_POLICY: "Manual"}, 3, False),
        ({UPDATE_POLICY: "Paused"}, 3, False),
        ({RECONCILE: "suspended"}, 3, False),
        ({PIN: "3"}, 3, False),
    ],
)
def test_instances_are_counted_that_follow_and_get_other_content(
    annotations: Made, current: int, moves: bool
) -> None:
    one = instance(annotations=annotations, currentRGDRevision=current)

    edit = definition_rollback(instances=(one,))

    done = edit.result(annotated(definition(), 2, status={"conditions": [CREATED]}), NEW)
    assert done is not None
    text = "1 instance will" if moves else "0 instances will"
    assert done.lines[1] == f"{text} reconcile to new revision"


def test_instances_that_have_equal_content_or_are_being_deleted_are_not_counted() -> None:
    leaving = instance(currentRGDRevision=3)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    owner = definition(currentRevision=3)
    kept = (revision(1, content(2)), revision(2, content(2)), revision(3, content(3)))
    there = (leaving, instance("b", currentRGDRevision=1), *(instance(f"c{one}") for one in range(47)))

    edit = rollback(facts(owner, *kept, instances=there), 2, None)

    done = edit.result(annotated(owner, 2, status={"conditions": [CREATED]}), NEW)
    assert done is not None
    assert done.lines[1] == "47 instances will reconcile to new revision"


@pytest.mark.parametrize(
    ("reported", "result"),
    [
        (MISSING, Result(error="there is no revision 9")),
        (NO_CHANGE, Result(lines=("revision 2 has the content of the current revision 3",))),
        (rolled_back("Unknown", "RollingBack", "restoring"), None),
    ],
)
def test_a_rollback_fails_or_changes_nothing_with_the_message_of_the_condition(
    reported: Made, result: Result | None
) -> None:
    found = definition_rollback().result(annotated(definition(), status={"conditions": [reported]}), NEW)

    assert found == result


@pytest.mark.parametrize(
    ("before", "generation", "wait", "is_result"),
    [
        # It may be about an earlier rollback, until nothing changes any more.
        (MISSING, 1, NEW, False),
        (MISSING, 1, SETTLED, True),
        (NO_CHANGE, 1, SETTLED, True),
        # The content has been restored since, and is not published yet.
        (MISSING, 2, SETTLED, False),
        # A rollback that succeeds again creates another revision.
        (CREATED, 2, SETTLED, False),
        (CREATED, 2, LATE, False),
    ],
)
def test_a_condition_that_was_there_before_is_the_result_only_if_it_can_be(
    before: Made, generation: int, wait: Wait, is_result: bool
) -> None:
    edit = definition_rollback(before)

    found = edit.result(annotated(definition(), generation, status={"conditions": [before]}), wait)

    assert (found is not None) is is_result


def test_a_rollback_that_is_tried_again_fails_with_its_message_when_the_time_is_over() -> None:
    edit = definition_rollback()
    retried = annotated(definition(), annotations={ROLLBACK: "2"}, status={"conditions": [MISSING]})

    assert edit.result(retried, SETTLED) is None
    assert edit.result(retried, LATE) == Result(error="there is no revision 9")


RESTORED = rolled_back("True", "RolledBack", "Restored input revision 10", 2)


def test_an_instance_that_is_rolled_back_shows_the_revision_that_it_goes_to() -> None:
    edit = rollback(facts(instance(), input_revision(10, 2)), None, 10)
    done = annotated(instance(), 2, status={"conditions": [RESTORED]})

    assert edit.result(done, NEW) == Result(lines=("Instance will reconcile to RGD revision 2",))


def test_a_rollback_of_the_spec_only_shows_the_message_of_the_condition() -> None:
    owner = instance(annotations={ROLLBACK_SCOPE: "spec"})
    edit = rollback(facts(owner, input_revision(10, 2)), None, 10)
    done = annotated(instance(), 2, status={"conditions": [RESTORED]})

    assert edit.result(done, NEW) == Result(lines=("Restored input revision 10",))


@pytest.mark.parametrize(
    ("reported", "result"),
    [
        (
            rolled_back("False", "InputRevisionNotFound", "there is no input revision 10"),
            Result(error="there is no input revision 10"),
        ),
        (rolled_back("True", "NoChange", "nothing differs"), Result(lines=("nothing differs",))),
        (rolled_back("Unknown", "RollingBack", "restoring"), None),
    ],
)
def test_a_rollback_of_an_instance_ends_with_the_message_of_the_condition(
    reported: Made, result: Result | None
) -> None:
    edit = rollback(facts(instance(), input_revision(10, 2)), None, 10)

    assert edit.result(annotated(instance(), status={"conditions": [reported]}), NEW) == result


def test_an_instance_whose_author_declares_conditions_is_rolled_back_when_its_spec_is() -> None:
    edit = rollback(facts(instance(), input_revision(10, 2, image="old")), None, 10)
    restored = annotated(instance(), 2, spec={"image": "old"})

    assert edit.result(restored, NEW) is None
    assert edit.result(restored, SETTLED) == Result(lines=("Instance will reconcile to RGD revision 2",))
    assert edit.result(annotated(instance()), LATE) is None
    asked = annotated(restored, annotations={ROLLBACK_INPUT: "10"})
    assert edit.result(asked, SETTLED) is None


PINNED = Result(
    lines=("Instance pinned to RGD revision 2", "Will not receive updates from newer RGD revisions")
)
NOT_FOUND = resolved("False", "PinnedRevisionNotFound", "RGD revision 2 does not exist; available: 3")
REFUSED = Result(
    error="RGD revision 2 does not exist; available: 3",
    hint="the pin stays; remove it with `kro unpin application/my-app`",
)


def pin_result(wait: Wait, before: Made, **status: Any) -> Result | None:
    edit = pin(facts(before), 2)
    assert edit.annotations == {PIN: "2"}
    return edit.result(annotated(instance(), annotations={PIN: "2"}, status=status), wait)


def test_a_pin_has_its_effect_once_the_instance_is_admitted_to_the_revision() -> None:
    there = resolved("True", "Resolved", "RGD revision 2")

    assert pin_result(NEW, instance(), currentRGDRevision=2) == PINNED
    assert pin_result(NEW, instance(), currentRGDRevision=3) is None
    # An author may declare that field.
    assert pin_result(NEW, instance(), currentRGDRevision="mine", conditions=[there]) == PINNED
    wrong_policy = resolved("False", "InvalidUpdatePolicy", "Sometimes is no policy")
    assert pin_result(NEW, instance(), currentRGDRevision=2, conditions=[wrong_policy]) == PINNED


@pytest.mark.parametrize(
    "reason",
    ["InvalidPin", "PinnedRevisionNotFound", "RevisionNotFound", "RevisionFailed", "SpecInvalidForRevision"],
)
def test_a_pin_that_cannot_be_resolved_fails_with_the_message(reason: str) -> None:
    wrong = resolved("False", reason, "it cannot be used")

    found = pin_result(NEW, instance(), currentRGDRevision=2, conditions=[wrong])

    assert found is not None
    assert found.error == "it cannot be used"


def test_a_refusal_that_was_there_before_may_be_about_another_pin() -> None:
    other = instance(annotations={PIN: "9"}, conditions=[NOT_FOUND])
    same = instance(annotations={PIN: "2"}, conditions=[NOT_FOUND])

    assert pin_result(SETTLED, other, conditions=[NOT_FOUND]) is None
    assert pin_result(LATE, other, conditions=[NOT_FOUND]) == REFUSED
    assert pin_result(NEW, same, conditions=[NOT_FOUND]) == REFUSED


def test_a_pin_that_is_changed_meanwhile_has_no_result() -> None:
    edit = pin(facts(instance()), 2)

    changed = edit.result(annotated(instance(), annotations={PIN: "3"}), NEW)
    assert changed == Result(error="its pin has been changed to 3")
    assert edit.result(annotated(instance()), NEW) == Result(error="its pin has been removed")


def test_unpinning_removes_the_annotation_and_waits_for_nothing() -> None:
    edit = pin(facts(instance(annotations={PIN: "2"})), None)

    assert edit.annotations == {PIN: None}
    assert edit.result(instance(), NEW) == Result(lines=("Instance unpinned, will use latest RGD revision",))


@pytest.mark.parametrize("number", [2, None])
def test_a_definition_has_no_pins(number: int | None) -> None:
    with pytest.raises(SettingsError, match="^rgd/application has no pins: its instances have them$"):
        pin(facts(definition()), number)
