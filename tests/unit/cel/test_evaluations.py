"""Values, errors and costs are those of Kubernetes 1.35."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.declarations import Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.errors import CelError, EvaluationError
from lamina.cel.program import compile_expression
from lamina.cel.types import DYN
from lamina.cel.values import shown, type_of
from tests.unit.cel.evaluations import VARIABLES, answers

ENVIRONMENT = KUBERNETES.extend(variables=[Variable("x", DYN)])

COMPARED = {"bool", "int", "uint", "double", "string", "null_type", "list"}
"""The types that Go prints as their values and nothing else."""

DIFFERENCES = {
    "'abc'.find('(')": "a pattern of find() that makes no sense is found out when it is evaluated",
    "ip('::g')": "what is wrong with an IPv6 address is not said in detail",
    "[[1,[2]],[3]].flatten(2)": "of two complaints about one list the second is not made",
}


@pytest.mark.parametrize(
    "answer",
    [one for one in answers() if one["expression"] not in DIFFERENCES],
    ids=lambda one: one["expression"],
)
def test_an_expression_has_the_value_the_error_and_the_cost_it_has_in_kubernetes(
    answer: dict[str, Any],
) -> None:
    text = answer["expression"]
    if "refused" in answer:
        with pytest.raises(CelError) as refused:
            compile_expression(text, ENVIRONMENT)
        assert str(refused.value) == answer["refused"]
        return
    program = compile_expression(text, ENVIRONMENT)
    outcome = program.run(VARIABLES)

    assert outcome.cost == answer["cost"]
    # The first time steps do it all, the second time generated code as far as it can.
    assert program.run(VARIABLES).cost == answer["cost"]
    if "error" in answer:
        assert outcome.error is not None
        assert outcome.error.message == answer["error"]
        with pytest.raises(EvaluationError):
            program.evaluate(VARIABLES)
        return
    assert outcome.error is None
    assert type_of(outcome.value).name == answer["type"]
    if answer["type"] in COMPARED:
        assert _printed(outcome.value) == answer.get("value", "")
        assert _printed(program.evaluate(VARIABLES)) == answer.get("value", "")


def _printed(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_printed, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_printed(item)}" for key, item in value.items()) + "}"
    return shown(value)
