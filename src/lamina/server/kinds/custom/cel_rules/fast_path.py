"""
The fast path of rule evaluation: whether every rule holds, which is mostly the case.

The rules of a schema are a tree of nodes, which `slow_path` walks too. It runs if the
fast path found a violation, or if the rules might exceed the budget.

A rule is evaluated for every non-null value at its node. A transition rule is evaluated
if the old object has a corresponding value: a field with the same name, an item of a map
list with the same keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.limits import PER_CALL, PER_OBJECT
from lamina.cel.data_adapter import Adapter, adapter_of
from lamina.cel.errors import CelError
from lamina.cel.schema import Declared
from lamina.cel.values import NONE, Optional
from lamina.server.kinds.custom.cel_rules.compiled import ESTIMATE_MARGIN, OLD, RULES, SELF, compile_rules
from lamina.server.kinds.custom.cel_rules.types import of_element, of_property, of_root
from lamina.server.kinds.custom.cel_rules.value_size import sizes_in
from lamina.server.kinds.custom.document import Document, item_schema, value_schema
from lamina.server.kinds.custom.ratchet import key_of

_KEYS: Final = "x-kubernetes-list-map-keys"


class Node:
    """A schema node that has rules, or has descendants with rules."""

    __slots__ = ("adapt", "element", "fields", "keys", "rules", "schema", "type")

    def __init__(self, schema: Document, declared: Declared) -> None:
        self.schema = schema
        self.type: str = schema.get("type", "")
        self.rules = compile_rules(schema, declared) if RULES in schema else []
        self.adapt: Adapter | None = adapter_of(declared.type) if self.rules else None
        self.fields = dict(_fields(schema, declared))
        self.element = _element(schema, declared)
        self.keys: tuple[str, ...] | None = None
        if schema.get("x-kubernetes-list-type") == "map":
            self.keys = tuple(schema.get(_KEYS, ()))

    @property
    def is_idle(self) -> bool:
        """Whether there are no rules here and below."""
        return not self.rules and not self.fields and self.element is None

    def variables(self, value: Any, old: Any) -> dict[str, Any]:
        """Return the variables of the rules here; the old value is set only if there is one."""
        adapt = self.adapt
        made = {SELF: value if adapt is None else adapt(value)}
        if old is not None:
            made[OLD] = old if adapt is None else adapt(old)
        return made


def root_of(document: Document, *, resource: bool = True) -> Node | None:
    """Return the rules of a schema as a tree, None if it has none."""
    declared = of_root(document, resource=resource)
    if declared is None:
        return None
    node = Node(document, declared)
    return None if node.is_idle else node


def _fields(schema: Document, declared: Declared) -> Iterator[tuple[str, Node]]:
    for name, part in schema.get("properties", {}).items():
        if (made := _child(part, of_property(declared, name, part))) is not None:
            yield name, made


def _element(schema: Document, declared: Declared) -> Node | None:
    part = item_schema(schema)
    if part is None:
        part = value_schema(schema)
    return None if part is None else _child(part, of_element(declared, part))


def _child(part: Document, declared: Declared | None) -> Node | None:
    if declared is None or not _has_rules(part):
        return None
    node = Node(part, declared)
    return None if node.is_idle else node


def _has_rules(part: Document) -> bool:
    inner = [*part.get("properties", {}).values(), item_schema(part), value_schema(part)]
    return RULES in part or any(one is not None and _has_rules(one) for one in inner)


class NeedsSlowPath(Exception):
    """A rule may be violated, or may cost too much."""


class FastCheck:
    """Evaluates the rules of one object; raises NeedsSlowPath unless all of them certainly hold."""

    __slots__ = ("_left",)

    def __init__(self, budget: int = PER_OBJECT) -> None:
        self._left = budget

    def check(self, node: Node, value: Any, old: Any) -> None:
        if value is None:
            return
        if node.rules:
            self._evaluate(node, value, old)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else _EMPTY
            if node.fields:
                for name, inner in node.fields.items():
                    if name in value:
                        self.check(inner, value[name], before.get(name))
            if node.element is not None:
                for name, part in value.items():
                    self.check(node.element, part, before.get(name))
        elif isinstance(value, list) and node.element is not None:
            known = counterparts(node, old)
            for part in value:
                self.check(node.element, part, counterpart(node, known, part))

    def _evaluate(self, node: Node, value: Any, old: Any) -> None:
        variables = node.variables(value, old)
        for rule in node.rules:
            program = rule.check.program
            if program is None:
                raise NeedsSlowPath
            if rule.compares and not (old is not None or rule.optional):
                continue
            most = rule.check.most * ESTIMATE_MARGIN
            if most > min(PER_CALL, self._left):
                program = rule.check.uncounted or program
                most = (
                    estimate(program.checked, program.environment, sizes_in(variables)).most * ESTIMATE_MARGIN
                )
                if most > min(PER_CALL, self._left):
                    raise NeedsSlowPath
            self._left -= most
            try:
                passed = program.evaluate(with_optional(variables) if rule.optional else variables)
            except CelError:
                raise NeedsSlowPath from None
            if passed is not True:
                raise NeedsSlowPath


_EMPTY: Final[Mapping[str, Any]] = {}


def with_optional(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables in which the old value is a CEL optional."""
    old = Optional(True, variables[OLD]) if OLD in variables else NONE
    return {**variables, OLD: old}


def counterparts(node: Node, old: Any) -> dict[tuple[Any, ...], Any]:
    """Return the old items of a map list by their keys; empty for other lists."""
    found: dict[tuple[Any, ...], Any] = {}
    if node.keys and isinstance(old, list):
        for candidate in old:
            if (key := key_of(candidate, node.keys)) is not None:
                found.setdefault(key, candidate)
    return found


def counterpart(node: Node, known: Mapping[tuple[Any, ...], Any], part: Any) -> Any:
    """Return the old item with the keys of a new one."""
    if not known or not node.keys:
        return None
    key = key_of(part, node.keys)
    return None if key is None else known.get(key)
