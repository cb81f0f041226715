"""The same expressions on the same inputs, here and in the C++ implementation."""

from __future__ import annotations

import math
from typing import Any

from cel_expr_python import cel as other
from hypothesis import HealthCheck, assume, given, settings

from lamina.cel.environment import PLAIN
from lamina.cel.errors import CompileError, EvaluationError
from lamina.cel.numbers import UInt
from lamina.cel.program import compile_expression
from lamina.cel.values import TypeValue
from tests.properties.expressions import VARIABLES, expressions, inputs

ENVIRONMENT = PLAIN.extend(variables=VARIABLES)
THEIRS = other.NewEnv(
    config=other.NewEnvConfigFromYaml("extensions:\n  - name: optional\n"),
    variables={
        "i": other.Type.INT,
        "j": other.Type.INT,
        "d": other.Type.DOUBLE,
        "s": other.Type.STRING,
        "t": other.Type.STRING,
        "b": other.Type.BOOL,
        "l": other.Type.List(other.Type.INT),
        "w": other.Type.List(other.Type.STRING),
        "m": other.Type.Map(other.Type.STRING, other.Type.INT),
        "x": other.Type.DYN,
    },
)

REFUSED = object()
FAILED = object()


def ours(text: str, variables: dict[str, Any]) -> Any:
    try:
        return compile_expression(text, ENVIRONMENT).evaluate(variables)
    except CompileError:
        return REFUSED
    except EvaluationError as error:
        # There a comparison with NaN is false, here it is an error, as in Kubernetes.
        assume("NaN" not in error.message)
        return FAILED


def theirs(text: str, variables: dict[str, Any]) -> Any:
    try:
        expression = THEIRS.compile(text)
    except Exception:
        return REFUSED
    try:
        value = expression.eval(data=variables)
    except Exception:
        return FAILED
    return FAILED if value.type() == other.Type.ERROR else value.plain_value()


def is_same(one: Any, two: Any) -> bool:
    if one in (REFUSED, FAILED) or two in (REFUSED, FAILED):
        return one is two
    if isinstance(one, list):
        return isinstance(two, list) and len(one) == len(two) and all(map(is_same, one, two))
    if isinstance(one, dict):
        return (
            isinstance(two, dict) and one.keys() == two.keys() and all(is_same(one[k], two[k]) for k in one)
        )
    if isinstance(one, float):
        return isinstance(two, float) and (one == two or (math.isnan(one) and math.isnan(two)))
    if isinstance(one, UInt):
        return bool(int(one) == two)
    if isinstance(one, TypeValue):
        return True
    return type(one) is type(two) and bool(one == two)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(text=expressions(), variables=inputs())
def test_two_implementations_agree(text: str, variables: dict[str, Any]) -> None:
    assert is_same(ours(text, variables), theirs(text, variables))
