"""The parser."""

from __future__ import annotations

import pytest

from lamina.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    Literal,
    MakeList,
    MakeMap,
    MakeStruct,
    Select,
    walk,
)
from lamina.cel.declarations import Limits, Macro, MacroContext
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import ParseError
from lamina.cel.parse import parse


def shape(text: str) -> str:
    """Return the tree of an expression, fully parenthesised."""
    return shaped(parse(text, PLAIN).expr)


def shaped(expr: Expr) -> str:
    match expr:
        case Literal():
            return repr(expr.value)
        case Ident():
            return expr.name
        case Select():
            return f"(select {shaped(expr.operand)} {'?' if expr.optional else ''}{expr.field})"
        case Call():
            parts = [] if expr.target is None else [shaped(expr.target)]
            return f"({' '.join([expr.function, *parts, *map(shaped, expr.args)])})"
        case MakeList():
            marks = ["?" if place in expr.optional_indices else "" for place in range(len(expr.items))]
            return f"[{' '.join(mark + shaped(item) for mark, item in zip(marks, expr.items, strict=True))}]"
        case MakeMap():
            entries = (f"{'?' if e.optional else ''}{shaped(e.key)}:{shaped(e.value)}" for e in expr.entries)
            return f"{{{' '.join(entries)}}}"
        case MakeStruct():
            fields = (f"{'?' if f.optional else ''}{f.name}:{shaped(f.value)}" for f in expr.fields)
            return f"{expr.type_name}{{{' '.join(fields)}}}"
        case Comprehension():
            return f"(loop {expr.iter_var})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "(_+_ 1 (_*_ 2 3))"),
        ("1 - 2 - 3", "(_-_ (_-_ 1 2) 3)"),
        ("1 * 2 + 3 % 4", "(_+_ (_*_ 1 2) (_%_ 3 4))"),
        ("a < b == c", "(_==_ (_<_ a b) c)"),
        ("a + b < c - d", "(_<_ (_+_ a b) (_-_ c d))"),
        ("a in b", "(@in a b)"),
        ("a && b || c", "(_||_ (_&&_ a b) c)"),
        ("a || b && c", "(_||_ a (_&&_ b c))"),
        ("a && b && c && d", "(_&&_ (_&&_ a b) (_&&_ c d))"),
        ("a || b || c", "(_||_ (_||_ a b) c)"),
        ("a ? b : c ? d : e", "(_?_:_ a b (_?_:_ c d e))"),
        ("(a ? b : c) ? d : e", "(_?_:_ (_?_:_ a b c) d e)"),
        ("a ? (b ? c : d) : e", "(_?_:_ a (_?_:_ b c d) e)"),
        ("!a.b", "(!_ (select a b))"),
        ("!!a", "a"),
        ("!!!a", "(!_ a)"),
        ("-a", "(-_ a)"),
        ("--a", "a"),
        ("-1", "-1"),
        ("- 1", "-1"),
        ("-1.5", "-1.5"),
        ("--1", "1"),
        ("---1", "(-_ 1)"),
        ("!-1", "(!_ -1)"),
        ("1 - -1", "(_-_ 1 -1)"),
        ("1-1", "(_-_ 1 1)"),
        ("-(1)", "(-_ 1)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("0x10", "16"),
        ("-0x10", "-16"),
        ("010", "10"),
        ("a.b.c", "(select (select a b) c)"),
        ("a.b(c).d", "(select (b a c) d)"),
        ("f(a, b)", "(f a b)"),
        (".f(.a)", "(.f .a)"),
        ("a[b][c]", "(_[_] (_[_] a b) c)"),
        ("a[?b]", "(_[?_] a b)"),
        ("a.?b.c", "(select (select a ?b) c)"),
        ("a.`b-c`", "(select a b-c)"),
        ("a.if", "(select a if)"),
        ("[a, ?b, c,]", "[a ?b c]"),
        ("[,]", "[]"),
        ("{a: b, ?c: d,}", "{a:b ?c:d}"),
        ("{}", "{}"),
        ("{a ? b : c : d}", "{(_?_:_ a b c):d}"),
        ("A{b: c}", "A{b:c}"),
        (".a.B{?b: c, d: e,}.f", "(select .a.B{?b:c d:e} f)"),
        ("a.B{}", "a.B{}"),
        ("((a))", "a"),
        ("a // b", "a"),
        ("'a' \n + 'b'", "(_+_ 'a' 'b')"),
    ],
)
def test_operators_bind_as_the_grammar_has_it(text: str, tree: str) -> None:
    assert shape(text) == tree


