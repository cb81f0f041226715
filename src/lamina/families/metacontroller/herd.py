"""
The objects of one kind that name a parent as their owner, from one pass to the next.

Of a hundred children one is another than before. What was worked out of each is
told by the very object it was worked out of, so only those that have come since
are looked at, and those that went are taken out of what was put together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from lamina.objects.types import Obj

if TYPE_CHECKING:
    from lamina.families.metacontroller.desired import Key

Found = TypeVar("Found", bound=Hashable)
Value = TypeVar("Value")


class Seen:
    """What is known of a child that is there: whether it is the parent's own, matches, and how it is sent to a hook."""

    __slots__ = ("key", "matches", "own", "shown")

    def __init__(self, own: bool, matches: bool) -> None:
        self.own, self.matches = own, matches
        self.key: Key | None = None
        self.shown: tuple[str, str | None, orjson.Fragment] | None = None
        """In which version of the protocol, under which key if any, and how."""

    @property
    def is_child(self) -> bool:
        return self.own and self.matches


class Herd:
    """Those there are in one pass, and what has changed since the one before."""

    __slots__ = ("_base", "_come", "_made", "_objects", "_seen", "_strange", "_went", "children")

    def __init__(
        self, owned: Collection[Obj], judge: Callable[[Obj], Seen], before: Herd | None = None
    ) -> None:
        # Whoever is held has its identity to itself, and both passes hold theirs while they are compared.
        self._objects = objects = dict(zip(map(id, owned), owned, strict=True))
        known = before._objects if before is not None else {}
        self._seen: dict[int, Seen] = before._seen.copy() if before is not None else {}
        seen = self._seen
        self._went = [(known[mark], seen.pop(mark)) for mark in known.keys() - objects.keys()]
        self._come = [(objects[mark], judge(objects[mark])) for mark in objects.keys() - known.keys()]
        seen.update((id(obj), one) for obj, one in self._come)
        strange = before._strange & objects.keys() if before is not None else set[int]()
        self._strange: set[int] = strange | {id(obj) for obj, one in self._come if not one.is_child}
        self.children: tuple[Obj, ...] = (
            tuple(obj for mark, obj in objects.items() if mark not in self._strange)
            if self._strange
            else tuple(objects.values())
        )
        self._base: dict[str, dict[Any, Any]] = before._made if before is not None else {}
        self._made: dict[str, dict[Any, Any]] = {}

    @property
    def others(self) -> tuple[Obj, ...]:
        """Return the parent's own that do not match."""
        return tuple(
            obj for mark, obj in self._objects.items() if mark in self._strange and self._seen[mark].own
        )

    def each(self, what: str, make: Callable[[Obj, Seen], tuple[Found, Value] | None]) -> dict[Found, Value]:
        """Return what there is to say of each child, by what it is found by; None of one that is left out."""
        made = self._made.get(what)
        if made is None:
            base = self._base.get(what)
            if base is None:
                pairs = (make(obj, self._seen[id(obj)]) for obj in self.children)
                made = dict(pair for pair in pairs if pair is not None)
            else:
                made = base.copy()
                for obj, one in self._went:
                    if one.is_child and (pair := make(obj, one)) is not None:
                        made.pop(pair[0], None)
                for obj, one in self._come:
                    if one.is_child and (pair := make(obj, one)) is not None:
                        made[pair[0]] = pair[1]
            self._made[what] = made
        return made
