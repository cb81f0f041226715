"""
The run-time cost of an evaluation, counted as in Kubernetes.

Every variable and field costs 1, a call 1 or the length of its arguments, a list 10, a
map 30, a struct 40. Presence tests and constants are free, and so are `&&`, `||`, `?:`
and loops themselves, without their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from lamina.cel.cost.functions import UNIT_COST
from lamina.cel.errors import CostExceeded
from lamina.cel.values import CelObject, Optional, Value

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
_PER_CHARACTER: Final = 0.1
_PER_PATTERN_CHARACTER: Final = 0.25
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
UNLIMITED: Final = 1 << 62


CallCost: TypeAlias = Callable[[Sequence[Any], Any], int]
"""Returns the cost of a call, given its arguments and its result."""


class CostTracker:
    """Counts the cost of one evaluation. Beyond `limit` it raises CostExceeded; None only counts."""

    __slots__ = ("cost", "limit", "presence")

    def __init__(self, limit: int | None, *, kubernetes: bool) -> None:
        self.cost = 0
        self.limit = UNLIMITED if limit is None else limit
        self.presence = 0 if kubernetes else 1

    def add(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded(EXCEEDED)


def call_cost(
    function: str, overload: str, declared: CallCost | None, *, kubernetes: bool
) -> CallCost | None:
    """Return the cost function of a call, given its overload; None where each call costs 1."""
    if declared is not None:

        def as_declared(values: Sequence[Any], answer: Any) -> int:
            try:
                return declared(values, answer)
            except (TypeError, AttributeError, IndexError):
                return 1

        return as_declared
    if not (kubernetes and function in _KUBERNETES):
        return (lambda values, _: standard_cost(overload, values)) if overload in _PRICED else None
    if function in UNIT_COST:
        return None

    def as_kubernetes(values: Sequence[Any], answer: Any) -> int:
        found = kubernetes_cost(function, overload, values, answer)
        return standard_cost(overload, values) if found is None else found

    return as_kubernetes


def size_of(value: Value) -> int:
    """Return the length of a value; 1 for one without a length."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return size_of(value.value)
    return _sized(value)


def _sized(value: Value) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    return len(value) if isinstance(value, CelObject) and hasattr(value, "__len__") else 1


def _characters(count: float) -> int:
    return math.ceil(count * _PER_CHARACTER)


def standard_cost(overload: str, args: Sequence[Value]) -> int:
    """Return the cost of a call by cel-go's rules, given its overload."""
    if overload in _BY_FIRST:
        return _characters(size_of(args[0]))
    if overload == "in_list":
        return size_of(args[1])
    if overload in _BY_SHORTER:
        return _characters(min(size_of(args[0]), size_of(args[1])))
    if overload in {"add_string", "add_bytes"}:
        return _characters(size_of(args[0]) + size_of(args[1]))
    if overload == "matches_string":
        return _characters(1.0 + size_of(args[0])) * math.ceil(size_of(args[1]) * _PER_PATTERN_CHARACTER)
    if overload == "contains_string":
        return _characters(size_of(args[0])) * _characters(size_of(args[1]))
    return 1


_BY_FIRST: Final = frozenset(
    {
        "starts_with_string",
        "ends_with_string",
        "string_to_bytes",
        "bytes_to_string",
        "strings_quote",
        "string_format",
    }
)
_BY_SHORTER: Final = frozenset(
    {"equals", "not_equals"}
    | {
        f"{word}_{kind}"
        for word in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    }
)

_TRAVERSED: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_ONE_PASS: Final = frozenset(
    {"url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"}
    | {"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"}
)
_PRICED: Final = (
    _BY_FIRST | _BY_SHORTER | {"in_list", "add_string", "add_bytes", "matches_string", "contains_string"}
)
"""The overloads whose cost is not constant."""
_KUBERNETES: Final = (
    (_TRAVERSED | _ONE_PASS | UNIT_COST)
    | {"ip", "replace", "split", "ip.isCanonical", "join", "find", "findAll", "validate", "_==_"}
    | {"containsIP", "containsCIDR"}
)
"""The functions with Kubernetes' own cost rules."""


def kubernetes_cost(function: str, overload: str, args: Sequence[Value], result: Value) -> int | None:
    """Return the cost of a call by Kubernetes' own rules; None where it has none for the function."""
    if function in _TRAVERSED:
        return _traversal(args[0]) if args else 0
    if function in UNIT_COST:
        return 1
    if not args:
        return None
    if function in _ONE_PASS or (function == "ip" and overload != "cidr_ip"):
        return _characters(_sized(args[0]))
    if function == "ip":
        return 1
    if function in {"replace", "split", "ip.isCanonical"}:
        return math.ceil(_sized(args[0]) * 2 * _PER_CHARACTER)
    if function == "join":
        return math.ceil(_sized(result) * 2 * _PER_CHARACTER)
    if len(args) < 2:
        return None
    if function in {"find", "findAll"}:
        return _characters(1.0 + _sized(args[0])) * math.ceil(_sized(args[1]) * _PER_PATTERN_CHARACTER)
    if function in {"containsIP", "containsCIDR"}:
        return _containing(function, overload, args)
    if function == "validate" and hasattr(args[0], "pattern_size"):
        pattern = math.ceil(args[0].pattern_size * _PER_PATTERN_CHARACTER)
        return _characters(1.0 + _sized(args[1])) * int(pattern)
    if function == "_==_" and isinstance(args[0], CelObject):
        return 1
    return None


def _containing(function: str, overload: str, args: Sequence[Value]) -> int:
    prefix, other = _sized(args[0]), _sized(args[1])
    cost = _characters(prefix + prefix)
    if function == "containsCIDR":
        cost += _characters(prefix) + 1
    if overload in {"cidr_contains_ip_string", "cidr_contains_cidr_string"}:
        cost += _characters(other)
    return cost


def _traversal(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "replace")) * _PER_CHARACTER)
    if isinstance(value, bytes):
        return int(len(value) * _PER_CHARACTER)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1
