"""Code for operators and calls; `codegen.py` has the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from lamina.cel import ast
from lamina.cel.declarations import Overload
from lamina.cel.evaluate.dispatch import CLASSES, Dispatch
from lamina.cel.evaluate.writer import NotGenerated, Piece
from lamina.cel.library import patterns
from lamina.cel.numbers import INT_MAX, INT_MIN
from lamina.cel.types import Kind, Type

if TYPE_CHECKING:
    from lamina.cel.evaluate.codegen import Generator

_CLASS_NAMES: Final = {
    Kind.BOOL: "bool",
    Kind.BYTES: "bytes",
    Kind.DOUBLE: "float",
    Kind.DURATION: "Duration",
    Kind.INT: "int",
    Kind.STRING: "str",
    Kind.TIMESTAMP: "Timestamp",
    Kind.UINT: "UInt",
    Kind.LIST: "list",
    Kind.MAP: "dict",
}
_SMALL: Final = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.DURATION, Kind.TIMESTAMP})
_ORDER: Final = {
    ast.LESS: ("<", "less"),
    ast.LESS_EQUALS: ("<=", "less_equal"),
    ast.GREATER: (">", "greater"),
    ast.GREATER_EQUALS: (">=", "greater_equal"),
}
_ARITHMETIC: Final = {
    ast.ADD: ("+", "add"),
    ast.SUBTRACT: ("-", "subtract"),
    ast.MULTIPLY: ("*", "multiply"),
    ast.DIVIDE: ("/", "divide"),
    ast.MODULO: ("%", "modulo"),
}
_ASKS: Final = {
    "startsWith": "{0}.startswith({1})",
    "endsWith": "{0}.endswith({1})",
    "contains": "({1} in {0})",
}


def call(gen: Generator, expr: ast.Call) -> Piece:
    """Return code for a call."""
    name = expr.function
    if name in (ast.AND, ast.OR):
        return _logic(gen, expr)
    if name == ast.CONDITIONAL:
        return _conditional(gen, expr)
    if name == ast.INDEX and not gen.type(expr.args[0]).is_optional:
        return _index(gen, expr)
    if name in (ast.INDEX, ast.OPTIONAL_INDEX):
        return _optional_index(gen, expr)
    if (of_optional := _optional_call(gen, expr)) is not None:
        return of_optional
    return _counted_call(gen, expr) if gen.write.counts else _plain(gen, expr)


def _counted_call(gen: Generator, expr: ast.Call) -> Piece:
    """Return code for a call that counts its cost."""
    if expr.function == ast.IN and gen.planner.is_free_membership(expr, gen.constants.get(expr.args[1].id)):
        return _plain(gen, expr)
    call_cost = None if _is_small(gen, expr) else gen.planner.call_cost(expr)
    if call_cost is None:
        gen.write.charge(1)
        return _plain(gen, expr)
    parts = ast.children(expr)
    args = [gen.write.let(gen.piece(part)) for part in parts]
    gen.given |= {part.id: arg for part, arg in zip(parts, args, strict=True)}
    answer = gen.write.let(_plain(gen, expr))
    shown = "".join(f"{arg.code}, " for arg in args)
    gen.write.charge_computed(f"{gen.write.value(call_cost)}(({shown}), {answer.code})")
    return answer


def _is_small(gen: Generator, expr: ast.Call) -> bool:
    """Say whether a call compares values without a length."""
    return expr.function in (ast.EQUALS, ast.NOT_EQUALS) and all(gen.kind(arg) in _SMALL for arg in expr.args)


def _plain(gen: Generator, expr: ast.Call) -> Piece:
    name = expr.function
    if name == ast.NOT:
        truth = gen.truth(operand := gen.piece(expr.args[0]))
        return Piece(f"(not {truth})", Kind.BOOL, operand.depth + 2)
    if name in (ast.EQUALS, ast.NOT_EQUALS):
        return _equality(gen, expr)
    if name in _ORDER:
        return _order(gen, expr)
    if name in _ARITHMETIC:
        return _arithmetic(gen, expr)
    if name == ast.NEGATE:
        operand = gen.piece(expr.args[0])
        return Piece(f"negate({operand.code})", operand.sure, operand.depth + 1)
    if name == ast.IN:
        return _membership(gen, expr)
    return _function(gen, expr)


def _optional_index(gen: Generator, expr: ast.Call) -> Piece:
    key = expr.args[1]
    if isinstance(key, ast.Literal) and isinstance(key.value, str):
        raw = gen.raw(expr)
        return Piece(f"wrapped({raw.code})", None, raw.depth + 1)
    if gen.write.counts or gen.strict or gen.coercer(expr) is not None:
        raise NotGenerated
    first, second = gen.piece(expr.args[0]), gen.piece(key)
    return Piece(f"optional_index({first.code}, {second.code})", None, max(first.depth, second.depth) + 1)


def _logic(gen: Generator, expr: ast.Call) -> Piece:
    both = expr.function == ast.AND
    left = gen.piece(expr.args[0])
    with gen.write.aside() as lines:
        right = gen.piece(expr.args[1])
        truth = gen.truth(right)
        if lines:
            result = gen.write.name("r")
            gen.write.line(f"{result} = {truth}")
    if not lines:
        depth = max(left.depth, right.depth) + 2
        return Piece(f"({gen.truth(left)} {'and' if both else 'or'} {truth})", Kind.BOOL, depth)
    gen.write.line(f"{result} = {gen.truth(left)}")
    gen.write.line(f"if {result if both else f'not {result}'}:")
    gen.write.add(lines)
    return Piece(result, Kind.BOOL, 0, simple=True)


def _conditional(gen: Generator, expr: ast.Call) -> Piece:
    condition = gen.piece(expr.args[0])
    result = gen.write.name("r")
    with gen.write.aside() as first_lines:
        first = gen.chosen(expr.args[1])
        first_plain = not first_lines
        gen.write.line(f"{result} = {first.code}")
    with gen.write.aside() as second_lines:
        second = gen.chosen(expr.args[2])
        second_plain = not second_lines
        gen.write.line(f"{result} = {second.code}")
    sure = first.sure if first.sure is second.sure else None
    if first_plain and second_plain:
        depth = max(condition.depth, first.depth, second.depth) + 2
        return Piece(f"({first.code} if {gen.truth(condition)} else {second.code})", sure, depth)
    gen.write.line(f"if {gen.truth(condition)}:")
    gen.write.add(first_lines)
    gen.write.line("else:")
    gen.write.add(second_lines)
    return Piece(result, sure, 0, simple=True)


def _equality(gen: Generator, expr: ast.Call) -> Piece:
    left, right = gen.piece(expr.args[0]), gen.piece(expr.args[1])
    depth = max(left.depth, right.depth) + 2
    negated = expr.function == ast.NOT_EQUALS
    same, helper = ("!=", "not_equal") if negated else ("==", "equal")
    sures = {left.sure, right.sure}
    if left.literal and right.literal:
        return Piece(f"{helper}({left.code}, {right.code})", Kind.BOOL, depth)
    if Kind.NULL in sures or Kind.BOOL in sures:
        return Piece(f"({left.code} {'is not' if negated else 'is'} {right.code})", Kind.BOOL, depth)
    if Kind.STRING in sures or Kind.BYTES in sures or sures in ({Kind.INT}, {Kind.DOUBLE}):
        # A string equals only a string, in both languages.
        return Piece(f"({left.code} {same} {right.code})", Kind.BOOL, depth)
    kinds = {gen.kind(expr.args[0]), gen.kind(expr.args[1])}
    if Kind.STRING in kinds:
        one, two = gen.write.name(), gen.write.name()
        either = f"(type({one} := {left.code}) is str) | (type({two} := {right.code}) is str)"
        return Piece(f"({one} {same} {two} if {either} else {helper}({one}, {two}))", Kind.BOOL, depth)
    if Kind.INT in kinds or Kind.INT in sures:
        return _on_integers(gen, left, right, f"{{0}} {same} {{1}}", helper, Kind.BOOL, depth)
    return Piece(f"{helper}({left.code}, {right.code})", Kind.BOOL, depth)


def _order(gen: Generator, expr: ast.Call) -> Piece:
    sign, helper = _ORDER[expr.function]
    left, right = gen.piece(expr.args[0]), gen.piece(expr.args[1])
    depth = max(left.depth, right.depth) + 2
    if Kind.STRING in (left.sure, right.sure) or Kind.BYTES in (left.sure, right.sure):
        # Python does not order a string and another type, and neither does CEL.
        return Piece(f"({left.code} {sign} {right.code})", Kind.BOOL, depth)
    return _on_integers(gen, left, right, f"{{0}} {sign} {{1}}", helper, Kind.BOOL, depth)


def _on_integers(
    gen: Generator, left: Piece, right: Piece, form: str, helper: str, sure: Kind | None, depth: int
) -> Piece:
    """Return code for an operation on two ints, which calls a helper for other types."""
    names, guards = [], []
    for piece in (left, right):
        if piece.sure is Kind.INT:
            names.append(piece.code if piece.simple else f"({piece.code})")
            continue
        name = gen.write.name()
        names.append(name)
        guards.append(f"(type({name} := {piece.code}) is int)")
    if not guards:
        return Piece(f"({form.format(*names)})", sure, depth)
    # `&` evaluates both guards, so that both names are assigned.
    otherwise = f"{helper}({', '.join(names)})" if helper else "bail_out()"
    return Piece(f"({form.format(*names)} if {' & '.join(guards)} else {otherwise})", sure, depth)


def _arithmetic(gen: Generator, expr: ast.Call) -> Piece:
    sign, helper = _ARITHMETIC[expr.function]
    left, right = gen.piece(expr.args[0]), gen.piece(expr.args[1])
    depth = max(left.depth, right.depth) + 2
    sures, declared = (left.sure, right.sure), gen.kind(expr)
    if sign == "+" and Kind.STRING in sures:
        return Piece(f"({left.code} + {right.code})", Kind.STRING, depth)
    if sign == "+" and declared is Kind.STRING:
        one, two = gen.write.name(), gen.write.name()
        both = f"(type({one} := {left.code}) is str) & (type({two} := {right.code}) is str)"
        return Piece(f"({one} + {two} if {both} else bail_out())", Kind.STRING, depth)
    if sures == (Kind.DOUBLE, Kind.DOUBLE) and sign in "+-*":
        return Piece(f"({left.code} {sign} {right.code})", Kind.DOUBLE, depth)
    if sign in "+-*" and declared is Kind.INT:
        total = gen.write.name()
        form = f"({total} if {INT_MIN} <= ({total} := {{0}} {sign} {{1}}) <= {INT_MAX} else bail_out())"
        return _on_integers(gen, left, right, form, "", Kind.INT, depth + 1)
    sure = declared if left.sure is right.sure is declared and declared in CLASSES else None
    return Piece(f"{helper}({left.code}, {right.code})", sure, depth)


def _membership(gen: Generator, expr: ast.Call) -> Piece:
    items = expr.args[1]
    if isinstance(items, ast.MakeList) and items.items and not items.optional_indices:
        values = [item.value for item in items.items if isinstance(item, ast.Literal)]
        if len(values) == len(items.items) and all(type(value) is str for value in values):
            item = gen.piece(expr.args[0])
            known = gen.write.value(frozenset(values))
            # All items are strings, and unhashable values raise.
            return Piece(f"({item.code} in {known})", Kind.BOOL, item.depth + 1)
    item, container = gen.piece(expr.args[0]), gen.piece(items)
    depth = max(item.depth, container.depth) + 2
    if item.sure is Kind.STRING and item.simple:
        found, kind = gen.write.name(), gen.write.name()
        code = (
            f"({item.code} in {found} if ({kind} := type({found} := {container.code})) is dict or {kind} is list "
            f"else is_in({item.code}, {found}))"
        )
        return Piece(code, Kind.BOOL, depth)
    return Piece(f"is_in({item.code}, {container.code})", Kind.BOOL, depth)


def _index(gen: Generator, expr: ast.Call) -> Piece:
    operand, key = gen.chosen(expr.args[0]), gen.chosen(expr.args[1])
    gen.write.charge(1)
    depth = max(operand.depth, key.depth) + 1
    if key.literal and key.sure is Kind.STRING:
        if operand.sure not in (None, Kind.MAP):
            raise NotGenerated
        return gen.coerced(Piece(f"{operand.code}[{key.code}]", None, depth), expr)
    found = gen.write.name()
    if key.literal and key.sure is Kind.INT and not key.code.startswith("-"):
        code = f"({found}[{key.code}] if type({found} := {operand.code}) is list else index({found}, {key.code}))"
    else:
        code = f"index({operand.code}, {key.code})"
    return gen.coerced(Piece(code, None, depth), expr)


def _optional_call(gen: Generator, expr: ast.Call) -> Piece | None:
    """Return code for methods of optionals, without creating them."""
    if expr.target is None or not gen.type(expr.target).is_optional:
        return None
    name, count = expr.function, len(expr.args)
    if (name, count) not in {("orValue", 1), ("or", 1), ("hasValue", 0), ("value", 0)}:
        return None
    gen.charge_read(expr.target)
    raw, found = gen.raw(expr.target), gen.write.name()
    if name in ("hasValue", "value"):
        gen.write.charge(1)
    if name == "hasValue":
        return Piece(f"({raw.code} is not M)", Kind.BOOL, raw.depth + 1)
    if name == "value":
        return Piece(f"({found} if ({found} := {raw.code}) is not M else bail_out())", None, raw.depth + 2)
    with gen.write.aside() as lines:
        if name == "orValue":
            other = gen.piece(expr.args[0])
        else:
            gen.charge_read(expr.args[0])
            other = gen.raw(expr.args[0])
        if lines:
            gen.write.line(f"{found} = {other.code}")
    if lines:
        gen.write.line(f"{found} = {raw.code}")
        gen.write.line(f"if {found} is M:")
        gen.write.add(lines)
        code, depth = found, 0
    else:
        code = f"({found} if ({found} := {raw.code}) is not M else {other.code})"
        depth = max(raw.depth, other.depth) + 2
    return Piece(code, None, depth) if name == "orValue" else Piece(f"wrapped({code})", None, depth + 1)


def _function(gen: Generator, expr: ast.Call) -> Piece:
    args = [gen.piece(arg) for arg in ast.children(expr)]
    depth = max((arg.depth for arg in args), default=0) + 2
    declared = gen.environment.functions.get(expr.function)
    found = declared.overloads if declared is not None else ()
    member = expr.target is not None
    candidates = [one for one in found if len(one.params) == len(args) and one.member is member]
    reference = gen.checked.references.get(expr.id)
    ids = reference.overloads if reference is not None else ()
    meant = [one for one in candidates if one.id in ids]
    if len(meant) == 1 and meant[0].implementation is not None:
        direct = _direct(gen, expr, meant[0], args, depth)
        if direct is not None:
            return direct
    if expr.function == "size" and len(args) == 1:
        name = gen.write.name()
        return Piece(
            f"(len({name}) if type({name} := {args[0].code}) in SIZED else bail_out())", Kind.INT, depth
        )
    dispatch = gen.write.value(Dispatch(expr.function, candidates))
    return Piece(f"{dispatch}({', '.join(arg.code for arg in args)})", None, depth)


def _direct(
    gen: Generator, expr: ast.Call, overload: Overload, args: list[Piece], depth: int
) -> Piece | None:
    """Return a direct call of an implementation, behind class guards for its parameters."""
    names, guards = [], []
    for piece, param in zip(args, overload.params, strict=True):
        if piece.sure is param.kind and param.kind in CLASSES:
            names.append(piece.code)
        elif (guarded := _guard(gen, piece, param)) is not None:
            names.append(guarded[0])
            guards += guarded[1]
        else:
            return None
    sure = overload.result.kind if overload.result.kind in CLASSES and not overload.result.nullable else None
    work = _work(gen, expr, overload, names)
    if not guards:
        return Piece(work, sure, depth)
    return Piece(f"({work} if {' and '.join(guards)} else bail_out())", sure, depth)


def _guard(gen: Generator, piece: Piece, param: Type) -> tuple[str, list[str]] | None:
    if param.kind in (Kind.PARAM, Kind.DYN):
        # Not a guard: another guard could skip the assignment of its name.
        return piece.code, []
    if param.kind not in _CLASS_NAMES or param.nullable:
        return None
    if param.kind in (Kind.LIST, Kind.MAP) and any(inner.kind is not Kind.PARAM for inner in param.params):
        return None
    name = gen.write.name()
    return name, [f"type({name} := {piece.code}) is {_CLASS_NAMES[param.kind]}"]


def _work(gen: Generator, expr: ast.Call, overload: Overload, names: list[str]) -> str:
    if expr.function == "size":
        return f"len({names[0]})"
    if expr.function in _ASKS and overload.id in (
        "starts_with_string",
        "ends_with_string",
        "contains_string",
    ):
        return _ASKS[expr.function].format(*names)
    if expr.function == "matches":
        pattern = expr.args[-1]
        if isinstance(pattern, ast.Literal) and isinstance(pattern.value, str):
            test: Callable[[str], bool] = patterns.tester(pattern.value)
            return f"{gen.write.value(test)}({names[0]})"
    implementation: Any = overload.implementation
    return f"{gen.write.value(implementation)}({', '.join(names)})"
