"""A status and the events of its transitions, written together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.model.events import normal, on_change
from lamina.core.model.plan import Action, Emit, set_status
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Obj


class ConditionEvents(Struct, frozen=True, kw_only=True):
    """Which transitions of conditions are events, and what these say."""

    by: str
    """The component that reports them."""
    warnings: Collection[str] = ()
    """The reasons of events of type Warning."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The messages of events of conditions that have none, by type."""
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The reason and message of the event of a condition that was true and is gone, by type."""
    final: str = ""
    """The type of the condition that replaces all others: what it replaces has no event of its own."""
    is_silent: Callable[[Condition], bool] = lambda condition: False
    """Says which conditions have no events."""

    def report(self, obj: Obj, status: Obj, now: datetime) -> tuple[Action, ...]:
        """Return the write of a status without its empty fields, and its events; nothing where it is as it was."""
        patch = set_status(obj, {key: value for key, value in status.items() if value not in (None, [], "")})
        return (patch, *self._events(obj, status.get("conditions") or (), now)) if patch is not None else ()

    def _events(self, obj: Obj, after: Collection[Condition], now: datetime) -> Iterator[Emit]:
        before, shown = conditions.of(obj), [one for one in after if not self.is_silent(one)]
        occasion = meta.resource_version(obj)
        for one in shown:
            name = one["type"]
            said: Condition = {**one, "message": one.get("message") or self.messages.get(name, "")}
            old = conditions.find(before, name)
            for event in on_change(
                obj, old, said, by=self.by, now=now, warns=self.warnings, occasion=occasion
            ):
                yield Emit(event=event)
        names = {one["type"] for one in after}
        for name, (reason, message) in self.ends.items() if self.final not in names else ():
            if conditions.is_true(before, name) and name not in names:
                yield Emit(event=normal(obj, reason, message, by=self.by, now=now, occasion=occasion))
