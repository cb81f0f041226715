"""Since when an owner is in its state, as far as its object tells."""

from __future__ import annotations

from datetime import datetime

from lamina.core.model.state import State
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Obj


def state_since(obj: Obj, state: State) -> datetime | None:
    """
    Return the time of the last transition that an object records.

    That is its deletion where it is being deleted, and otherwise the newest transition
    of its conditions, or its creation where it has none. A condition whose reason alone
    changes keeps its time, so the state may be younger; and a condition that the state
    does not depend on may have changed since.
    """
    metadata = meta.metadata(obj)
    if state is State.DELETING and metadata.get("deletionTimestamp"):
        return moment(str(metadata["deletionTimestamp"]))
    times = (moment(str(one.get("lastTransitionTime") or "")) for one in conditions.of(obj))
    newest = max((one for one in times if one is not None), default=None)
    return newest if newest is not None else moment(str(metadata.get("creationTimestamp") or ""))