def test_nodes_are_blamed_on_the_place_that_cel_go_blames() -> None:
    expr = parse("a.b(c)[d] + [e]", PLAIN).expr
    places = {type(node).__name__ + getattr(node, "function", ""): node.at for node in walk(expr)}
    assert places["Call_+_"] == 10
    assert places["Call_[_]"] == 6
    assert places["Callb"] == 3
    assert places["MakeList"] == 12


def test_every_node_has_an_id_of_its_own() -> None:
    parsed = parse(
        "a.all(x, x > 1) && [b.?c, {d: e}].exists(i, v, has(v.f)) && o.optMap(z, z + 1) == x", PLAIN
    )
    ids = [node.id for node in walk(parsed.expr)]
    assert len(ids) == len(set(ids))


def test_a_macro_call_is_remembered_by_what_it_became() -> None:
    parsed = parse("a.all(x, x > 1)", PLAIN)
    assert isinstance(parsed.expr, Comprehension)
    call = parsed.macro_calls[parsed.expr.id]
    assert (call.function, [shaped(arg) for arg in call.args]) == ("all", ["x", "(_>_ x 1)"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.all(1, true)", "argument must be a simple name"),
        ("a.map(b.c, true)", "argument is not an identifier"),
        ("a.all(x, x, true)", "duplicate variable name: x"),
        ("a.filter(__result__, true)", "iteration variable overwrites accumulator variable"),
        ("has(a)", "invalid argument to has() macro"),
        ("has(a.?b)", "invalid argument to has() macro"),
        ("cel.bind(1, 2, 3)", "cel.bind() variable names must be simple identifiers"),
        ("if + 1", "reserved identifier: if"),
        ("9223372036854775808", "invalid int literal"),
        ("18446744073709551616u", "invalid uint literal"),
        ("1e999", "invalid double literal"),
        ("9" * 5000, "invalid int literal"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text, PLAIN)
    assert refused.value.issues[0].message == message


@pytest.mark.parametrize("text", ["a.`b`", "A{`b`: 1}"])
def test_kubernetes_has_no_quoted_fields(text: str) -> None:
    parse(text, PLAIN)
    with pytest.raises(ParseError, match="unsupported syntax: '`'"):
        parse(text, KUBERNETES)


def test_optional_syntax_can_be_off() -> None:
    from dataclasses import replace

    bare = PLAIN.extend(flags=replace(PLAIN.flags, optional_syntax=False))
    for text, message in (("a.?b", "'.?'"), ("a[?b]", "'[?'"), ("[?a]", "'?'"), ("{?a: b}", "'?'")):
        with pytest.raises(ParseError) as refused:
            parse(text, bare)
        assert f"unsupported syntax {message}" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 249 + "1" + ")" * 249,
        "[" * 249 + "1" + "]" * 249,
        "f(" * 249 + "1" + ")" * 249,
        "1" + " + 1" * 250,
    ],
)
def test_what_nests_as_deep_as_kubernetes_allows_is_read(text: str) -> None:
    assert parse(text, PLAIN).expr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 250 + "1" + ")" * 250, "expression recursion limit exceeded: 250"),
        ("(" * 50_000, "expression recursion limit exceeded: 250"),
        ("[" * 300 + "1" + "]" * 300, "expression recursion limit exceeded: 250"),
        ("(1 + " * 125 + "1" + ")" * 125, "expression recursion limit exceeded: 250"),
        ("a ? b : " * 250 + "c", "expression recursion limit exceeded: 250"),
        ("1" + " + 1" * 251, "max recursion depth exceeded"),
        ("a" + ".b" * 251, "max recursion depth exceeded"),
        ("a" + "[0]" * 251, "max recursion depth exceeded"),
        ("1" * 100_001, "expression code point size exceeds limit: size: 100001, limit 100000"),
    ],
)
def test_what_nests_deeper_is_refused_in_cel_go_s_words(text: str, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text, PLAIN)
    assert str(refused.value) == f"ERROR: <input>:-1:0: {message}"


def test_long_chains_of_and_are_no_nesting() -> None:
    parsed = parse(" && ".join(["a"] * 2000), PLAIN)
    assert sum(1 for _ in walk(parsed.expr)) == 3999


def test_limits_are_the_environment_s() -> None:
    small = PLAIN.extend(limits=Limits(code_points=5, nesting=2))
    with pytest.raises(ParseError, match="limit 5"):
        parse("123456", small)
    with pytest.raises(ParseError, match="limit exceeded: 2"):
        parse("((1))", small)


def test_a_caller_s_macro_is_a_macro() -> None:
    def twice(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        return make.call("_+_", args[0], make.copy(args[0]))

    environment = PLAIN.extend(macros=[Macro("twice", 1, False, twice)])
    assert shaped(parse("twice(a.b)", environment).expr) == "(_+_ (select a b) (select a b))"
