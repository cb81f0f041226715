"""
What the controllers of workloads tell about the pods they make and delete.

A burst is not told pod by pod. Of happenings that differ only in whom they
happened to, the first nine are told one by one and the others as one event
with a count, which stops at twenty-five: what Kubernetes' own recorder lets
through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from lamina.core.events import normal, warning
from lamina.core.plan import Emit
from lamina.objects import meta
from lamina.objects.types import Obj

ALONE = 9
AT_MOST = 25

_COMBINED = "(combined from similar events): "


def told(about: Obj, reason: str, messages: Sequence[str], *, by: str, now: datetime) -> list[Emit]:
    """Return the events that tell these messages about an object, in as few as a burst deserves."""
    events = [normal(about, reason, message, by=by, now=now) for message in messages[:ALONE]]
    if len(messages) > ALONE:
        many = min(len(messages), AT_MOST) - ALONE
        together = normal(about, reason, _COMBINED + messages[ALONE + many - 1], by=by, now=now)
        events.append({**together, "count": many})
    return [Emit(event=event) for event in events]


def created(owner: Obj, pods: Iterable[Obj], *, by: str, now: datetime) -> list[Emit]:
    """Return the events that tell of pods an owner has made."""
    messages = [f"Created pod: {meta.name(pod)}" for pod in pods]
    return told(owner, "SuccessfulCreate", messages, by=by, now=now)


def deleted(owner: Obj, pods: Iterable[Obj], *, by: str, now: datetime) -> list[Emit]:
    """Return the events that tell of pods an owner has deleted."""
    messages = [f"Deleted pod: {meta.name(pod)}" for pod in pods]
    return told(owner, "SuccessfulDelete", messages, by=by, now=now)


def refused(
    owner: Obj, errors: Sequence[Exception], *, by: str, now: datetime, occasion: str = ""
) -> list[Emit]:
    """
    Return the events that warn of pods an owner could not make, one for each way it was put.

    As long as the occasion is the same, what is refused again in the same words
    is not told again.
    """
    messages = dict.fromkeys(f"Error creating: {error}" for error in errors)
    return [
        Emit(event=warning(owner, "FailedCreate", message, by=by, now=now, occasion=occasion))
        for message in list(messages)[:ALONE]
    ]
