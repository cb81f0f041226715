"""Generated code that counts: the same result and cost as the interpreter, and the same limit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.cel.declarations import Limits, Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.errors import CostExceeded
from lamina.cel.program import Program, compile_expression
from lamina.cel.types import DYN, INT, STRING, list_of, map_of

ENVIRONMENT = KUBERNETES.extend(
    limits=Limits(cost=100_000),
    variables=[
        Variable("x", DYN),
        Variable("n", INT),
        Variable("numbers", list_of(INT)),
        Variable("names", list_of(STRING)),
        Variable("labels", map_of(STRING, STRING)),
    ],
)
EXPRESSIONS = (
    "numbers.all(a, a >= n)",
    "numbers.exists(a, a == n || a > 5)",
    "numbers.exists_one(a, a == n)",
    "numbers.map(a, a * 2).filter(b, b > n).size() < 3",
    "numbers.map(a, 1)",
    "names.filter(s, s.startsWith('a') && s.contains('b')).map(s, s + '!' + s)",
    "names.all(s, names.exists_one(t, s == t))",
    "names.all(s, s in ['a', 'b', ''] || s.matches('^a+$'))",
    "labels.all(key, labels[key] != 'a')",
    "labels.exists(key, value, key == value)",
    "has(x.a) ? x.a : (n > 3 ? [1, 2] : [n])",
    "(n > 0 ? x : {'a': n}).a == 1",
    "x.?a.orValue(n) == n && !x.?b.?c.hasValue()",
    "x.?a.or(x.?b).orValue('none') != ''",
    "{'a': n, 'b': 2}.size() == 2 && [n, 1][0] == n",
    "names.join(',').size() + (labels == {} ? 1 : 2)",
    "names.isSorted() || numbers.sum() > n",
    "x == {'a': 1} || type(x) == map || names[size(names) - 1] == 'a'",
)
PROGRAMS = {text: compile_expression(text, ENVIRONMENT) for text in EXPRESSIONS}
numbers = st.integers(-3, 9)
names = st.text("ab", max_size=12)
worlds = st.fixed_dictionaries(
    {
        "x": st.dictionaries(st.sampled_from("ab"), numbers | names),
        "n": numbers,
        "numbers": st.lists(numbers, max_size=6),
        "names": st.lists(names, max_size=6),
        "labels": st.dictionaries(names, names, max_size=4),
    }
)


@given(st.sampled_from(EXPRESSIONS), worlds)
def test_code_that_counts_agrees_with_the_steps(text: str, variables: dict[str, Any]) -> None:
    stepped = Program(PROGRAMS[text].checked, ENVIRONMENT).run(variables)
    PROGRAMS[text].run(variables)
    counted = PROGRAMS[text].run(variables)

    assert (counted.value, counted.cost) == (stepped.value, stepped.cost)
    assert str(counted.error) == str(stepped.error)


@given(st.sampled_from(EXPRESSIONS), worlds)
def test_a_budget_is_kept_to_the_last_unit(text: str, variables: dict[str, Any]) -> None:
    outcome = PROGRAMS[text].run(variables)
    if outcome.error is not None:
        return
    assert PROGRAMS[text].run(variables, outcome.cost).value == outcome.value
    assert isinstance(PROGRAMS[text].run(variables, outcome.cost - 1).error, CostExceeded)


@pytest.mark.parametrize(
    "text",
    [
        "numbers.all(a, numbers.all(b, a >= 0 || b >= 0))",
        "numbers.map(a, numbers.map(b, a + b)).size() > 0",
        "names.all(a, names.all(b, a == b))",
        "numbers.all(a, numbers.all(b, 1 / (a - a) > 0 || true))",
    ],
)
def test_what_would_take_too_long_is_stopped(text: str) -> None:
    program = compile_expression(text, ENVIRONMENT)
    variables = {"numbers": [*range(2000)], "names": ["abcdefghij"] * 2000}

    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate(variables)
    assert isinstance(program.run(variables).error, CostExceeded)


def test_a_constant_list_that_was_handed_out_may_be_changed() -> None:
    program = compile_expression("numbers.all(a, numbers.all(b, a >= b)) ? [1, 2] : [3]", ENVIRONMENT)
    program.evaluate({"numbers": [1]}).append(3)

    assert program.evaluate({"numbers": [1]}) == [1, 2]
