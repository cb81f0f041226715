"""
What was worked out about a parent in the pass before, for whoever works it out again.

Passes over one parent follow each other closely while its children move, and in
most of them one child is another and all the rest is as it was. What is kept
here is told by the very objects it was worked out of, which nobody ever changes
in place: another object is another question. What a pass does not ask for is
forgotten with the next, and whole parents are once they are gone or there is
too much of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import orjson

from lamina.families.metacontroller.herd import Herd, Seen
from lamina.objects.selectors import EVERYTHING, LabelSelector
from lamina.objects.types import GroupKind, Obj, Ref

if TYPE_CHECKING:
    from lamina.families.metacontroller.desired import Desired
    from lamina.families.metacontroller.ground import Ground, Rest
    from lamina.families.metacontroller.hooks import Response
    from lamina.families.metacontroller.revisions import Kept
    from lamina.families.metacontroller.roster import Roster

Value = TypeVar("Value")

_PARENTS, _TEXT = 64, 8 << 20
"""How much is kept in mind: parents that keep changing, and bytes of what their hooks are told and say."""


class Worked(Generic[Value]):
    """Values by the object they were worked out of."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: dict[int, tuple[Value, object]] = {}
        self._before: dict[int, tuple[Value, object]] = {}

    def find(self, obj: object) -> Value | None:
        """Return what was kept of this very object, if something was."""
        # Whatever is kept holds its object, so none that came later can have its identity.
        mark = id(obj)
        held = self._now.get(mark)
        if held is None:
            held = self._before.get(mark)
            if held is None:
                return None
            self._now[mark] = held
        return held[0]

    def keep(self, value: Value, obj: object) -> Value:
        self._now[id(obj)] = (value, obj)
        return value

    def __iter__(self) -> Iterator[Value]:
        """Yield what is kept."""
        for value, _ in (self._before | self._now).values():
            yield value

    def turn(self) -> None:
        """Forget what was not asked for since the last turn."""
        self._before, self._now = self._now, {}

    def clear(self) -> None:
        self._before, self._now = {}, {}


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

    def forget(self) -> None:
        self._value = self._about = None


class Recall:
    """What is remembered of one parent."""

    def __init__(self) -> None:
        self._selector: LabelSelector = EVERYTHING
        self.selected: Once[LabelSelector] = Once()
        """What the parent selects, by what it says of it."""
        self._herds: dict[GroupKind, Herd] = {}
        self.wanted: Worked[Desired] = Worked()
        """A child that a hook wants, made fit to be made."""
        self.followed: Worked[tuple[Desired, ...]] = Worked()
        """All that a hook wants, where nothing is wrong with it."""
        self.rosters: Worked[Roster] = Worked()
        """All that a hook wants, as it is looked for."""
        self.ground: Ground | None = None
        """What a roll stands on."""
        self.rest: Rest | None = None
        """Who there was something to say of."""
        self.kept: Worked[Kept] = Worked()
        """A revision, by the object it is kept as."""
        self._answers: dict[str, tuple[bytes, Response]] = {}
        self._said: dict[str, dict[bytes, Obj]] = {}
        self._shown = 0

    @property
    def size(self) -> int:
        """Return how many bytes a hook was shown of the children, and how many it said."""
        return self._shown + sum(len(body) for body, _ in self._answers.values())

    def show(self, size: int) -> None:
        """Take note of how much a hook is shown."""
        # The same children may be shown to several.
        self._shown = max(self._shown, size)

    def turn(self, selector: LabelSelector) -> None:
        """Begin another pass, by a selector that says which children match."""
        self.wanted.turn()
        self.followed.turn()
        self.rosters.turn()
        self.kept.turn()
        self._shown = 0
        if selector is not self._selector and selector != self._selector:
            self._selector = selector
            self._herds.clear()
            self.wanted.clear()
            self.followed.clear()
            self.ground = self.rest = None

    def herd(self, kind: GroupKind, owned: Collection[Obj], judge: Callable[[Obj], Seen]) -> Herd:
        """Return the objects of a kind that a parent owns; `judge` looks at those that have come since the last pass."""
        herd = self._herds[kind] = Herd(owned, judge, self._herds.get(kind))
        return herd

    def herd_of(self, kind: GroupKind, children: object) -> Herd | None:
        """Return the herd that these are the children of, if there is one."""
        herd = self._herds.get(kind)
        return herd if herd is not None and herd.children is children else None

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


class Memory:
    """All that is remembered, by however many controllers, of the parents that were looked at last."""

    def __init__(self, parents: int = _PARENTS, text: int = _TEXT) -> None:
        self._parents, self._text = parents, text
        self._held: dict[tuple[object, Ref], tuple[str, Recall]] = {}

    def __len__(self) -> int:
        """Return how many parents are remembered."""
        return len(self._held)

    def of(self, whose: object, ref: Ref, uid: str) -> Recall:
        """Return what one controller remembers of a parent."""
        held = self._held.pop((whose, ref), None)
        if held is None or held[0] != uid:
            held = uid, Recall()
        self._held[whose, ref] = held
        while len(self._held) > 1 and self._is_much():
            del self._held[next(iter(self._held))]
        return held[1]

    def forget(self, whose: object, ref: Ref) -> None:
        self._held.pop((whose, ref), None)

    def _is_much(self) -> bool:
        return (
            len(self._held) > self._parents
            or sum(recall.size for _, recall in self._held.values()) > self._text
        )


class Recent:
    """What one controller remembers, in a memory that it may share with others."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory if memory is not None else Memory()

    def of(self, ref: Ref, uid: str) -> Recall:
        """Return what is remembered of a parent."""
        return self._memory.of(self, ref, uid)

    def forget(self, ref: Ref) -> None:
        """Remember nothing of a parent that is gone, or none of ours any more."""
        self._memory.forget(self, ref)
