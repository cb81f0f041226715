"""The type checker: names and types."""

from __future__ import annotations

import pytest

from lamina.cel.ast import Call, Checked, Ident, LiteralKind, Select, walk
from lamina.cel.check import check
from lamina.cel.declarations import Constant, Environment, Function, Overload, Variable
from lamina.cel.environment import KUBERNETES, PLAIN
from lamina.cel.errors import CheckError
from lamina.cel.parse import parse
from lamina.cel.types import BOOL, DYN, INT, STRING, Field, ObjectType, list_of, map_of, param

POD = ObjectType(
    "Pod",
    {
        "name": Field(STRING, required=True),
        "labels": Field(map_of(STRING, STRING)),
        "spec": Field(
            ObjectType("Pod.spec", {"replicas": Field(INT), "a__dash__b": Field(STRING, key="a-b")})
        ),
    },
)


def checked(text: str, environment: Environment) -> Checked:
    return check(parse(text, environment), environment)


def complaint(text: str, environment: Environment) -> CheckError:
    with pytest.raises(CheckError) as refused:
        checked(text, environment)
    return refused.value


WITH_POD = PLAIN.extend(variables=[Variable("pod", POD), Variable("pods", list_of(POD))])


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("pod.name", "string"),
        ("pod.labels['a']", "string"),
        ("pod.spec.replicas + 1", "int"),
        ("pods.map(p, p.spec.replicas)", "list(int)"),
        ("pods.filter(p, has(p.spec))", "list(Pod)"),
        ("pod.?spec.replicas", "optional_type(int)"),
        ("{'a': pod}", "map(string, Pod)"),
    ],
)
def test_fields_of_objects_have_their_declared_types(text: str, type_: str) -> None:
    assert str(checked(text, WITH_POD).result) == type_


def test_a_field_that_is_not_declared_is_refused_and_a_close_one_suggested() -> None:
    error = complaint("pod.spec.replica > 1", WITH_POD)
    assert str(error) == (
        "ERROR: <input>:1:9: undefined field 'replica'\n | pod.spec.replica > 1\n | ........^"
    )
    assert error.hint == "did you mean 'replicas'?"


def test_a_name_that_is_not_declared_is_refused_and_a_close_one_suggested() -> None:
    error = complaint("pds.all(p, p.nam == 'a') && pod.name.startWith('a')", WITH_POD)
    assert [(issue.message, issue.suggestion) for issue in error.issues] == [
        ("undeclared reference to 'pds' (in container '')", "did you mean 'pods'?"),
        ("undeclared reference to 'startWith' (in container '')", "did you mean 'startsWith'?"),
    ]


def test_what_resembles_nothing_suggests_nothing() -> None:
    assert complaint("zebra", WITH_POD).hint is None


def test_unknown_fields_are_dyn_where_the_type_keeps_them() -> None:
    loose = ObjectType("Loose", {"a": Field(INT)}, preserves_unknown=True)
    environment = PLAIN.extend(variables=[Variable("it", loose)])
    assert checked("it.b.c", environment).result is DYN
    assert checked("it.a", environment).result is INT


def test_all_complaints_come_in_the_order_of_the_text() -> None:
    error = complaint("a + b +\nc", PLAIN)
    assert [issue.at for issue in error.issues] == [0, 4, 8]
    assert "ERROR: <input>:2:1: undeclared reference to 'c'" in str(error)


def test_names_are_looked_up_from_the_inside_of_the_container_out() -> None:
    variables = [Variable("a.b.x", INT), Variable("a.x", STRING), Variable("x", BOOL), Variable("y", BOOL)]
    environment = PLAIN.extend(container="a.b", variables=variables)
    assert [str(checked(text, environment).result) for text in ("x", ".x", ".a.x", "b.x", "y")] == [
        "int", "bool", "string", "int", "bool",
    ]  # fmt: skip
    assert complaint("z", environment).issues[0].message == "undeclared reference to 'z' (in container 'a.b')"


def test_a_loop_s_variable_hides_what_is_outside() -> None:
    environment = PLAIN.extend(variables=[Variable("x", STRING)])
    assert str(checked("[1].map(x, x)", environment).result) == "list(int)"
    assert str(checked("[1].map(x, .x)", environment).result) == "list(string)"


