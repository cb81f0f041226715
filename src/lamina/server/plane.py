"""One control plane: its store, its kinds and its clock, as the verbs see them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from lamina.server.kind import Kind, Subresource
from lamina.server.registry import Registry
from lamina.server.store import Key, Store


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


class Plane:
    """What the verbs share. Everything random or of the moment comes from here."""

    def __init__(self, store: Store, registry: Registry, now: Callable[[], datetime]) -> None:
        self.store = store
        self.registry = registry
        self.clock = now

    def now(self) -> datetime:
        return self.clock()

    def stamp(self) -> str:
        """Return the present as objects carry it: UTC, whole seconds."""
        return self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_uid(self) -> str:
        return str(uuid.uuid4())

    def choose(self, letters: str) -> str:
        """Return one of some letters at random."""
        return random.choice(letters)
