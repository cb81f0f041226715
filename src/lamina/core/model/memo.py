"""
What was computed for one key in its last passes, so that a pass costs what changed and not what exists.

Objects are never modified in place, so a result that was computed from the very
same inputs holds. Inputs are compared by identity, strings and bytes by value.
The functions are pure: a plan with a memo equals a plan without, and the memo
only decides what it costs. A result that two passes in a row do not use is
dropped, and whole memos are, oldest first, when there are too many or too large
ones. The parts of a nested result are kept as long as it is computed: they are
not used again before the result is computed anew, which may be many passes later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from lamina.objects.types import Ref

Value = TypeVar("Value")
Input = TypeVar("Input")
Unique = TypeVar("Unique", bound=Hashable)
Inputs = TypeVarTuple("Inputs")

_BY_VALUE = (str, bytes)
_MOST, _BYTES = 64, 8 << 20


class Memo:
    """Results of pure functions, for one key of one controller."""

    __slots__ = ("_before", "_nested", "_now", "_once", "_sizes", "_sizes_before")

    def __init__(self) -> None:
        self._now: dict[Hashable, tuple[Any, Any]] = {}
        self._before: dict[Hashable, tuple[Any, Any]] = {}
        self._nested: dict[Hashable, Memo] = {}
        self._once: dict[Hashable, tuple[Any, Any]] = {}
        self._sizes: dict[Hashable, int] = {}
        self._sizes_before: dict[Hashable, int] = {}

    def call(self, function: Callable[[Unpack[Inputs]], Value], *inputs: *Inputs) -> Value:
        """Return what a function returns for these inputs."""
        mark = _mark(function, inputs)
        held = self._find(mark)
        if held is None:
            # The inputs are kept with the result, so no later object can have the identity of one of them.
            held = self._now[mark] = function(*inputs), inputs
        value: Value = held[0]
        return value

    def once(self, function: Callable[[Input], Value], view: Input) -> Value:
        """Return what a function returns for a view: within one pass it is looked for once."""
        held = self._once.get(function)
        if held is None or held[1] is not view:
            held = self._once[function] = function(view), view
        value: Value = held[0]
        return value

    def call_nested(self, function: Callable[[Memo, Unpack[Inputs]], Value], *inputs: *Inputs) -> Value:
        """Return what a function that computes parts of its result by a memo returns for these inputs."""
        mark = _mark(function, inputs)
        held = self._find(mark)
        if held is None:
            parts = self._nested.setdefault(function, Memo())
            parts.next_pass()
            held = self._now[mark] = function(parts, *inputs), inputs
        value: Value = held[0]
        return value

    def update(
        self,
        function: Callable[[Value | None, Unpack[Inputs]], Value],
        slot: Hashable,
        *inputs: *Inputs,
    ) -> Value:
        """
        Return what a function returns for these inputs, given its last result in this slot.

        What it returns must equal what it returns for the same inputs without a last result.
        """
        mark = (function, slot)
        held = self._find(mark)
        value: Value = function(held[0] if held is not None else None, *inputs)
        self._now[mark] = value, None
        return value

    def unique(self, value: Unique) -> Unique:
        """Return the first of all equal values, so that what is computed from it is found again."""
        mark = (Memo.unique, value)
        held = self._find(mark)
        if held is None:
            held = self._now[mark] = value, None
        first: Unique = held[0]
        return first

    def weigh(self, slot: Hashable, size: int) -> None:
        """Note how many bytes the result in a slot holds, where they are many."""
        self._sizes[slot] = size

    @property
    def size(self) -> int:
        """Return how many bytes the noted results hold."""
        return sum({**self._sizes_before, **self._sizes}.values())

    def next_pass(self) -> None:
        """Drop what the last two passes did not use."""
        self._once = {}
        self._before, self._now = self._now, {}
        self._sizes_before, self._sizes = self._sizes, {}

    def _find(self, mark: Hashable) -> tuple[Any, Any] | None:
        held = self._now.get(mark)
        if held is None:
            held = self._before.get(mark)
            if held is not None:
                self._now[mark] = held
        return held


def _mark(function: Hashable, inputs: tuple[Any, ...]) -> Hashable:
    return (function, *[one if one.__class__ in _BY_VALUE else id(one) for one in inputs])


class MemoStore:
    """The memos of the keys that had a pass last, of all controllers that share it."""

    def __init__(self, most: int = _MOST, size: int = _BYTES) -> None:
        self._most, self._size = most, size
        self._memos: dict[tuple[str, Ref], tuple[str, Memo]] = {}

    def __len__(self) -> int:
        """Return how many keys have a memo."""
        return len(self._memos)

    def next_pass(self, controller: str, ref: Ref, uid: str) -> Memo:
        """Return the memo of a key, for another pass; an object of another uid begins with an empty one."""
        held = self._memos.pop((controller, ref), None)
        if held is None or held[0] != uid:
            held = uid, Memo()
        self._memos[controller, ref] = held
        held[1].next_pass()
        while len(self._memos) > 1 and self._is_full():
            del self._memos[next(iter(self._memos))]
        return held[1]

    def forget(self, controller: str, ref: Ref) -> None:
        """Drop the memo of a key that is gone."""
        self._memos.pop((controller, ref), None)

    def _is_full(self) -> bool:
        return (
            len(self._memos) > self._most or sum(memo.size for _, memo in self._memos.values()) > self._size
        )
