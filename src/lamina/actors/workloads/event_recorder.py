"""
Events about created and deleted pods, aggregated as client-go's event recorder does.

Of similar events, the first nine are recorded one by one and the others as one
event with a count of at most twenty-five, client-go's burst limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Emit
from lamina.objects import meta
from lamina.objects.types import Obj

ALONE = 9
AT_MOST = 25

_COMBINED = "(combined from similar events): "


def aggregated(about: Obj, reason: str, messages: Sequence[str], *, by: str, now: datetime) -> list[Emit]:
    """Return the aggregated events with these messages about an object."""
    events = [normal(about, reason, message, by=by, now=now) for message in messages[:ALONE]]
    if len(messages) > ALONE:
        many = min(len(messages), AT_MOST) - ALONE
        together = normal(about, reason, _COMBINED + messages[ALONE + many - 1], by=by, now=now)
        events.append({**together, "count": many})
    return [Emit(event=event) for event in events]


def created(owner: Obj, pods: Iterable[Obj], *, by: str, now: datetime) -> list[Emit]:
    """Return the events about created pods."""
    messages = [f"Created pod: {meta.name(pod)}" for pod in pods]
    return aggregated(owner, "SuccessfulCreate", messages, by=by, now=now)


def deleted(owner: Obj, pods: Iterable[Obj], *, by: str, now: datetime) -> list[Emit]:
    """Return the events about deleted pods."""
    messages = [f"Deleted pod: {meta.name(pod)}" for pod in pods]
    return aggregated(owner, "SuccessfulDelete", messages, by=by, now=now)


def refused(
    owner: Obj, errors: Sequence[Exception], *, by: str, now: datetime, occasion: str = ""
) -> list[Emit]:
    """
    Return the warning events about pods that could not be created, one for each message.

    With the same occasion, an equal event is not recorded again.
    """
    messages = dict.fromkeys(f"Error creating: {error}" for error in errors)
    return [
        Emit(event=warning(owner, "FailedCreate", message, by=by, now=now, occasion=occasion))
        for message in list(messages)[:ALONE]
    ]
