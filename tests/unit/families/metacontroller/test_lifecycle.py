"""What a controller says of itself, and of its work."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.core.plan import Apply, Emit, Patch, Plan
from lamina.core.questions import Answers, Listed, ReadAll
from lamina.core.world import World
from lamina.errors import HookError, LaminaError, SpecError
from lamina.families.metacontroller import lifecycle, standing
from lamina.families.metacontroller.controller import edition, keeper
from lamina.families.metacontroller.names import API_VERSION, ON_DELETE, RELEASE
from lamina.families.metacontroller.setup import Setup, composite
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj
from lamina.paper.kinds import ALL_VERBS, POD
from lamina.runtime.memory import Gone, Memory, Shelf

NOW = datetime(2026, 1, 1, tzinfo=UTC)
THING = Kind("ex.example.com/v1", "Thing", "things", True, ALL_VERBS, frozenset({"status"}))
COMPOSITE = Kind(
    API_VERSION, "CompositeController", "compositecontrollers", False, ALL_VERBS, frozenset({"status"})
)
KINDS = Kinds((THING, COMPOSITE, POD))


def manifest(*, generation: int = 1, status: Obj | None = None, **metadata: Any) -> Made:
    return {
        "apiVersion": API_VERSION,
        "kind": "CompositeController",
        "metadata": {"name": "cc", "uid": "cc", "resourceVersion": "1", "generation": generation, **metadata},
        "spec": {
            "parentResource": {"apiVersion": "ex.example.com/v1", "resource": "things"},
            "hooks": {
                "sync": {"webhook": {"url": "http://hook/"}},
                "finalize": {"webhook": {"url": "http://hook/"}},
            },
        },
        **({"status": status} if status is not None else {}),
    }


def viewed(obj: Obj, refused: SpecError | None = None) -> lifecycle.View:
    return lifecycle.View(obj=obj, setup=refused or composite(obj, KINDS), kinds=KINDS)


def planned(view: lifecycle.View, answers: Answers | None = None) -> Plan:
    return lifecycle.plan(view, answers or Answers(), NOW)


def reasons(plan: Plan) -> list[str]:
    return [action.event["reason"] for action in plan.actions if isinstance(action, Emit)]


def said(obj: Obj, plan: Plan) -> Made:
    """Return a controller as it is once it has said what it has to say."""
    (patch,) = [action for action in plan.actions if isinstance(action, Patch)]
    return {**obj, "status": patch.patch["status"]}


def test_it_says_once_that_it_runs_and_again_when_its_spec_is_another() -> None:
    obj = manifest()
    first = planned(viewed(obj))
    assert reasons(first) == ["Starting", "Started"]

    running = said(obj, first)
    assert planned(viewed(running)).stages == ()

    edited = manifest(generation=2, status=running["status"])
    assert reasons(planned(viewed(edited))) == ["Stopping", "Stopped", "Starting", "Started"]


def test_a_time_that_is_none_is_said_to_be_taken_otherwise() -> None:
    obj = manifest()
    obj["spec"]["hooks"]["sync"]["webhook"]["timeout"] = "0s"

    plan = planned(viewed(obj))

    assert plan.because == (
        "watching things, managing no children; spec.hooks.sync.webhook.timeout: 0s is taken as 10s"
    )
    assert plan.because in str(said(obj, plan)["status"]["conditions"])
    assert ";" not in planned(viewed(manifest())).because


def test_it_says_why_it_cannot_run() -> None:
    refused = SpecError("spec.hooks: no hooks defined")
    plan = planned(viewed(manifest(), refused))

    assert reasons(plan) == ["CreateError"]
    status = said(manifest(), plan)["status"]
    assert conditions.find(status["conditions"], "Ready")["message"].endswith("no hooks defined")  # type: ignore[index]  # it was said


def test_the_end_of_an_edition_has_one_name_whoever_tells_it() -> None:
    """The keeper of controllers and the one that leaves may both tell it."""
    obj = manifest()
    edited = manifest(generation=2, status=said(obj, planned(viewed(obj)))["status"])

    by_keeper = [one.event for one in planned(viewed(edited)).actions if isinstance(one, Emit)][:2]
    by_itself = list(lifecycle.stopped(obj, 1, NOW))

    assert [meta.name(one) for one in by_keeper] == [meta.name(one) for one in by_itself]


@pytest.mark.parametrize(
    ("annotations", "finalizers", "becomes"),
    [
        ({ON_DELETE: "release"}, [], [RELEASE]),
        ({}, [RELEASE, "theirs"], ["theirs"]),
    ],
)
def test_it_is_held_while_its_parents_are_to_be_let_go_first(
    annotations: dict[str, str], finalizers: list[str], becomes: list[str]
) -> None:
    (patch,) = planned(viewed(manifest(annotations=annotations, finalizers=finalizers))).actions

    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"finalizers": becomes}}


def test_parents_are_let_go_before_it_goes() -> None:
    view = viewed(manifest(finalizers=[RELEASE], deletionTimestamp="2026-01-01T00:00:00Z"))
    assert isinstance(view.setup, Setup)
    (asked,) = lifecycle.questions(view, Answers())
    assert asked == ReadAll(THING, "")
    own = view.setup.finalizer
    parents = [
        {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": name,
                "resourceVersion": "3",
                "finalizers": held,
            }
        }
        for name, held in (("a", [own]), ("b", ["theirs", own]), ("c", ["theirs"]))
    ]

    plan = planned(view, Answers({asked: Listed(tuple(parents))}))

    assert [stage.name for stage in plan.stages] == ["let its parents go", "go"]
    assert {action.ref.name: action.patch["metadata"]["finalizers"] for action in plan.stages[0].actions if isinstance(action, Patch)} == {"a": None, "b": ["theirs"]}  # fmt: skip


# How its work goes


def world(**status: Any) -> tuple[World, Setup]:
    return world_of(manifest(status={"conditions": [{"type": "Ready", "status": "True"}], **status}))


def world_of(obj: Obj) -> tuple[World, Setup]:
    shelf, memory = Shelf(COMPOSITE), Memory(Gone())
    shelf.put(obj)
    memory.arrange(KINDS, {COMPOSITE.group_kind: shelf})
    return memory, composite(obj, KINDS)


def stated(actions: list[Any]) -> Made:
    (action,) = actions
    assert isinstance(action, Apply)
    assert action.subresource == "status"
    return dict(action.obj["status"])


def test_that_a_hook_answers_is_said_once() -> None:
    seen, setup = world()
    actions = standing.answered(seen, setup, NOW)
    status = stated(actions)
    assert conditions.is_true(status["conditions"], "HookReachable")
    assert isinstance(actions[0], Apply)
    assert not actions[0].optional

    seen, setup = world(conditions=[{"type": "Ready", "status": "True"}, *status["conditions"]])
    assert standing.answered(seen, setup, NOW) == []


@pytest.mark.parametrize(
    ("error", "reachable"),
    [
        (HookError("http error: nobody", reached=False), "False"),
        (HookError("the hook wants a thing twice"), None),
        (LaminaError("the server refused it"), None),
    ],
)
def test_what_went_wrong_last_is_said_once_for_all_parents(error: LaminaError, reachable: str | None) -> None:
    seen, setup = world()
    ref = THING.ref("ns", "a")
    status = stated(standing.failed(seen, setup, ref, error, NOW))

    assert status["lastError"]["message"] == str(error)
    found = conditions.find(status.get("conditions") or (), "HookReachable")
    assert (found["status"] if found is not None else None) == reachable

    seen, setup = world(lastError=status["lastError"])
    assert standing.failed(seen, setup, THING.ref("ns", "b"), error, NOW) == []


def test_a_status_that_keeps_nothing_is_left_alone() -> None:
    seen, setup = world(conditions=[])

    assert standing.answered(seen, setup, NOW) == []
    assert standing.failed(seen, setup, THING.ref("ns", "a"), LaminaError("x"), NOW) == []
    assert standing.count(setup, seen, meta.ref(setup.obj)) is None


def test_the_hook_of_a_controller_just_made_answers_before_the_controller_says_anything_of_itself() -> None:
    seen, setup = world_of(manifest(creationTimestamp=stamp(NOW)))

    actions = standing.answered(seen, setup, NOW + timedelta(seconds=1))
    said = stated(actions)
    assert conditions.is_true(said["conditions"], "HookReachable")
    # The original's definitions have no place for it: no parent is to suffer from that.
    assert isinstance(actions[0], Apply)
    assert actions[0].optional
    # By now it would have said something, were it kept.
    assert standing.answered(seen, setup, NOW + timedelta(minutes=1)) == []


def test_whoever_makes_a_controller_may_change_it_at_once() -> None:
    # The status that says how it does is written a moment later: one in between would be a conflict.
    assert all(watch.delay > timedelta(0) for watch in keeper().watches)


def test_a_kind_that_gets_a_status_makes_another_controller_of_it() -> None:
    obj = manifest()
    setup = composite(obj, KINDS)
    rule = setup.parents[THING.group_kind]
    bare = replace(
        setup, parents={THING.group_kind: replace(rule, kind=THING._replace(subresources=frozenset()))}
    )

    assert edition(setup) != edition(bare)
    assert edition(setup) == edition(composite(meta.with_label(obj, "a", "b"), KINDS))
