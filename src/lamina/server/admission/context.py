"""The dependencies of admission: store, registry, policies, webhooks, clock and randomness."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

from lamina.server.admission.lister import AdmissionLister
from lamina.server.admission.policies.active import ActivePolicies
from lamina.server.admission.webhooks.dispatch import WebhookDispatcher
from lamina.server.admission.webhooks.registry import Webhooks
from lamina.server.kinds.registry import Registry
from lamina.server.storage.store import Store

_RANDOM = random.Random()
"""A generator of our own, so that seeding the module-level one does not repeat uids."""
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


class AdmissionContext:
    """The parts of a server that admission depends on, and its only source of time and randomness."""

    def __init__(self, store: Store, registry: Registry, now: Callable[[], datetime]) -> None:
        self.store = store
        self.registry = registry
        self.lister = AdmissionLister(store)
        self.policies = ActivePolicies(store, registry, self.lister)
        self.webhooks = Webhooks(store, registry, self.lister)
        self.dispatcher = WebhookDispatcher(self.lister)
        self.clock = now
        self._second: datetime | None = None
        self._stamp = ""

    @property
    def is_reviewed(self) -> bool:
        """Whether any policy or webhook is registered."""
        return not (self.policies.is_empty and self.webhooks.is_empty)

    def now(self) -> datetime:
        return self.clock()

    def stamp(self) -> str:
        """Return the current time as it is stored in objects: UTC, whole seconds."""
        second = self.clock().replace(microsecond=0)
        if second != self._second:
            self._second, self._stamp = second, second.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._stamp

    def new_uid(self) -> str:
        # A uid must be unique but not unpredictable; os.urandom would cost more than the rest of a small write.
        digits = f"{_RANDOM.getrandbits(128):032x}"
        # UUID version 4, RFC 4122 variant (binary 10).
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"

    def choose(self, letters: str) -> str:
        """Return a random one of the letters."""
        return _RANDOM.choice(letters)
