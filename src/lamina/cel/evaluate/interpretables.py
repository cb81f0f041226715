"""The interpretables of an expression, except for attributes (`attributes.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.cel.errors import EvaluationError
from lamina.cel.evaluate.activation import Activation, Interpretable, LoopActivation, with_position
from lamina.cel.evaluate.cost import LIST_COST, MAP_COST, STRUCT_COST, CallCost
from lamina.cel.operators import find_key
from lamina.cel.values import BoolMap, Optional, Value, no_such_overload, shown, type_of


class Constant:
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def run(self, activation: Activation) -> Value:
        return self.value


class Logic:
    """`&&` or `||`: a decisive term on either side wins over an error."""

    __slots__ = ("at", "decisive", "terms")

    def __init__(self, at: int, terms: Sequence[Interpretable], decisive: bool) -> None:
        self.at = at
        self.terms = terms
        self.decisive = decisive

    def run(self, activation: Activation) -> Value:
        first_error: EvaluationError | None = None
        for term in self.terms:
            value = term.run(activation)
            if value is self.decisive:
                return value
            if first_error is None and type(value) is not bool:
                first_error = value if isinstance(value, EvaluationError) else no_such_overload()
        return (not self.decisive) if first_error is None else with_position(first_error, self.at)


class Call:
    """A strict call of a function or an operator: the first error among its arguments is its result."""

    __slots__ = ("args", "at", "call_cost", "work")

    def __init__(
        self, at: int, args: Sequence[Interpretable], work: Callable[..., Value], call_cost: CallCost | None
    ) -> None:
        self.at = at
        self.args = args
        self.work = work
        self.call_cost = call_cost

    def run(self, activation: Activation) -> Value:
        values = [arg.run(activation) for arg in self.args]
        answer = self._answer(values)
        tracker = activation.tracker
        if tracker is not None:
            tracker.add(1 if self.call_cost is None else self.call_cost(values, answer))
        return answer

    def _answer(self, values: list[Value]) -> Value:
        for value in values:
            if isinstance(value, EvaluationError):
                return value
        try:
            return self.work(*values)
        except EvaluationError as error:
            return with_position(error, self.at)
        except (TypeError, AttributeError):
            # A function declared for dyn that does not accept this type.
            return with_position(no_such_overload(), self.at)


class NotStrictlyFalse:
    """The condition of loops: any value but `false`, errors included, continues."""

    __slots__ = ("arg",)

    def __init__(self, arg: Interpretable) -> None:
        self.arg = arg

    def run(self, activation: Activation) -> Value:
        value = self.arg.run(activation)
        if activation.tracker is not None:
            activation.tracker.add(1)
        return value is not False


class Membership:
    """`x in [constants]`, which has no cost."""

    __slots__ = ("arg", "items", "work")

    def __init__(self, arg: Interpretable, items: list[Any], work: Callable[..., Value]) -> None:
        self.arg = arg
        self.items = items
        self.work = work

    def run(self, activation: Activation) -> Value:
        value = self.arg.run(activation)
        return value if isinstance(value, EvaluationError) else self.work(value, self.items)


class OptionalOr:
    """`a.or(b)` and `a.orValue(b)`: `b` is only evaluated where `a` has no value."""

    __slots__ = ("at", "other", "unwraps", "value")

    def __init__(self, at: int, value: Interpretable, other: Interpretable, unwraps: bool) -> None:
        self.at = at
        self.value = value
        self.other = other
        self.unwraps = unwraps

    def run(self, activation: Activation) -> Value:
        found = self.value.run(activation)
        if isinstance(found, Optional):
            if found.present:
                found = found.value if self.unwraps else found
            else:
                found = self.other.run(activation)
        elif not isinstance(found, EvaluationError):
            found = with_position(no_such_overload(), self.at)
        return found


_ABSENT: Final = object()


def optional_entry(value: Value, kind: str) -> Value:
    """Return the value of an optional entry, _ABSENT for an empty optional; other values are an error."""
    if isinstance(value, Optional):
        return value.value if value.present else _ABSENT
    if isinstance(value, EvaluationError):
        return value
    return EvaluationError(f"cannot initialize optional {kind} from non-optional value {shown(value)}")


class MakeList:
    """`[a, ?b]`."""

    __slots__ = ("at", "items", "optional")

    def __init__(self, at: int, items: Sequence[Interpretable], optional: frozenset[int]) -> None:
        self.at = at
        self.items = items
        self.optional = optional

    def run(self, activation: Activation) -> Value:
        answer = self._answer(activation)
        if activation.tracker is not None:
            activation.tracker.add(LIST_COST)
        return answer

    def _answer(self, activation: Activation) -> Value:
        made: list[Value] = []
        for place, item in enumerate(self.items):
            value = item.run(activation)
            if place in self.optional:
                value = optional_entry(value, "list element")
                if value is _ABSENT:
                    continue
            if isinstance(value, EvaluationError):
                return with_position(value, self.at)
            made.append(value)
        return made


class MakeMap:
    """
    `{key: value, ?key: value}`.

    With `strict`, a repeated key is an error, and so is a double or null as a
    key; otherwise the later of two equal keys wins.
    """

    __slots__ = ("entries", "strict")

    def __init__(
        self, entries: Sequence[tuple[Interpretable, Interpretable, bool, int]], strict: bool
    ) -> None:
        self.entries = entries
        self.strict = strict

    def run(self, activation: Activation) -> Value:
        answer = self._answer(activation)
        if activation.tracker is not None:
            activation.tracker.add(MAP_COST)
        return answer

    def _answer(self, activation: Activation) -> Value:
        made: dict[Any, Any] = {}
        for key_step, value_step, optional, at in self.entries:
            key = key_step.run(activation)
            if isinstance(key, EvaluationError):
                return key
            value = value_step.run(activation)
            if optional:
                value = optional_entry(value, f"entry '{shown(key)}'")
                if value is _ABSENT:
                    continue
            if isinstance(value, EvaluationError):
                return with_position(value, at)
            try:
                made = with_entry(made, key, value, strict=self.strict)
            except EvaluationError as error:
                return with_position(error, at)
        return made


def with_entry(made: dict[Any, Any], key: Value, value: Value, *, strict: bool) -> dict[Any, Any]:
    """Return a map under construction with one more entry; the map itself where it can hold the key."""
    if not (isinstance(key, (str, int)) or (not strict and (isinstance(key, float) or key is None))):
        raise EvaluationError(f"unsupported key type: {type_of(key)}")
    if strict and find_key(made, key)[0]:
        raise EvaluationError(f"Failed with repeated key: {shown(key)}")
    if type(key) is bool and type(made) is dict:
        made = BoolMap.of(iter(made.items()))
    if isinstance(key, (int, float)) and key in made:
        # Python keeps the old key of an equal one.
        del made[key]
    made[key] = value
    return made


class MakeStruct:
    """`Some.Type{field: value}`."""

    __slots__ = ("at", "build", "fields")

    def __init__(
        self,
        at: int,
        fields: Sequence[tuple[str, Interpretable, bool]],
        build: Callable[[dict[str, Any]], Value],
    ) -> None:
        self.at = at
        self.fields = fields
        self.build = build

    def run(self, activation: Activation) -> Value:
        answer = self._answer(activation)
        if activation.tracker is not None:
            activation.tracker.add(STRUCT_COST)
        return answer

    def _answer(self, activation: Activation) -> Value:
        made: dict[str, Any] = {}
        for name, step, optional in self.fields:
            value = step.run(activation)
            if optional:
                value = optional_entry(value, f"entry '{name}'")
                if value is _ABSENT:
                    continue
            if isinstance(value, EvaluationError):
                return with_position(value, self.at)
            made[name] = value
        try:
            return self.build(made)
        except EvaluationError as error:
            return with_position(error, self.at)


_GO_NAMES: Final = {
    "null_type": "types.Null",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
}


def _not_iterable(value: Value, variables: int) -> EvaluationError:
    name = type_of(value).name
    shown_type = _GO_NAMES.get(name, f"types.{name.capitalize()}")
    if variables == 2:
        return EvaluationError(f"unsupported comprehension range type: {shown_type}")
    return EvaluationError(f"got '{shown_type}', expected iterable type")


class Fold:
    """A comprehension: for every item, while the condition holds, the step is the new accumulator."""

    __slots__ = ("accumulator", "at", "condition", "first", "names", "range", "result", "step")

    def __init__(
        self,
        at: int,
        *,
        names: tuple[str, ...],
        over: Interpretable,
        accumulator: str,
        first: Interpretable,
        condition: Interpretable,
        step: Interpretable,
        result: Interpretable,
    ) -> None:
        self.at = at
        self.names = names
        self.range = over
        self.accumulator = accumulator
        self.first = first
        self.condition = condition
        self.step = step
        self.result = result

    def run(self, activation: Activation) -> Value:
        over = self.range.run(activation)
        if isinstance(over, EvaluationError):
            return over
        loop = LoopActivation(activation, self.accumulator, self.first)
        if not isinstance(over, (list, dict)):
            return with_position(_not_iterable(over, len(self.names)), self.at)
        if len(self.names) == 1:
            for item in list(over):
                if not self._iterate(loop, (item,)):
                    break
        else:
            pairs = over.items() if isinstance(over, dict) else enumerate(over)
            for pair in list(pairs):
                if not self._iterate(loop, pair):
                    break
        loop.finish(self.names)
        return self.result.run(loop)

    def _iterate(self, loop: LoopActivation, items: tuple[Value, ...]) -> bool:
        for name, item in zip(self.names, items, strict=True):
            if name != self.accumulator:
                loop.values[name] = item
        if self.condition.run(loop) is False:
            return False
        loop.set_accumulator(self.step.run(loop))
        return True
