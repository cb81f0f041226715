"""The interface through which plugins read other objects, and their refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lamina.objects.types import Obj


class Lister(Protocol):
    """Reads other objects."""

    def get(self, bucket: str, namespace: str, name: str) -> Obj | None:
        """Return an object, None if it does not exist."""
        ...

    def list(self, bucket: str) -> Sequence[Obj]:
        """Return all objects of a kind. They are shared and must not be modified."""
        ...


class Denied(Exception):
    """Why a plugin refuses an object; the caller adds the rest of the message."""
