"""How what others say is asked for, and what is said when they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lamina.objects.types import Obj


class Lookup(Protocol):
    """What other objects say."""

    def get(self, bucket: str, namespace: str, name: str) -> Obj | None:
        """Return one object, if it is there."""
        ...

    def every(self, bucket: str) -> Sequence[Obj]:
        """Return all objects of a kind. They are shared: nobody changes them."""
        ...


class Refusal(Exception):
    """Why others are against an object; whoever serves it words the rest."""
