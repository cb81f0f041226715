"""Conditions of the author: `status.conditions` of a definition."""

from typing import Any

import pytest

from lamina.graph.evaluate import ConditionsResult, author_conditions
from lamina.graph.graph import Graph, GraphError
from lamina.objects.types import Condition
from tests.unit.graph.graphs import bucket, compiled, scoped

SPEC = {"name": "string", "names": "[]string", "free": "object"}
READY: Condition = {"type": "Ready", "status": "True", "reason": "Fine", "message": "all is well"}


def of(*entries: Any) -> Graph:
    many = bucket("many", metadata={"name": "${n}"}, forEach=[{"n": "${schema.spec.names}"}])
    return compiled(bucket("b"), many, spec=SPEC, status={"conditions": list(entries)})


def new(type_: str = "'Mine'", status: str = "'True'", **more: str) -> str:
    stated = {"type": type_, "status": status, **more}
    return "runtime.newCondition({" + ", ".join(f"{key}: {value}" for key, value in stated.items()) + "})"


def result(*entries: str, spec: Any = None, **observed: Any) -> ConditionsResult:
    graph = of(*entries)
    assert graph.hides_conditions
    return author_conditions(graph, scoped(graph, spec or {"name": "web"}, observed), {"Ready": READY})


def condition(type_: str, status: str = "True", reason: str = "", message: str = "") -> Condition:
    return {"type": type_, "status": status, "reason": reason, "message": message}


