"""
The registered webhooks, and which of them match a write.

While no webhook is registered, a write costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from lamina.errors import ApiError
from lamina.objects.types import Obj
from lamina.server import status_errors
from lamina.server.admission.lister import AdmissionLister
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.admission.policies.matching import Matcher
from lamina.server.kinds.builtin.admission_cel.variables import OBJECT, OLD, REQUEST
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.registry import Registry
from lamina.server.storage.store import Store

if TYPE_CHECKING:
    from lamina.server.kinds.builtin.admission_cel.compiled import Expression

CONFIGURATIONS: Final = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_EXEMPT: Final = "admissionregistration.k8s.io"
"""The group of webhooks and policies themselves is exempt, so that a wrong webhook can always be removed."""


class Webhook(Struct, frozen=True):
    """One webhook of a configuration."""

    name: str
    spec: Obj
    matcher: Matcher
    conditions: Sequence[Expression]

    @property
    def fails_open(self) -> bool:
        """Whether a write proceeds if the webhook cannot be called: `failurePolicy: Ignore`."""
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def seconds(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)


class MatchedWebhook(Struct, frozen=True):
    """A webhook that matches a write, and the version of the kind that it is sent."""

    webhook: Webhook
    kind: Kind


class Webhooks:
    """The webhooks of one cluster."""

    def __init__(self, store: Store, registry: Registry, lister: AdmissionLister) -> None:
        self._store, self._registry, self._lister = store, registry, lister
        self._seen = -1
        self._webhooks: Sequence[Webhook] = ()
        self._about: dict[tuple[str, str, str], Sequence[Webhook]] = {}
        """Candidate webhooks by kind, operation and subresource; usually empty."""

    @property
    def is_empty(self) -> bool:
        """Whether no webhook is registered."""
        return not self._store.count(CONFIGURATIONS)

    def matching(self, attributes: Attributes) -> list[MatchedWebhook]:
        """Return the webhooks that match a write; raises if that cannot be evaluated."""
        if attributes.kind.group == _EXEMPT:
            return []
        return [
            one
            for webhook in self._candidates(attributes)
            if (one := self._match(webhook, attributes)) is not None
        ]

    def _candidates(self, attributes: Attributes) -> Sequence[Webhook]:
        webhooks, key = (
            self._current(),
            (attributes.kind.bucket, attributes.operation, attributes.subresource),
        )
        found = self._about.get(key)
        if found is None:
            kinds = (attributes.kind, *self._registry.versions(attributes.kind))
            found = self._about[key] = [one for one in webhooks if one.matcher.may_match(kinds, *key[1:])]
        return found

    def _match(self, webhook: Webhook, attributes: Attributes) -> MatchedWebhook | None:
        kind = webhook.matcher.match(attributes, self._lister.namespace_labels, self._registry.versions)
        if kind is None or (webhook.conditions and not _conditions_met(webhook, attributes, kind)):
            return None
        return MatchedWebhook(webhook, kind)

    def _current(self) -> Sequence[Webhook]:
        seen = self._store.changed(CONFIGURATIONS)
        if seen != self._seen:
            found = sorted(self._lister.list(CONFIGURATIONS), key=lambda one: str(one["metadata"]["name"]))
            self._webhooks = [one for configuration in found for one in _read(configuration)]
            self._seen = seen
            self._about.clear()
        return self._webhooks


def _read(configuration: Obj) -> Iterator[Webhook]:
    for one in configuration.get("webhooks") or ():
        conditions = one.get("matchConditions") or ()
        # A webhook without rules matches nothing, while a policy without rules matches everything.
        rules = one.get("rules") or ()
        if rules:
            yield Webhook(one["name"], one, Matcher({**one, "resourceRules": rules}), _compiled(conditions))


def _compiled(conditions: Sequence[Obj]) -> Sequence[Expression]:
    if not conditions:
        return ()
    # Loaded with the first condition, because CEL loads slower than the rest of the server.
    from lamina.server.kinds.builtin.admission_cel.compiled import compile_conditions

    return compile_conditions(conditions)


def _conditions_met(webhook: Webhook, attributes: Attributes, kind: Kind) -> bool:
    from lamina.server.admission.policies.evaluate import Denial, conditions_met

    new, old = attributes.converted(kind)
    result = conditions_met(webhook.conditions, {OBJECT: new, OLD: old, REQUEST: attributes.request(kind)})
    if not isinstance(result, Denial):
        return result
    if webhook.fails_open:
        return False
    raise _match_error(attributes, result.message)


def _match_error(attributes: Attributes, reason: str) -> ApiError:
    return status_errors.forbidden(attributes.kind, attributes.name, reason)
