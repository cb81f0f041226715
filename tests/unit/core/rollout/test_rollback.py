"""A rollback is an edit that writes an old snapshot into the spec of its owner."""

from typing import Any

import pytest

from lamina.core.model.plan import Replace
from lamina.core.rollout.history import history
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.rollback import rollback
from lamina.errors import RevisionNotFound
from lamina.objects.types import Made

PAST = history(Revision(number=number, name=f"r{number}", snapshot={"image": str(number)}) for number in (1, 2, 4))  # fmt: skip


def owner(image: str) -> Made:
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "app", "namespace": "one", "uid": "u", "resourceVersion": "9"},
        "spec": {"replicas": 3, "template": {"image": image}},
    }


def restored(revision: Revision) -> Made:
    return {**owner("4"), "spec": {"replicas": 3, "template": revision.snapshot}}


@pytest.mark.parametrize(("to", "image"), [(None, "2"), (1, "1"), (2, "2")])
def test_the_snapshot_of_the_revision_is_written_and_nothing_else(to: int | None, image: str) -> None:
    plan = rollback(owner("4"), PAST, 4, to, restored)

    assert plan.actions == (Replace(obj=owner(image)),)
    assert plan.because == f"rolling back app one/app to revision {image}"


def test_an_owner_that_asks_for_that_revision_already_is_not_written() -> None:
    assert rollback(owner("4"), PAST, 4, 4, restored).actions == ()


@pytest.mark.parametrize(("goal", "to"), [(4, 3), (4, 9), (1, None)])
def test_a_revision_that_is_not_kept_is_refused_with_those_that_are(goal: int, to: int | None) -> None:
    with pytest.raises(RevisionNotFound) as refused:
        rollback(owner("4"), PAST, goal, to, restored)

    assert str(refused.value).endswith("the available revisions are 1, 2, 4")


def test_the_write_names_the_version_that_was_seen() -> None:
    (action,) = rollback(owner("4"), PAST, 4, 1, restored).actions
    written: Any = action.obj if isinstance(action, Replace) else {}

    assert written["metadata"]["resourceVersion"] == "9"
