"""
The webhooks that are registered, and those of them that want to be asked about a write.

Where none is registered, finding that out is all it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from lamina.errors import ApiError
from lamina.objects.types import Obj
from lamina.server import words
from lamina.server.kind import Kind
from lamina.server.policies.attempt import Attempt
from lamina.server.policies.matching import Matcher
from lamina.server.policies.names import OBJECT, OLD, REQUEST
from lamina.server.records import Records
from lamina.server.registry import Registry
from lamina.server.store import Store

if TYPE_CHECKING:
    from lamina.server.policies.compiled import Expression

CONFIGURATIONS: Final = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_EXEMPT: Final = "admissionregistration.k8s.io"
"""The group of webhooks and policies themselves: nobody is asked about it, or nobody could undo a mistake."""


class Webhook(Struct, frozen=True):
    """One webhook of a configuration."""

    name: str
    written: Obj
    matcher: Matcher
    conditions: Sequence[Expression]

    @property
    def ignores(self) -> bool:
        """Say whether a write goes ahead where this cannot be asked."""
        return self.written.get("failurePolicy") == "Ignore"

    @property
    def seconds(self) -> int:
        return int(self.written.get("timeoutSeconds") or 10)


class Asked(Struct, frozen=True):
    """A webhook that wants to be asked about a write, and the version of the kind it is asked in."""

    webhook: Webhook
    kind: Kind


class Webhooks:
    """The webhooks of one control plane."""

    def __init__(self, store: Store, registry: Registry, records: Records) -> None:
        self._store, self._registry, self._records = store, registry, records
        self._seen = -1
        self._webhooks: Sequence[Webhook] = ()
        self._about: dict[tuple[str, str, str], Sequence[Webhook]] = {}
        """Who may want to be asked, by kind, operation and what is written below an object: mostly nobody."""

    @property
    def is_empty(self) -> bool:
        """Say whether nobody is registered."""
        return not self._store.count(CONFIGURATIONS)

    def asked(self, attempt: Attempt) -> list[Asked]:
        """Return who wants to be asked about a write; raises where that cannot be found out."""
        if attempt.kind.group == _EXEMPT:
            return []
        return [
            one for webhook in self._concerned(attempt) if (one := self._wants(webhook, attempt)) is not None
        ]

    def _concerned(self, attempt: Attempt) -> Sequence[Webhook]:
        every, sort = self._current(), (attempt.kind.bucket, attempt.operation, attempt.subresource)
        found = self._about.get(sort)
        if found is None:
            kinds = (attempt.kind, *self._registry.versions(attempt.kind))
            found = self._about[sort] = [one for one in every if one.matcher.could(kinds, *sort[1:])]
        return found

    def _wants(self, webhook: Webhook, attempt: Attempt) -> Asked | None:
        kind = webhook.matcher.match(attempt, self._labels, self._registry.versions)
        if kind is None or (webhook.conditions and not _meets(webhook, attempt, kind)):
            return None
        return Asked(webhook, kind)

    def _current(self) -> Sequence[Webhook]:
        seen = self._store.changed(CONFIGURATIONS)
        if seen != self._seen:
            found = sorted(self._records.every(CONFIGURATIONS), key=lambda one: str(one["metadata"]["name"]))
            self._webhooks = [one for configuration in found for one in _read(configuration)]
            self._seen = seen
            self._about.clear()
        return self._webhooks

    def _labels(self, namespace: str) -> Any:
        found = self._records.get("namespaces", "", namespace)
        return None if found is None else found["metadata"].get("labels")


def _read(configuration: Obj) -> Iterator[Webhook]:
    for one in configuration.get("webhooks") or ():
        conditions = one.get("matchConditions") or ()
        # A webhook about nothing is asked about nothing, where a policy without rules is about everything.
        rules = one.get("rules") or ()
        if rules:
            yield Webhook(one["name"], one, Matcher({**one, "resourceRules": rules}), _compiled(conditions))


def _compiled(conditions: Sequence[Obj]) -> Sequence[Expression]:
    if not conditions:
        return ()
    # Loaded with the first condition: expressions take longer to load than the rest of the server to start.
    from lamina.server.policies.compiled import compile_conditions

    return compile_conditions(conditions)


def _meets(webhook: Webhook, attempt: Attempt, kind: Kind) -> bool:
    from lamina.server.policies.judged import Refusal, conditions_met

    new, old = attempt.seen(kind)
    met = conditions_met(webhook.conditions, {OBJECT: new, OLD: old, REQUEST: attempt.request(kind)})
    if not isinstance(met, Refusal):
        return met
    if webhook.ignores:
        return False
    raise _undecided(attempt, met.message)


def _undecided(attempt: Attempt, why: str) -> ApiError:
    return words.forbidden(attempt.kind, attempt.name, why)
