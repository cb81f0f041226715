"""Programs: a caller's own functions, typed data, errors with positions, cost limits."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.declarations import Function, Limits, Overload, Variable
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import CompileError, CostExceeded, EvaluationError
from lamina.cel.program import Program, compile_expression
from lamina.cel.schema import declare
from lamina.cel.times import Timestamp
from lamina.cel.types import DYN, INT, STRING, list_of

SCHEMA = {
    "type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "timeout": {"type": "string", "format": "duration"},
        "blob": {"type": "string", "format": "byte"},
        "ratio": {"type": "number"},
        "replicas": {"type": "integer"},
        "dash-ed": {"type": "string"},
        "namespace": {"type": "string"},
        "ratios": {"type": "array", "items": {"type": "number"}},
        "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "port": {"x-kubernetes-int-or-string": True},
    },
}


def typed(text: str) -> Program:
    declared = declare(SCHEMA)
    assert declared is not None
    return compile_expression(text, KUBERNETES.extend(variables=[Variable("self", declared.type)]))


@pytest.mark.parametrize(
    ("text", "data", "answer"),
    [
        ("self.when.getFullYear()",                    {"when": "2020-05-01T00:00:00Z"},     2020),
        ("self.when",                                  {"when": "1970-01-01T00:00:01Z"},     Timestamp(10**9)),
        ("self.timeout > duration('1m')",              {"timeout": "90s"},                   True),
        ("self.blob == b'hi'",                         {"blob": "aGk="},                     True),
        ("self.ratio / 2.0",                           {"ratio": 1},                         0.5),
        ("string(self.ratio + 0.0)",                   {"ratio": 3},                         "3"),
        ("type(self.ratio) == double",                 {"ratio": 3},                         True),
        ("self.ratios.map(r, type(r) == double)",      {"ratios": [1, 2.5]},                 [True, True]),
        ("self.dash__dash__ed",                        {"dash-ed": "x"},                     "x"),
        ("self.namespace",                             {"namespace": "n"},                   "n"),
        ("has(self.dash__dash__ed)",                   {"dash-ed": "x"},                     True),
        ("self.names == ['b', 'a']",                   {"names": ["a", "b"]},                True),
        ("self.?ratio.orValue(1.5)",                   {},                                   1.5),
        ("self.?ratio.orValue(1.5)",                   {"ratio": 2},                         2.0),
        ("type(self.port) == int",                     {"port": 80},                         True),
    ],
)  # fmt: skip
def test_json_is_read_as_its_schema_says(text: str, data: dict[str, Any], answer: Any) -> None:
    program = typed(text)
    value = program.evaluate({"self": data})

    assert value == answer and type(value) is type(answer)
    assert program.run({"self": data}).value == answer


def test_a_callers_own_function_is_called_with_plain_values_and_checked_by_its_types() -> None:
    double = Function(
        "twice",
        (Overload("twice_string", (STRING,), STRING, member=True, implementation=lambda text: text * 2),),
    )
    total = Function("total", (Overload("total_list", (list_of(INT),), INT, implementation=sum),))
    environment = PLAIN.extend(functions=[double, total], variables=[Variable("x", DYN)])

    assert compile_expression("'ab'.twice() + string(total([1, 2]))", environment).evaluate({}) == "abab3"
    assert compile_expression("x.twice()", environment).evaluate({"x": "a"}) == "aa"
    with pytest.raises(CompileError, match="no matching overload"):
        compile_expression("total('a')", environment)
    with pytest.raises(EvaluationError, match="no such overload"):
        compile_expression("x.twice()", environment).evaluate({"x": 1})


def test_an_error_points_at_its_place() -> None:
    environment = PLAIN.extend(variables=[Variable("x", DYN)])

    with pytest.raises(EvaluationError) as failed:
        compile_expression("x.a +\n  x.missing.b", environment).evaluate({"x": {"a": 1}})

    assert failed.value.shown == (
        "ERROR: <input>:2:4: no such key: missing\n"
        " |   x.missing.b\n"
        " | ...^"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x.missing || true",           True),
        ("true || x.missing",           True),
        ("x.missing && false",          False),
        ("false && x.missing",          False),
        ("[0, 1].exists(v, 1 / v == 1)", True),
        ("[0, 2].all(v, 1 / v == 1)",   False),
        ("true ? 1 : 1 / 0",            1),
        ("cel.bind(unused, 1 / 0, 2)",  2),
    ],
)  # fmt: skip
def test_an_error_is_forgotten_where_the_other_side_decides(text: str, answer: Any) -> None:
    environment = PLAIN.extend(variables=[Variable("x", DYN)])

    assert compile_expression(text, environment).evaluate({"x": {}}) == answer


def test_a_budget_stops_what_is_large_and_lets_pass_what_is_small() -> None:
    environment = KUBERNETES.extend(variables=[Variable("x", DYN)], limits=Limits(cost=100_000))
    program = compile_expression("x.all(v, v.size() < 10)", environment)

    assert program.evaluate({"x": ["a"] * 10}) is True
    assert program.evaluate({"x": ["a"] * 2000}) is True
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"x": ["a"] * 30_000})


def test_an_answer_is_not_shared_between_evaluations() -> None:
    program = compile_expression("[1, 2]", PLAIN)
    program.evaluate({}).append(3)

    assert program.evaluate({}) == [1, 2]
