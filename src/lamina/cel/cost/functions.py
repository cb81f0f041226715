"""
Cost estimates of function calls: Kubernetes' rules by name, cel-go's by overload.

Kubernetes rejects a CRD whose rules may exceed the budget, so each number here is
part of its API.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from lamina.cel.ast import Literal, LiteralKind
from lamina.cel.cost.size import (
    LIST_BASE,
    MOST,
    NOTHING,
    ONE,
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    CallEstimate,
    CostNode,
    Estimate,
    exactly,
)
from lamina.cel.types import Kind

_ONE: Final = CallEstimate(ONE)
UNIT_COST: Final = frozenset(
    [
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
"""The functions of Kubernetes whose calls cost 1."""
_NOMINAL: Final = UNIT_COST | frozenset(
    [
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
    ]
)
_UNIT_EQUALITY: Final = frozenset({"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"})
_FORMAT_SIZE: Final = 64
_NAMED_FORMAT_REGEX: Final = 128
_AUTHORIZATION: Final = 350_000
_ADDRESS: Final = Estimate(4, 16)
"""The bytes of an IP address."""


def kubernetes_estimate(
    function: str, overload: str, target: CostNode | None, args: Sequence[CostNode]
) -> CallEstimate | None:
    """Return Kubernetes' estimate of a call; None where it has none of its own."""
    if function in _NOMINAL:
        return _ONE
    rule = _RULES.get(function)
    return None if rule is None else rule(overload, target, args)


def _traversed(node: CostNode, times: float = 1) -> Estimate:
    return node.size.scaled(times * STRING_TRAVERSAL)


def _check(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return CallEstimate(exactly(_AUTHORIZATION))


def _selector(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if len(args) != 1:
        return None
    requirements = args[0].size.scaled(0.5).scaled(LIST_BASE + 40)
    return CallEstimate(exactly(LIST_BASE).plus(_traversed(args[0])).plus(requirements))


def _aggregate(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    element = target.element
    if element is None:
        return CallEstimate(_traversed(target))
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(_traversed(element))
    return CallEstimate(target.size.times(each))


def _parsed_with_size(
    overload: str, target: CostNode | None, args: Sequence[CostNode]
) -> CallEstimate | None:
    return CallEstimate(_traversed(args[0]), args[0].size) if len(args) == 1 else None


def _parsed(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return CallEstimate(_traversed(args[0])) if args else None


def _changed(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return CallEstimate(_traversed(target), target.size) if target is not None else None


def _replace(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    if old.least == 0:
        most_times, most_kept = min(size.most + 1, MOST), size.most
    elif new.most <= old.least:
        most_times, most_kept = 0, size.most
    else:
        most_times, most_kept = min(math.ceil(float(size.most) / float(old.least)), MOST), 0
    if old.most == 0:
        least_times, least_kept = min(size.least + 1, MOST), size.least
    elif old.most <= new.least:
        least_times, least_kept = 0, size.least
    else:
        least_times, least_kept = math.ceil(float(size.least) / float(old.most)), 0
    result = Estimate(least_times, most_times).times(new).plus(Estimate(least_kept, most_kept))
    return CallEstimate(_traversed(target, 2), result)


def _split(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    most = target.size.most
    if len(args) > 1:
        expr = args[1].expr
        if isinstance(expr, Literal) and expr.kind is LiteralKind.INT and isinstance(expr.value, int):
            most = expr.value % (MOST + 1)
    return CallEstimate(_traversed(target, 2), Estimate(0, most))


def _join(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    items, element = target.size, target.element
    size = items.times(element.size) if element is not None else NOTHING
    if args:
        gaps = Estimate(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(args[0].size.times(gaps))
    return CallEstimate(size.scaled(STRING_TRAVERSAL), size)


def _find(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if target is None or not args:
        return None
    text = target.size.plus(ONE).scaled(STRING_TRAVERSAL)
    return CallEstimate(text.times(args[0].size.scaled(REGEX_LENGTH)), Estimate(0, target.size.most))


def _ip(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return _ONE if overload == "cidr_ip" else _parsed(overload, target, args)


def _canonical(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return CallEstimate(_traversed(args[0], 2)) if args else None


def _contains_ip(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if not args:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        cost = cost.plus(_traversed(args[0]))
    return CallEstimate(cost)


def _contains_cidr(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if not args:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_TRAVERSAL).plus(_ADDRESS.scaled(STRING_TRAVERSAL)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        cost = cost.plus(_traversed(args[0]))
    return CallEstimate(cost)


def _validate(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    return CallEstimate(_traversed(args[0]).scaled(_NAMED_FORMAT_REGEX * REGEX_LENGTH)) if args else None


def _equals(overload: str, target: CostNode | None, args: Sequence[CostNode]) -> CallEstimate | None:
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    name = args[0].type.name
    if name in _UNIT_EQUALITY:
        return _ONE
    if name == "kubernetes.NamedFormat":
        return CallEstimate(Estimate(1, _FORMAT_SIZE).scaled(STRING_TRAVERSAL))
    if name == "kubernetes.URL":
        most = args[1].computed.most if args[1].computed is not None else 1
        return CallEstimate(Estimate(1, most).scaled(STRING_TRAVERSAL))
    return None


_RULES: Final[dict[str, Callable[[str, CostNode | None, Sequence[CostNode]], CallEstimate | None]]] = {
    "check": _check,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _aggregate),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _parsed_with_size),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _changed),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parsed),
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}


def extension_estimate(
    overload: str, target: CostNode | None, args: Sequence[CostNode]
) -> CallEstimate | None:
    """Return the estimate of a function of the lists and sets extensions."""
    match overload:
        case "list_slice" if target is not None and len(args) == 2:
            start, end = _number(args[0], 0), _number(args[1], target.size.most)
            return _allocating(1, exactly((end - start) % (MOST + 1)))
        case "list_flatten" if target is not None:
            return _allocating(1, target.size)
        case "list_flatten_int" if target is not None and len(args) == 1:
            return _allocating(float(_number(args[0], MOST)), target.size)
        case "lists_range" if target is None and len(args) == 1:
            return _allocating(1, exactly(_number(args[0], MOST)))
        case "list_reverse" if target is not None:
            return _allocating(1, target.size)
        case "list_distinct" if target is not None:
            return _allocating(2, target.size.times(target.size))
        case "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list" if (
            len(args) == 2
        ):
            factor = 2 if overload == "list_sets_equivalent_list" else 1
            return CallEstimate(args[0].size.times(args[1].size).scaled(factor).plus(ONE))
    if overload.startswith("list_") and overload.endswith(("_sort", "_sortByAssociatedKeys")):
        sorted_by = target if overload.endswith("_sort") else args[0]
        if sorted_by is not None:
            text = overload.startswith(("list_string_", "list_bytes_"))
            return _allocating(2 + (STRING_TRAVERSAL if text else 0), sorted_by.size.times(sorted_by.size))
    return None


def _allocating(factor: float, size: Estimate) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(ONE).plus(exactly(LIST_BASE)), size)


def _number(node: CostNode, default: int) -> int:
    expr = node.expr
    if isinstance(expr, Literal) and expr.kind is LiteralKind.INT and isinstance(expr.value, int):
        return max(expr.value, 0)
    return default
