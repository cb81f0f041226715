"""The steps an expression is carried out in, apart from reading names (`attributes.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.cel.errors import EvaluationError
from lamina.cel.evaluate.cost import LIST_COST, MAP_COST, STRUCT_COST, Price
from lamina.cel.evaluate.frame import Frame, Loop, Step, placed
from lamina.cel.operators import find_key
from lamina.cel.values import BoolMap, Optional, Value, no_such_overload, shown, type_of


class Constant:
    """A value that is known before anything runs."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def run(self, frame: Frame) -> Value:
        return self.value


class Logic:
    """`&&`, decided by `false`, or `||`, decided by `true`, on whichever side that is; an error comes second."""

    __slots__ = ("at", "decisive", "terms")

    def __init__(self, at: int, terms: Sequence[Step], decisive: bool) -> None:
        self.at = at
        self.terms = terms
        self.decisive = decisive

    def run(self, frame: Frame) -> Value:
        trouble: EvaluationError | None = None
        for term in self.terms:
            value = term.run(frame)
            if value is self.decisive:
                return value
            if trouble is None and type(value) is not bool:
                trouble = value if isinstance(value, EvaluationError) else no_such_overload()
        return (not self.decisive) if trouble is None else placed(trouble, self.at)


class Call:
    """A function or an operator. Its arguments are all evaluated; the first error among them is its answer."""

    __slots__ = ("args", "at", "price", "work")

    def __init__(
        self, at: int, args: Sequence[Step], work: Callable[..., Value], price: Price | None
    ) -> None:
        self.at = at
        self.args = args
        self.work = work
        self.price = price

    def run(self, frame: Frame) -> Value:
        values = [arg.run(frame) for arg in self.args]
        answer = self._answer(values)
        tracker = frame.tracker
        if tracker is not None:
            tracker.add(1 if self.price is None else self.price(values, answer))
        return answer

    def _answer(self, values: list[Value]) -> Value:
        for value in values:
            if isinstance(value, EvaluationError):
                return value
        try:
            return self.work(*values)
        except EvaluationError as error:
            return placed(error, self.at)
        except (TypeError, AttributeError):
            # A function that says it takes a value of any type, and does not take this one.
            return placed(no_such_overload(), self.at)


class NotStrictlyFalse:
    """Whether a loop goes on: anything but `false`, an error included, says so."""

    __slots__ = ("arg",)

    def __init__(self, arg: Step) -> None:
        self.arg = arg

    def run(self, frame: Frame) -> Value:
        value = self.arg.run(frame)
        if frame.tracker is not None:
            frame.tracker.add(1)
        return value is not False


class Membership:
    """`x in [constants]`, which is free of charge."""

    __slots__ = ("arg", "items", "work")

    def __init__(self, arg: Step, items: list[Any], work: Callable[..., Value]) -> None:
        self.arg = arg
        self.items = items
        self.work = work

    def run(self, frame: Frame) -> Value:
        value = self.arg.run(frame)
        return value if isinstance(value, EvaluationError) else self.work(value, self.items)


class OptionalOr:
    """`a.or(b)` and `a.orValue(b)`: `b` is only looked at where `a` has no value."""

    __slots__ = ("at", "other", "unwraps", "value")

    def __init__(self, at: int, value: Step, other: Step, unwraps: bool) -> None:
        self.at = at
        self.value = value
        self.other = other
        self.unwraps = unwraps

    def run(self, frame: Frame) -> Value:
        found = self.value.run(frame)
        if isinstance(found, Optional):
            if found.present:
                found = found.value if self.unwraps else found
            else:
                found = self.other.run(frame)
        elif not isinstance(found, EvaluationError):
            found = placed(no_such_overload(), self.at)
        return found


def optional_entry(value: Value, said: str) -> Optional | EvaluationError:
    """Return an optional that fills an optional place; anything else is an error."""
    if isinstance(value, Optional):
        return value
    return EvaluationError(f"cannot initialize optional {said} from non-optional value {shown(value)}")


