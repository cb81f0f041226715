"""
Names and what is read from them: `a`, `a.b`, `a[i]`, `a.?b`, `has(a.b)`, `(c ? a : b).d`.

As in cel-go, a name and the fields read from it are one step, because costs
are counted and optionals passed on along the whole of it.
"""

from __future__ import annotations

from typing import TypeAlias

from lamina.cel.errors import EvaluationError
from lamina.cel.evaluate.coerce import Coercer
from lamina.cel.evaluate.frame import Frame, Step, placed
from lamina.cel.operators import find_key, list_index, missing
from lamina.cel.values import NONE, Optional, Value, no_such_overload, shown


class Qualifier:
    """
    One `.field`, `[key]`, `.?field` or `[?key]`; with `test_only`, whether it is there.

    Whether a value that can have no fields has this one is false, or, where
    `strict`, an error.
    """

    __slots__ = ("at", "coerce", "key", "optional", "strict", "test_only")

    def __init__(
        self,
        at: int,
        key: Value,
        *,
        optional: bool,
        test_only: bool,
        strict: bool,
        coerce: Coercer | None,
    ) -> None:
        self.at = at
        self.key = key
        self.optional = optional
        self.test_only = test_only
        self.strict = strict
        self.coerce = coerce

    def read(self, frame: Frame, value: Value) -> Value:
        """Return what is there, or an error."""
        try:
            found = self._read(frame, value)
        except EvaluationError as error:
            found = placed(error, self.at)
        if frame.tracker is not None:
            frame.tracker.add(1)
        return found

    def _read(self, frame: Frame, value: Value) -> Value:
        key = self._key(frame)
        if isinstance(key, EvaluationError):
            return key
        present, found = look(value, key, test=self.test_only and not self.strict)
        if self.test_only:
            return present
        if not present:
            return placed(missing(value, key), self.at)
        return self.coerce(found) if self.coerce is not None else found

    def read_if_present(self, frame: Frame, value: Value) -> tuple[bool, Value]:
        """Return whether something is there, and what; an error counts as something."""
        try:
            key = self._key(frame)
            if isinstance(key, EvaluationError):
                return True, key
            present, found = look(value, key, test=not self.strict)
            if present and self.coerce is not None:
                found = self.coerce(found)
        except EvaluationError as error:
            return True, placed(error, self.at)
        if present and frame.tracker is not None:
            frame.tracker.add(1)
        return present, found

    def _key(self, frame: Frame) -> Value:
        if isinstance(self.key, (Named, Made, Chosen)):
            return self.key.resolve(frame)
        return self.key


def look(value: Value, key: Value, *, test: bool) -> tuple[bool, Value]:
    """Return whether a value has a key, and what is there; what has no keys has not this one either."""
    if isinstance(value, dict):
        return find_key(value, key)
    if isinstance(value, list):
        place = list_index(key)
        return (True, value[place]) if 0 <= place < len(value) else (False, None)
    if isinstance(value, Optional):
        return look(value.value, key, test=test) if value.present else (False, None)
    if test:
        return False, None
    raise EvaluationError(f"no such key: {shown(key)}")


def follow(frame: Frame, value: Value, qualifiers: list[Qualifier]) -> Value:
    """
    Return what reading one field after the other leads to.

    From the first optional one on, what is missing is none, and what is found is
    optional; an optional value to start from has the same effect.
    """
    optional = False
    if isinstance(value, Optional):
        if not value.present:
            return value
        value, optional = value.value, True
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        if optional:
            present, value = qualifier.read_if_present(frame, value)
            if not present:
                return NONE
        else:
            value = qualifier.read(frame, value)
        if isinstance(value, EvaluationError):
            return value
    return Optional(True, value) if optional else value


class _Read:
    """What every attribute has."""

    __slots__ = ("qualifiers",)

    def __init__(self) -> None:
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


class Named(_Read):
    """A variable."""

    __slots__ = ("at", "coerce", "name")

    def __init__(self, at: int, name: str, coerce: Coercer | None) -> None:
        super().__init__()
        self.at = at
        self.name = name
        self.coerce = coerce

    def resolve(self, frame: Frame) -> Value:
        found = frame.resolve(self.name)
        if isinstance(found, EvaluationError):
            return placed(found, self.at)
        if self.coerce is not None:
            try:
                found = self.coerce(found)
            except EvaluationError as error:
                return placed(error, self.at)
        return follow(frame, found, self.qualifiers) if self.qualifiers else found


class Made(_Read):
    """The value of another step."""

    __slots__ = ("step",)

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def resolve(self, frame: Frame) -> Value:
        found = self.step.run(frame)
        if isinstance(found, EvaluationError) or not self.qualifiers:
            return found
        return follow(frame, found, self.qualifiers)


class Chosen:
    """`condition ? one : other`; whatever is read from it is read from the one that is chosen."""

    __slots__ = ("at", "condition", "falsy", "truthy")

    def __init__(self, at: int, condition: Step, truthy: Attribute, falsy: Attribute) -> None:
        self.at = at
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    def add(self, qualifier: Qualifier) -> None:
        self.truthy.add(qualifier)
        self.falsy.add(qualifier)

    def resolve(self, frame: Frame) -> Value:
        chosen = self.condition.run(frame)
        if chosen is True:
            return self.truthy.resolve(frame)
        if chosen is False:
            return self.falsy.resolve(frame)
        return chosen if isinstance(chosen, EvaluationError) else placed(no_such_overload(), self.at)


Attribute: TypeAlias = Named | Made | Chosen
"""Something that can be resolved to a value, and read from."""


class AttributeStep:
    """An attribute, evaluated."""

    __slots__ = ("attribute", "test_only")

    def __init__(self, attribute: Attribute, *, test_only: bool = False) -> None:
        self.attribute = attribute
        self.test_only = test_only

    def run(self, frame: Frame) -> Value:
        found = self.attribute.resolve(frame)
        if self.test_only and isinstance(found, Optional):
            found = found.present
        tracker = frame.tracker
        if tracker is not None:
            cost = tracker.presence if self.test_only else 1
            # What a conditional chose has been paid for, and so has one that is only asked whether it is there.
            tracker.add(cost - 1 if isinstance(self.attribute, Chosen) else cost)
        return found
