"""
Attributes and qualifiers: `a`, `a.b`, `a[i]`, `a.?b`, `has(a.b)`, `(c ? a : b).d`.

As in cel-go, a variable with its qualifiers is one interpretable, because costs and
optionals apply to the whole of it.
"""

from __future__ import annotations

from typing import TypeAlias

from lamina.cel.errors import EvaluationError
from lamina.cel.evaluate.activation import Activation, Interpretable, with_position
from lamina.cel.evaluate.coerce import Coercer
from lamina.cel.operators import find_key, list_index, missing
from lamina.cel.values import NONE, Optional, Value, no_such_overload, shown


class Qualifier:
    """
    One `.field`, `[key]`, `.?field` or `[?key]`; with `test_only`, a presence test.

    A presence test on a value without fields is false or, with `strict`, an
    error.
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

    def read(self, activation: Activation, value: Value) -> Value:
        """Return the value, or an error."""
        try:
            found = self._read(activation, value)
        except EvaluationError as error:
            found = with_position(error, self.at)
        if activation.tracker is not None:
            activation.tracker.add(1)
        return found

    def _read(self, activation: Activation, value: Value) -> Value:
        key = self._key(activation)
        if isinstance(key, EvaluationError):
            return key
        present, found = look(value, key, test=self.test_only and not self.strict)
        if self.test_only:
            return present
        if not present:
            return with_position(missing(value, key), self.at)
        return self.coerce(found) if self.coerce is not None else found

    def read_if_present(self, activation: Activation, value: Value) -> tuple[bool, Value]:
        """Return whether there is a value, and the value; an error counts as present."""
        try:
            key = self._key(activation)
            if isinstance(key, EvaluationError):
                return True, key
            present, found = look(value, key, test=not self.strict)
            if present and self.coerce is not None:
                found = self.coerce(found)
        except EvaluationError as error:
            return True, with_position(error, self.at)
        if present and activation.tracker is not None:
            activation.tracker.add(1)
        return present, found

    def _key(self, activation: Activation) -> Value:
        if isinstance(self.key, (AbsoluteAttribute, RelativeAttribute, ConditionalAttribute)):
            return self.key.resolve(activation)
        return self.key


def look(value: Value, key: Value, *, test: bool) -> tuple[bool, Value]:
    """Return whether a value has a key, and its value; with `test`, a value without keys has none."""
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


def apply_qualifiers(activation: Activation, value: Value, qualifiers: list[Qualifier]) -> Value:
    """
    Return the value after all qualifiers.

    From the first optional qualifier on, a missing value is optional.none(),
    and a present one is an optional; so it is after an optional operand.
    """
    optional = False
    if isinstance(value, Optional):
        if not value.present:
            return value
        value, optional = value.value, True
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        if optional:
            present, value = qualifier.read_if_present(activation, value)
            if not present:
                return NONE
        else:
            value = qualifier.read(activation, value)
        if isinstance(value, EvaluationError):
            return value
    return Optional(True, value) if optional else value


class _Qualified:
    """The qualifiers of an attribute."""

    __slots__ = ("qualifiers",)

    def __init__(self) -> None:
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


class AbsoluteAttribute(_Qualified):
    """A variable with qualifiers."""

    __slots__ = ("at", "coerce", "name")

    def __init__(self, at: int, name: str, coerce: Coercer | None) -> None:
        super().__init__()
        self.at = at
        self.name = name
        self.coerce = coerce

    def resolve(self, activation: Activation) -> Value:
        found = activation.resolve(self.name)
        if isinstance(found, EvaluationError):
            return with_position(found, self.at)
        if self.coerce is not None:
            try:
                found = self.coerce(found)
            except EvaluationError as error:
                return with_position(error, self.at)
        return apply_qualifiers(activation, found, self.qualifiers) if self.qualifiers else found


class RelativeAttribute(_Qualified):
    """The value of another interpretable, with qualifiers."""

    __slots__ = ("step",)

    def __init__(self, step: Interpretable) -> None:
        super().__init__()
        self.step = step

    def resolve(self, activation: Activation) -> Value:
        found = self.step.run(activation)
        if isinstance(found, EvaluationError) or not self.qualifiers:
            return found
        return apply_qualifiers(activation, found, self.qualifiers)


class ConditionalAttribute:
    """`condition ? one : other`, with qualifiers that apply to the chosen branch."""

    __slots__ = ("at", "condition", "falsy", "truthy")

    def __init__(self, at: int, condition: Interpretable, truthy: Attribute, falsy: Attribute) -> None:
        self.at = at
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    def add(self, qualifier: Qualifier) -> None:
        self.truthy.add(qualifier)
        self.falsy.add(qualifier)

    def resolve(self, activation: Activation) -> Value:
        chosen = self.condition.run(activation)
        if chosen is True:
            return self.truthy.resolve(activation)
        if chosen is False:
            return self.falsy.resolve(activation)
        return chosen if isinstance(chosen, EvaluationError) else with_position(no_such_overload(), self.at)


Attribute: TypeAlias = AbsoluteAttribute | RelativeAttribute | ConditionalAttribute
"""What resolves to a value, and takes qualifiers."""


class EvalAttribute:
    """The interpretable of an attribute."""

    __slots__ = ("attribute", "test_only")

    def __init__(self, attribute: Attribute, *, test_only: bool = False) -> None:
        self.attribute = attribute
        self.test_only = test_only

    def run(self, activation: Activation) -> Value:
        found = self.attribute.resolve(activation)
        if self.test_only and isinstance(found, Optional):
            found = found.present
        tracker = activation.tracker
        if tracker is not None:
            cost = tracker.presence if self.test_only else 1
            # The chosen branch has been counted already, and so has its presence test.
            tracker.add(cost - 1 if isinstance(self.attribute, ConditionalAttribute) else cost)
        return found
