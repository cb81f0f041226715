"""
Compiles the conditions of the author: expressions that make conditions with `runtime.newCondition`.

`runtime.condition(schema, 'T')` finds the built-in conditions only, so that conditions of
the author cannot depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.cel.ast import Call, Ident, Literal, MakeMap, walk
from lamina.cel.environment import GRAPH
from lamina.cel.library.kro_scoped import CONDITION, CONDITIONS
from lamina.cel.schema import Declared
from lamina.cel.types import Kind
from lamina.graph.expressions import (
    Expression,
    Written,
    check_does_not_omit,
    check_references,
    compiled,
    declaring,
    parsed,
)
from lamina.graph.fields import standalone
from lamina.graph.graph import SCHEMA
from lamina.graph.problems import problem

LANGUAGE = GRAPH.extend(libraries=[CONDITIONS])
BUILT_IN = ("InstanceManaged", "GraphResolved", "ResourcesReady", "Ready")
"""The conditions of every instance that expressions may read."""
_WHERE = "spec.schema.status.conditions"
_MADE = "runtime.@newCondition"


def compile_conditions(stated: Any, variables: Mapping[str, Declared]) -> tuple[Expression, ...]:
    """Return the compiled entries of `status.conditions`, in order; raises GraphError."""
    if stated is None:
        return ()
    if not isinstance(stated, list):
        raise problem(_WHERE, "status.conditions must be a list of standalone expressions")
    entries: list[Written] = []
    for index, text in enumerate(stated):
        field = f"{_WHERE}[{index}]"
        entries.append(parsed(standalone(text, field), field, LANGUAGE))
    declared = _declared_types(entries)
    environment = declaring(LANGUAGE, variables)
    found: list[Expression] = []
    for written in entries:
        _check_lookups(written, declared)
        check_does_not_omit(written)
        check_references(written, variables)
        expression = compiled(written, environment, variables)
        result = expression.type.params[0] if expression.type.kind is Kind.LIST else expression.type
        if result != CONDITION and not result.is_dyn:
            message = (
                "condition expressions must return runtime.newCondition(...) or a list of them, "
                f'got "{expression.type}"'
            )
            raise written.problem(message)
        found.append(expression)
    return tuple(found)


def _declared_types(entries: Sequence[Written]) -> set[str]:
    """Return the types that are written out in entries; raises GraphError where two entries have the same."""
    found: set[str] = set()
    for written in entries:
        own = {
            type_
            for node in walk(written.parsed.expr)
            if isinstance(node, Call) and node.function == _MADE and (type_ := _literal_type(node))
        }
        for type_ in sorted(own & found):
            message = f'condition type "{type_}" is declared by more than one conditions entry'
            raise written.problem(message, _MADE)
        found |= own
    return found


def _literal_type(call: Call) -> str:
    (made,) = call.args
    for entry in made.entries if isinstance(made, MakeMap) else ():
        if isinstance(entry.key, Literal) and entry.key.value == "type" and isinstance(entry.value, Literal):
            return str(entry.value.value)
    return ""


def _check_lookups(written: Written, declared: set[str]) -> None:
    for node in walk(written.parsed.expr):
        match node:
            case Call(
                function="condition",
                target=Ident(name="runtime"),
                args=(Ident(name="schema"), Literal(value=str() as type_)),
            ) if type_ not in BUILT_IN:
                call = f'runtime.condition({SCHEMA}, "{type_}")'
                if type_ in declared:
                    message = f"{call}: custom conditions cannot reference each other"
                else:
                    message = f"{call}: unknown condition type"
                raise written.problem(message, "condition", f"built-in are: {', '.join(BUILT_IN)}")
