"""includeWhen, readyWhen, propagateWhen and forEach: their form, their variables, and what they return."""

import re
from typing import Any

import pytest

from lamina.graph.graph import GraphError
from tests.unit.graph.graphs import bucket, compiled, config, reference, resource

SPEC = {"name": "string", "on": "boolean", "names": "[]string", "zones": "[]string", "free": "object"}
NAMES = [{"name": "${schema.spec.names}"}]


def refused(*resources: Any, **stated: Any) -> str:
    with pytest.raises(GraphError) as raised:
        compiled(*resources, **{"spec": SPEC, **stated})
    return str(raised.value)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("includeWhen", "schema.spec.on"),
        ("includeWhen", "${schema.spec.on} "),
        ("includeWhen", "${schema.spec.on}${schema.spec.on}"),
        ("includeWhen", "x-${schema.spec.on}"),
        ("readyWhen", "b.status.ready"),
        ("readyWhen", "${b.status.ready}\n"),
    ],
)  # fmt: skip
def test_a_condition_is_one_expression(field: str, text: str) -> None:
    message = refused(bucket("b", **{field: ["${true}", text]}))
    assert message.startswith(f"spec.resources[0].{field}[1]: only standalone expressions are allowed, not ")


@pytest.mark.parametrize(
    "text", ["schema.spec.names", "${schema.spec.names}x", "${schema.spec.names}${schema.spec.names}"]
)
def test_a_loop_is_one_expression(text: str) -> None:
    message = refused(config("a", "${name}", forEach=[{"name": text}]))
    assert message.startswith(
        "spec.resources[0].forEach[0].name: only standalone expressions are allowed, not "
    )


@pytest.mark.check("RG-24")
@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"readyWhen": ["${schema.spec.on}"]}, 'resource "b" readyWhen: references unknown identifiers: [schema]'),
        ({"readyWhen": ["${other.status.ready}"]}, 'resource "b" readyWhen: references unknown identifiers: [other]'),
        ({"readyWhen": ["${each.status.ready}"]}, 'resource "b" readyWhen: references unknown identifiers: [each]'),
        ({"readyWhen": ["${runtime.x}"]}, 'resource "b" readyWhen: references unknown identifiers: [runtime]'),
        ({"readyWhen": ["${b.status.arn}"]}, 'must return bool or optional_type(bool), but returns "string"'),
        ({"readyWhen": ["${b.status}"]}, 'must return bool or optional_type(bool), but returns "Bucket'),
        ({"readyWhen": ["${b.status.nothing}"]}, "undefined field 'nothing'"),
        ({"readyWhen": ["${foo(b)}"]}, 'resource "b" readyWhen: uses unknown functions: [foo]'),
        ({"includeWhen": ["${schema.spec.name}"]}, 'must return bool or optional_type(bool), but returns "string"'),
        ({"includeWhen": ["${schema.spec.free.on}"]}, 'must return bool or optional_type(bool), but returns "dyn"'),
        ({"includeWhen": ["${missing.x}"]}, "references unknown identifiers: [missing]"),
        ({"includeWhen": ["${each.x}"]}, "references unknown identifiers: [each]"),
        ({"includeWhen": ["${runtime.condition(schema, 'Ready').status == 'True'}"]}, "runtime is only available in status.conditions expressions"),
        ({"includeWhen": ["${schema.spec.convex}"]}, "undefined field 'convex'"),
        ({"includeWhen": ["${omit()}"]}, "omit() can only be used in resource template expressions"),
        ({"readyWhen": ["${omit()}"]}, "omit() can only be used in resource template expressions"),
        ({"propagateWhen": ["${omit()}"]}, "omit() can only be used in resource template expressions"),
        ({"propagateWhen": ["missing.x"]}, "references unknown identifiers: [missing]"),
        ({"propagateWhen": ["${each.index == 0}"]}, "references unknown identifiers: [each]"),
        ({"propagateWhen": ["schema.spec.name"]}, 'must return bool or optional_type(bool), but returns "string"'),
        ({"propagateWhen": ["foo()"]}, "uses unknown functions: [foo]"),
    ],
)  # fmt: skip
def test_a_condition_has_its_own_variables_and_returns_a_bool(stated: dict[str, Any], said: str) -> None:
    message = refused(bucket("b", **stated), bucket("other"), omit=True)
    assert said in message
    (field,) = stated
    assert message.startswith(f"spec.resources[0].{field}[0]: ")


@pytest.mark.check("RG-24")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema.spec.name", 'forEach iterator "name" must return a list, got "string"'),
        ("schema.spec.free", 'forEach iterator "name" must return a list, got "dyn"'),
        ("schema.spec", 'forEach iterator "name" must return a list, got "schema.spec"'),
        ("schema.spec.nope", "undefined field 'nope'"),
        ("missing.x", "references unknown identifiers: [missing]"),
        ("omit()", "omit() can only be used in resource template expressions"),
        ("runtime.condition(schema, 'x')", "runtime is only available in status.conditions expressions"),
        ("[foo()]", "uses unknown functions: [foo]"),
    ],
)  # fmt: skip
def test_a_loop_returns_a_list(text: str, said: str) -> None:
    message = refused(config("a", "${name}", forEach=[{"name": f"${{{text}}}"}]), omit=True)
    assert said in message
    assert message.startswith("spec.resources[0].forEach[0].name: ")


