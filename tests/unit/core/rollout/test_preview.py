"""What an edit would do to the targets of an owner, and in which order."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.controller import Controller
from lamina.core.model.finalizers import held, hold, is_held
from lamina.core.model.plan import Apply, Create, Plan, change, delete, one_stage
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.model.state import State
from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import adopt, controls
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.core.rollout.pace import Pace
from lamina.core.rollout.preview import ChangeKind, Planned, planned, preview, steps
from lamina.core.rollout.step import Step, Target, advance, advance_by_group
from lamina.errors import SpecError
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from tests.unit.core.ownership.worlds import PART, THING, made, part, world

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLEANUP = "example.com/cleanup"
OWNER = Ref("ex.com/v1", "Thing", "one", "t")


def owner(*wanted: str, **metadata: Any) -> Made:
    named = {"resourceVersion": "1", **metadata}
    return made(THING, "t", "one", metadata=named, spec={"parts": list(wanted), "selector": {}})


def gather(seen: World, ref: Ref) -> tuple[Obj, tuple[Obj, ...]] | None:
    obj = seen.get(ref)
    return (obj, tuple(seen.every(PART.group_kind, "one"))) if obj is not None else None


def plan(view: tuple[Obj, tuple[Obj, ...]], answers: Answers, now: datetime) -> Plan:
    """Hold the owner, adopt its parts, and make those be there that its spec lists."""
    obj, parts = view
    if not is_held(obj, CLEANUP):
        return hold(obj, CLEANUP, because="its parts go first")
    orphans = [adopt(one, obj) for one in parts if not controls(meta.uid(obj), one)]
    if orphans:
        return one_stage("adopt", orphans, because="it has orphans")
    wanted, there = obj["spec"]["parts"], {meta.name(one): one for one in parts}
    created = [Create(obj=made(PART, name, "one")) for name in wanted if name not in there]
    changed = [change(one, {"spec": obj["spec"]}) for name, one in there.items() if name in wanted]
    ended = [delete(one) for name, one in there.items() if name not in wanted]
    return one_stage("parts", [*created, *changed, *ended], because="its parts are to be as it says")


CONTROLLER: Controller[Any] = Controller(name="things", watches=(), gather=gather, plan=plan)


def shown(ref: Ref) -> str:
    return ref.name if ref.kind == PART.kind else ""


def owner_status(goal: int = 0, **targets: TargetStatus) -> OwnerStatus:
    return OwnerStatus(
        owner=owner(), history=History(), goal=goal, state=State.PROGRESSING, targets=dict(targets)
    )


def on(revision: int, state: State = State.HEALTHY, message: str = "") -> TargetStatus:
    return TargetStatus(revision=revision, state=state, message=message)


def outlook(edited: Obj, *objects: Obj) -> Planned:
    found = planned(CONTROLLER, world(*objects), edited, Answers(), NOW)
    assert isinstance(found, Planned)
    return found


# The plan of an edited owner


def test_an_edit_is_planned_in_place_of_the_live_owner() -> None:
    live = held(owner("a"), CLEANUP)
    found = outlook(held(owner("b"), CLEANUP), live)

    assert [action.ref.name for action in found.plan.actions] == ["b"]


def test_an_owner_that_is_not_there_yet_is_planned_as_if_it_were() -> None:
    assert [action.ref.name for action in outlook(owner("a", "b")).plan.actions] == ["a", "b"]


def test_passes_that_only_prepare_are_applied_and_the_pass_behind_them_is_planned() -> None:
    found = outlook(owner("a"), part("a"), part("b"))

    assert [patch.ref.name for patch in found.prepared] == ["t", "a", "b"]
    assert [action.ref.name for action in found.plan.actions] == ["a", "b"]
    assert is_held(found.view[0], CLEANUP)


def test_the_live_world_is_not_changed_by_a_preview() -> None:
    orphan = part("a")
    seen = world(orphan)
    planned(CONTROLLER, seen, owner("a"), Answers(), NOW)

    assert seen.get(OWNER) is None
    assert seen.get(meta.ref(orphan)) == part("a")


def test_what_the_controller_asks_is_returned() -> None:
    asked = Read(PART.ref("one", "a"))

    def queries(view: Any, answers: Answers) -> tuple[Query, ...]:
        return () if asked in answers else (asked,)

    curious: Controller[Any] = Controller(
        name="things", watches=(), gather=gather, plan=plan, queries=queries
    )

    assert planned(curious, world(), owner("a"), Answers(), NOW) == (asked,)
    answered = planned(curious, world(), owner("a"), Answers({asked: Found(part("a"))}), NOW)
    assert isinstance(answered, Planned)


def test_a_live_read_of_the_owner_finds_the_edited_one() -> None:
    found: list[Any] = []

    def looks(view: Any, answers: Answers, now: datetime) -> Plan:
        found.append(answers.get(Read(OWNER)))
        return plan(view, answers, now)

    reader: Controller[Any] = Controller(name="things", watches=(), gather=gather, plan=looks)
    planned(reader, world(owner("a")), owner("b"), Answers(), NOW)

    assert [list(meta.finalizers(one.obj)) for one in found] == [[], [CLEANUP]]
    assert all(one.obj["spec"]["parts"] == ["b"] for one in found)


def test_an_owner_of_no_controller_has_no_preview() -> None:
    blind: Controller[Any] = Controller(name="things", watches=(), gather=lambda seen, ref: None, plan=plan)

    assert planned(blind, world(), owner(), Answers(), NOW) is None


def test_a_controller_that_only_ever_prepares_is_asked_a_few_times() -> None:
    def restless(view: Any, answers: Answers, now: datetime) -> Plan:
        count = len(meta.finalizers(view[0]))
        return hold(view[0], f"example.com/{count}", because="one more")

    never: Controller[Any] = Controller(name="things", watches=(), gather=gather, plan=restless)
    found = planned(never, world(), owner(), Answers(), NOW)

    assert isinstance(found, Planned)
    assert 1 < len(found.prepared) < 20


# Changes


def test_what_the_next_pass_writes_is_created_updated_and_deleted() -> None:
    there = [part(name, owner="t") for name in ("a", "b")]
    found = outlook(held(owner("b", "c"), CLEANUP), *there)
    told = preview(found, owner_status(a=on(0), b=on(0)), names=shown, order={})

    assert {one.target: one.kind for one in told.changes} == {
        "a": ChangeKind.DELETE,
        "b": ChangeKind.UPDATE,
        "c": ChangeKind.CREATE,
    }
    assert told.because == "its parts are to be as it says"


def test_an_object_that_is_there_and_that_the_status_does_not_list_is_updated() -> None:
    found = outlook(held(owner("a", "b"), CLEANUP), part("a", owner="t"))
    told = preview(found, owner_status(), names=shown, order={})

    assert {one.target: one.kind for one in told.changes} == {"a": ChangeKind.UPDATE, "b": ChangeKind.CREATE}


@pytest.mark.parametrize(("there", "kind"), [(True, ChangeKind.UPDATE), (False, ChangeKind.CREATE)])
def test_an_applied_object_is_created_where_it_is_not_there(there: bool, kind: ChangeKind) -> None:
    def applies(view: Any, answers: Answers, now: datetime) -> Plan:
        return one_stage(
            "parts", [Apply(obj=made(PART, "a", "one"))], because="its parts are to be as it says"
        )

    applying: Controller[Any] = Controller(name="things", watches=(), gather=gather, plan=applies)
    found = planned(applying, world(*([part("a")] if there else [])), owner("a"), Answers(), NOW)
    assert isinstance(found, Planned)

    assert [one.kind for one in preview(found, owner_status(), names=shown, order={}).changes] == [kind]


def test_a_target_that_is_deleted_before_its_turn_is_not_created_again() -> None:
    there = [part(name, owner="t") for name in ("a", "b")]
    found = outlook(held(owner(), CLEANUP), *there)
    told = preview(found, owner_status(2, a=on(1), b=on(1)), names=shown, order={"a": 1, "b": 2})

    assert [(one.target, str(one.kind), one.step) for one in told.changes] == [
        ("a", "update", 1),
        ("b", "delete", 0),
    ]


def test_orphans_that_it_takes_are_adopted() -> None:
    told = preview(outlook(owner("a"), part("a")), owner_status(a=on(0)), names=shown, order={})

    assert [(one.target, one.kind) for one in told.changes] == [("a", ChangeKind.ADOPT)]


def test_targets_at_an_older_revision_are_updated_in_the_order_of_their_steps() -> None:
    found = outlook(held(owner(), CLEANUP))
    targets = {"a": on(1), "b": on(1, message="waits"), "c": on(2), "d": on(0), "e": on(1, State.DELETING)}
    told = preview(found, owner_status(2, **targets), names=shown, order={"b": 1, "a": 2, "d": 2})

    assert [(one.target, str(one.kind), one.step) for one in told.changes] == [
        ("b", "update", 1),
        ("a", "update", 2),
        ("d", "create", 2),
        ("e", "delete", 0),
    ]
    assert next(one for one in told.changes if one.target == "b").message == "waits"
    assert (told.goal, told.changes[0].revision) == (2, 1)


def test_a_target_that_is_held_has_no_step() -> None:
    told = preview(outlook(held(owner(), CLEANUP)), owner_status(2, a=on(1)), names=shown, order={})

    assert [(one.target, one.step) for one in told.changes] == [("a", 0)]


def test_an_edit_that_changes_no_target_has_no_changes() -> None:
    assert (
        preview(outlook(held(owner(), CLEANUP)), owner_status(1, a=on(1)), names=shown, order={}).changes
        == ()
    )


def test_an_error_that_would_be_reported_on_the_owner_is_in_the_preview() -> None:
    wrong = SpecError("spec.parts: there are too many")

    def fails(view: Any, answers: Answers, now: datetime) -> Plan:
        return Plan(because="nothing can be made", failure=wrong)

    failing: Controller[Any] = Controller(name="things", watches=(), gather=gather, plan=fails)
    found = planned(failing, world(), owner("a"), Answers(), NOW)
    assert isinstance(found, Planned)

    assert preview(found, owner_status(), names=shown, order={}).failure is wrong
    assert preview(outlook(owner()), owner_status(), names=shown, order={}).failure is None


# Order


def targets(count: int, groups: int = 1, done: int = 0) -> list[Target]:
    return [Target(key=f"t{number}", on_goal=number < done, group=number % groups) for number in range(count)]


def in_order(pace: Pace) -> Callable[[Sequence[Target]], Step]:
    return lambda left: advance("two", left, pace, NOW)


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [(1, [1, 2, 3, 4, 5]), (2, [1, 1, 2, 2, 3]), (None, [1, 1, 1, 1, 1]), (9, [1, 1, 1, 1, 1])],
)
def test_as_many_move_in_one_step_as_the_pace_allows(at_once: int | None, expected: list[int]) -> None:
    assert list(steps(targets(5), in_order(Pace(at_once=at_once))).values()) == expected


def test_targets_that_are_there_already_take_no_step() -> None:
    assert steps(targets(3, done=2), in_order(Pace(at_once=1))) == {"t2": 1}


def test_a_target_that_is_held_never_moves() -> None:
    some = [*targets(2), Target(key="kept", on_goal=False, held="paused")]

    assert steps(some, in_order(Pace(at_once=1))) == {"t0": 1, "t1": 2}


def test_groups_move_one_after_another() -> None:
    found = steps(targets(4, groups=2), lambda left: advance_by_group("two", left, Pace(), {}, NOW))

    assert found == {"t0": 1, "t2": 1, "t1": 2, "t3": 2}


@given(count=st.integers(0, 8), groups=st.integers(1, 3), at_once=st.integers(1, 9), done=st.integers(0, 8))
def test_every_target_that_is_not_there_moves_once_and_never_too_many_together(
    count: int, groups: int, at_once: int, done: int
) -> None:
    found = steps(targets(count, groups, done), in_order(Pace(at_once=at_once)))

    assert set(found) == {f"t{number}" for number in range(min(done, count), count)}
    for number in set(found.values()):
        assert list(found.values()).count(number) <= at_once
    assert set(found.values()) == set(range(1, max(found.values(), default=0) + 1))
