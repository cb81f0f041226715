"""The functions of resource graphs."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.cel.declarations import Variable
from lamina.cel.environment import GRAPH
from lamina.cel.errors import CelError, EvaluationError
from lamina.cel.export import to_json
from lamina.cel.library.kro_scoped import CONDITIONS, OMIT, pacing
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


# What belongs to one place only.

TEMPLATE = GRAPH.extend(libraries=[OMIT])
STATUS = GRAPH.extend(libraries=[CONDITIONS], variables=[Variable("obj", DYN)])


def test_what_is_omitted_is_left_out_of_lists_and_maps() -> None:
    program = compile_expression("{'a': 1 > 2 ? 1 : omit(), 'b': [1, omit(), 3], 'c': null}", TEMPLATE)

    assert to_json(program.evaluate({})) == {"b": [1, 3], "c": None}


def test_nothing_but_what_is_omitted_is_no_value_to_write() -> None:
    with pytest.raises(EvaluationError, match="type omit cannot be written as JSON"):
        to_json(compile_expression("omit()", TEMPLATE).evaluate({}))


def test_what_belongs_to_one_place_is_unknown_elsewhere() -> None:
    for text in ("omit()", "runtime.newCondition({type: 'A', status: 'True'})", "linearlyUpdated(1, 2, 3)"):
        with pytest.raises(CelError):
            compile_expression(text, GRAPH)


def test_a_condition_is_made_of_bare_names_and_has_fields() -> None:
    text = "runtime.newCondition({type: 'Ready', status: obj.ok ? 'True' : 'False', reason: 'Because'})"
    program = compile_expression(text, STATUS)

    assert program.checked.result.name == "runtime.Condition"
    made = program.evaluate({"obj": {"ok": False}})
    assert (made["type"], made["status"], made["reason"], made["message"]) == (
        "Ready",
        "False",
        "Because",
        "",
    )
    assert compile_expression(f"{text}.status", STATUS).evaluate({"obj": {"ok": True}}) == "True"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{type: 'A', status: 'True', colour: 'x'}",   'unknown key "colour"'),
        ("{type: 'A', status: 'Maybe'}",               "status must be one of True, False, Unknown"),
        ("{status: 'True'}",                           'key "type" is missing'),
        ("{type: '', status: 'True'}",                 "type must not be empty"),
        ("{type: 'A', type: 'B', status: 'True'}",     'key "type" is there twice'),
        ("{'type': 'A', status: 'True'}",              "bare names"),
        ("obj",                                        "written out"),
    ],
)  # fmt: skip
def test_a_condition_that_is_wrong_is_refused_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(CelError, match=said):
        compile_expression(f"runtime.newCondition({text})", STATUS)


@pytest.mark.parametrize(
    ("status", "said"), [("Maybe", "status must be one of"), (1, "status of a condition is a string")]
)
def test_a_condition_whose_status_is_worked_out_is_refused_when_it_is_wrong(status: Any, said: str) -> None:
    program = compile_expression("runtime.newCondition({type: 'A', status: obj.s})", STATUS)

    with pytest.raises(EvaluationError, match=said):
        program.evaluate({"obj": {"s": status}})


def test_a_condition_of_an_object_is_found_or_says_nothing() -> None:
    program = compile_expression("runtime.condition(obj, 'Ready').status", STATUS)

    assert (
        program.evaluate({"obj": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}}) == "True"
    )
    assert program.evaluate({"obj": {"status": {}}}) == ""
    assert program.evaluate({"obj": {}}) == ""


def waves(text: str, count: int) -> list[int]:
    """Return how many items each wave lets out, where every one that is let out is updated by the next."""
    variables = [Variable("each", DYN), Variable("items", DYN)]
    library = pacing(lambda item: item["new"], lambda item: True)
    program = compile_expression(text, GRAPH.extend(libraries=[library], variables=variables))
    items = [{"index": index, "new": False} for index in range(count)]
    sizes = []
    while not all(item["new"] for item in items):
        let_out = [
            item for item in items if not item["new"] and program.evaluate({"each": item, "items": items})
        ]
        assert let_out, "nothing moves"
        for item in let_out:
            item["new"] = True
        sizes.append(len(let_out))
    return sizes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("exponentiallyUpdated(items, each)",    [1, 1, 2, 4]),
        ("exponentiallyReady(each, items)",      [1, 1, 2, 4]),
        ("linearlyUpdated(items, each, 3)",      [3, 3, 2]),
        ("linearlyReady(each, items, 1)",        [1] * 8),
        ("items.filter(i, i.updated() && i.ready()).size() < 8", [8]),
    ],
)  # fmt: skip
def test_a_change_goes_out_in_waves(text: str, sizes: list[int]) -> None:
    assert waves(text, 8) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "linearlyUpdated(items, each, 0)",
        "exponentiallyUpdated(1, each)",
        "linearlyUpdated(items, {'a': 1}, 1)",
    ],
)
def test_waves_of_what_is_no_list_or_no_item_are_an_error(text: str) -> None:
    with pytest.raises(EvaluationError):
        waves(text, 2)
