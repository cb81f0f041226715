"""The status of a controller: its own conditions, and those of its hook."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.core.model.plan import Apply, Emit, Patch, Plan
from lamina.core.model.queries import Answers, Listed, ReadAll
from lamina.core.model.world import World
from lamina.errors import HookError, LaminaError, SpecError
from lamina.families.metacontroller import lifecycle
from lamina.families.metacontroller.compile import Setup, composite
from lamina.families.metacontroller.controller import status_controller
from lamina.families.metacontroller.labels import API_VERSION, ON_DELETE, RELEASE
from lamina.families.metacontroller.sync import controller_status
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.simulation.cluster.kinds import ALL_VERBS, POD

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


def test_the_end_of_an_edition_has_one_name_in_every_report() -> None:
    """The controller of definitions and the controller that is removed may both report it."""
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
    (asked,) = lifecycle.queries(view, Answers())
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

    assert [stage.name for stage in plan.stages] == ["release its parents", "remove the finalizer"]
    assert {action.ref.name: action.patch["metadata"]["finalizers"] for action in plan.stages[0].actions if isinstance(action, Patch)} == {"a": None, "b": ["theirs"]}  # fmt: skip


# How its work goes


def thing(name: str) -> Made:
    return {
        "apiVersion": THING.api_version,
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "ns"},
    }


def world(*, things: Sequence[Made] = (), **status: Any) -> tuple[World, Setup]:
    return world_of(manifest(status={"conditions": [{"type": "Ready", "status": "True"}], **status}), *things)


def world_of(obj: Obj, *things: Obj) -> tuple[World, Setup]:
    shelves, memory = {kind.group_kind: Indexer(kind) for kind in (COMPOSITE, THING)}, Lister(DeletedUids())
    shelves[COMPOSITE.group_kind].put(obj)
    for thing in things:
        shelves[THING.group_kind].put(thing)
    memory.set_indexers(KINDS, shelves)
    return memory, composite(obj, KINDS)


def stated(actions: list[Any]) -> Made:
    (action,) = actions
    assert isinstance(action, Apply)
    assert action.subresource == "status"
    return dict(action.obj["status"])


def test_that_a_hook_answers_is_said_once() -> None:
    seen, setup = world()
    actions = controller_status.answered(seen.get(meta.ref(setup.obj)), setup, NOW)
    status = stated(actions)
    assert conditions.is_true(status["conditions"], "HookReachable")
    assert isinstance(actions[0], Apply)
    assert not actions[0].optional

    seen, setup = world(conditions=[{"type": "Ready", "status": "True"}, *status["conditions"]])
    assert controller_status.answered(seen.get(meta.ref(setup.obj)), setup, NOW) == []


@pytest.mark.parametrize(
    ("error", "reachable"),
    [
        (HookError("http error: refused", reached=False), "False"),
        (HookError("the hook wants a thing twice"), None),
        (LaminaError("the server refused it"), None),
    ],
)
def test_what_went_wrong_last_is_said_once_for_all_parents(error: LaminaError, reachable: str | None) -> None:
    seen, setup = world()
    ref = THING.ref("ns", "a")
    status = stated(controller_status.failed(seen, setup, ref, error, NOW))

    assert status["lastError"]["message"] == str(error)
    found = conditions.find(status.get("conditions") or (), "HookReachable")
    assert (found["status"] if found is not None else None) == reachable

    seen, setup = world(lastError=status["lastError"])
    assert controller_status.failed(seen, setup, THING.ref("ns", "b"), error, NOW) == []


def test_events_have_the_body_of_an_answer_that_failed_and_the_status_and_the_log_do_not() -> None:
    parent = thing("a")
    seen, setup = world(things=[parent])
    error = HookError("sync hook http://hook/ failed: unsupported status code: 500", reached=False, body="no")

    plan = controller_status.complain(setup, seen, meta.ref(parent), error, NOW)

    (told,) = [action.event for action in plan.actions if isinstance(action, Emit)]
    assert told["message"] == f"Sync error: {error} body: no"
    status = stated([action for action in plan.actions if isinstance(action, Apply)])
    assert status["lastError"]["message"] == plan.because == str(error)
    reachable = conditions.find(status["conditions"], "HookReachable")
    assert reachable is not None
    assert reachable["message"] == str(error)


def test_the_last_error_is_that_of_its_parent_while_it_waits() -> None:
    last = {"object": str(THING.ref("ns", "a")), "message": "no", "time": stamp(NOW)}
    seen, setup = world(lastError=last)
    controller = seen.get(meta.ref(setup.obj))

    assert controller_status.error_of(controller, THING.ref("ns", "a"), waits=True) == f"no (at {stamp(NOW)})"
    # It may have been synced since.
    assert controller_status.error_of(controller, THING.ref("ns", "a"), waits=False) == ""
    assert controller_status.error_of(controller, THING.ref("ns", "b"), waits=True) == ""


def test_that_a_hook_is_down_is_an_error_of_every_parent() -> None:
    down = {"type": "HookReachable", "status": "False", "message": "http error: refused"}
    ready = {"type": "Ready", "status": "True"}
    seen, setup = world_of(manifest(status={"conditions": [ready, down]}))

    controller = seen.get(meta.ref(setup.obj))
    for waits in (True, False):
        assert controller_status.error_of(controller, THING.ref("ns", "b"), waits=waits) == down["message"]


def test_a_status_that_keeps_nothing_is_left_alone() -> None:
    seen, setup = world(conditions=[])

    assert controller_status.answered(seen.get(meta.ref(setup.obj)), setup, NOW) == []
    assert controller_status.failed(seen, setup, THING.ref("ns", "a"), LaminaError("x"), NOW) == []
    assert controller_status.count(setup, seen, meta.ref(setup.obj)) is None


def test_the_hook_of_a_controller_just_made_answers_before_the_controller_says_anything_of_itself() -> None:
    seen, setup = world_of(manifest(creationTimestamp=stamp(NOW)))

    actions = controller_status.answered(seen.get(meta.ref(setup.obj)), setup, NOW + timedelta(seconds=1))
    said = stated(actions)
    assert conditions.is_true(said["conditions"], "HookReachable")
    # The original's definitions have no place for it: no parent is to suffer from that.
    assert isinstance(actions[0], Apply)
    assert actions[0].optional
    # By now it would have said something, were it kept.
    assert controller_status.answered(seen.get(meta.ref(setup.obj)), setup, NOW + timedelta(minutes=1)) == []


def test_a_new_controller_may_be_changed_at_once() -> None:
    # The status that says how it does is written a moment later: one in between would be a conflict.
    assert all(watch.delay > timedelta(0) for watch in status_controller().watches)


def test_a_kind_that_gets_a_status_makes_another_controller_of_it() -> None:
    obj = manifest()
    setup = composite(obj, KINDS)
    rule = setup.parents[THING.group_kind]
    bare = replace(
        setup, parents={THING.group_kind: replace(rule, kind=THING._replace(subresources=frozenset()))}
    )

    labelled = composite(meta.with_metadata(obj, labels={**meta.labels(obj), "a": "b"}), KINDS)
    assert setup.config_hash != bare.config_hash
    assert setup.config_hash == labelled.config_hash
