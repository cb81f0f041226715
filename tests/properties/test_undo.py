"""
An abort leaves the spec alone, and an undo changes nothing else: in each family that can go back, whenever it is asked to.

A process dies after any number of writes, a user undoes the rollout in progress
just then, the next process dies too; only the spec of the owner may be another
after the undo, and all targets end up where the spec says.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, lists, none, one_of, sampled_from, tuples

from lamina.core.model.controller import AnyController
from lamina.errors import RevisionNotFound
from lamina.families.manifestwork.hub import owner_status as replicaset_status
from lamina.families.manifestwork.hub import rollback as fleets
from lamina.families.metacontroller import owner_status as parent_status
from lamina.families.metacontroller import rollback as children
from lamina.simulation import Crashed, settle
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    HUB,
    OK1,
    OK2,
    OK3,
    Fleet,
    all_at_once,
    progressive,
)
from tests.unit.families.metacontroller.catset import PARENT, Cats
from tests.unit.families.undoing import carry_out, seen

KEPT = 5
DEATHS = one_of(none(), integers(0, 12))
NUMBERS = one_of(none(), integers(1, 4))


# ── children ──


def undo_children(cats: Cats, controller: AnyController, to: int | None) -> str:
    """Go back, and return which image that asks for; none where history does not go there."""
    view = seen(cats, controller, PARENT)
    past = {one.number: one.snapshot for one in parent_status.owner_status(view).history.revisions}
    spec = cats.get(PARENT)["spec"]
    try:
        carry_out(cats, PARENT, children.rollback(view, to))
    except RevisionNotFound:
        assert cats.get(PARENT)["spec"] == spec
        return ""
    now = cats.get(PARENT)["spec"]
    assert {**now, "template": None} == {**spec, "template": None}, (
        "what is not rolled out is not rolled back"
    )
    assert now["template"] in [one["spec"]["template"] for one in past.values()]
    if to is not None:
        assert now["template"] == past[to]["spec"]["template"]
    return str(now["template"]["image"])


@settings(max_examples=60)
@given(
    images=lists(sampled_from(("one", "two", "three")), min_size=1, max_size=3),
    deaths=tuples(DEATHS, DEATHS, DEATHS),
    to=NUMBERS,
    method=sampled_from(("RollingRecreate", "RollingInPlace")),
    replicas=integers(1, 4),
)
def test_an_undo_writes_the_spec_of_a_parent_and_nothing_else_whenever_a_process_dies(
    images: Sequence[str], deaths: Sequence[int | None], to: int | None, method: str, replicas: int
) -> None:
    cats = Cats()
    how: dict[str, Any] = {"method": method, "kept": KEPT}
    controller = cats.controller(method, kept=KEPT)
    cats.start(replicas=replicas)
    cats.roll(**how)
    for image in images:
        cats.want(template={"image": image})
        with suppress(Crashed):
            cats.settle(deaths[0], **how)
        cats.ready(f"nginx-{len(images) % replicas}")
        with suppress(Crashed):
            cats.settle(deaths[1], **how)

    undo_children(cats, controller, to)
    spec = cats.get(PARENT)["spec"]
    cats.roll(crash_after=deaths[2], **how)

    assert cats.get(PARENT)["spec"] == spec, "only the undo writes the spec"
    assert cats.pods() == {f"nginx-{number}": spec["template"]["image"] for number in range(replicas)}


def test_an_undo_goes_back_to_the_revision_before_after_every_single_write_of_a_roll() -> None:
    how: dict[str, Any] = {"method": "RollingRecreate", "kept": KEPT}
    for writes in range(100):
        cats = Cats()
        controller = cats.controller(**how)
        cats.start()
        cats.roll(**how)
        cats.want(template={"image": "two"})
        died = _dies(cats, controller, writes)

        assert undo_children(cats, controller, None) == "one"
        cats.roll(**how)
        assert set(cats.pods().values()) == {"one"}
        if not died:
            assert writes > 8
            return
    raise AssertionError("a roll never ends")


def _dies(cats: Cats, controller: AnyController, writes: int) -> bool:
    """Roll until so many writes were made, pods becoming ready in between; say whether it came to that."""
    left = writes
    for _ in range(60):
        before, said = cats.version, len(cats.journal)
        try:
            settle(cats, controller, crash_after=left)
        except Crashed:
            return True
        left -= len(cats.journal) - said
        cats.ready()
        if cats.version == before:
            return False
    raise AssertionError("a roll never ends")


# ── fleets ──

CONTENTS = (OK1, OK2, OK3, BAD)


def undo_fleet(fleet: Fleet, to: int | None) -> None:
    view = seen(fleet, HUB, APP)
    past = {one.number: one.snapshot for one in replicaset_status.owner_status(view).history.revisions}
    spec = fleet.get(APP)["spec"]
    try:
        carry_out(fleet, APP, fleets.rollback(view, to))
    except RevisionNotFound:
        assert fleet.get(APP)["spec"] == spec
        return
    now = fleet.get(APP)["spec"]
    assert {**now, "manifestWorkTemplate": None} == {**spec, "manifestWorkTemplate": None}
    assert now["manifestWorkTemplate"] in past.values()
    if to is not None:
        assert now["manifestWorkTemplate"] == past[to]


@settings(max_examples=40, deadline=None)
@given(
    wanted=lists(sampled_from(range(len(CONTENTS))), min_size=1, max_size=3),
    deaths=tuples(DEATHS, DEATHS, DEATHS),
    to=NUMBERS,
    aborts=booleans(),
    together=booleans(),
)
def test_an_undo_writes_the_spec_of_a_replica_set_and_an_abort_does_not(
    wanted: Sequence[int], deaths: Sequence[int | None], to: int | None, aborts: bool, together: bool
) -> None:
    strategy = (all_at_once if together else progressive)(
        progressDeadline="5s", failureStrategy="AbortAll" if aborts else ""
    )
    fleet = Fleet()
    fleet.start(OK1, 4, strategy, revisionHistoryLimit=KEPT)
    fleet.roll()
    for place in wanted:
        fleet.want(CONTENTS[place])
        spec = fleet.get(APP)["spec"]
        for death in deaths[:2]:
            with suppress(Crashed):
                fleet.step(death)
            fleet.report("c1", "c2")
            fleet.pass_time(3)
        assert fleet.get(APP)["spec"] == spec, "whatever was aborted, the spec is as it was written"

    undo_fleet(fleet, to)
    spec = fleet.get(APP)["spec"]
    with suppress(Crashed):
        fleet.step(deaths[2])
    for _ in range(4):
        fleet.roll()
        fleet.pass_time(6)
    fleet.roll()

    assert fleet.get(APP)["spec"] == spec
    rev = spec["manifestWorkTemplate"]["workload"]["manifests"][0]["data"]["rev"]
    assert fleet.aborted or rev == "bad" or set(fleet.revs().values()) == {rev}


def test_an_undo_of_a_rollout_goes_back_after_every_single_write_of_it() -> None:
    for writes in range(100):
        fleet = Fleet()
        fleet.start(OK1, 4, progressive(), revisionHistoryLimit=KEPT)
        fleet.roll()
        fleet.want(OK2)
        died = _stops(fleet, writes)

        undo_fleet(fleet, None)
        assert fleet.get(APP)["spec"]["manifestWorkTemplate"] == OK1
        fleet.roll()
        assert set(fleet.revs().values()) == {"1"}
        if not died:
            assert writes > 6
            return
    raise AssertionError("a rollout never ends")


def _stops(fleet: Fleet, writes: int) -> bool:
    left = writes
    for _ in range(60):
        before, said = fleet.version, len(fleet.journal)
        try:
            fleet.step(left)
        except Crashed:
            return True
        left -= len(fleet.journal) - said
        fleet.report()
        if fleet.version == before:
            return False
    raise AssertionError("a rollout never ends")


def test_what_is_not_rolled_out_is_left_as_it_is_by_an_undo() -> None:
    """The size is changed, and then the revision undone: the size stays."""
    cats = Cats()
    controller = cats.controller(kept=KEPT)
    cats.start(replicas=2)
    cats.roll(kept=KEPT)
    cats.want(replicas=4, template={"image": "two"})
    cats.roll(kept=KEPT)

    assert undo_children(cats, controller, None) == "one"

    assert cats.get(PARENT)["spec"]["replicas"] == 4
