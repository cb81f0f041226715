"""One control plane: its store, its kinds and its clock, as the verbs see them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from lamina.server.kind import Kind, Subresource
from lamina.server.policies.board import Board
from lamina.server.records import Records
from lamina.server.registry import Registry
from lamina.server.store import Key, Store
from lamina.server.webhooks.asking import Asker
from lamina.server.webhooks.board import Webhooks

if TYPE_CHECKING:
    from lamina.server.faults import Asking
    from lamina.server.voice import Voice

_DICE = random.Random()
"""Our own: whoever seeds the one that everybody shares must not make uids come again."""
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


class Target(NamedTuple):
    """What a request is about: a kind, where in it, and below which object."""

    kind: Kind
    namespace: str
    name: str
    subresource: str = ""
    below: Subresource | None = None

    @property
    def key(self) -> Key:
        return Key(self.kind.bucket, self.namespace, self.name)


class Ends(Protocol):
    """A watch that can be ended from outside."""

    def end(self) -> None: ...


class Plane:
    """What the verbs share. Everything random or of the moment comes from here."""

    def __init__(self, store: Store, registry: Registry, now: Callable[[], datetime]) -> None:
        self.store = store
        self.registry = registry
        self.records = Records(store)
        self.policies = Board(store, registry, self.records)
        self.webhooks = Webhooks(store, registry, self.records)
        self.asker = Asker(self.records)
        self.clock = now
        self._second: datetime | None = None
        self._stamp = ""
        self.voices: WeakValueDictionary[tuple[object, ...], Voice] = WeakValueDictionary()
        """Who speaks to watchers at present, by what they asked for."""
        self.watchers: WeakKeyDictionary[Ends, Asking | None] = WeakKeyDictionary()
        """The watches that are open, and what each of them asked for, unless no fault is to hit it."""

    @property
    def is_reviewed(self) -> bool:
        """Say whether anybody is to be asked about writes."""
        return not (self.policies.is_empty and self.webhooks.is_empty)

    def now(self) -> datetime:
        return self.clock()

    def stamp(self) -> str:
        """Return the present as objects carry it: UTC, whole seconds."""
        second = self.clock().replace(microsecond=0)
        if second != self._second:
            self._second, self._stamp = second, second.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._stamp

    def new_uid(self) -> str:
        # Unique is enough: a uid is no secret, and asking the system costs more than the rest of a small write.
        digits = f"{_DICE.getrandbits(128):032x}"
        # Version 4, and of the two bits of the variant the first set and the second not.
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"

    def choose(self, letters: str) -> str:
        """Return one of some letters at random."""
        return _DICE.choice(letters)
