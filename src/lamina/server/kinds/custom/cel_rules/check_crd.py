"""
Validation of the rules in a schema: each compiles, can be evaluated, and is within the cost limit.

The cost of a rule is estimated for the largest possible object, times how often its node
can occur.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.cel.cost.limits import ESTIMATED_PER_DEFINITION, ESTIMATED_PER_RULE, cardinality
from lamina.cel.cost.size import MOST
from lamina.cel.schema import Declared
from lamina.errors import Cause
from lamina.server.field_errors import forbidden, internal, invalid
from lamina.server.kinds.custom.cel_rules.compiled import RULES, Expression, Rule, compile_rules
from lamina.server.kinds.custom.cel_rules.types import of_element, of_property, of_root
from lamina.server.kinds.custom.document import Document, internal_rule, item_schema, value_schema

_NAMED: Final = 4
"""How many of the most expensive rules are reported when their total exceeds the limit."""
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, "
    "and strings are declared)"
)


class _Total(Struct):
    """The estimated cost of all rules, and the most expensive ones."""

    cost: int = 0
    costliest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, MOST)
        if cost >= ESTIMATED_PER_DEFINITION // 100:
            self.costliest.append((cost, path))
            self.costliest.sort(key=lambda one: -one[0])
            del self.costliest[_NAMED:]


class _Position(Struct, frozen=True):
    """
    A position in a schema.

    `times` is how often the node can occur, None if that is unlimited. `unlinked` is the
    path of a list whose items cannot be correlated between old and new.
    """

    path: str
    declared: Declared | None
    times: int | None
    unlinked: str = ""


def validate_rules(document: Document, path: str, wrong: Sequence[str] = ()) -> Iterator[Cause]:
    """
    Yield the errors of the rules in a structural schema.

    `wrong` are the paths of fields with other errors: rules above them are not checked,
    because their types may be wrong.
    """
    total = _Total()
    yield from _node(document, _Position(path, of_root(document), 1), total, wrong)
    if total.cost > ESTIMATED_PER_DEFINITION:
        for _, where in total.costliest:
            detail = (
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            )
            yield forbidden(where, detail)
        detail = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_much(detail, total.cost, ESTIMATED_PER_DEFINITION))


def _node(node: Document, position: _Position, total: _Total, wrong: Sequence[str]) -> Iterator[Cause]:
    times = _product(position.times, _factor(node))
    below = replace(position, times=times)
    values, items = value_schema(node), item_schema(node)
    if values is not None:
        inner = replace(
            below,
            path=f"{position.path}.additionalProperties",
            declared=of_element(position.declared, values),
        )
        yield from _node(values, inner, total, wrong)
    for name, part in node.get("properties", {}).items():
        inner = replace(
            below,
            path=f"{position.path}.properties[{name}]",
            declared=of_property(position.declared, name, part),
        )
        yield from _node(part, inner, total, wrong)
    if items is not None:
        unlinked = position.unlinked
        if node.get("x-kubernetes-list-type") != "map":
            unlinked = unlinked or position.path
        inner = replace(
            below,
            path=f"{position.path}.items",
            declared=of_element(position.declared, items),
            unlinked=unlinked,
        )
        yield from _node(items, inner, total, wrong)
    if node.get(RULES) and not any(one.startswith(f"{position.path}.") for one in wrong):
        yield from _rules(node, position, total)


def _rules(node: Document, position: _Position, total: _Total) -> Iterator[Cause]:
    item_path = f"{position.path}.{RULES}"
    if position.declared is None:
        reason = "unable to convert structural schema to CEL declarations"
        detail = f"internal error: failed to construct type information for {RULES} rules: {reason}"
        yield internal(item_path, detail)
        return
    times = cardinality(position.declared.smallest) if position.times is None else position.times
    named = _self_type(position.declared)
    for index, rule in enumerate(compile_rules(node, position.declared)):
        yield from _rule(rule, f"{item_path}[{index}]", times, position.unlinked, total, named)


def _self_type(declared: Declared) -> re.Pattern[str] | None:
    """Return a pattern of the names of the types in a node, None where they have none."""
    suffix = ""
    while declared.element is not None:
        suffix, declared = f".@{'elem' if declared.key is not None else 'idx'}{suffix}", declared.element
    name = str(declared.type).removesuffix(suffix) if declared.fields else ""
    return re.compile(rf"(?<![\w.]){re.escape(name)}(?=[.,)]|$)") if name else None


def _scoped(problem: str, path: str, named: re.Pattern[str] | None) -> str:
    """
    Return a problem with the types as kube-apiserver names them, which are those of `self`.

    kube-apiserver draws the number in the name; here it follows from the path.
    """
    head, applied, types = problem.partition(" applied to ")
    if named is None or not applied:
        return problem
    line, end, rest = types.partition("\n")
    return f"{head}{applied}{named.sub(f'selfType{crc32(path.encode())}', line)}{end}{rest}"


def _rule(
    rule: Rule, path: str, times: int, unlinked: str, total: _Total, named: re.Pattern[str] | None
) -> Iterator[Cause]:
    cost = min(rule.check.most * times, MOST)
    if cost > ESTIMATED_PER_RULE:
        yield forbidden(f"{path}.rule", _too_much("estimated rule cost", cost, ESTIMATED_PER_RULE))
    total.add(f"{path}.rule", cost)
    if rule.check.problem:
        problem = _scoped(rule.check.problem, path, named)
        yield invalid(f"{path}.rule", internal_rule(rule.written), problem)
    if rule.message is not None:
        yield from _message(rule, rule.message, f"{path}.messageExpression", total, named)
    if rule.compares:
        if unlinked:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unlinked}"
            yield invalid(f"{path}.rule", rule.written["rule"], detail)
    elif "optionalOldSelf" in rule.written:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule.written["optionalOldSelf"], detail)


def _message(
    rule: Rule, message: Expression, path: str, total: _Total, named: re.Pattern[str] | None
) -> Iterator[Cause]:
    if message.problem:
        yield invalid(path, internal_rule(rule.written), _scoped(message.problem, path, named))
        return
    if message.most > ESTIMATED_PER_RULE:
        detail = _too_much("estimated messageExpression cost", message.most, ESTIMATED_PER_RULE)
        yield forbidden(path, detail)
    total.add(path, message.most)


def _factor(node: Document) -> int | None:
    """Return the maximum number of values in one value of a node, None if that is unlimited."""
    limit: int | None = 1
    if node.get("type") == "object" and "additionalProperties" in node:
        limit = node.get("maxProperties")
    elif node.get("type") == "array":
        limit = node.get("maxItems")
    return limit if limit is None else max(limit, 0)


def _product(times: int | None, factor: int | None) -> int | None:
    return None if times is None or factor is None else min(times * factor, MOST)


def _too_much(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"
