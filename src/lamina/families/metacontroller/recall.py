"""
What was worked out about a parent in the pass before, for whoever works it out again.

Passes over one parent follow each other closely while its children move, and in
most of them one child is another and all the rest is as it was. What is kept
here is told by the very objects it was worked out of, which nobody ever changes
in place: another object is another question. What a pass does not ask for is
forgotten with the next, and whole parents are once there are too many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import orjson

from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import Obj

if TYPE_CHECKING:
    from lamina.families.metacontroller.desired import Desired, Key
    from lamina.families.metacontroller.hooks import Response

Value = TypeVar("Value")

_PARENTS, _CHILDREN = 16, 5_000
"""How many are kept in mind: a few parents that keep changing, or one that has many children."""


class Worked(Generic[Value]):
    """Values by the object they were worked out of."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: dict[int, tuple[Value, object]] = {}
        self._before: dict[int, tuple[Value, object]] = {}

    def __len__(self) -> int:
        return len(self._now)

    def find(self, obj: object) -> Value | None:
        """Return what was kept of this very object, if something was."""
        # Whatever is kept holds its object, so none that came later can have its identity.
        held = self._now.get(id(obj))
        if held is None:
            held = self._before.get(id(obj))
            if held is None:
                return None
            self._now[id(obj)] = held
        return held[0]

    def keep(self, value: Value, obj: object) -> Value:
        self._now[id(obj)] = (value, obj)
        return value

    def turn(self) -> None:
        """Forget what was not asked for since the last turn."""
        self._before, self._now = self._now, {}

    def clear(self) -> None:
        self._before, self._now = {}, {}


class Seen:
    """What is known of a child that is there: whether it is the parent's own, matches, and how it is sent to a hook."""

    __slots__ = ("key", "matches", "own", "shown")

    def __init__(self, own: bool, matches: bool) -> None:
        self.own, self.matches = own, matches
        self.key: Key | None = None
        self.shown: tuple[str, str | None, orjson.Fragment] | None = None
        """In which version of the protocol, under which key if any, and how."""


class Once(Generic[Value]):
    """An answer about two things, of which one is known and the other was seen last."""

    __slots__ = ("_about", "_value")

    def __init__(self) -> None:
        self._about: object = None
        self._value: Value | None = None

    def find(self, about: object) -> Value | None:
        """Return the answer, if the last was about the same."""
        return self._value if self._about is about else None

    def keep(self, value: Value, about: object) -> Value:
        self._value, self._about = value, about
        return value


class Recall:
    """What is remembered of one parent."""

    def __init__(self) -> None:
        self._selector: LabelSelector = EVERYTHING
        self.seen: Worked[Seen] = Worked()
        self.wanted: Worked[Desired] = Worked()
        """A child that a hook wants, made fit to be made."""
        self.followed: Worked[tuple[Desired, ...]] = Worked()
        """All that a hook wants, where nothing is wrong with it."""
        self._answers: dict[str, tuple[bytes, Response]] = {}
        self._said: dict[str, dict[bytes, Obj]] = {}

    def __len__(self) -> int:
        """Return how many children are remembered, those that are there and those that are wanted."""
        return len(self.seen) + sum(map(len, self._said.values()))

    def turn(self, selector: LabelSelector) -> None:
        """Begin another pass, by a selector that says which children match."""
        self.seen.turn()
        self.wanted.turn()
        self.followed.turn()
        if selector != self._selector:
            self._selector = selector
            self.seen.clear()
            self.wanted.clear()
            self.followed.clear()

    def answer(self, about: str, body: bytes) -> Response | None:
        """Return what a hook's answer means, if it said the same the last time."""
        known = self._answers.get(about)
        return known[1] if known is not None and known[0] == body else None

    def note(self, about: str, body: bytes, meant: Response) -> Response:
        self._answers[about] = (body, meant)
        return meant

    def same(self, about: str, children: Sequence[Obj]) -> tuple[Obj, ...]:
        """Return the children a hook wants; those that it wanted to the letter the last time are the very same."""
        before, texts, known = self._said.get(about, {}), dict[bytes, Obj](), list[Obj]()
        for child in children:
            text = orjson.dumps(child)
            known.append(texts.setdefault(text, before.get(text, child)))
        self._said[about] = texts
        return tuple(known)

    def only(self, abouts: Collection[str]) -> None:
        """Forget what was answered to anything else."""
        for about in [one for one in self._answers if one not in abouts]:
            del self._answers[about], self._said[about]


class Recent:
    """What is remembered of the parents that were looked at last."""

    def __init__(self, parents: int = _PARENTS, children: int = _CHILDREN) -> None:
        self._parents, self._children = parents, children
        self._held: dict[str, Recall] = {}

    def of(self, uid: str) -> Recall:
        """Return what is remembered of a parent."""
        recall = self._held.pop(uid, None)
        if recall is None:
            recall = Recall()
        self._held[uid] = recall
        while len(self._held) > 1 and self._is_much():
            del self._held[next(iter(self._held))]
        return recall

    def _is_much(self) -> bool:
        return len(self._held) > self._parents or sum(map(len, self._held.values())) > self._children
