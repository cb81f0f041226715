"""
Expressions of a definition: parsed first, for what they refer to, and compiled when all types are known.

A field holds one expression as its whole value, or a template: literals and expressions
that are strings, joined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from lamina.cel.ast import Call, Expr, Ident, Parsed, Select, walk
from lamina.cel.check import check
from lamina.cel.declarations import Environment, Variable
from lamina.cel.environment import GRAPH
from lamina.cel.errors import CompileError
from lamina.cel.library.kro_scoped import OMIT, pacing
from lamina.cel.parse import parse
from lamina.cel.program import Program
from lamina.cel.references import reads
from lamina.cel.schema import Declared
from lamina.cel.types import BOOL, Type, optional_of
from lamina.graph.graph import GraphError
from lamina.graph.pacing import is_ready, is_updated
from lamina.graph.problems import expression_problem, short
from lamina.graph.types import sizes_of

LANGUAGE = GRAPH.extend(libraries=[OMIT])
"""The language of templates; that `omit()` is allowed nowhere else is checked by name, for a better message."""
PACED = GRAPH.extend(libraries=[pacing(is_updated, is_ready)])
"""The language of propagateWhen."""
_PACING = frozenset(PACED.functions) - frozenset(GRAPH.functions)
_OPTIONAL_BOOL = optional_of(BOOL)


class Written(Struct, frozen=True):
    """
    A parsed expression: where it is written, and what it refers to.

    `unknown_functions` are those that the language does not have.
    """

    field: str
    text: str
    parsed: Parsed
    variables: tuple[str, ...]
    unknown_functions: tuple[str, ...]
    omits: bool

    def problem(self, message: str, name: str = "", remedy: str = "") -> GraphError:
        """Return the error of this expression, at the first use of a name, or at its root."""
        return expression_problem(self.field, message, self.parsed.source, self._position(name), remedy)

    def _position(self, name: str) -> int:
        for node in walk(self.parsed.expr):
            if (isinstance(node, Ident) and node.name == name) or (
                isinstance(node, Call) and node.function == name
            ):
                return node.at
        return self.parsed.expr.at


class Expression(Struct, frozen=True):
    """A compiled expression."""

    field: str
    text: str
    variables: tuple[str, ...]
    program: Program

    @property
    def type(self) -> Type:
        return self.program.result


def parsed(text: str, field: str, language: Environment = LANGUAGE) -> Written:
    """Return a parsed expression; raises GraphError."""
    try:
        found = parse(text, language)
    except CompileError as wrong:
        raise _compile_problem(field, text, wrong) from None
    calls = [node for node in walk(found.expr) if isinstance(node, Call)]
    unknown = dict.fromkeys(name for call in calls if (name := _unknown_function(call, language)))
    omits = any(call.function == "omit" and call.target is None for call in calls)
    return Written(field, text, found, reads(found, language).variables, tuple(unknown), omits)


def compiled(written: Written, environment: Environment, variables: Mapping[str, Declared]) -> Expression:
    """Return an expression, compiled with the types of these variables; raises GraphError."""
    try:
        checked = check(written.parsed, environment)
    except CompileError as wrong:
        raise _compile_problem(written.field, written.text, wrong) from None
    program = Program(checked, environment, sizes_of(variables))
    return Expression(written.field, written.text, written.variables, program)


def declaring(language: Environment, variables: Mapping[str, Declared]) -> Environment:
    """Return a language with these variables."""
    return language.extend(variables=[Variable(name, one.type) for name, one in variables.items()])


def check_references(
    written: Written, allowed: Collection[str], prefix: str = "", *, functions: Collection[str] = ()
) -> None:
    """
    Raise GraphError where an expression refers to anything but these variables and known functions.

    `functions` are known beside those of the language.
    """
    unknown = [name for name in written.variables if name not in allowed]
    if unknown:
        # The arguments of its functions are no variables.
        unknown = ["runtime"] if "runtime" in unknown else unknown
        message = f"{prefix}references unknown identifiers: [{', '.join(unknown)}]"
        remedy = f"known here: {', '.join(sorted(allowed))}" if allowed else ""
        raise written.problem(message, unknown[0], remedy)
    strange = [name for name in written.unknown_functions if name not in functions]
    if strange:
        raise written.problem(f"{prefix}uses unknown functions: [{', '.join(strange)}]", strange[0])


def check_does_not_omit(written: Written) -> None:
    """Raise GraphError where an expression that is not in a template uses `omit()`."""
    if written.omits:
        raise written.problem("omit() can only be used in resource template expressions", "omit")


def check_paced(written: Written, allowed: Collection[str], prefix: str = "") -> None:
    """Raise GraphError where a propagateWhen refers to anything but these variables and known functions."""
    check_does_not_omit(written)
    check_references(written, allowed, prefix, functions=_PACING)


def check_is_bool(written: Written, found: Expression, where: str) -> None:
    """Raise GraphError where a condition does not return a bool."""
    if found.type not in (BOOL, _OPTIONAL_BOOL):
        message = (
            f'{where}: expression "{short(found.text)}" must return bool or optional_type(bool), '
            f'but returns "{found.type}"'
        )
        remedy = "compare it with true" if found.type.is_dyn else "compare it with a value"
        raise written.problem(message, "", remedy)


def _compile_problem(field: str, text: str, wrong: CompileError) -> GraphError:
    issue = wrong.issues[0]
    message = f'expression "{short(text)}": {issue.message}'
    return expression_problem(field, message, wrong.source, issue.at, issue.suggestion or "")


def _unknown_function(call: Call, language: Environment) -> str:
    """Return the name of a called function that the language does not have, empty for a known one."""
    name = call.function
    if not name[:1].isalpha() or name in language.functions:
        return ""
    for qualified in _qualified(call):
        if qualified in language.functions:
            return ""
    return name


def _qualified(call: Call) -> Iterator[str]:
    """Yield `a.b.f` for a call of `f` on `a.b`."""
    parts: list[str] = [call.function]
    node: Expr | None = call.target
    while isinstance(node, Select):
        parts.append(node.field)
        node = node.operand
    if isinstance(node, Ident):
        yield ".".join(reversed([*parts, node.name]))
