"""How many targets of an owner are on the goal, and how many are healthy."""

from lamina.core.model.state import State
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus


def owner_status(goal: int, **targets: TargetStatus) -> OwnerStatus:
    return OwnerStatus(owner={}, history=History(), goal=goal, state=State.PROGRESSING, targets=targets)


def test_a_target_on_the_goal_is_updated_and_available_once_it_is_healthy() -> None:
    found = owner_status(
        2,
        a=TargetStatus(revision=2, state=State.HEALTHY, available=True),
        b=TargetStatus(revision=2, state=State.PROGRESSING),
        c=TargetStatus(revision=1, state=State.PENDING),
    )

    assert (found.updated, found.available, len(found.targets)) == (2, 1, 3)


def test_a_target_that_waits_for_its_turn_may_be_available_where_it_is() -> None:
    found = owner_status(2, a=TargetStatus(revision=1, state=State.PENDING, available=True))

    assert (found.updated, found.available) == (0, 1)


def test_an_owner_without_targets_has_none_updated_or_available() -> None:
    assert (owner_status(1).updated, owner_status(1).available) == (0, 0)
