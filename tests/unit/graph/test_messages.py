"""The one form of a compile error, and what a compiled graph has."""

import os
import subprocess
import sys

import pytest

from lamina.graph.graph import GraphError
from tests.unit.graph.graphs import bucket, compiled, config


def message(*resources: object, **stated: object) -> str:
    with pytest.raises(GraphError) as raised:
        compiled(*resources, **stated)  # type: ignore[arg-type]
    return str(raised.value)


def test_an_error_has_the_field_the_line_a_caret_and_what_to_write() -> None:
    assert message(config("a", "x", {"n": "x-${schema.spec.nme}"})) == (
        "spec.resources[0].template.data.n: "
        "expression \"schema.spec.nme\": undefined field 'nme' (line 1, column 12)\n"
        " | schema.spec.nme\n"
        " | ...........^\n"
        "did you mean 'name'?"
    )


def test_an_error_of_a_name_points_at_its_first_use() -> None:
    assert message(config("a", "x", {"n": "${schema.spec.name + other.data.x}"})) == (
        "spec.resources[0].template.data.n: references unknown identifiers: [other] (line 1, column 20)\n"
        " | schema.spec.name + other.data.x\n"
        " | ...................^\n"
        "known here: a, schema"
    )


def test_the_line_of_a_long_expression_is_the_one_with_the_error() -> None:
    text = "${\n  schema.spec.name\n\t+ string(schema.spec.nme)\n}"
    assert message(config("a", "x", {"n": text})).splitlines()[:3] == [
        'spec.resources[0].template.data.n: expression "schema.spec.name + string(schema.spec.nme)": '
        "undefined field 'nme' (line 3, column 22)",
        " |  + string(schema.spec.nme)",
        " | .....................^",
    ]
    long = "'" + "x" * 1000 + "' + schema.spec.nme + '" + "y" * 1000 + "'"
    line, caret = message(config("a", "x", {"n": f"${{{long}}}"})).splitlines()[1:3]
    assert len(line) == len(" | ") + 400
    assert line[len(caret) - 1] == "." and line[len(caret) :].startswith("nme +")


def test_a_type_is_converted_in_the_last_line() -> None:
    assert (
        message(bucket("b", spec={"name": "${schema.spec.replicas}"})).splitlines()[-1]
        == "convert it with string()"
    )
    assert (
        message(bucket("b", spec={"size": "${schema.spec.name}"})).splitlines()[-1] == "convert it with int()"
    )


def test_an_error_without_an_expression_is_one_line() -> None:
    assert message(config("a"), config("a")) == (
        "spec.resources[1].id: naming convention violation: found duplicate resource IDs a"
    )


def test_a_definition_that_is_nested_too_deeply_is_refused() -> None:
    deep: object = "x"
    for _ in range(2000):
        deep = {"a": deep}
    assert "nested too deeply" in message(bucket("b", spec={"free": deep}))


def test_an_expression_that_is_nested_too_deeply_is_refused() -> None:
    assert "spec.resources[0]" in message(config("a", "x", {"n": "${" + "(" * 500 + "1" + ")" * 500 + "}"}))


def test_a_graph_has_the_schema_of_the_spec() -> None:
    graph = compiled(config("a"), spec={"name": "string", "replicas": "integer | default=1"})
    assert graph.spec_schema["properties"]["replicas"] == {"type": "integer", "default": 1}
    assert compiled(spec={}).order == ()


def test_cel_is_not_imported_before_there_is_a_definition() -> None:
    code = (
        "import sys, lamina.families.resourcegraph.compiled_graphs, lamina.graph.evaluate, "
        "lamina.graph.gate; "
        "print(any(one in sys.modules for one in ('lamina.cel.environment', 'lamina.cel.program', 're2')))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.check_output([sys.executable, "-c", code], text=True, env=environment).strip() == "False"
    )