class MakeList:
    """`[a, ?b]`."""

    __slots__ = ("at", "items", "optional")

    def __init__(self, at: int, items: Sequence[Step], optional: frozenset[int]) -> None:
        self.at = at
        self.items = items
        self.optional = optional

    def run(self, frame: Frame) -> Value:
        answer = self._answer(frame)
        if frame.tracker is not None:
            frame.tracker.add(LIST_COST)
        return answer

    def _answer(self, frame: Frame) -> Value:
        made: list[Value] = []
        for place, item in enumerate(self.items):
            value = item.run(frame)
            if place in self.optional and not isinstance(value, EvaluationError):
                value = optional_entry(value, "list element")
                if isinstance(value, Optional):
                    if not value.present:
                        continue
                    value = value.value
            if isinstance(value, EvaluationError):
                return placed(value, self.at)
            made.append(value)
        return made


class MakeMap:
    """
    `{key: value, ?key: value}`.

    Where `strict`, repeating a key is an error, and so is a double or null as
    one; elsewhere of two equal keys the later wins.
    """

    __slots__ = ("entries", "strict")

    def __init__(self, entries: Sequence[tuple[Step, Step, bool, int]], strict: bool) -> None:
        self.entries = entries
        self.strict = strict

    def run(self, frame: Frame) -> Value:
        answer = self._answer(frame)
        if frame.tracker is not None:
            frame.tracker.add(MAP_COST)
        return answer

    def _answer(self, frame: Frame) -> Value:
        made: dict[Any, Any] = {}
        for key_step, value_step, optional, at in self.entries:
            key = key_step.run(frame)
            if isinstance(key, EvaluationError):
                return key
            value = value_step.run(frame)
            if optional and not isinstance(value, EvaluationError):
                value = optional_entry(value, f"entry '{shown(key)}'")
                if isinstance(value, Optional):
                    if not value.present:
                        continue
                    value = value.value
            if isinstance(value, EvaluationError):
                return placed(value, at)
            try:
                made = with_entry(made, key, value, strict=self.strict)
            except EvaluationError as error:
                return placed(error, at)
        return made


def with_entry(made: dict[Any, Any], key: Value, value: Value, *, strict: bool) -> dict[Any, Any]:
    """Return a map that is being made, with one more entry; the map itself where it can hold the key."""
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
        fields: Sequence[tuple[str, Step, bool]],
        build: Callable[[dict[str, Any]], Value],
    ) -> None:
        self.at = at
        self.fields = fields
        self.build = build

    def run(self, frame: Frame) -> Value:
        answer = self._answer(frame)
        if frame.tracker is not None:
            frame.tracker.add(STRUCT_COST)
        return answer

    def _answer(self, frame: Frame) -> Value:
        made: dict[str, Any] = {}
        for name, step, optional in self.fields:
            value = step.run(frame)
            if optional and not isinstance(value, EvaluationError):
                value = optional_entry(value, f"entry '{name}'")
                if isinstance(value, Optional):
                    if not value.present:
                        continue
                    value = value.value
            if isinstance(value, EvaluationError):
                return placed(value, self.at)
            made[name] = value
        try:
            return self.build(made)
        except EvaluationError as error:
            return placed(error, self.at)


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
    """A comprehension: for every item, while the condition holds, the accumulator becomes the step's value."""

    __slots__ = ("accumulator", "at", "condition", "first", "names", "range", "result", "step")

    def __init__(
        self,
        at: int,
        *,
        names: tuple[str, ...],
        over: Step,
        accumulator: str,
        first: Step,
        condition: Step,
        step: Step,
        result: Step,
    ) -> None:
        self.at = at
        self.names = names
        self.range = over
        self.accumulator = accumulator
        self.first = first
        self.condition = condition
        self.step = step
        self.result = result

    def run(self, frame: Frame) -> Value:
        over = self.range.run(frame)
        if isinstance(over, EvaluationError):
            return over
        loop = Loop(frame, self.accumulator, self.first)
        if not isinstance(over, (list, dict)):
            return placed(_not_iterable(over, len(self.names)), self.at)
        if len(self.names) == 1:
            for item in list(over):
                if not self._turn(loop, (item,)):
                    break
        else:
            pairs = over.items() if isinstance(over, dict) else enumerate(over)
            for pair in list(pairs):
                if not self._turn(loop, pair):
                    break
        loop.finish(self.names)
        return self.result.run(loop)

    def _turn(self, loop: Loop, items: tuple[Value, ...]) -> bool:
        for name, item in zip(self.names, items, strict=True):
            if name != self.accumulator:
                loop.values[name] = item
        if self.condition.run(loop) is False:
            return False
        loop.gather(self.step.run(loop))
        return True