def test_the_tree_has_names_resolved() -> None:
    environment = PLAIN.extend(variables=[Variable("a.b", map_of(STRING, INT))], container="math")
    expr = checked("a.b.c + abs(-2)", environment).expr
    assert isinstance(expr, Call)
    left, right = expr.args
    assert isinstance(left, Select)
    assert isinstance(left.operand, Ident)
    assert left.operand.name == "a.b"
    assert isinstance(right, Call)
    assert right.function == "math.abs"


def test_namespaced_functions_lose_their_target() -> None:
    calls = [node for node in walk(checked("[1].map(x, math.abs(x))", PLAIN).expr) if isinstance(node, Call)]
    found = next(call for call in calls if "abs" in call.function)
    assert (found.function, found.target) == ("math.abs", None)


def test_fields_with_other_names_in_the_data_are_read_by_those() -> None:
    expr = checked("pod.spec.a__dash__b", WITH_POD).expr
    assert isinstance(expr, Select)
    assert expr.field == "a-b"


def test_references_name_variables_and_overloads() -> None:
    result = checked("pod.name == 'a'", WITH_POD)
    assert [reference.name for reference in result.references.values() if reference.name] == ["pod"]
    assert result.references[result.expr.id].overloads == ("equals",)


def test_a_call_with_dyn_may_reach_several_overloads() -> None:
    environment = PLAIN.extend(variables=[Variable("x", DYN)])
    result = checked("x + 1", environment)
    assert result.result is INT
    assert result.references[result.expr.id].overloads == ("add_int64",)
    assert len(checked("x + x", environment).references[3].overloads) > 5


def test_a_caller_s_functions_are_typed() -> None:
    element = param("T")
    first = Function("first", (Overload("first_of_list", (list_of(element), element), element, member=True),))
    environment = PLAIN.extend(functions=[first])
    assert checked("[1].first(2)", environment).result is INT
    assert checked("['a'].first('b')", environment).result is STRING
    assert "no matching overload for 'first' applied to 'list(int).(string)'" in str(
        complaint("[1].first('a')", environment)
    )


def test_overloads_are_added_to_functions_that_exist() -> None:
    more = Function("size", (Overload("size_int", (INT,), INT),))
    assert checked("size(1) + size('a')", PLAIN.extend(functions=[more])).result is INT
    assert "no matching overload" in str(complaint("size(1)", PLAIN))


def test_constants_have_a_value() -> None:
    environment = PLAIN.extend(constants=[Constant("Color.RED", INT, 1, LiteralKind.INT)])
    result = checked("Color.RED + 1", environment)
    assert result.result is INT
    constants = [reference.constant for reference in result.references.values() if reference.constant]
    assert [constant.value for constant in constants] == [1]


def test_structs_are_checked_field_by_field() -> None:
    environment = PLAIN.extend(types=[POD])
    assert checked("Pod{name: 'a'}.name", environment).result is STRING
    assert complaint("Pod{name: 1}", environment).issues[0].message == (
        "expected type of field 'name' is 'string' but provided type is 'int'"
    )
    assert complaint("Pod{nme: 1}", environment).hint == "did you mean 'name'?"
    assert complaint("Pud{}", environment).hint == "did you mean 'Pod'?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dyn(1), 'a'].size() == 1", "expected type 'dyn' but found 'string'"),
        ("{'a': 1, 'b': 'c'}.size() == 1", "expected type 'int' but found 'string'"),
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("timestamp('x') == timestamp('y')", "invalid timestamp argument"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("true || duration('x') == duration('1s')", "invalid duration argument"),
    ],
)
def test_kubernetes_refuses_literals_that_cannot_work(text: str, message: str) -> None:
    assert complaint(text, KUBERNETES).issues[0].message == message


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("'%s %d'.format(['a', 1])", "string"),
        ("[dyn(1), dyn('a')]", "list(dyn)"),
        ("{'a': dyn(1), 'b': dyn('c')}", "map(string, dyn)"),
    ],
)
def test_kubernetes_takes_mixed_literals_where_they_are_marked_or_formatted(text: str, result: str) -> None:
    assert str(checked(text, KUBERNETES).result) == result
