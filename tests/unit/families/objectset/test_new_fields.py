"""What upstream lacks: objects that stay, a deadline, and a collision protection for all objects of a set."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.families.objectset.labels import CACHED, DELETION_POLICY, REVISION
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.simulation import Loop, Process
from tests.unit.families.objectset.revisions import (
    Revisions,
    config_map,
    deployment,
    object_set,
    phase,
    ref,
    template,
)


def orphan(name: str) -> Made:
    made = config_map(name)
    made["metadata"]["annotations"][DELETION_POLICY] = "Orphan"
    return made


def archive(world: Revisions) -> None:
    world.edit(ref("ObjectSet", "v1"), {"spec": {"lifecycleState": "Archived"}})
    assert world.condition(world.set("v1"), "Archived") == ("True", "Archived")


def delete(world: Revisions) -> None:
    world.cluster.delete(ref("ObjectSet", "v1"))
    world.settle()
    assert world.get("ObjectSet", "v1") is None


# ── objects that stay ──


@pytest.mark.parametrize("end", [archive, delete])
@pytest.mark.parametrize("fields", [{}, {"class": "default"}], ids=["no class", "class"])
def test_an_object_of_the_policy_orphan_stays_without_a_trace_of_its_set(
    end: Any, fields: dict[str, str]
) -> None:
    world = Revisions()
    world.apply(object_set("v1", template(phase("p1", orphan("kept"), config_map("other"), **fields))))
    before = world.config_map("kept")
    assert before is not None
    assert (CACHED in meta.labels(before), REVISION in meta.annotations(before)) == (True, True)
    assert len(meta.owner_refs(before)) == 1

    end(world)

    assert world.config_map("other") is None
    after = world.config_map("kept")
    assert after is not None
    assert (meta.uid(after), after["data"]) == (meta.uid(before), before["data"])
    assert meta.labels(after) == {}
    assert meta.annotations(after) == {"name": "kept", DELETION_POLICY: "Orphan"}
    assert list(meta.owner_refs(after)) == []


def test_an_object_of_the_policy_orphan_that_a_new_revision_drops_stays() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p1", orphan("kept"), config_map("other")))))

    world.apply(deployment("web", template(phase("p1", config_map("new")))))

    assert world.config_map("other") is None
    after = world.config_map("kept")
    assert after is not None
    assert list(meta.owner_refs(after)) == []


# ── a deadline ──


def deadline(seconds: int | None, *objects: Made, **fields: Any) -> Made:
    return deployment("web", template(phase("p1", *objects)), progressDeadlineSeconds=seconds, **fields)


def progressing(world: Revisions) -> tuple[str, str, str]:
    found = conditions.find(conditions.of(world.get("ObjectDeployment", "web") or {}), "Progressing")
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_deadline_that_is_over_says_what_is_missing_until_the_rollout_moves_on() -> None:
    world = Revisions()
    world.apply(deadline(60, config_map("a", healthy=False)))
    # Nothing else happens in the meantime: the end of the deadline itself leads to the next pass.
    loop = Loop(world.cluster, Process(world.cluster, world.controllers))
    loop.pass_time(timedelta(seconds=59))
    assert progressing(world)[:2] == ("True", "LatestRevisionPendingSuccess")

    loop.pass_time(timedelta(seconds=2))

    status, reason, message = progressing(world)
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert 'Phase "p1" failed: ConfigMap default/a: ".metadata.annotations.name" missing' in message

    world.apply(deadline(60, config_map("a", healthy=False, key="another")))
    assert progressing(world)[:2] == ("True", "LatestRevisionPendingSuccess")
    world.pass_time(61)
    assert progressing(world)[:2] == ("False", "ProgressDeadlineExceeded")

    world.edit(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": "a"}}})
    assert progressing(world)[:2] == ("False", "Idle")


def test_a_longer_deadline_makes_no_revision_and_lets_the_rollout_progress_again() -> None:
    world = Revisions()
    world.apply(deadline(60, config_map("a", healthy=False)))
    world.pass_time(61)
    assert progressing(world)[:2] == ("False", "ProgressDeadlineExceeded")

    world.apply(deadline(600, config_map("a", healthy=False)))

    assert progressing(world)[:2] == ("True", "LatestRevisionPendingSuccess")
    (only,) = world.sets_of("web")
    assert only["spec"]["progressDeadlineSeconds"] == 600
    world.pass_time(600)
    assert progressing(world)[:2] == ("False", "ProgressDeadlineExceeded")

    world.apply(deadline(None, config_map("a", healthy=False)))

    (only,) = world.sets_of("web")
    assert "progressDeadlineSeconds" not in only["spec"]
    assert progressing(world)[:2] == ("True", "LatestRevisionPendingSuccess")


def test_reconciling_and_archiving_go_on_after_the_deadline() -> None:
    world = Revisions()
    world.apply(deadline(60, config_map("a"), config_map("x")))
    world.apply(deadline(60, config_map("a", healthy=False)))
    world.pass_time(61)
    assert progressing(world)[:2] == ("False", "ProgressDeadlineExceeded")

    world.edit(ref("ConfigMap", "x"), {"data": {"key": "drift"}})
    world.edit(ref("ConfigMap", "a"), {"data": {"key": "drift"}})

    assert (world.config_map("x") or {})["data"] == {"key": "value"}
    assert (world.config_map("a") or {})["data"] == {"key": "value"}
    world.edit(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": "a"}}})
    first, _ = world.sets_of("web")
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.config_map("x") is None


# ── a collision protection for all ──


@pytest.mark.parametrize(
    ("default", "own", "adopted"),
    [
        ("", "", False),
        ("IfNoController", "", True),
        ("IfNoController", "Prevent", False),
        ("Prevent", "None", True),
    ],
)
def test_the_protection_of_an_object_wins_over_that_of_its_set(default: str, own: str, adopted: bool) -> None:
    world = Revisions()
    world.cluster.create(config_map("a", namespace="default"))
    fields: dict[str, Any] = {"collisionProtection": default} if default else {}

    world.apply(
        deployment("web", template(phase("p1", config_map("a", key="new"), protection=own), **fields))
    )

    (only,) = world.sets_of("web")
    assert world.condition(only, "Available") == (
        ("True", "Available") if adopted else ("False", "CollisionDetected")
    )
    assert (world.config_map("a") or {})["data"] == {"key": "new" if adopted else "value"}
