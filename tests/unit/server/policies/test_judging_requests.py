"""Evaluation of one policy for one request: conditions, variables, budgets, and denials."""

from typing import Any

import pytest

from lamina.server.admission.policies.evaluate import Denial, evaluate_policy
from lamina.server.kinds.builtin.admission_cel.compiled import compile_policy


def asked(spec: dict[str, Any], data: Any = None) -> list[Denial]:
    obj = {"metadata": {"name": "a"}, "data": data or {}}
    variables = {"object": obj, "oldObject": None, "request": {}, "namespaceObject": None, "params": None}
    return evaluate_policy(compile_policy(spec), variables)


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        ({"expression": "true"}, []),
        ({"expression": " false "}, [Denial("failed expression: false")]),
        ({"expression": "false", "message": " no "}, [Denial("no")]),
        ({"expression": "false", "reason": "Forbidden", "message": "no"}, [Denial("no", "Forbidden")]),
        ({"expression": "false", "message": "no", "messageExpression": "'made'"}, [Denial("made")]),
        ({"expression": "false", "message": "no", "messageExpression": "'a\\nb'"}, [Denial("no")]),
        ({"expression": "false", "message": "no", "messageExpression": "string(1 / 0)"}, [Denial("no")]),
        (
            {"expression": "object.nope == 1"},
            [Denial("expression 'object.nope == 1' resulted in error: no such key: nope", failed=True)],
        ),
    ],
)
def test_a_validation_that_is_not_true_is_a_refusal(validation: dict[str, Any], said: list[Denial]) -> None:
    assert asked({"validations": [validation]}) == said


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (["true"], [Denial("failed expression: false")]),
        (["true", "false"], []),
        (["object.nope == 1", "false"], []),
        (
            ["object.nope == 1", "object.non == 1"],
            [
                Denial(
                    "[expression 'object.nope == 1' resulted in error: no such key: nope, "
                    "expression 'object.non == 1' resulted in error: no such key: non]",
                    failed=True,
                )
            ],
        ),
    ],
)
def test_a_policy_is_about_what_meets_all_its_conditions(conditions: list[str], said: list[Denial]) -> None:
    written = [{"name": str(index), "expression": text} for index, text in enumerate(conditions)]

    assert asked({"matchConditions": written, "validations": [{"expression": "false"}]}) == said


def test_a_variable_is_evaluated_only_where_it_is_needed() -> None:
    spec = {
        "variables": [
            {"name": "bad", "expression": "1 / 0"},
            {"name": "worse", "expression": "variables.bad"},
        ],
        "validations": [
            {"expression": "'x' in object.data || variables.worse == 1"},
            {"expression": "has(variables.bad) || true"},
        ],
    }

    assert asked(spec, {"x": "y"}) == []
    [refusal] = asked(spec)
    assert refusal.failed
    assert refusal.message.endswith(
        'composited variable "worse" fails to evaluate: composited variable "bad" fails to evaluate: '
        "division by zero"
    )


def test_what_all_expressions_cost_together_is_limited() -> None:
    # Each of these costs nearly the limit of one expression.
    costly = {"expression": "object.data.long.contains(object.data.long)"}
    spec = {"validations": [costly] * 12}

    [refusal] = asked(spec, {"long": "x" * 9900})

    assert refusal.message == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_an_annotation_that_cannot_be_evaluated_is_a_refusal_and_one_that_can_is_dropped() -> None:
    spec = {
        "auditAnnotations": [{"key": "a", "valueExpression": "'x'"}, {"key": "b", "valueExpression": "null"}]
    }
    assert asked(spec) == []

    [refusal] = asked({"auditAnnotations": [{"key": "a", "valueExpression": "string(object.nope)"}]})
    assert refusal.failed
