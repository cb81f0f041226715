"""`lamina cel`: evaluate an expression, and say what there is to know about it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from lamina.cel.ast import Checked
from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.size import MOST, CostNode, Span
from lamina.cel.declare import Environment, Variable
from lamina.cel.environment import ENVIRONMENTS
from lamina.cel.errors import CelError, ConstantError, EvaluationError
from lamina.cel.evaluate.generate import source_of
from lamina.cel.evaluate.writer import NotWorthIt
from lamina.cel.export import exported
from lamina.cel.library.places import CONDITIONS, OMIT
from lamina.cel.program import Program, compile_expression
from lamina.cel.reads import reads
from lamina.cel.schema import Declared, declare
from lamina.cel.types import DYN
from lamina.errors import SettingsError
from lamina.server.yaml import YamlError, load_yaml


@click.command()
@click.argument("expression", metavar="EXPR")
@click.option(
    "--input",
    "given",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Variables: a JSON or YAML object. A dash is stdin.",
)
@click.option(
    "--schema",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="OpenAPI schema of the variables: an object with a property for each. Without one they are dyn.",
)
@click.option(
    "--environment",
    type=click.Choice(["kubernetes", "plain", "graph"]),
    default="kubernetes",
    show_default=True,
    help="Whose functions and rules.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Form of the result."
)
@click.option(
    "--explain", is_flag=True, help="Say what it reads, costs and becomes; on stderr, after the result."
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

    The result goes to stdout. What is wrong with an expression is shown with
    the place it is wrong at.
    """
    variables = _object(given) if given else {}
    declared = _declared(_object(schema)) if schema else {}
    setting = _environment(ENVIRONMENTS[environment], variables, declared)
    if environment == "graph":
        # Nobody says which place of a graph this is for.
        setting = setting.extend(libraries=(OMIT, CONDITIONS))
    try:
        program = compile_expression(expression, setting, sizes=_Sizes(declared))
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
        loaded = load_yaml(data)
    except (OSError, YamlError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {file}: {why}") from None
    if not isinstance(loaded, dict):
        raise SettingsError(f"{file} does not hold an object", hint="each of its fields is a variable")
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
    """How large variables can be, by their schemas."""

    def __init__(self, declared: Mapping[str, Declared]) -> None:
        self._declared = declared

    def __call__(self, node: CostNode) -> Span | None:
        found = self._declared.get(node.path[0]) if node.path else None
        return found.sizes(node) if found is not None else None


def _shown(value: Any, output: str) -> str:
    plain = exported(value, encode_bytes=True)
    if output == "text" and isinstance(plain, str):
        return plain
    option = orjson.OPT_INDENT_2 if output == "text" else 0
    return orjson.dumps(plain, option=option | orjson.OPT_NON_STR_KEYS).decode()


def _explain(program: Program, variables: Mapping[str, Any]) -> None:
    checked, environment = program.checked, program.environment
    looked = reads(checked, environment)
    bounds = estimate(checked, environment, program.sizes)
    lines = [
        ("type", str(checked.result)),
        ("reads", ", ".join(map(str, looked.paths)) or "nothing"),
        ("calls", ", ".join(looked.functions) or "nothing"),
        ("estimated cost", f"{bounds.least} to {'any' if bounds.most >= MOST else bounds.most}"),
        ("cost", str(program.run(variables).cost)),
    ]
    for label, text in lines:
        click.echo(f"{label + ':':16}{text}", err=True)
    click.echo(f"\n{_python(checked, environment)}", err=True)


def _python(checked: Checked, environment: Environment) -> str:
    try:
        return source_of(checked, environment)[0].rstrip()
    except (NotWorthIt, RecursionError):
        return "carried out step by step"
