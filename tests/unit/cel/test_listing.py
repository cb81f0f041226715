"""Lists of type set and map."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.data_adapter import adapter_of
from lamina.cel.declarations import Variable
from lamina.cel.environment import KUBERNETES
from lamina.cel.program import compile_expression
from lamina.cel.schema import declare

_TEXTS = {"type": "array", "items": {"type": "string"}}
_ENTRY = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "plain": _TEXTS,
        "set": {**_TEXTS, "x-kubernetes-list-type": "set"},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _ENTRY,
        },
    },
}
ONE: dict[str, list[Any]] = {
    "plain": ["a", "b"],
    "set": ["a", "b"],
    "keyed": [{"name": "x", "value": 1}, {"name": "y", "value": 2}],
}
REVERSED = {name: items[::-1] for name, items in ONE.items()}


def answer(text: str) -> Any:
    declared = declare(SCHEMA, name="self")
    assert declared is not None
    environment = KUBERNETES.extend(
        variables=[Variable("self", declared.type), Variable("oldSelf", declared.type)]
    )
    program = compile_expression(text, environment)
    sight = adapter_of(declared.type)
    assert sight is not None
    variables = {"self": sight(ONE), "oldSelf": sight(REVERSED)}
    stepped = program.run(variables)
    assert stepped.error is None
    assert program.evaluate(variables) == stepped.value
    return stepped.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.plain == oldSelf.plain", False),
        ("self.set == oldSelf.set", True),
        ("self.set == ['b', 'a']", True),
        ("self.set == ['b', 'b']", False),
        ("self.set != oldSelf.set", False),
        ("self.keyed == oldSelf.keyed", True),
        ("self.keyed == [self.keyed[0]]", False),
        ("self.set + ['b', 'c']", ["a", "b", "c"]),
        ("(self.keyed + oldSelf.keyed).map(e, e.name)", ["x", "y"]),
        ("self.set.map(x, x + x)", ["aa", "bb"]),
        ("self.keyed[1].value", 2),
    ],
)
def test_order_matters_only_where_the_schema_says_so(text: str, value: object) -> None:
    assert answer(text) == value


def test_only_the_left_one_is_asked_what_it_equals() -> None:
    assert answer("['b', 'a'] == self.set") is False


def test_what_is_null_is_absent() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
    }
    declared = declare(schema)
    assert declared is not None
    sight = adapter_of(declared.type)
    assert sight is not None
    given = {"a": None, "b": None}
    assert sight(given) == {"b": None}
    assert given == {"a": None, "b": None}


def test_most_data_is_seen_as_it_is() -> None:
    declared = declare({"type": "object", "properties": {"plain": _TEXTS}})
    assert declared is not None
    assert adapter_of(declared.type) is None
