"""What commands show of a parent that its controller cannot sync, and what a plan says of its children."""

from typing import Any

import pytest

from lamina.core.rollout.owner_status import OwnerStatus
from lamina.families.metacontroller.family import family
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats, planned

READY = {"type": "Ready", "status": "True"}
DOWN = {"type": "HookReachable", "status": "False", "message": "http error: refused"}
LAST = {"object": str(PARENT), "message": "pods is forbidden", "time": "2026-01-01T00:00:00Z"}


def status_of(cats: Cats, method: str = "RollingInPlace", **status: Any) -> OwnerStatus:
    """Return what commands show of the parent while its controller has this status."""
    copy = cats.copy()
    copy.load([{**cats.composite(method), "status": {"conditions": [READY], **status}}])
    (source,) = family().sources
    (found, _) = source.controllers(copy.world(family().controllers[0]))
    shown = family().owner_status(copy.world(found), PARENT)
    assert shown is not None
    return shown


@pytest.mark.parametrize("method", ["RollingInPlace", "InPlace"])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"conditions": [READY, DOWN]}, DOWN["message"]),
        ({"lastError": LAST}, f"{LAST['message']} (at {LAST['time']})"),
    ],
    ids=["hook down", "rights missing"],
)
def test_a_parent_that_cannot_be_synced_shows_the_error_of_its_controller(
    method: str, status: Made, message: str
) -> None:
    cats = Cats()
    cats.start()
    assert status_of(cats, method, **status).message == message

    cats.roll(method=method)
    cats.want(template={"image": "two"})
    assert status_of(cats, method, **status).message == message

    cats.patch(PARENT, {"metadata": {"finalizers": ["example.com/held"]}})
    cats.delete(PARENT)
    shown = status_of(cats, method, **status)
    assert (shown.state, shown.message) == (
        "Deleting",
        f"waits for finalizers: example.com/held; {message}",
    )


def test_the_error_of_another_parent_is_not_shown() -> None:
    cats = Cats()
    cats.start()
    other = {**LAST, "object": str(PARENT._replace(name="other"))}

    assert status_of(cats, lastError=other).message == "its controller has not reported a status yet"


# What a plan says


def because(cats: Cats, **settings: Any) -> str:
    return planned(cats, cats.controller(**settings), PARENT).because


def settled(method: str) -> Cats:
    cats = Cats()
    cats.start()
    cats.settle(method=method)
    return cats


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("OnDelete", "3 children differ and are left (OnDelete)"),
        ("InPlace", "its hook desires other children: 3 updated"),
    ],
)
def test_children_are_as_desired_only_while_they_are(method: str, said: str) -> None:
    cats = settled(method)
    assert because(cats, method=method) == "its children are as its hook desires them"

    cats.want(template={"image": "two"})
    assert because(cats, method=method) == said


def test_children_that_are_created_deleted_or_being_deleted_are_counted() -> None:
    cats = settled("InPlace")
    held = meta.ref(next(pod for pod in cats.listed(POD) if meta.name(pod) == "nginx-0"))
    cats.patch(held, {"metadata": {"finalizers": ["example.com/held"]}})
    cats.delete(held)
    assert because(cats, method="InPlace") == "1 child is being deleted"

    cats.want(replicas=4)
    assert because(cats, method="InPlace") == (
        "its hook desires other children: 1 created; 1 child is being deleted"
    )
    cats.want(replicas=1)
    assert because(cats, method="InPlace") == (
        "its hook desires other children: 2 deleted; 1 child is being deleted"
    )


def test_a_child_whose_name_another_object_has_is_not_as_desired() -> None:
    cats = settled("InPlace")
    cats.create({**cats.pod(3, "other"), "metadata": {"name": "nginx-3", "namespace": "default"}})
    cats.want(replicas=4)

    assert (
        because(cats, method="InPlace") == "1 child cannot be created, because other objects have their names"
    )


def test_a_parent_whose_spec_is_refused_is_not_waited_for() -> None:
    cats = Cats()
    cats.start()
    assert not status_of(cats).has_ended

    cats.patch(PARENT, {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}})
    shown = status_of(cats)

    assert (shown.state, shown.has_ended) == ("Degraded", True)
    assert "selector" in shown.message
