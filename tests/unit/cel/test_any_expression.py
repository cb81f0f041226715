"""Properties of any expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cel.check import check
from lamina.cel.cost.estimate import estimate
from lamina.cel.declarations import Environment, Variable
from lamina.cel.environment import ENVIRONMENTS, PLAIN
from lamina.cel.errors import CelError
from lamina.cel.parse import parse
from lamina.cel.references import reads
from lamina.cel.types import BOOL, DYN, INT, list_of
from tests.unit.cel.expressions import expressions

environments = st.sampled_from(list(ENVIRONMENTS.values()))


def with_its_variables(text: str, environment: Environment) -> Environment:
    """Return an environment that has whatever the expression mentions."""
    variables = reads(parse(text, environment), environment).variables
    return environment.extend(variables=[Variable(name, DYN) for name in variables])


@given(expressions, environments)
def test_checking_ends_in_types_or_in_a_cel_error(text: str, environment: Environment) -> None:
    try:
        environment = with_its_variables(text, environment)
        checked = check(parse(text, environment), environment)
    except CelError as error:
        assert str(error)
        return
    cost = estimate(checked, environment)
    assert cost.least >= 0
    assert reads(checked, environment).variables == reads(checked.parsed, environment).variables


@pytest.mark.parametrize(
    "text",
    [
        "dyn(" * 249 + "x" + ")" * 249,
        "[" * 249 + "x" + "]" * 249,
        "!(" * 249 + "b" + ")" * 249,
        "{1: " * 249 + "x" + "}" * 249,
        "x" + ".a" * 250,
        "b ? 1 : " * 249 + "2",
        "l.all(y, " * 100 + "b" + ")" * 100,
        "(b && " * 249 + "b" + ")" * 249,
    ],
)
def test_the_deepest_expressions_can_be_checked(text: str) -> None:
    environment = PLAIN.extend(
        variables=[Variable("x", DYN), Variable("b", BOOL), Variable("l", list_of(INT))],
        container="some.where",
    )
    parsed = parse(text, environment)
    assert reads(parsed, environment).variables
    assert estimate(check(parsed, environment), environment).most
