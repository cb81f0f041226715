"""Every case of the official suite that is not about protobuf messages, with generated code and step by step."""

import math
from functools import lru_cache
from typing import Any

import pytest

from lamina.cel.ast import Checked
from lamina.cel.check import check
from lamina.cel.declarations import Environment, Function, Variable
from lamina.cel.environment import PLAIN
from lamina.cel.errors import CelError
from lamina.cel.parse import parse
from lamina.cel.program import Program
from lamina.cel.types import DYN
from lamina.cel.values import equal, type_of
from tests.conformance.cel.differences import DIFFERENCES, is_about_messages
from tests.conformance.cel.reading import declared, read_type, value
from tests.conformance.cel.suite import Case, cases
from tests.conformance.cel.unchecked import unchecked


@lru_cache(maxsize=1)
def _cases() -> list[Any]:
    return [
        pytest.param(
            case,
            id=str(case),
            marks=[pytest.mark.xfail(reason=why, strict=True)] if (why := _difference(case)) else [],
        )
        for case in cases()
        if not is_about_messages(case)
    ]


def _difference(case: Case) -> str | None:
    return DIFFERENCES.get((case.file, case.section, case.name))


@pytest.mark.parametrize("case", _cases())
def test_the_suite_gets_the_answer_it_expects(case: Case) -> None:
    test = case.test
    variables = {name: value(bound["value"]) for name, bound in test.get("bindings", {}).items()}
    environment = _environment(test, variables)

    if "evalError" in test:
        with pytest.raises(CelError):
            _program(test, environment).evaluate(variables)
        return
    program = _program(test, environment)
    if "typedResult" in test:
        assert program.result == read_type(test["typedResult"]["deducedType"])
        wanted = test["typedResult"].get("result")
    else:
        wanted = test.get("value", {"boolValue": True})
    if wanted is None or test.get("checkOnly"):
        return

    expected = value(wanted)
    assert _is_same(program.evaluate(variables), expected)
    assert _is_same(program.run(variables).value, expected)


def test_every_named_difference_is_a_case() -> None:
    known = {(case.file, case.section, case.name) for case in cases()}

    assert set(DIFFERENCES) <= known


def _environment(test: dict[str, Any], variables: dict[str, Any]) -> Environment:
    made = [declared(one) for one in test.get("typeEnv", ())]
    environment = PLAIN.extend(
        variables=[one for one in made if isinstance(one, Variable)],
        functions=[one for one in made if isinstance(one, Function)],
        container=test.get("container", ""),
    )
    if test.get("disableCheck"):
        environment = environment.extend(variables=[Variable(name, DYN) for name in variables])
    return environment


def _program(test: dict[str, Any], environment: Environment) -> Program:
    parsed = parse(test["expr"], environment)
    checked: Checked = (
        unchecked(parsed, environment) if test.get("disableCheck") else check(parsed, environment)
    )
    return Program(checked, environment)


def _is_same(got: Any, wanted: Any) -> bool:
    """Return whether two values are exactly equal, NaN included."""
    if type_of(got) != type_of(wanted):
        return False
    if isinstance(wanted, float):
        return got == wanted or (math.isnan(got) and math.isnan(wanted))
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(_is_same, got, wanted))
    return equal(got, wanted)
