"""Compares the final states with and without the change, to find those that the change causes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.simulation.scenario.final_state import FinalState
from lamina.simulation.scenario.simulation import Simulation


def against_baseline(simulation: Simulation, unchanged: Callable[[], Simulation]) -> list[FinalState]:
    """
    Return the final states; an owner that is as unhealthy without the change is marked so.

    Only if such an owner is possible, the same time is simulated again without the change.
    """
    states = simulation.final_states()
    doubtful = [one for one in states if not one.healthy and not simulation.is_changed(one.ref)]
    if not doubtful or not simulation.has_changes:
        return states
    try:
        without = unchanged().final_states()
    except LaminaError:
        # The error may concern an object that only the change creates.
        return states
    also_without = [_comparable(one) for one in without if not one.healthy]
    return [
        replace(one, unhealthy_without_change=True)
        if one in doubtful and _comparable(one) in also_without
        else one
        for one in states
    ]


def _comparable(one: FinalState) -> object:
    """Return what makes two unhealthy states equal; generated names occur only in the message, which is left out."""
    if one.owner_status is None:
        return one.ref, one.state, one.because
    return (
        one.ref,
        one.state,
        one.owner_status.goal,
        {name: target.revision for name, target in one.owner_status.targets.items()},
    )
