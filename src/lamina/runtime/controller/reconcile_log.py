"""
The log lines of a controller's reconciles.

What was done is a line for each verb, and names the objects. A Warning event is a
warning here, too, under its reason: a stall, an abort, a controller that cannot
start. An error that stays the same is logged once for each step of its backoff,
although changes of other objects may lead to more reconciles in between.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from lamina.core.model.effects import Attempt
from lamina.core.model.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Plan, Post, Replace
from lamina.logs import Logger
from lamina.objects.types import Ref

_VERBS: dict[type, str] = {
    Create: "created",
    Apply: "applied",
    Patch: "patched",
    Replace: "updated",
    Delete: "deleted",
    DeleteAll: "deleted all",
}
_POSTED = {"binding": "bound", "eviction": "evicted"}
_SHOWN = 5
"""How many objects a line names."""
_REMEMBERED = 1024
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CONFLICTS_LOGGED = 10
"""After how many conflicts in a row a key is logged: a few are normal where several controllers write."""


class _Failure(NamedTuple):
    """An error that was logged, and when it is logged again if it stays the same: None for never."""

    text: str
    again: datetime | None


class ReconcileLog:
    """Logs what the reconciles of one controller come to."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._failures: dict[Ref, _Failure] = {}
        self._warned: dict[str, None] = {}
        """The names of the Warning events that were logged, the oldest first."""

    def note(self, ref: Ref, attempt: Attempt, now: datetime, retry: datetime | None) -> None:
        """Log a reconcile, of a key that is retried at that time."""
        if attempt.plan is not None:
            self._note_done(ref, attempt.plan, attempt.outcome.done)
            if not attempt.outcome.refused:
                self._note_warnings(ref, attempt.plan)
        if attempt.complaint is not None:
            self._note_failure(ref, str(attempt.complaint.error), now, retry)
            if attempt.complaint.unreported is not None:
                unreported = str(attempt.complaint.unreported)
                self._log.debug("failure not reported", object=str(ref), because=unreported)
        elif attempt.failure is not None:
            self._note_requeue(ref, attempt, now, retry)
        else:
            self.forget(ref)

    def forget(self, ref: Ref) -> None:
        """Log the next error of a key, even if it is the last one that was logged."""
        self._failures.pop(ref, None)

    def _note_done(self, ref: Ref, plan: Plan, done: Iterable[Action]) -> None:
        for verb, objects in _by_verb(done).items():
            self._log.info(verb, object=str(ref), objects=_listed(objects), because=plan.because)

    def _note_warnings(self, ref: Ref, plan: Plan) -> None:
        for name, reason, message in _warnings(plan.actions):
            if name in self._warned:
                continue
            self._warned[name] = None
            if len(self._warned) > _REMEMBERED:
                del self._warned[next(iter(self._warned))]
            self._log.warning(_words(reason), object=str(ref), because=message)

    def _note_failure(self, ref: Ref, text: str, now: datetime, retry: datetime | None) -> None:
        last = self._failures.get(ref)
        if last is not None and last.text == text and (last.again is None or now < last.again):
            return
        self._failures[ref] = _Failure(text, retry)
        if len(self._failures) > _REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._log.warning("reconcile failed", object=str(ref), because=text)

    def _note_requeue(self, ref: Ref, attempt: Attempt, now: datetime, retry: datetime | None) -> None:
        """Log a key that is retried, as a warning once its writes have conflicted too often in a row."""
        if attempt.conflicts >= _CONFLICTS_LOGGED:
            self._note_failure(ref, f"its writes keep conflicting: {attempt.failure}", now, retry)
        else:
            self._log.debug("requeued", object=str(ref), because=str(attempt.failure))


def _by_verb(done: Iterable[Action]) -> dict[str, list[str]]:
    """Return the objects that were written, by what was done to them; events are logged as warnings, or not."""
    found: dict[str, list[str]] = {}
    for action in done:
        if not isinstance(action, Emit):
            found.setdefault(_verb(action), []).append(str(action.ref))
    return found


def _verb(action: Action) -> str:
    if isinstance(action, Post):
        return _POSTED.get(action.subresource, f"posted {action.subresource}")
    verb = _VERBS[type(action)]
    subresource = getattr(action, "subresource", "")
    return f"{verb} {subresource}" if subresource else verb


def _listed(objects: Collection[str]) -> str:
    distinct = list(dict.fromkeys(objects))
    more = len(distinct) - _SHOWN
    return ", ".join(distinct[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _warnings(actions: Iterable[Action]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the reason and the message of each Warning event."""
    for action in actions:
        if isinstance(action, Emit) and action.event.get("type") == "Warning":
            event = action.event
            yield action.ref.name, str(event.get("reason") or ""), str(event.get("message") or "")


def _words(reason: str) -> str:
    """Return the reason of an event as words: `RolloutAborted` is `rollout aborted`."""
    return _WORD.sub(" ", reason).lower()
