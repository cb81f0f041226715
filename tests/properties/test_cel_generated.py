"""Generated code and steps are two ways to the same answer, and neither ever breaks."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.cel.cost.estimate import estimate
from lamina.cel.declarations import Environment, Limits
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import CelError, CompileError, EvaluationError
from lamina.cel.evaluate.codegen import generate
from lamina.cel.program import Program, compile_expression
from lamina.cel.values import equal, type_of
from tests.properties.expressions import VARIABLES, expressions, inputs

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
ENVIRONMENTS = [PLAIN.extend(variables=VARIABLES), KUBERNETES.extend(variables=VARIABLES)]


def compiled(text: str, environment: Environment) -> Program | None:
    try:
        return compile_expression(text, environment)
    except CompileError:
        return None


def is_same(one: Any, two: Any) -> bool:
    """Say whether two values are the same and of the same type; NaN is the same as NaN."""
    if type_of(one) != type_of(two):
        return False
    if isinstance(one, float):
        return one == two or (math.isnan(one) and math.isnan(two))
    if isinstance(one, list):
        return len(one) == len(two) and all(map(is_same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(is_same(value, two[key]) for key, value in one.items())
    return equal(one, two)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
@SETTINGS
@given(text=expressions(), variables=inputs(fitting=False))
def test_generated_code_gives_the_answer_that_steps_give(
    environment: Environment, text: str, variables: dict[str, Any]
) -> None:
    """Whatever the values are: declared types are a promise that data need not keep."""
    program = compiled(text, environment)
    made = None if program is None else generate(program.checked, environment)
    if program is None or made is None:
        return
    exact = program.run(variables, budget=10_000_000)

    try:
        value = made(variables)
    except Exception:
        return

    assert exact.error is None
    assert is_same(value, exact.value)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
@SETTINGS
@given(text=expressions(), variables=inputs(fitting=False))
def test_an_evaluation_ends_in_a_value_or_in_an_error_that_knows_its_place(
    environment: Environment, text: str, variables: dict[str, Any]
) -> None:
    program = compiled(text, environment)
    if program is None:
        return

    try:
        program.evaluate(variables)
    except EvaluationError as error:
        assert error.source is not None
        assert 0 <= error.at < len(text)


@SETTINGS
@given(text=expressions(), variables=inputs())
def test_an_evaluation_costs_at_most_twice_what_was_estimated(text: str, variables: dict[str, Any]) -> None:
    """
    Twice, because Kubernetes counts two for an index of a list that was just made, and estimates one.
    """
    environment = ENVIRONMENTS[1]
    program = compiled(text, environment)
    if program is None:
        return

    outcome = program.run(variables, budget=10_000_000)

    assert outcome.cost <= estimate(program.checked, environment).most * 2


@pytest.mark.parametrize("limit", [50, 500, 5000])
@SETTINGS
@given(text=expressions(), variables=inputs())
def test_what_is_not_counted_would_not_have_cost_too_much(
    limit: int, text: str, variables: dict[str, Any]
) -> None:
    program = compiled(text, ENVIRONMENTS[1].extend(limits=Limits(cost=limit)))
    if program is None:
        return
    counted = program.run(variables)

    if counted.error is None:
        assert is_same(program.evaluate(variables), counted.value)
    else:
        with pytest.raises(type(counted.error)) as raised:
            program.evaluate(variables)
        assert raised.value.message == counted.error.message


@SETTINGS
@given(text=st.text(max_size=40) | st.text(alphabet="()[]{}?:.,'\"abxsil0129+-*/%!&|<>= \\", max_size=60))
def test_no_text_raises_anything_but_an_error_of_ours(text: str) -> None:
    for environment in ENVIRONMENTS:
        with contextlib.suppress(CelError):
            compile_expression(text, environment).evaluate({})


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 300 + "]" * 300,
        "-" * 5000 + "1",
        "!" * 5001 + "true",
        "+".join(["1"] * 5000),
        " && ".join(["true"] * 5000),
        "a" + ".b" * 5000,
        "x" + "[0]" * 240,
        "true ? 1 : " * 240 + "2",
        "'" + "a" * 90_000 + "'.matches('(a*)*b')",
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a+)+$')",
        "'%.999999999f'.format([1.0])",
        "'%.999999f'.format([1.0]).size() > 0",
        "'a'.matches('a{1000}{1000}')",
        "lists.range(9223372036854775807)",
        "math.bitShiftLeft(1, 9223372036854775807)",
        "duration('9999999999999999999999999999h')",
        "timestamp('9999-12-31T23:59:59Z') + duration('2000000h')",
        "int('" + "9" * 5000 + "')",
        "double('" + "9" * 5000 + "')",
        "1e999999999 > 0.0",
        "'a'.charAt(9223372036854775807)",
        "[1, 2, 3].slice(-9223372036854775808, 9223372036854775807)",
        "string(b'\\xff')",
        "'\\U0010ffff\\ud800'",
        ".".join(["[1].map(a, a)"] * 30),
    ],
)  # fmt: skip
def test_hostile_expressions_end_in_an_answer_or_in_an_error(text: str) -> None:
    for environment in ENVIRONMENTS:
        with contextlib.suppress(CelError):
            compile_expression(text, environment).evaluate({"x": []})


def test_loops_within_loops_are_stopped_by_what_they_may_cost() -> None:
    text = "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, a + b + c + d + e >= 0)))))"
    program = compile_expression(text, ENVIRONMENTS[1])

    with pytest.raises(EvaluationError) as stopped:
        program.evaluate({"l": list(range(100))})

    assert stopped.value.message == "operation cancelled: actual cost limit exceeded"
