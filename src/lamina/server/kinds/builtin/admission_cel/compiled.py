"""A compiled policy: conditions, variables, validations and annotations, each a program or its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lamina.cel.cost.estimate import estimate
from lamina.cel.cost.size import MOST
from lamina.cel.declarations import Environment
from lamina.cel.errors import CompileError, ConstantError
from lamina.cel.program import Program, compile_expression
from lamina.cel.types import BOOL, DYN, NULL, STRING, Type
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.admission_cel.environment import environment
from lamina.server.kinds.builtin.admission_cel.variables import VARIABLES


class Expression(Struct, frozen=True, kw_only=True):
    """
    A compiled expression, or its error.

    `internal` means that kube-apiserver reports the problem as its own. `most` is the
    maximum cost of evaluation if that is so small that it need not be counted, else
    None.
    """

    text: str
    program: Program | None = None
    problem: str = ""
    internal: bool = False
    most: int | None = None


class Validation(Struct, frozen=True, kw_only=True):
    """One validation of a policy."""

    check: Expression
    message: Expression | None
    said: str
    """The message of a denial, unless the message expression returns one."""
    reason: str


class Compiled(Struct, frozen=True, kw_only=True):
    """The compiled expressions of a policy, in order."""

    conditions: Sequence[Expression]
    variables: Mapping[str, Expression]
    validations: Sequence[Validation]
    annotations: Sequence[Expression]


_LITTLE: Final = 1000
_CHECK: Final = (BOOL,)
_MESSAGE: Final = (STRING,)
_ANNOTATION: Final = (STRING, NULL)


def compile_policy(spec: Obj) -> Compiled:
    """Return the compiled expressions of a policy; errors are kept, not raised."""
    params = DYN if spec.get("paramKind") is not None else None
    conditions = compile_conditions(spec.get("matchConditions") or (), params=params)
    types: dict[str, Type] = {}
    variables: dict[str, Expression] = {}
    for one in spec.get("variables") or ():
        made = compiled(one.get("expression") or "", environment(params=params, variables=types))
        variables[one.get("name") or ""] = made
        types[one.get("name") or ""] = DYN if made.program is None else made.program.result
    inside = environment(params=params, variables=types)
    return Compiled(
        conditions=conditions,
        variables=variables,
        validations=[_validation(one, inside) for one in spec.get("validations") or ()],
        annotations=[
            compiled(one.get("valueExpression") or "", inside, _ANNOTATION)
            for one in spec.get("auditAnnotations") or ()
        ],
    )


def compile_conditions(found: Sequence[Obj], *, params: Type | None = None) -> list[Expression]:
    """Return the compiled match conditions of a policy or webhook."""
    if not found:
        return []
    known = environment(params=params)
    return [compiled(one.get("expression") or "", known, _CHECK) for one in found]


def _validation(written: Obj, inside: Environment) -> Validation:
    text, message = written.get("expression") or "", str(written.get("message") or "").strip()
    made = written.get("messageExpression") or ""
    return Validation(
        check=compiled(text, inside, _CHECK),
        message=compiled(made, inside, _MESSAGE) if made.strip() else None,
        said=message or f"failed expression: {text.strip()}",
        reason=written.get("reason") or "Invalid",
    )


def compiled(text: str, known: Environment, wanted: Sequence[Type] = ()) -> Expression:
    """Return an expression whose value has one of some types, or any type if none is given."""
    try:
        program = compile_expression(text, known)
    except ConstantError as error:
        return Expression(text=text, problem=f"program instantiation failed: {error}", internal=True)
    except CompileError as error:
        return Expression(text=text, problem=f"compilation failed: {error}")
    if wanted and program.result not in wanted:
        return Expression(text=text, problem=_mistyped(wanted, program.result))
    # Variables are evaluated on first use, and their cost is counted.
    most = MOST if VARIABLES in text else estimate(program.checked, known).most
    return Expression(text=text, program=program, most=most if most <= _LITTLE else None)


def _mistyped(wanted: Sequence[Type], found: Any) -> str:
    names = " ".join(one.name for one in wanted)
    must = f"must evaluate to one of [{names}]" if len(wanted) > 1 else f"must evaluate to {names}"
    return f"{must} but got {found}"
