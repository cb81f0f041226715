"""`lamina cel`: evaluates a CEL expression, and explains its type, reads, cost and compiled code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from lamina.cel.ast import Checked
from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.size import MOST, CostNode, Estimate
from lamina.cel.declarations import Environment, Variable
from lamina.cel.environment import ENVIRONMENTS
from lamina.cel.errors import CelError, ConstantError, EvaluationError
from lamina.cel.evaluate.codegen import source_of
from lamina.cel.evaluate.writer import NotGenerated
from lamina.cel.export import to_json
from lamina.cel.library.kro_scoped import CONDITIONS, OMIT
from lamina.cel.program import Program, compile_expression
from lamina.cel.references import reads
from lamina.cel.schema import Declared, declare
from lamina.cel.types import DYN
from lamina.cli.cel_input import load_variables
from lamina.errors import SettingsError
from lamina.server.codec.yaml import YamlError


@click.command()
@click.argument("expression", metavar="EXPR")
@click.option(
    "--input",
    "given",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Variables, as a JSON or YAML object; - for standard input. 3 is an int, 3.0 a double, 3u a uint.",
)
@click.option(
    "--schema",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="OpenAPI schema of the variables, an object with a property for each. Default: all variables are dyn.",
)
@click.option(
    "--environment",
    type=click.Choice(["kubernetes", "plain", "graph"]),
    default="kubernetes",
    show_default=True,
    help="Functions and rules: of Kubernetes, of plain CEL, or of a resource graph.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--explain", is_flag=True, help="Print type, reads, calls, cost and compiled code to standard error."
)
@click.pass_context
def cel(
    context: click.Context,
    expression: str,
    given: Path | None,
    schema: Path | None,
    environment: str,
    output: str,
    explain: bool,
) -> None:
    """
    Evaluate the CEL expression EXPR.

    The result is printed to standard output. An error shows its position in the
    expression.
    """
    variables = _object(given) if given else {}
    declared = _declared(_object(schema)) if schema else {}
    extended = _environment(ENVIRONMENTS[environment], variables, declared)
    if environment == "graph":
        # The field of the graph is not known here, so the functions of all fields are allowed.
        extended = extended.extend(libraries=(OMIT, CONDITIONS))
    try:
        program = compile_expression(expression, extended, sizes=_Sizes(declared))
        value = program.evaluate(variables)
        shown = _shown(value, output)
    except EvaluationError as error:
        click.echo(error.shown if error.shown != error.message else f"ERROR: {error.message}", err=True)
        context.exit(1)
    except CelError as error:
        click.echo(error.shown if isinstance(error, ConstantError) else str(error), err=True)
        if error.hint:
            click.echo(f"\nhint: {error.hint}", err=True)
        context.exit(1)
    click.echo(shown)
    if explain:
        _explain(program, variables)


def _object(file: Path) -> dict[str, Any]:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        loaded = load_variables(data)
    except (OSError, YamlError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {reason}") from None
    if not isinstance(loaded, dict):
        raise SettingsError(
            f"{file}: expected an object, got {type(loaded).__name__}", hint="each field is a variable"
        )
    return loaded


def _declared(schema: Mapping[str, Any]) -> dict[str, Declared]:
    properties = schema.get("properties") or {}
    found = {name: declare(inner, name=name, unknown_is_dyn=True) for name, inner in properties.items()}
    return {name: one for name, one in found.items() if one is not None}


def _environment(
    environment: Environment, variables: Mapping[str, Any], declared: Mapping[str, Declared]
) -> Environment:
    untyped = [Variable(name, DYN) for name in variables if name not in declared]
    typed = [Variable(name, one.type) for name, one in declared.items()]
    return environment.extend(variables=[*untyped, *typed])


class _Sizes:
    """Bounds of the sizes of variables, from their schemas."""

    def __init__(self, declared: Mapping[str, Declared]) -> None:
        self._declared = declared

    def __call__(self, node: CostNode) -> Estimate | None:
        found = self._declared.get(node.path[0]) if node.path else None
        return found.sizes(node) if found is not None else None


def _shown(value: Any, output: str) -> str:
    plain = to_json(value, encode_bytes=True, whole_uints=True)
    if output == "text" and isinstance(plain, str):
        return plain
    option = orjson.OPT_INDENT_2 if output == "text" else 0
    return orjson.dumps(plain, option=option | orjson.OPT_NON_STR_KEYS).decode()


def _explain(program: Program, variables: Mapping[str, Any]) -> None:
    checked, environment = program.checked, program.environment
    read = reads(checked, environment)
    bounds = estimate(checked, environment, program.sizes)
    lines = [
        ("type", str(checked.result)),
        ("reads", ", ".join(map(str, read.paths)) or "nothing"),
        ("calls", ", ".join(read.functions) or "nothing"),
        ("estimated cost", f"{bounds.least} to {'unbounded' if bounds.most >= MOST else bounds.most}"),
        ("cost", str(program.run(variables).cost)),
    ]
    for label, text in lines:
        click.echo(f"{label + ':':16}{text}", err=True)
    click.echo(f"\n{_python(checked, environment)}", err=True)


def _python(checked: Checked, environment: Environment) -> str:
    try:
        return source_of(checked, environment)[0].rstrip()
    except (NotGenerated, RecursionError):
        return "interpreted, not compiled"
