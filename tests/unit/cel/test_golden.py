"""Results and errors of expressions are those of cel-go and Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.ast import Checked
from lamina.cel.check import check
from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.limits import cardinality
from lamina.cel.data_adapter import adapter_of
from lamina.cel.declarations import Environment, Variable
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import CompileError, ConstantError, ParseError
from lamina.cel.parse import parse
from lamina.cel.program import compile_expression
from lamina.cel.schema import declare
from lamina.cel.types import BOOL
from tests.unit.cel.questions import CHECKS, EVALUATED, RULES, SCHEMA, SYNTAX, VARIABLES, VERDICTS, answers

_VARIABLES = [Variable(name, type_) for name, type_ in VARIABLES.items()]
_ENVIRONMENTS = {
    "plain": PLAIN.extend(variables=_VARIABLES),
    "kubernetes": KUBERNETES.extend(variables=_VARIABLES),
}

_DIFFERENCES = {
    "[t, null]": "list(timestamp)",
    "[w, null]": "list(wrapper(int))",
}
"""Where the specification's own suite wants another type than cel-go finds."""


def compiled(expression: str, environment: Environment) -> Checked | str:
    try:
        return check(parse(expression, environment), environment)
    except CompileError as error:
        return str(error)


def named(recorded: dict[str, Any]) -> str:
    return f"{recorded.get('environment', '')} {recorded['expression']}"


@pytest.mark.parametrize("recorded", answers(CHECKS), ids=named)
def test_types_complaints_and_costs_are_those_of_cel_go(recorded: dict[str, Any]) -> None:
    environment = _ENVIRONMENTS[recorded["environment"]]
    checked = compiled(recorded["expression"], environment)
    if isinstance(checked, str):
        assert checked == recorded.get("error")
        return
    assert str(checked.result) == _DIFFERENCES.get(recorded["expression"], recorded.get("type"))
    assert list(estimate(checked, environment)) == recorded["cost"]


@pytest.mark.parametrize("recorded", answers(RULES), ids=named)
def test_rules_are_typed_by_their_schema_and_priced_as_kubernetes_does(recorded: dict[str, Any]) -> None:
    declared = declare(SCHEMA, name="self", resource=recorded.get("resource", False))
    assert declared is not None
    environment = KUBERNETES.extend(
        variables=[Variable("self", declared.type), Variable("oldSelf", declared.type)]
    )
    try:
        checked = check(parse(recorded["expression"], environment), environment)
    except ConstantError as error:
        assert f"program instantiation failed: {error}" == recorded.get("error")
        return
    except CompileError as error:
        assert f"compilation failed: {error}" == recorded.get("error")
        return
    if checked.result is not BOOL:
        assert recorded["error"] == "cel expression must evaluate to a bool"
        return
    assert [estimate(checked, environment, declared.sizes).most] == recorded["cost"]
    assert cardinality(declared.smallest) == recorded["cardinality"]


@pytest.mark.parametrize("recorded", answers(VERDICTS), ids=named)
def test_rules_come_to_what_kubernetes_comes_to_at_the_same_cost(recorded: dict[str, Any]) -> None:
    declared = declare(EVALUATED["schema"], name="self")
    assert declared is not None
    environment = KUBERNETES.extend(
        variables=[Variable("self", declared.type), Variable("oldSelf", declared.type)]
    )
    sight = adapter_of(declared.type)
    assert sight is not None
    variables = {"self": sight(EVALUATED["object"]), "oldSelf": sight(EVALUATED["oldObject"])}
    try:
        program = compile_expression(recorded["expression"], environment)
    except CompileError as error:
        assert f"compilation failed: {error}" == recorded["error"]
        return
    outcome = program.run(variables)
    if outcome.error is not None:
        assert f"{outcome.error.message} evaluating rule" in recorded["refusal"]
    else:
        assert outcome.value is ("refusal" not in recorded)
        assert program.evaluate(variables) is outcome.value
    assert outcome.cost == recorded["spent"]
    # The first time steps do it all, the second time generated code as far as it can.
    again = program.run(variables)
    assert (again.value, again.cost) == (outcome.value, outcome.cost)


@pytest.mark.parametrize("recorded", answers(SYNTAX), ids=named)
def test_what_is_not_an_expression_is_refused_in_the_words_of_cel_go(recorded: dict[str, Any]) -> None:
    if "error" not in recorded:
        parse(recorded["expression"], PLAIN)
        return
    with pytest.raises(ParseError) as refused:
        parse(recorded["expression"], PLAIN)
    assert str(refused.value) == recorded["error"]
