"""The next step of a phase: nothing of it is written before all of it is checked, and its objects gate what follows."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from lamina.core.model.plan import Create
from lamina.core.model.queries import Answers, Found, Read
from lamina.core.ownership.handover import Adoption
from lamina.core.phases.manifest import Manifest
from lamina.core.phases.owner import PhaseOwner, superseded
from lamina.core.phases.phase_step import FailureReason, PhaseStep, phase_step
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.core.phases.objects import (
    BROKEN,
    READY,
    Server,
    body,
    by_key,
    key,
    live,
    manifest,
    owner,
    refuses,
)

A, B = manifest("a"), manifest("b")


def step(
    who: PhaseOwner,
    wanted: Sequence[Manifest],
    lives: Iterable[Obj] = (),
    *,
    server: Server | None = None,
    is_reached: bool = True,
) -> PhaseStep:
    """Return the step of a phase once everything that is asked has been answered."""
    found = by_key(*lives)

    def decide(answers: Answers) -> PhaseStep:
        return phase_step(who, "deploy", wanted, found, answers, is_reached=is_reached)

    decided = (server or settled(*lives)).answers(decide)
    assert isinstance(decided, PhaseStep)
    return decided


def settled(*lives: Obj) -> Server:
    """Return a server on which an apply of what exists changes nothing."""
    return Server(
        objects=lives,
        judges=lambda asked: next(
            (Found(one) for one in lives if meta.name(one) == meta.name(asked.obj)), None
        ),
    )


def message(found: PhaseStep) -> str:
    return found.failure.message if found.failure is not None else ""


# Gates


def test_a_phase_without_objects_passes() -> None:
    found = step(owner(), [])

    assert found.failure is None
    assert not found.gates


def test_objects_that_are_missing_are_created_and_waited_for() -> None:
    found = step(owner(), [A, B])

    assert [type(one) for one in found.actions] == [Create, Create]
    assert found.gates
    assert found.moves_control
    assert found.is_unsettled
    assert found.left == (key("a"), key("b"))
    assert message(found) == 'Phase "deploy" failed: ConfigMap team/a: not found, ConfigMap team/b: not found'


def test_a_phase_passes_once_all_of_its_objects_do() -> None:
    found = step(owner(probed=True), [A, B], [live("a", conditions=[READY]), live("b", conditions=[READY])])

    assert found.failure is None
    assert not found.gates
    assert not found.actions
    assert not found.is_unsettled
    assert found.controlled == (key("a"), key("b"))


def test_a_probe_that_fails_gates_and_names_the_object() -> None:
    found = step(owner(probed=True), [A, B], [live("a", conditions=[READY]), live("b", conditions=[BROKEN])])

    assert found.failure is not None
    assert found.failure.reason is FailureReason.PROBE
    assert message(found) == 'Phase "deploy" failed: ConfigMap team/b: .status.condition["Ready"] is False'
    assert found.gates
    assert not found.is_refused


def test_what_is_being_written_gates_though_its_probes_are_healthy() -> None:
    drifted = {**live("a", conditions=[READY]), "data": {"k": "drifted"}}

    found = step(owner(probed=True), [A], [drifted], server=Server())

    assert found.failure is None
    assert found.has_drifted
    assert found.gates
    assert found.is_unsettled


def test_what_a_newer_revision_has_neither_gates_nor_counts_as_controlled() -> None:
    found = step(owner(siblings=[6]), [A, B], [live("a", controller=6), live("b")])

    assert not found.gates
    assert found.controlled == (key("b"),)
    assert found.left == (key("a"),)
    assert not found.is_unsettled


def test_a_phase_that_is_not_reached_is_observed_and_not_written() -> None:
    server = Server()

    found = step(owner(), [A, manifest(obj=body(name=""))], server=server, is_reached=False)

    assert not found.actions
    assert not found.moves_control
    assert found.failure is not None
    assert found.failure.reason is FailureReason.PROBE
    assert not server.asked


# Superseded revisions


@pytest.mark.parametrize(
    ("lives", "taken", "replaced"),
    [
        ([live("a"), live("b")],                (),      False),
        ([live("a", controller=6), live("b")],  (),      True),
        ([live("a", controller=4), live("b")],  (),      False),
        ([live("b")],                           (),      False),
        ([live("b")],                           ("a",),  True),
        ([live("a"), live("b")],                ("a",),  False),
    ],
)  # fmt: skip
def test_a_revision_is_superseded_once_a_newer_one_has_one_of_its_objects(
    lives: list[Obj], taken: tuple[str, ...], replaced: bool
) -> None:
    who = owner(siblings=[4, 6], taken=taken)

    found = superseded(who, [A, B], by_key(*lives))

    assert found.is_superseded == replaced
    assert found.creates != replaced


def test_an_object_of_another_phase_supersedes_a_revision_too() -> None:
    found = superseded(owner(), [A], by_key(live("a")), elsewhere=True)

    assert found.is_superseded
    assert not found.creates
    assert superseded(owner(), [A], by_key(live("a")), elsewhere=True, succeeded=True).creates


def test_a_superseded_failure_creates_nothing_and_does_not_wait_for_it() -> None:
    found = step(owner(siblings=[6], is_superseded=True, creates=False), [A, B], [live("a", controller=6)])

    assert not found.actions
    assert not found.gates
    assert message(found) == 'Phase "deploy" failed: ConfigMap team/b: not found'


# Refusals


def test_one_violation_keeps_all_objects_of_a_phase_from_being_written() -> None:
    broken = manifest("b", obj={**body("b"), "kind": "Gadget"})

    found = step(owner(), [A, broken])

    assert found.failure is not None
    assert found.failure.reason is FailureReason.PREFLIGHT
    assert found.is_refused
    assert not found.actions
    assert found.gates
    assert message(found).startswith('Phase "deploy", Gadget team/b: no matches for kind "Gadget"')


def test_all_violations_are_reported_at_once() -> None:
    wrong = [manifest(name, obj=body(name, uid="x")) for name in "ab"]

    found = step(owner(), wrong)

    assert message(found) == ", ".join(
        f'Phase "deploy", ConfigMap team/{name}: metadata.uid must not be set' for name in "ab"
    )


def test_all_that_the_server_refuses_is_reported_at_once() -> None:
    found = step(owner(), [A, B], server=Server(judges=refuses(403, "forbidden")))

    assert message(found) == (
        'Phase "deploy", ConfigMap team/a: forbidden, Phase "deploy", ConfigMap team/b: forbidden'
    )
    assert not found.actions


def test_all_collisions_are_reported_and_the_others_are_written() -> None:
    lives = [live("a", controller="x"), live("b", controller=None)]

    found = step(owner(), [A, B, manifest("c")], lives, server=Server())

    assert found.failure is not None
    assert found.failure.reason is FailureReason.COLLISION
    assert found.is_refused
    assert [one.ref.name for one in found.actions] == ["c"]
    assert message(found).count("refusing adoption") == 2
    assert found.gates


def test_a_collision_behind_a_gate_is_none_yet() -> None:
    found = step(owner(), [A], [live("a", controller="x")], is_reached=False)

    assert found.failure is None
    assert found.gates


def test_an_unknown_adoption_is_never_written() -> None:
    unknown = manifest("a", adoption=None, problems=("adoption: unknown",))

    found = step(owner(), [unknown])

    assert message(found) == 'Phase "deploy", ConfigMap team/a: adoption: unknown'
    assert not found.actions


# Pauses


def test_a_paused_owner_observes_and_writes_nothing() -> None:
    found = step(owner(is_paused=True, probed=True), [A, B], [live("a", conditions=[BROKEN])])

    assert not found.actions
    assert found.gates
    assert "ConfigMap team/b: not found" in message(found)


def test_a_paused_owner_reads_live_what_it_does_not_seem_to_control() -> None:
    server = Server()
    lives = [live("a"), live("b", controller=6)]

    step(owner(is_paused=True, siblings=[6]), [A, B, manifest("c")], lives, server=server)

    assert [one.ref.name for one in server.asked if isinstance(one, Read)] == ["c"]


@pytest.mark.parametrize(("controller", "outdated"), [(5, True), (6, False), (None, False)])
def test_a_paused_owner_reports_nothing_by_a_cache_that_lacks_what_it_controls(
    controller: int | None, outdated: bool
) -> None:
    who = owner(is_paused=True, siblings=[6])

    found = step(who, [A], [], server=Server(objects=[live("a", controller=controller)]))

    assert found.is_outdated == outdated
    assert found.is_unsettled == outdated


# What is taken over


@pytest.mark.parametrize(
    ("adoption", "taken"), [(Adoption.NEVER, 0), (Adoption.ORPHANS, 1), (Adoption.ANY, 1)]
)
def test_adoption_decides_about_an_object_without_a_controller(adoption: Adoption, taken: int) -> None:
    found = step(owner(), [manifest("a", adoption=adoption)], [live("a", controller=None)], server=Server())

    assert len(found.actions) == taken
    assert found.moves_control == bool(taken)


def test_the_steps_keep_the_order_of_the_manifests() -> None:
    wanted = [manifest(name, part=part) for name, part in (("c", ""), ("a", ""), ("b", "s"))]

    found = step(owner(), wanted)

    assert [one.manifest.key.name for one in found.steps] == ["c", "a", "b"]
    assert [one.manifest.part for one in found.steps] == ["", "", "s"]


def test_a_failed_probe_and_a_drift_are_reported_at_once() -> None:
    drifted: Made = {**live("a", conditions=[BROKEN]), "data": {}}

    found: Any = step(owner(probed=True), [A], [drifted], server=Server())

    assert found.actions
    assert found.failure is not None
    assert not found.is_unsettled
