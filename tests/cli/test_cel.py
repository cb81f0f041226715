"""`lamina cel`: answers on stdout, complaints on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lamina.cli.commands.cel import cel

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command in this process; what it needs of the command line is its arguments."""

    def call(*arguments: str, given: str | None = None, schema: object = None, code: int = 0) -> Result:
        extra: list[str] = []
        if given is not None:
            (tmp_path / "input").write_text(given)
            extra += ["--input", str(tmp_path / "input")]
        if schema is not None:
            (tmp_path / "schema").write_text(json.dumps(schema))
            extra += ["--schema", str(tmp_path / "schema")]
        done = CliRunner().invoke(cel, [*arguments, *extra])
        assert done.exit_code == code, done.output
        return done

    return call


def test_a_text_is_printed_as_it_is_and_everything_else_as_json(run: Run) -> None:
    assert run("'a' + 'b'").stdout == "ab\n"
    assert run("1 < 2").stdout == "true\n"
    assert run("[1, 2].map(x, x * 2)").stdout == "[\n  2,\n  4\n]\n"


def test_with_o_json_a_text_is_quoted_and_nothing_is_indented(run: Run) -> None:
    assert run("'a'", "-o", "json").stdout == '"a"\n'
    assert run("[duration('90m')]", "-o", "json").stdout == '["1h30m0s"]\n'


def test_variables_come_from_json_or_yaml(run: Run) -> None:
    assert run("self.replicas * 2", given='{"self": {"replicas": 3}}').stdout == "6\n"
    assert run("self.replicas * 2", given="self:\n  replicas: 4\n").stdout == "8\n"


def test_variables_come_from_stdin_where_the_file_is_a_dash() -> None:
    done = CliRunner().invoke(cel, ["x + 1", "--input", "-"], input="x: 41")

    assert done.stdout == "42\n"


def test_a_schema_types_the_variables_before_anything_runs(run: Run) -> None:
    schema = {
        "type": "object",
        "properties": {
            "self": {"type": "object", "properties": {"when": {"type": "string", "format": "date-time"}}}
        },
    }
    given = "self: {when: '2020-01-01T00:00:00Z'}"

    assert run("self.when + duration('1h')", given=given, schema=schema).stdout == "2020-01-01T01:00:00Z\n"
    refused = run("self.wenn", given=given, schema=schema, code=1)
    assert "undefined field 'wenn'" in refused.stderr
    assert "hint" in refused.stderr


def test_what_does_not_compile_is_shown_with_a_caret(run: Run) -> None:
    refused = run("1 + 'a'", code=1)

    assert refused.stdout == ""
    assert refused.stderr == (
        "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
        " | 1 + 'a'\n"
        " | ..^\n"
    )  # fmt: skip


def test_what_fails_is_shown_with_a_caret(run: Run) -> None:
    failed = run("[1, 2][self.i]", given="self: {i: 7}", code=1)

    assert failed.stderr == "ERROR: <input>:1:7: index out of bounds: 7\n | [1, 2][self.i]\n | ......^\n"


def test_environments_differ_in_what_they_know(run: Run) -> None:
    assert run("math.greatest(1, 2)", "--environment", "plain").stdout == "2\n"
    assert "undeclared reference to 'math'" in run("math.greatest(1, 2)", code=1).stderr
    assert run("quantity('1k').asInteger()").stdout == "1000\n"
    assert run("random.seededString(10, 'test-seed')", "--environment", "graph").stdout == "5czheg3o5c\n"


def test_explain_says_what_is_read_and_what_it_costs(run: Run) -> None:
    done = run("self.items.all(i, i.ready)", "--explain", given="self: {items: [{ready: true}]}")

    assert done.stdout == "true\n"
    assert "self.items[*].ready" in done.stderr
    assert "type:           bool" in done.stderr
    assert "cost:" in done.stderr
    assert "def carry_out(V):" in done.stderr


def test_a_file_that_is_no_object_is_refused(run: Run) -> None:
    done = CliRunner().invoke(cel, ["1", "--input", "-"], input="[1]")

    assert "expected an object, got list" in str(done.exception)


def test_a_constant_that_has_no_value_is_shown_with_its_place(run: Run) -> None:
    done = run("true || int('abc') == 1", code=1)

    assert done.stderr == (
        "ERROR: <input>:1:12: type conversion error from 'string' to 'int'\n"
        " | true || int('abc') == 1\n"
        " | ...........^\n"
    )


@pytest.mark.parametrize(
    ("given", "type_"), [("3", "int"), ("3.0", "double"), ("3u", "uint"), ("18446744073709551615", "uint")]
)
def test_a_number_of_the_input_keeps_its_type(run: Run, given: str, type_: str) -> None:
    assert run(f"type(x) == {type_}", given=f"x: {given}").stdout == "true\n"


def test_the_largest_uint_is_read_and_printed(run: Run) -> None:
    assert run("x", given="x: 18446744073709551615u").stdout == "18446744073709551615\n"
    assert run("18446744073709551615u").stdout == "18446744073709551615\n"
    assert "too large for a uint" in str(run("x", given="x: 18446744073709551616u", code=1).exception)
