"""The validation rules of a schema, evaluated on a value without an old one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from lamina.cel.data_adapter import adapter_of
from lamina.cel.declarations import Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.errors import CompileError, EvaluationError
from lamina.cel.program import compile_expression
from lamina.cel.references import reads
from lamina.cel.schema import declare
from lamina.graph.schemas.structure import RULES, below, fields_of, values_of
from lamina.objects.types import Obj

_Check = Callable[[Any], str]
"""Returns why a value breaks a rule, empty where it does not."""


def broken_rules(value: Any, schema: Obj, path: str) -> Iterator[str]:
    """Yield the rules that a value breaks, and those of everything in it, with their paths."""
    for rule in schema.get(RULES) or ():
        # The type of `self` is that of the whole node.
        check = _compiled(rule["rule"], msgspec.json.encode(schema))
        if check is not None and (why := check(value)):
            said = rule.get("message") or "validation failed"
            yield f"{path}: {said}: {rule['rule']}{why}"
    if isinstance(value, Mapping):
        fields, values = fields_of(schema), values_of(schema)
        for name, inner in value.items():
            if (known := fields.get(name, values)) is not None:
                yield from broken_rules(inner, known, below(path, name))
    elif isinstance(value, list) and (items := schema.get("items")) is not None:
        for index, inner in enumerate(value):
            yield from broken_rules(inner, items, f"{path}[{index}]")


@lru_cache(maxsize=1024)
def _compiled(rule: str, schema: bytes) -> _Check | None:
    """Return the check of a rule; None if it compares with the old value, or no API server accepts it."""
    declared = declare(msgspec.json.decode(schema))
    if declared is None:
        return None
    variables = (Variable("self", declared.type), Variable("oldSelf", declared.type))
    try:
        program = compile_expression(rule, KUBERNETES.extend(variables=variables), sizes=declared.sizes)
    except CompileError:
        return None
    if "oldSelf" in reads(program.checked, program.environment).variables:
        return None
    adapt = adapter_of(declared.type)

    def check(value: Any) -> str:
        try:
            holds = program.evaluate({"self": value if adapt is None else adapt(value)})
        except EvaluationError as failed:
            return f" cannot be evaluated: {failed.message}"
        return "" if holds is True else " is false"

    return check
