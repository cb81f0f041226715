"""What a change is to blame for: how everybody ends with it, beside how they would end without it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.simulation.simulation import Ending, Simulation


def blamed(played: Simulation, unchanged: Callable[[], Simulation]) -> list[Ending]:
    """
    Return how everybody stands; who was left alone and stands as badly without the change is marked as that.

    The same time is played once more without the change, where that is of any use.
    """
    endings = played.endings()
    doubtful = [one for one in endings if not one.well and not played.is_changed(one.ref)]
    if not doubtful or not played.has_changes:
        return endings
    try:
        without = unchanged().endings()
    except LaminaError:
        # What goes wrong may be about something that only the change brings.
        return endings
    anyway = [_how(one) for one in without if not one.well]
    return [replace(one, anyway=True) if one in doubtful and _how(one) in anyway else one for one in endings]


def _how(one: Ending) -> object:
    """Return how badly somebody stands; names that were given by chance are in the sentence alone."""
    if one.account is None:
        return one.ref, one.state, one.because
    return one.ref, one.state, one.account.goal, dict(one.account.targets)
