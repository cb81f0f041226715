"""The functions that only resource graphs have."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.declare import Variable
from lamina.cel.environment import GRAPH
from lamina.cel.errors import EvaluationError
from lamina.cel.program import compile_expression
from lamina.cel.types import DYN


def value(text: str, **variables: Any) -> Any:
    environment = GRAPH.extend(variables=[Variable(name, DYN) for name in variables])
    return compile_expression(text, environment).evaluate(variables)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("random.seededString(10, 'test-seed')",           "5czheg3o5c"),
        ("random.seededInt(30000, 32768, 'my-service')",   31247),
        ("hash.fnv64a('hello world')",                     bytes.fromhex("779a65e7023cd2e7")),
        ("base64.encode(hash.md5(''))",                    "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("json.unmarshal('{\"a\": [1, true]}').a[0]",      1.0),
        ("json.marshal({'b': 1, 'a': [1.0, 2.5]})",        '{"a":[1,2.5],"b":1}'),
        ("json.marshal(b'hi')",                            '"aGk="'),
        ("{'a': 1}.merge({'a': 2, 'b': 3})",               {"a": 2, "b": 3}),
        ("{'a': {'x': 1}}.deepMerge({'a': {'y': 2}})",     {"a": {"x": 1, "y": 2}}),
        ("lists.setAtIndex([1, 2], 1, 9)",                 [1, 9]),
        ("lists.insertAtIndex([1, 2], 2, 9)",              [1, 2, 9]),
        ("lists.removeAtIndex([1, 2], 0)",                 [2]),
        ("'abc'.reverse()",                                "cba"),
        ("cel.bind(a, 2, a * a)",                          4),
    ],
)  # fmt: skip
def test_a_function_has_its_answer(text: str, answer: Any) -> None:
    assert value(text) == answer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("random.seededString(0, 'a')",        "length must be positive"),
        ("random.seededInt(2, 2, 'a')",        "min must be less than max"),
        ("json.unmarshal('{')",                "failed to parse JSON"),
        ("lists.setAtIndex([1], 1, 2)",        r"index 1 out of bounds \[0, 1\)"),
        ("lists.insertAtIndex([1], 2, 2)",     r"index 2 out of bounds \[0, 1\]"),
        ("lists.removeAtIndex([1], -1)",       r"index -1 out of bounds \[0, 1\)"),
    ],
)  # fmt: skip
def test_a_function_says_what_it_cannot_do(text: str, said: str) -> None:
    with pytest.raises(EvaluationError, match=said):
        value(text)


def test_maths_and_sets_are_not_among_them() -> None:
    assert not {"math.abs", "sets.contains"} & set(GRAPH.functions)


def test_what_can_have_no_fields_has_none_of_them() -> None:
    assert value("has(x.a.b)", x={"a": "text"}) is False
    assert value("x.a.?b.orValue(1)", x={"a": None}) == 1
    assert value("{'a': 1, 'a': 2}.a") == 2
