"""
Asking the rules of a schema about an object.

There are two ways. The first only finds out that every rule holds, which is what
nearly always is the case. The second takes the real server's path, counts what it
costs, and knows what to say: it is taken when the first has found something, or
when the rules might cost more than an object may.

A rule is asked of every value at its node that is not null. One that compares is
asked where the old object has a value at the same place: a field by its name, an
entry of a map list by its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.limits import PER_CALL, PER_OBJECT
from lamina.cel.errors import CelError
from lamina.cel.schema import Declared
from lamina.cel.seen import Sight, seen
from lamina.cel.values import NONE, Optional
from lamina.server.custom.document import Document, item_schema, value_schema
from lamina.server.custom.ratchet import key_of
from lamina.server.rules.compiled import OLD, RULES, SELF, SURELY, compile_rules
from lamina.server.rules.measured import sizes_in
from lamina.server.rules.types import of_element, of_property, of_root

_KEYS: Final = "x-kubernetes-list-map-keys"


class Node:
    """One node of a schema that has rules, or has some below it."""

    __slots__ = ("element", "fields", "keys", "rules", "schema", "sight", "type")

    def __init__(self, schema: Document, declared: Declared) -> None:
        self.schema = schema
        self.type: str = schema.get("type", "")
        self.rules = compile_rules(schema, declared) if RULES in schema else []
        self.sight: Sight | None = seen(declared.type) if self.rules else None
        self.fields = dict(_fields(schema, declared))
        self.element = _element(schema, declared)
        self.keys: tuple[str, ...] | None = None
        if schema.get("x-kubernetes-list-type") == "map":
            self.keys = tuple(schema.get(_KEYS, ()))

    @property
    def is_idle(self) -> bool:
        """Say whether there is nothing to ask here or below."""
        return not self.rules and not self.fields and self.element is None

    def variables(self, value: Any, old: Any) -> dict[str, Any]:
        """Return what the rules here are asked about; the old value is there only where there is one."""
        sight = self.sight
        made = {SELF: value if sight is None else sight(value)}
        if old is not None:
            made[OLD] = old if sight is None else sight(old)
        return made


def root_of(document: Document, *, resource: bool = True) -> Node | None:
    """Return the rules of a schema as a tree; None where it has none."""
    declared = of_root(document, resource=resource)
    if declared is None:
        return None
    node = Node(document, declared)
    return None if node.is_idle else node


def _fields(schema: Document, declared: Declared) -> Iterator[tuple[str, Node]]:
    for name, part in schema.get("properties", {}).items():
        if (made := _made(part, of_property(declared, name, part))) is not None:
            yield name, made


def _element(schema: Document, declared: Declared) -> Node | None:
    part = item_schema(schema)
    if part is None:
        part = value_schema(schema)
    return None if part is None else _made(part, of_element(declared, part))


def _made(part: Document, declared: Declared | None) -> Node | None:
    if declared is None or not _has_rules(part):
        return None
    node = Node(part, declared)
    return None if node.is_idle else node


def _has_rules(part: Document) -> bool:
    inner = [*part.get("properties", {}).values(), item_schema(part), value_schema(part)]
    return RULES in part or any(one is not None and _has_rules(one) for one in inner)


class Unsettled(Exception):
    """The fast way does not know: something may be wrong, or cost too much."""


class Glance:
    """The fast way through one object; raises Unsettled unless every rule is known to hold."""

    __slots__ = ("_left",)

    def __init__(self, budget: int = PER_OBJECT) -> None:
        self._left = budget

    def look(self, node: Node, value: Any, old: Any) -> None:
        if value is None:
            return
        if node.rules:
            self._ask(node, value, old)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else _EMPTY
            if node.fields:
                for name, inner in node.fields.items():
                    if name in value:
                        self.look(inner, value[name], before.get(name))
            if node.element is not None:
                for name, part in value.items():
                    self.look(node.element, part, before.get(name))
        elif isinstance(value, list) and node.element is not None:
            known = counterparts(node, old)
            for part in value:
                self.look(node.element, part, counterpart(node, known, part))

    def _ask(self, node: Node, value: Any, old: Any) -> None:
        variables = node.variables(value, old)
        for rule in node.rules:
            program = rule.check.program
            if program is None:
                raise Unsettled
            if rule.compares and not (old is not None or rule.optional):
                continue
            most = rule.check.most * SURELY
            if most > min(PER_CALL, self._left):
                program = rule.check.uncounted or program
                most = estimate(program.checked, program.environment, sizes_in(variables)).most * SURELY
                if most > min(PER_CALL, self._left):
                    raise Unsettled
            self._left -= most
            try:
                held = program.evaluate(with_optional(variables) if rule.optional else variables)
            except CelError:
                raise Unsettled from None
            if held is not True:
                raise Unsettled


_EMPTY: Final[Mapping[str, Any]] = {}


def with_optional(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables in which the old value is one that may be missing."""
    old = Optional(True, variables[OLD]) if OLD in variables else NONE
    return {**variables, OLD: old}


def counterparts(node: Node, old: Any) -> dict[tuple[Any, ...], Any]:
    """Return the old entries of a map list by their keys; nothing for other lists."""
    found: dict[tuple[Any, ...], Any] = {}
    if node.keys and isinstance(old, list):
        for candidate in old:
            if (key := key_of(candidate, node.keys)) is not None:
                found.setdefault(key, candidate)
    return found


def counterpart(node: Node, known: Mapping[tuple[Any, ...], Any], part: Any) -> Any:
    """Return the old entry that a new one takes the place of."""
    if not known or not node.keys:
        return None
    key = key_of(part, node.keys)
    return None if key is None else known.get(key)
