"""Evaluation of CEL rules: both paths agree, and budgets are enforced."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.cel.cost.estimate import estimate
from lamina.server.kinds.custom.cel_rules.fast_path import FastCheck, NeedsSlowPath, root_of
from lamina.server.kinds.custom.cel_rules.rules import Rules
from lamina.server.kinds.custom.cel_rules.value_size import sizes_in
from lamina.server.kinds.custom.document import normalised

SCHEMA = normalised(
    {
        "type": "object",
        "properties": {
            "n": {
                "type": "integer",
                "x-kubernetes-validations": [{"rule": "self > 0"}, {"rule": "self >= oldSelf"}],
            },
            "texts": {
                "type": "array",
                "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}]},
                "x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y))"}],
            },
            "entries": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {
                    "type": "object",
                    "properties": {
                        "k": {"type": "string"},
                        "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                    },
                },
            },
            "map": {
                "type": "object",
                "additionalProperties": {
                    "type": "integer",
                    "x-kubernetes-validations": [{"rule": "10 / self > 1", "message": "too much"}],
                },
            },
        },
    }
)
RULES = Rules(SCHEMA)
ROOT = root_of(SCHEMA)
SMALL = st.integers(-1, 12)
TEXT = st.text(alphabet="ab", max_size=2)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "n": SMALL,
        "texts": st.lists(TEXT, max_size=4),
        "entries": st.lists(
            st.fixed_dictionaries({"k": TEXT, "v": SMALL}), max_size=3, unique_by=lambda entry: entry["k"]
        ),
        "map": st.dictionaries(TEXT, SMALL, max_size=3),
    },
)


@given(new=OBJECTS, old=st.none() | OBJECTS)
@settings(max_examples=300, deadline=None)
def test_what_the_fast_way_lets_pass_the_slow_way_lets_pass_too(new: Any, old: Any) -> None:
    assert ROOT is not None
    try:
        FastCheck().check(ROOT, new, old)
        holds = True
    except NeedsSlowPath:
        holds = False
    result = RULES.validate(new, old, ratchets=False)

    assert holds is (result.causes == [])


@given(texts=st.lists(st.text(max_size=8), max_size=8))
@settings(max_examples=100, deadline=None)
def test_an_estimate_for_an_object_is_never_below_what_asking_costs(texts: list[str]) -> None:
    assert ROOT is not None
    program = ROOT.fields["texts"].rules[0].check.program
    assert program is not None
    variables = {"self": texts}

    most = estimate(program.checked, program.environment, sizes_in(variables)).most

    assert program.run(variables).cost <= most


@given(new=OBJECTS)
@settings(max_examples=100, deadline=None)
def test_nothing_that_has_not_changed_is_refused_but_what_cannot_be_evaluated(new: Any) -> None:
    result = RULES.validate(new, new)

    assert all("division by zero" in cause.message for cause in result.causes)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (100_000, []),
        (
            3,
            [
                'Invalid value: "integer": validation failed due to running out of cost budget, '
                "no further validation rules will be run"
            ],
        ),
    ],
)
def test_rules_stop_when_the_budget_is_spent(budget: int, said: list[str]) -> None:
    result = RULES.validate({"n": 1, "map": {"a": 1}}, {"n": 1}, budget=budget)

    assert [cause.message for cause in result.causes] == said


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("'n is ' + string(self.n)", "Invalid value: n is 0"),
        ("'  '", "Invalid value: plain"),
        ("'a\\nb'", "Invalid value: plain"),
        ("self.text", "Invalid value: plain"),
        ("string(1 / self.n)", "Invalid value: plain"),
    ],
)
def test_a_message_that_cannot_be_made_is_the_written_one(expression: str, said: str) -> None:
    rule = {"rule": "self.n > 0", "message": "plain", "messageExpression": expression}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}
    rules = Rules(normalised({**schema, "x-kubernetes-validations": [rule]}), resource=False)

    result = rules.validate({"n": 0, "text": "x" * 6000}, path="spec")

    assert [(cause.field, cause.message) for cause in result.causes] == [("spec", said)]


def test_a_rule_that_never_compiled_says_so_of_every_object() -> None:
    rules = Rules(normalised({"type": "object", "x-kubernetes-validations": [{"rule": "self.nope"}]}))

    [cause] = rules.validate({}).causes

    assert cause.field == "<nil>"
    assert (
        "rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'nope'" in cause.message
    )


def test_an_object_without_rules_is_not_looked_at() -> None:
    assert root_of(normalised({"type": "object", "properties": {"a": {"type": "string"}}})) is None
