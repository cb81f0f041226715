"""
What an evaluation costs, counted as Kubernetes counts it.

Every name and every field costs 1, a call 1 or what its arguments are long, a
list 10, a map 30, a struct 40. Presence tests and constants are free, and so are
`&&`, `||`, `?:` and loops themselves; what happens in them is not.

Arguments are found on a stack of everything that was seen. A call whose
arguments are no longer there costs nothing; that is how cel-go has it, and a
budget that is kept to the last unit has to agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.cel.errors import CostExceeded
from lamina.cel.values import CelObject, Optional, Value

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
_PER_CHARACTER: Final = 0.1
_PER_PATTERN_CHARACTER: Final = 0.25
EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class Tracker:
    """Counts one evaluation. `limit` ends it by CostExceeded; None only counts."""

    __slots__ = ("_ids", "_places", "_presence", "cost", "kubernetes", "limit")

    def __init__(self, limit: int | None, *, kubernetes: bool) -> None:
        self.cost = 0
        self.limit = limit
        self.kubernetes = kubernetes
        self._presence = 0 if kubernetes else 1
        self._ids: list[int] = []
        self._places: dict[int, list[int]] = {}

    def saw(self, node: int, cost: int = 0) -> None:
        """A value was found; what it costs is added."""
        places = self._places.get(node)
        if places is None:
            self._places[node] = [len(self._ids)]
        else:
            places.append(len(self._ids))
        self._ids.append(node)
        if cost:
            self.cost += cost
            if self.limit is not None and self.cost > self.limit:
                raise CostExceeded(EXCEEDED)

    def saw_attribute(self, node: int, *, drop: int, test_only: bool) -> None:
        self._drop(drop)
        self.saw(node, self._presence if test_only else 1)

    def saw_conditional(self, node: int, parts: Sequence[int], *, test_only: bool) -> None:
        for part in parts:
            self._drop(part)
        if test_only:
            self.cost += self._presence - 1
        self.saw(node)

    def saw_parts(self, node: int, parts: Sequence[int]) -> None:
        """A value was made of others that cost what they cost, as `&&` and loops are."""
        for part in parts:
            self._drop(part)
        self.saw(node)

    def saw_made(self, node: int, parts: Sequence[int], cost: int) -> None:
        """A list, map or struct was made."""
        self._take(parts)
        self.saw(node, cost)

    def saw_call(self, node: int, parts: Sequence[int], cost: Callable[[], int]) -> None:
        """A function was called; `cost` is only asked where its arguments are still there."""
        self.saw(node, cost() if self._take(parts) else 0)

    def _drop(self, node: int) -> bool:
        """Take everything off the stack down to the last time a node was seen, if it was."""
        places = self._places.get(node)
        if not places:
            return False
        place = places[-1]
        for other in self._ids[place:]:
            self._places[other].pop()
        del self._ids[place:]
        return True

    def _take(self, parts: Sequence[int]) -> bool:
        # Stops at the first that is not there, as cel-go does.
        return all(self._drop(part) for part in reversed(parts))


def size_of(value: Value) -> int:
    """Return how long a value is; 1 for what has no length."""
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
    """Return what a call costs by the rules of the language, given the overload that was meant."""
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
_UNIT: Final = frozenset(
    {"masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"}
    | {"isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger"}
    | {
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
    }
    | {"getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"}
)


def kubernetes_cost(function: str, overload: str, args: Sequence[Value], result: Value) -> int | None:
    """Return what a call costs by Kubernetes' own rules, or None where it has none for that function."""
    if function in _TRAVERSED:
        return _traversal(args[0]) if args else 0
    if function in _UNIT:
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
