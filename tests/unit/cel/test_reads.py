"""The references of an expression."""

from __future__ import annotations

import pytest

from lamina.cel.check import check
from lamina.cel.declarations import Variable
from lamina.cel.environment import GRAPH, PLAIN
from lamina.cel.parse import parse
from lamina.cel.references import reads
from lamina.cel.types import DYN, STRING, Field, ObjectType


def paths(text: str) -> list[str]:
    return [str(path) for path in reads(parse(text, GRAPH), GRAPH).paths]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a.b.c"]),
        ("a.b + a.c", ["a.b", "a.c"]),
        ("a.b + a.b", ["a.b"]),
        ("a['x'].b", ["a.x.b"]),
        ("a['x-y'].b", ['a["x-y"].b']),
        ("a[0].b", ["a[0].b"]),
        ("a[b.c].d", ["b.c", "a[*].d"]),
        ("a.?b.c", ["a.b.c"]),
        ("a[?'b'].c", ["a.b.c"]),
        ("a.b.size() > 1", ["a.b"]),
        ("f(a.b).c", ["a.b"]),
        ("has(a.b)", ["a.b"]),
        ("a.b.exists(x, x.c == d.e)", ["a.b", "a.b[*].c", "d.e"]),
        ("a.map(x, x.b.map(y, y.c + x.d))", ["a", "a[*].b", "a[*].b[*].c", "a[*].d"]),
        ("a.filter(x, x.b)", ["a", "a[*].b", "a[*]"]),
        ("a.all(k, v, v.b == k)", ["a", "a[*].b"]),
        ("[1].map(a, a.b)", []),
        ("cel.bind(x, a.b, x.c + x.d)", ["a.b.c", "a.b.d"]),
        ("a.optMap(x, x.b)", ["a", "a.value"][:1]),
        ("a ? b.c : {'d': e.f, g: [h.i]}", ["a", "b.c", "e.f", "g", "h.i"]),
        ("'x' + \"y\"", []),
        ("type(a) == string", ["a"]),
        ("json.marshal(a.b)", ["a.b"]),
        ("lists.range(3).map(i, a[i])", ["a[*]"]),
    ],
)
def test_paths_are_followed_as_far_as_they_go(text: str, read: list[str]) -> None:
    assert paths(text) == read


def test_variables_and_functions_are_told_apart() -> None:
    found = reads(parse("json.marshal(a.b) + c.d().size() + nosuch(e)", GRAPH), GRAPH)
    assert found.variables == ("a", "c", "e")
    assert found.functions == ("json.marshal", "size", "d", "nosuch")


def test_without_an_environment_a_namespace_looks_like_a_variable() -> None:
    assert reads(parse("json.marshal(a)", GRAPH)).variables == ("json", "a")


def test_what_is_only_asked_for_is_told() -> None:
    found = reads(parse("has(a.b) && a.c", PLAIN))
    assert [str(path) for path in found.tested] == ["a.b"]


def test_a_checked_expression_has_the_names_of_the_data() -> None:
    thing = ObjectType("Thing", {"a__dash__b": Field(STRING, key="a-b")})
    environment = PLAIN.extend(variables=[Variable("thing", thing), Variable("x.y", DYN)])
    checked = check(parse("thing.a__dash__b == x.y.z && type(x.y) == int", environment), environment)
    assert [str(path) for path in reads(checked, environment).paths] == ['thing["a-b"]', "x.y.z", "x.y"]
