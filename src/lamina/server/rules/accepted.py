"""
Whether the rules of a schema are accepted: that each compiles, can ever be asked, and costs not too much.

What a rule costs is estimated for the largest object that a request can hold, and
then for as often as its node can occur in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lamina.cel.cost.limits import ESTIMATED_PER_DEFINITION, ESTIMATED_PER_RULE, cardinality
from lamina.cel.cost.size import MOST
from lamina.cel.schema import Declared
from lamina.errors import Cause
from lamina.server.custom.document import Document, internal_rule, item_schema, value_schema
from lamina.server.fields import forbidden, internal, invalid
from lamina.server.rules.compiled import RULES, Expression, Rule, compile_rules
from lamina.server.rules.types import of_element, of_property, of_root

_NAMED: Final = 4
"""How many of the costliest rules are named when all of them together cost too much."""
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, "
    "and strings are declared)"
)


class _Total(Struct):
    """What all rules together may cost, and which of them are to blame."""

    cost: int = 0
    costliest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, MOST)
        if cost >= ESTIMATED_PER_DEFINITION // 100:
            self.costliest.append((cost, path))
            self.costliest.sort(key=lambda one: -one[0])
            del self.costliest[_NAMED:]


class _Place(Struct, frozen=True):
    """
    Where in a schema we are.

    `times` is how often the node can occur, None where nothing limits that.
    `unlinked` is the path of the list whose items cannot be found again.
    """

    path: str
    declared: Declared | None
    times: int | None
    unlinked: str = ""


def validate_rules(document: Document, path: str, wrong: Sequence[str] = ()) -> Iterator[Cause]:
    """
    Yield what is wrong with the rules of a structural schema.

    `wrong` are the paths of fields that something else is wrong with: rules above
    them are not looked at, since their types may not be what is meant.
    """
    total = _Total()
    yield from _node(document, _Place(path, of_root(document), 1), total, wrong)
    if total.cost > ESTIMATED_PER_DEFINITION:
        for _, where in total.costliest:
            told = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(where, told)
        told = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_much(told, total.cost, ESTIMATED_PER_DEFINITION))


def _node(node: Document, place: _Place, total: _Total, wrong: Sequence[str]) -> Iterator[Cause]:
    times = _product(place.times, _factor(node))
    below = replace(place, times=times)
    values, items = value_schema(node), item_schema(node)
    if values is not None:
        inner = replace(
            below, path=f"{place.path}.additionalProperties", declared=of_element(place.declared, values)
        )
        yield from _node(values, inner, total, wrong)
    for name, part in node.get("properties", {}).items():
        inner = replace(
            below,
            path=f"{place.path}.properties[{name}]",
            declared=of_property(place.declared, name, part),
        )
        yield from _node(part, inner, total, wrong)
    if items is not None:
        unlinked = place.unlinked
        if node.get("x-kubernetes-list-type") != "map":
            unlinked = unlinked or place.path
        inner = replace(
            below,
            path=f"{place.path}.items",
            declared=of_element(place.declared, items),
            unlinked=unlinked,
        )
        yield from _node(items, inner, total, wrong)
    if node.get(RULES) and not any(one.startswith(f"{place.path}.") for one in wrong):
        yield from _rules(node, place, total)


def _rules(node: Document, place: _Place, total: _Total) -> Iterator[Cause]:
    here = f"{place.path}.{RULES}"
    if place.declared is None:
        why = "unable to convert structural schema to CEL declarations"
        told = f"internal error: failed to construct type information for {RULES} rules: {why}"
        yield internal(here, told)
        return
    times = cardinality(place.declared.smallest) if place.times is None else place.times
    for index, rule in enumerate(compile_rules(node, place.declared)):
        yield from _rule(rule, f"{here}[{index}]", times, place.unlinked, total)


def _rule(rule: Rule, path: str, times: int, unlinked: str, total: _Total) -> Iterator[Cause]:
    cost = min(rule.check.most * times, MOST)
    if cost > ESTIMATED_PER_RULE:
        yield forbidden(f"{path}.rule", _too_much("estimated rule cost", cost, ESTIMATED_PER_RULE))
    total.add(f"{path}.rule", cost)
    if rule.check.problem:
        yield invalid(f"{path}.rule", internal_rule(rule.written), rule.check.problem)
    if rule.message is not None:
        yield from _message(rule, rule.message, f"{path}.messageExpression", total)
    if rule.compares:
        if unlinked:
            told = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unlinked}"
            yield invalid(f"{path}.rule", rule.written["rule"], told)
    elif "optionalOldSelf" in rule.written:
        told = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule.written["optionalOldSelf"], told)


def _message(rule: Rule, message: Expression, path: str, total: _Total) -> Iterator[Cause]:
    if message.problem:
        yield invalid(path, internal_rule(rule.written), message.problem)
        return
    if message.most > ESTIMATED_PER_RULE:
        told = _too_much("estimated messageExpression cost", message.most, ESTIMATED_PER_RULE)
        yield forbidden(path, told)
    total.add(path, message.most)


def _factor(node: Document) -> int | None:
    """Return how many values one value of a node can hold at most, None where nothing limits that."""
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