@pytest.mark.check("RG-39")
def test_with_conditions_of_the_author_the_built_in_ones_are_hidden() -> None:
    graph = of(f"${{{new()}}}")
    assert graph.hides_conditions
    # They are no field of the status schema: every status has conditions.
    assert graph.status_schema == {"type": "object", "properties": {}}
    assert not of().hides_conditions


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("runtime.newCondition({type: 'A', status: 'True'})", "only standalone expressions are allowed"),
        ("x-${runtime.newCondition({type: 'A', status: 'True'})}", "only standalone expressions are allowed"),
        (3, "only standalone expressions are allowed"),
        ({"type": "A"}, "only standalone expressions are allowed"),
        (f"${{{new(colour='1')}}}", 'unknown key "colour"'),
        ("${runtime.newCondition({'type': 'A', status: 'True'})}", "a key of a condition is one of the bare names"),
        ("${runtime.newCondition({status: 'True'})}", 'key "type" is missing'),
        ("${runtime.newCondition({type: 'A'})}", 'key "status" is missing'),
        ("${runtime.newCondition(schema.spec.free)}", "takes a map that is written out"),
        (f"${{{new(status=chr(39) + 'Yes' + chr(39))}}}", "status must be one of True, False, Unknown"),
        (f"${{{new(type_=chr(39) * 2)}}}", "type must not be empty"),
        ("${schema.spec.name}", 'must return runtime.newCondition(...) or a list of them, got "string"'),
        ("${[schema.spec.name]}", 'must return runtime.newCondition(...) or a list of them, got "list(string)"'),
        ("${{'type': 'A', 'status': 'True'}}", "must return runtime.newCondition"),
        ("${runtime.condition(schema, 'Nope').status}", "unknown condition type"),
        (f"${{{new(status=chr(114) + 'untime.condition(schema, ' + repr('ResourceReady') + ').status')}}}", "unknown condition type"),
        (f"${{{new(status='missing.x')}}}", "references unknown identifiers: [missing]"),
        (f"${{{new(status='runtime')}}}", "references unknown identifiers: [runtime]"),
        (f"${{{new(status='schema.spec.nme')}}}", "undefined field 'nme'"),
        (f"${{{new(status='foo()')}}}", "uses unknown functions: [foo]"),
        (f"${{{new(status='omit()')}}}", "omit() can only be used in resource template expressions"),
    ],
)  # fmt: skip
def test_an_entry_of_another_form_is_refused(entry: Any, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        of(f"${{{new(type_=repr('Fine'))}}}", entry)
    assert said in str(raised.value)
    assert str(raised.value).startswith("spec.schema.status.conditions[1]: ")


def test_conditions_are_a_list() -> None:
    for stated in ("${x}", {"a": "b"}, 1):
        with pytest.raises(GraphError, match="status.conditions must be a list of standalone expressions"):
            compiled(spec=SPEC, status={"conditions": stated})
    assert not compiled(spec=SPEC, status={"conditions": None}).hides_conditions


def test_a_type_belongs_to_one_entry() -> None:
    said = 'condition type "Mine" is declared by more than one conditions entry'
    with pytest.raises(GraphError, match=said):
        of(f"${{{new()}}}", f"${{{new(status=repr('False'))}}}")
    # The branches of one entry may have the same.
    branches = "${schema.spec.name == 'web' ? " + new() + " : " + new(status="'False'") + "}"
    assert result(branches).conditions == (condition("Mine"),)
    assert result(branches, spec={"name": "x"}).conditions == (condition("Mine", "False"),)


def test_conditions_of_the_author_do_not_refer_to_each_other() -> None:
    other = new(type_="'Other'", status="runtime.condition(schema, 'Mine').status")
    with pytest.raises(GraphError, match="custom conditions cannot reference each other"):
        of(f"${{{new()}}}", f"${{{other}}}")


def test_a_condition_has_the_fields_that_are_stated() -> None:
    found = result(f"${{{new(reason=repr('R'), message='schema.spec.name')}}}")
    assert found == ConditionsResult((condition("Mine", "True", "R", "web"),))


def test_the_built_in_conditions_are_read_from_the_instance() -> None:
    text = "runtime.condition(schema, 'Ready')"
    found = result(f"${{{new(status=text + '.status', message=text + '.message')}}}")
    assert found.conditions == (condition("Mine", "True", "", "all is well"),)
    # One that is not computed yet is empty, and makes no condition.
    text = "runtime.condition(schema, 'GraphResolved')"
    assert "status must be one of" in result(f"${{{new(status=text + '.status')}}}").failures[0].because
    found = result(f"${{{new(status=text + '.type == dyn(0) ? dyn(0) : ' + repr('Unknown'))}}}")
    assert found.conditions == (condition("Mine", "Unknown"),)


def test_the_conditions_of_any_object_are_read() -> None:
    entry = f"${{{new(status='runtime.condition(b, ' + repr('Synced') + ').status')}}}"
    observed = [{"status": {"conditions": [{"type": "Synced", "status": "False"}]}}]
    assert result(entry, b=observed).conditions == (condition("Mine", "False"),)

    whole = "${runtime.condition(b, 'Synced')}"
    assert result(whole, b=observed).conditions == (condition("Synced", "False"),)
    missing = result(whole, b=[{}])
    assert missing.conditions == ()
    assert "found no condition" in missing.failures[0].because


def test_lists_are_flattened() -> None:
    each = "${many.map(m, " + new(type_="m.metadata.name") + ")}"
    observed = [{"metadata": {"name": name}} for name in ("B", "A")]
    found = result(each, f"${{{new()}}}", many=observed)
    assert [one["type"] for one in found.conditions] == ["B", "A", "Mine"]


@pytest.mark.check("RG-38")
def test_a_type_that_is_computed_twice_is_dropped_and_the_others_stay() -> None:
    each = "${many.map(m, " + new(type_="m.metadata.name") + ")}"
    observed = [{"metadata": {"name": name}} for name in ("A", "B", "A")]
    found = result(each, f"${{{new()}}}", many=observed)
    assert [one["type"] for one in found.conditions] == ["B", "Mine"]
    assert [one.because for one in found.failures] == ["duplicate condition type(s) [A] dropped"]


def test_a_pending_entry_is_skipped_and_a_failing_one_is_reported() -> None:
    found = result(
        f"${{{new(type_=repr('Waits'), status='b.status.arn')}}}",
        f"${{{new()}}}",
        f"${{{new(type_=repr('Fails'), status='string(1 / 0)')}}}",
        f"${{{new(type_=repr('Odd'), status='schema.spec.name')}}}",
        b=[{}],
    )
    assert found.conditions == (condition("Mine"),)
    assert [one.because for one in found.failures] == [
        "condition \"runtime.newCondition({type: 'Fails', status: string(1 / 0)})\" failed: division by zero",
        "condition \"runtime.newCondition({type: 'Odd', status: schema.spec.name})\" failed: "
        "status must be one of True, False, Unknown",
    ]
    assert len(found.pending) == 1
    assert "waits for data: no such key: status" in found.pending[0].because


def test_a_dyn_result_has_to_be_a_condition() -> None:
    for text in ("${dyn(schema.spec.name)}", "${dyn({'type': 'A'})}", "${dyn([1])}"):
        found = result(text)
        assert found.conditions == ()
        assert "must return a condition or a list of them" in found.failures[0].because
