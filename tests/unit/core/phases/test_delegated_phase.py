"""A phase that another controller reconciles, through an object that its owner creates."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.core.model.plan import Create, Delete, Patch, Propagation, change
from lamina.core.model.queries import Absent, Answers, Found, Read
from lamina.core.phases.delegated_phase import (
    DelegatedPhase,
    confirmed,
    delegated_step,
    tear_down_delegate,
)
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.phase_step import FailureReason, PhaseStep
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj
from tests.unit.core.phases.objects import DELETED, key, live, manifest, owner

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def delegate(
    *found: Condition, controller: int | None = 5, deleting: bool = False, age: int = 0, **metadata: Any
) -> Made:
    """Return the object through which a phase is reconciled."""
    made: Made = {
        "name": "stack-5-deploy",
        "namespace": "team",
        "uid": "uid-delegate",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": stamp(NOW - timedelta(seconds=age)),
        **metadata,
    }
    if controller is not None:
        made["ownerReferences"] = [
            {"kind": "Stack", "name": "stack", "uid": f"uid-{controller}", "controller": True}
        ]
    if deleting:
        made["deletionTimestamp"] = DELETED
    obj: Made = {"apiVersion": "ex.com/v1", "kind": "StackPhase", "metadata": made}
    return {**obj, "status": {"conditions": list(found)}} if found else obj


def available(status: str = "True", *, generation: int = 2, **fields: Any) -> Condition:
    made: Condition = {"type": "Available", "status": status, "observedGeneration": generation}
    made.update(fields)  # type: ignore[typeddict-item]
    return made


def phase(live: Obj | None, **fields: Any) -> DelegatedPhase:
    return DelegatedPhase(
        name="deploy",
        ref=meta.ref(delegate()),
        wanted=(key("a"), key("b")),
        live=live,
        unreported="wait for it",
        unserved="run one",
        **fields,
    )


def step(
    who: PhaseOwner,
    found: DelegatedPhase,
    *,
    is_reached: bool = True,
    pauses: bool = False,
    answers: Answers | None = None,
) -> PhaseStep:
    patch = change(delegate(), {"spec": {"paused": True}}) if pauses else None
    create = Create(obj=delegate())
    given = answers or Answers()
    return delegated_step(who, found, NOW, given, create=create, change=patch, is_reached=is_reached)


def message(found: PhaseStep) -> str:
    return found.failure.message if found.failure is not None else ""


@pytest.mark.parametrize(("is_reached", "created"), [(True, 1), (False, 0)])
def test_its_object_is_created_once_the_phase_is_reached(is_reached: bool, created: int) -> None:
    found = step(owner(), phase(None), is_reached=is_reached)

    assert len(found.actions) == created
    assert found.gates
    assert found.left == (key("a"), key("b"))
    assert message(found) == 'Phase "deploy" failed: no status reported: wait for it'


@pytest.mark.parametrize("name", ["Deploy", "de.ploy", "-deploy", "d" * 64])
def test_the_name_of_a_phase_has_to_fit_into_that_of_its_object(name: str) -> None:
    misnamed = DelegatedPhase(**{**_fields(phase(None)), "name": name})

    found = step(owner(), misnamed)

    assert not found.actions
    assert found.is_refused
    assert "is part of the name of its StackPhase; it must consist of at most 63 lower case" in message(found)


def test_a_paused_owner_creates_nothing() -> None:
    found = step(owner(is_paused=True), phase(None))

    assert not found.actions
    assert message(found) == 'Phase "deploy" failed: stackphase team/stack-5-deploy: not found'


def test_a_superseded_failure_passes_where_newer_revisions_that_are_available_have_all_objects() -> None:
    found = step(owner(creates=False), phase(None, is_taken_over=True, is_replaced=True))

    assert not found.actions
    assert found.failure is None
    assert not found.gates
    assert found.left == (key("a"), key("b"))


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_a_superseded_failure_creates_no_phase_and_does_not_wait_for_what_a_newer_revision_has(
    is_taken_over: bool,
) -> None:
    found = step(owner(creates=False), phase(None, is_taken_over=is_taken_over))

    assert not found.actions
    assert "a newer revision has taken over" in message(found)
    assert found.gates == (not is_taken_over)


@pytest.mark.parametrize(("holder", "created"), [(6, 0), (5, 1)])
def test_a_phase_is_created_once_live_reads_confirm_that_no_newer_revision_has_its_objects(
    holder: int, created: int
) -> None:
    read = Read(manifest().ref(""))
    who = owner(siblings=[6], shared=(read,))

    assert step(who, phase(None)).queries == (read,)
    found = step(who, phase(None), answers=Answers({read: Found(live(controller=holder))}))

    assert len(found.actions) == created


def test_an_object_of_another_owner_is_a_collision() -> None:
    found = step(owner(), phase(delegate(controller=4)))

    assert found.failure is not None
    assert found.failure.reason is FailureReason.COLLISION
    assert message(found).endswith("exists, and this stack does not control it; delete or rename it")
    assert found.is_refused


# What is reported


def test_a_phase_passes_once_it_is_reported_to_be_available() -> None:
    found = step(owner(), phase(delegate(available()), controlled=(key("a"), key("b"))))

    assert found.failure is None
    assert not found.gates
    assert found.controlled == (key("a"), key("b"))
    assert not found.left
    assert not found.is_unreported


@pytest.mark.parametrize(
    ("condition", "reason", "words"),
    [
        (available("False", reason="ProbeFailure", message="no"), FailureReason.PROBE, "no"),
        (available("False", reason="PreflightError", message="no"), FailureReason.PREFLIGHT, "no"),
        (available("False", reason="CollisionDetected", message="no"), FailureReason.COLLISION, "no"),
        (available("False", reason="Other", message="no"), FailureReason.PROBE, "no"),
        (available("False"), FailureReason.PROBE, "not available"),
        (available("True", generation=1), FailureReason.PROBE, "no status reported: wait for it"),
    ],
)
def test_a_failure_is_passed_on(condition: Condition, reason: FailureReason, words: str) -> None:
    found = step(owner(), phase(delegate(condition)))

    assert found.failure is not None
    assert found.failure.reason is reason
    assert message(found) == f'Phase "deploy" failed: {words}'
    assert found.gates


@pytest.mark.parametrize(
    ("superseded", "left", "gates"), [(False, 1, True), (True, 1, False), (True, 0, True)]
)
def test_what_was_handed_over_is_not_waited_for(superseded: bool, left: int, gates: bool) -> None:
    controlled = (key("a"), key("b"))[: 2 - left]

    found = step(owner(is_superseded=superseded), phase(delegate(available("False")), controlled=controlled))

    assert found.gates == gates
    assert len(found.left) == left


def test_an_object_that_is_listed_without_namespace_is_controlled() -> None:
    controlled = (key("a")._replace(namespace=""), key("b"))

    assert not step(owner(), phase(delegate(available()), controlled=controlled)).left


def test_what_the_object_lacks_is_written() -> None:
    [action] = step(owner(), phase(delegate(available())), pauses=True).actions

    assert isinstance(action, Patch)


# Controllers that are missing


@pytest.mark.parametrize(
    ("age", "unserved", "reported", "refused"),
    [
        (29, "run one", False, False),
        (30, "run one", False, True),
        (30, "", False, False),
        (30, "run one", True, False),
    ],
)
def test_a_controller_is_missed_after_a_while(age: int, unserved: str, reported: bool, refused: bool) -> None:
    conditions = [available(generation=1)] if reported else []
    waiting = phase(delegate(*conditions, age=age))

    found = step(owner(), DelegatedPhase(**{**_fields(waiting), "unserved": unserved}))

    assert found.is_refused == refused
    assert found.is_unreported == (not reported)
    assert message(found).endswith("run one" if refused else "wait for it")


def _fields(one: DelegatedPhase) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


# Objects that are being deleted


@pytest.mark.parametrize(
    ("live", "gates", "controls"),
    [
        (delegate(available(), deleting=True), False, True),
        (delegate(available("False"), deleting=True), True, True),
        (delegate(available(), deleting=True, controller=4), True, False),
    ],
)
def test_an_object_that_is_being_deleted_still_reports(live: Obj, gates: bool, controls: bool) -> None:
    found = step(owner(), phase(live, controlled=(key("a"),)))

    assert found.gates == gates
    assert bool(found.controlled) == controls
    assert not gates or message(found).endswith("stackphase team/stack-5-deploy is being deleted")


# What a cache does not show


def test_a_paused_owner_reads_the_object_live() -> None:
    live = delegate(available())
    observed = step(owner(is_paused=True), phase(live))

    asked = confirmed(owner(is_paused=True), phase(live), observed, Answers())

    assert asked.queries == (Read(meta.ref(live)),)


@pytest.mark.parametrize(
    ("cached", "found", "outdated"),
    [
        (delegate(), delegate(), False),
        (delegate(), delegate(resourceVersion="8"), True),
        (None, delegate(), True),
        (delegate(), delegate(resourceVersion="8", controller=4), False),
        (None, None, False),
    ],
)
def test_an_object_that_has_changed_since_is_outdated(
    cached: Obj | None, found: Obj | None, outdated: bool
) -> None:
    seen = phase(cached)
    answers = Answers({Read(seen.ref): Found(found) if found is not None else Absent()})

    assert confirmed(owner(), seen, step(owner(), seen), answers).is_outdated == outdated


# Teardown


def torn(live: Obj | None, found: Obj | None = None, *, orphans: bool = False, deleting: bool = False) -> Any:
    ref = meta.ref(delegate())
    answers = Answers({Read(ref): Found(found) if found is not None else Absent()})
    who = owner(deleting=deleting)
    return tear_down_delegate(
        who, ref, live, answers, is_marked=lambda one: "mark" in meta.labels(one), orphans=orphans
    )


@pytest.mark.parametrize(
    ("live", "orphans", "propagation"),
    [
        (delegate(), False, Propagation.BACKGROUND),
        (delegate(), True, Propagation.ORPHAN),
        (delegate(controller=None, labels={"mark": ""}), False, Propagation.ORPHAN),
    ],
)
def test_the_object_of_a_phase_is_deleted(live: Obj, orphans: bool, propagation: Propagation) -> None:
    [action] = torn(live, orphans=orphans, deleting=True).actions

    assert isinstance(action, Delete)
    assert action.propagation is propagation


@pytest.mark.parametrize(
    ("live", "deleting"),
    [
        (delegate(controller=4), True),
        (delegate(controller=None), True),
        (delegate(controller=None, labels={"mark": ""}), False),
        (None, True),
    ],
    ids=["of another owner", "not marked", "of an owner that is not being deleted", "gone"],
)
def test_an_object_that_is_not_that_of_the_phase_is_left_alone(live: Obj | None, deleting: bool) -> None:
    assert torn(live, deleting=deleting).is_over


def test_an_object_that_is_being_deleted_or_not_cached_is_waited_for() -> None:
    assert torn(delegate(deleting=True)).waiting == ("stackphase team/stack-5-deploy is being deleted",)
    assert torn(None, delegate()).waiting == ("stackphase team/stack-5-deploy is not in the cache yet",)