@pytest.mark.check("RG-25")
def test_the_readiness_of_a_collection_is_about_each_item() -> None:
    many = bucket(
        "pods", metadata={"name": "${name}"}, forEach=NAMES, readyWhen=["${pods.all(p, p.status.ready)}"]
    )
    said = 'resource "pods" readyWhen: references unknown identifiers: [pods]'
    assert said in refused(many)
    other = {**many, "readyWhen": ["${other.status.ready}"]}
    assert "references unknown identifiers: [other]" in refused(other, bucket("other"))

    each = {**many, "readyWhen": ["${each.status.ready}", "${each.status.?ready}"]}
    assert compiled(each, spec=SPEC).nodes["pods"].compiled.ready_when
    wrong = {**many, "readyWhen": ["${each.status.phase == 'Running'}"]}
    assert "undefined field 'phase'" in refused(wrong)


def test_each_is_an_item_of_its_own_collection() -> None:
    """Two collections of different kinds: `each` of one is no object of the other."""
    pods = resource("pods", "v1", "Pod", metadata={"name": "${name}"}, forEach=NAMES,
                    readyWhen=["${each.status.phase == 'Running'}"])  # fmt: skip
    buckets = bucket(
        "buckets", metadata={"name": "${name}"}, forEach=NAMES, readyWhen=["${each.status.ready}"]
    )
    assert compiled(pods, buckets, spec=SPEC).nodes
    assert "undefined field 'phase'" in refused(pods, {**buckets, "readyWhen": pods["readyWhen"]})


def test_the_readiness_of_an_external_collection_is_about_the_list_or_each_item() -> None:
    for text in ("${all.size() > 0}", "${each.data.on == 'true'}", "${each in all}"):
        assert compiled(reference("all", selector={}, readyWhen=[text])).nodes


def test_an_optional_bool_is_a_condition() -> None:
    assert compiled(bucket("b", readyWhen=["${b.status.?ready}"], includeWhen=["${optional.of(true)}"])).nodes


@pytest.mark.check("RG-49")
@pytest.mark.parametrize(
    ("metadata", "missing"),
    [
        ({"name": "x"}, "name, zone"),
        ({"name": "${name}"}, "zone"),
        ({"name": "${name}", "labels": {"zone": "${zone}"}}, "zone"),
        ({"name": "${schema.spec.zones.map(zone, zone)[0]}-${name}"}, "zone"),
    ],
)  # fmt: skip
def test_every_iterator_occurs_in_the_name_or_the_namespace(metadata: Any, missing: str) -> None:
    loops = [{"name": "${schema.spec.names}"}, {"zone": "${schema.spec.zones}"}]
    said = f"all forEach dimensions must be used to produce a unique resource identity, missing: [{missing}]"
    assert said in refused(bucket("b", metadata=metadata, forEach=loops))


def test_an_iterator_may_occur_in_the_namespace_of_a_namespaced_child() -> None:
    loops = [{"name": "${schema.spec.names}"}, {"zone": "${schema.spec.zones}"}]
    metadata = {"name": "${name}", "namespace": "${zone}"}
    assert compiled(bucket("b", metadata=metadata, forEach=loops), spec=SPEC).nodes["b"].iterators == (
        "name",
        "zone",
    )


def test_iterators_do_not_refer_to_each_other() -> None:
    loops = [{"name": "${schema.spec.names}"}, {"zone": "${[name]}"}]
    said = 'node "b": forEach iterator "zone" cannot reference other iterators [name]'
    assert said in refused(bucket("b", metadata={"name": "${name}-${zone}"}, forEach=loops))


def test_iterators_are_variables_of_the_template_only_and_have_the_type_of_the_items() -> None:
    many = bucket("b", metadata={"name": "${name}"}, forEach=NAMES)
    assert "references unknown identifiers: [name]" in refused({**many, "includeWhen": ["${name == 'a'}"]})
    assert "references unknown identifiers: [name]" in refused({**many, "readyWhen": ["${name == 'a'}"]})
    assert "references unknown identifiers: [name]" in refused(many, config("c", "${name}"))
    wrong = bucket("b", metadata={"name": "${name}"}, forEach=NAMES, spec={"size": "${name}"})
    assert 'returns type "string" but expected "int"' in refused(wrong)


def test_a_collection_is_a_list_for_others() -> None:
    many = bucket("b", metadata={"name": "${name}"}, forEach=NAMES)
    assert compiled(
        many, config("c", "x", {"n": "${string(b.size()) + b[0].status.arn}"}), spec=SPEC
    ).order == ("b", "c")
    message = refused(many, config("c", "x", {"n": "${b.status.arn}"}))
    assert re.search(r"type 'list\(Bucket.*\)' does not support field selection", message)


def test_the_gate_of_a_collection_knows_its_items_and_iterators() -> None:
    gates = [
        "linearlyUpdated(each, b, 1)",
        "${exponentiallyUpdated(b, each)}",
        "each.index < 3 && name != 'x' && b.filter(p, p.updated() && !p.ready()).size() < 2",
        "b[0].status.ready && schema.spec.on",
    ]
    many = bucket("b", metadata={"name": "${name}"}, forEach=NAMES, propagateWhen=gates)
    assert compiled(many, spec=SPEC).nodes["b"].has_propagate_when
    assert compiled(bucket("b", propagateWhen=["b.status.ready"]), spec=SPEC).nodes["b"].dependencies == ()
