"""
Compiles a checked expression to Python code that reads plain dicts and lists in place.

The code handles the common case: values have the types of their schema, and
nothing fails. Its results are always those of the interpreter, because guards cover
all cases where Python's semantics differ from CEL's, and after any exception the
expression is interpreted. Expressions have no side effects, so a second evaluation
is harmless, and the order of evaluation is free.

Where the two languages differ: `True == 1`, `1 + 1.5`, `'abc'[0]`, `x[-1]`,
unbounded integers, `and` of other values than bools, NaN in lists, keys of values that
are no maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lamina.cel import ast
from lamina.cel.ast import Checked, Expr
from lamina.cel.check.literals import literal_value
from lamina.cel.declarations import Environment
from lamina.cel.evaluate import codegen_calls, codegen_loops
from lamina.cel.evaluate.codegen_runtime import HELPERS
from lamina.cel.evaluate.coerce import Coercer, coercer
from lamina.cel.evaluate.cost import LIST_COST, MAP_COST
from lamina.cel.evaluate.plan import Planner, field_key
from lamina.cel.evaluate.structs import builder
from lamina.cel.evaluate.writer import NotGenerated, Piece, Writer
from lamina.cel.types import DYN, Kind, Type
from lamina.cel.values import TypeValue, Value

Generated = Callable[[Mapping[str, Value]], Value]
Counted = Callable[[Mapping[str, Value], int], tuple[Value, int]]

LITERAL_KINDS: Final = {
    ast.LiteralKind.INT: Kind.INT,
    ast.LiteralKind.UINT: Kind.UINT,
    ast.LiteralKind.DOUBLE: Kind.DOUBLE,
    ast.LiteralKind.STRING: Kind.STRING,
    ast.LiteralKind.BYTES: Kind.BYTES,
    ast.LiteralKind.BOOL: Kind.BOOL,
    ast.LiteralKind.NULL: Kind.NULL,
}
_READS: Final = frozenset({ast.INDEX, ast.OPTIONAL_INDEX, ast.CONDITIONAL})


def source_of(
    checked: Checked, environment: Environment, *, counts: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return the Python code of an expression, and the values it refers to; raises NotGenerated."""
    generator = Generator(checked, environment, counts=counts)
    result = generator.piece(checked.expr)
    return generator.write.source(result.code), generator.write.values


def generate(checked: Checked, environment: Environment) -> Generated | None:
    """Return a function of an expression's variables, None where it has to be interpreted."""
    made: Generated | None = _made(checked, environment, counts=False)
    return made


def generate_counted(checked: Checked, environment: Environment) -> Counted | None:
    """
    Return a function of the variables and the cost limit, None where it has to be interpreted.

    It returns the value and exactly the cost that the interpreter counts, or
    raises CostExceeded.
    """
    made: Counted | None = _made(checked, environment, counts=True)
    return made


def _made(checked: Checked, environment: Environment, *, counts: bool) -> Any:
    try:
        source, values = source_of(checked, environment, counts=counts)
        namespace: dict[str, Any] = {**HELPERS, **values}
        exec(compile(source, "<expression>", "exec", dont_inherit=True), namespace)
    except (NotGenerated, SyntaxError, RecursionError, MemoryError, OverflowError):
        # Python has its own nesting limits; beyond them, the interpreter evaluates.
        return None
    return namespace["carry_out"]


class Generator:
    """Generates the code of one expression."""

    def __init__(self, checked: Checked, environment: Environment, *, counts: bool = False) -> None:
        self.checked = checked
        self.environment = environment
        self.strict = environment.flags.strict_values
        self.write = Writer(counts=counts)
        self.locals: dict[str, Piece] = {}
        self.given: dict[int, Piece] = {}
        """Subexpressions whose code has been written and named already, by id."""
        self.constants: dict[int, Value] = {}
        if counts:
            self.planner = Planner(checked, environment)
            self.planner.plan(checked.expr)
            self.constants = self.planner.constants

    def type(self, expr: Expr) -> Type:
        return self.checked.types.get(expr.id, DYN)

    def kind(self, expr: Expr) -> Kind:
        return self.type(expr).kind

    def piece(self, expr: Expr) -> Piece:
        """Return code for an expression; lines it needs before are written."""
        self.charge_read(expr)
        return self.read(expr)

    def charge_read(self, expr: Expr) -> None:
        """Count the cost of reading an attribute."""
        if self.write.counts and self._is_read(expr) and not self._is_chosen(expr):
            self.write.charge(1)

    def read(self, expr: Expr) -> Piece:
        """Return code for an operand, without the cost of its variable."""
        if expr.id in self.given:
            return self.given[expr.id]
        if expr.id in self.constants:
            return self._constant(expr, self.constants[expr.id])
        return self.write.shallow(self._piece(expr))

    def _constant(self, expr: Expr, value: Value) -> Piece:
        if not isinstance(value, (list, dict)):
            return Piece(self.write.value(value), None, 0, simple=True)
        # Built for each evaluation, without cost: callers may change the result.
        with self.write.uncounted():
            return self._piece(expr)

    def _is_read(self, expr: Expr) -> bool:
        """Say whether an expression is an attribute."""
        if expr.id in self.constants or expr.id in self.given:
            return False
        if isinstance(expr, ast.Select):
            return not expr.test_only
        return isinstance(expr, ast.Ident) or (isinstance(expr, ast.Call) and expr.function in _READS)

    def _is_chosen(self, expr: Expr) -> bool:
        """Say whether an attribute starts with a conditional."""
        while self._is_read(expr):
            if isinstance(expr, ast.Select):
                expr = expr.operand
            elif isinstance(expr, ast.Call) and expr.function != ast.CONDITIONAL:
                expr = expr.args[0]
            else:
                return isinstance(expr, ast.Call)
        return False

    def _piece(self, expr: Expr) -> Piece:
        match expr:
            case ast.Literal():
                return self.literal(expr)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                return codegen_calls.call(self, expr)
            case ast.MakeList():
                return self._list(expr)
            case ast.MakeMap():
                return self._map(expr)
            case ast.MakeStruct():
                return self._struct(expr)
            case ast.Comprehension():
                return codegen_loops.loop(self, expr)

    def literal(self, expr: ast.Literal) -> Piece:
        value = literal_value(expr)
        kind = LITERAL_KINDS[expr.kind]
        if kind in (Kind.UINT, Kind.DOUBLE):
            return Piece(self.write.value(value), kind, 0, simple=True, literal=True)
        return Piece(repr(value), kind, 0, simple=True, literal=True)

    def _ident(self, expr: ast.Ident) -> Piece:
        reference = self.checked.references.get(expr.id)
        if reference is not None and reference.constant is not None:
            return self.literal(reference.constant)
        name = reference.name if reference is not None and reference.name else expr.name.removeprefix(".")
        if not expr.name.startswith(".") and name in self.locals:
            return self.locals[name]
        if self.kind(expr) is Kind.TYPE and name not in self.environment.variables:
            return Piece(self.write.value(TypeValue(name)), Kind.TYPE, 0, simple=True)
        return self._variable(name, self.coercer(expr))

    def _variable(self, name: str, coerce: Coercer | None) -> Piece:
        read = f"V[{name!r}]"
        return Piece(
            f"{self.write.value(coerce)}({read})" if coerce else read, None, 1, simple=coerce is None
        )

    def coercer(self, expr: Expr) -> Coercer | None:
        declared = self.type(expr)
        return coercer(declared.params[0] if declared.is_optional and declared.params else declared)

    def coerced(self, piece: Piece, expr: Expr) -> Piece:
        coerce = self.coercer(expr)
        if coerce is None:
            return piece
        return Piece(f"{self.write.value(coerce)}({piece.code})", None, piece.depth + 1)

    def _select(self, expr: ast.Select) -> Piece:
        if expr.test_only:
            return self._has(expr)
        if expr.optional or self.type(expr.operand).is_optional:
            raw = self.raw(expr)
            return Piece(f"wrapped({raw.code})", None, raw.depth + 1)
        operand = self.chosen(expr.operand)
        self.write.charge(1)
        key = field_key(self.type(expr.operand), expr.field)
        if operand.sure not in (None, Kind.MAP):
            # Python's compiler warns about code that always fails.
            raise NotGenerated
        # Other values than maps raise for a string key.
        return self.coerced(Piece(f"{operand.code}[{key!r}]", None, operand.depth), expr)

    def _has(self, expr: ast.Select) -> Piece:
        key = repr(field_key(self.type(expr.operand), expr.field))
        if self.write.counts and (self._is_chosen(expr.operand) or self.type(expr.operand).is_optional):
            raise NotGenerated
        if self.type(expr.operand).is_optional:
            raw, found = self.raw(expr.operand), self.write.name()
            code = f"(({key} in {found} if type({found}) is dict else bail_out()) if ({found} := {raw.code}) is not M else False)"
            return Piece(code, Kind.BOOL, raw.depth + 2)
        operand, found = self.chosen(expr.operand), self.write.name()
        self.write.charge(1)
        code = f"({key} in {found} if type({found} := {operand.code}) is dict else bail_out())"
        return Piece(code, Kind.BOOL, operand.depth + 1)

    def raw(self, expr: Expr) -> Piece:
        """Return code for the value of an optional, or M where it has none."""
        if isinstance(expr, ast.Select) and not expr.test_only:
            key = repr(field_key(self.type(expr.operand), expr.field))
            return self._raw_read(expr, expr.operand, key)
        if isinstance(expr, ast.Call) and expr.function in (ast.OPTIONAL_INDEX, ast.INDEX):
            key_expr = expr.args[1]
            if isinstance(key_expr, ast.Literal) and isinstance(key_expr.value, str):
                return self._raw_read(expr, expr.args[0], repr(key_expr.value))
        piece = self.chosen(expr)
        return Piece(f"unwrapped({piece.code})", None, piece.depth + 1)

    def chosen(self, expr: Expr) -> Piece:
        """Return code for an operand, or for a branch of a conditional."""
        return self.read(expr) if self._is_read(expr) else self.piece(expr)

    def _raw_read(self, expr: Expr, operand_expr: Expr, key: str) -> Piece:
        found = self.write.name()
        if self.type(operand_expr).is_optional:
            operand = self.raw(operand_expr)
            inner = f"({found}.get({key}, M) if type({found}) is dict else bail_out())"
            code, depth = f"({inner} if ({found} := {operand.code}) is not M else M)", operand.depth + 2
        else:
            operand = self.chosen(operand_expr)
            code = f"({found}.get({key}, M) if type({found} := {operand.code}) is dict else bail_out())"
            depth = operand.depth + 1
        coerce = self.coercer(expr)
        if coerce is not None:
            value = self.write.name()
            code = f"({self.write.value(coerce)}({value}) if ({value} := {code}) is not M else M)"
            depth += 2
        if self.write.counts:
            named = self.write.let(Piece(code, None, depth))
            self.write.line(f"if {named.code} is not M: C += 1")
            return named
        return self.write.shallow(Piece(code, None, depth))

    def _list(self, expr: ast.MakeList) -> Piece:
        items = [self.piece(item) for item in expr.items]
        self.write.charge(LIST_COST)
        depth = max((item.depth for item in items), default=0) + 1
        if not expr.optional_indices:
            return Piece(f"[{', '.join(item.code for item in items)}]", Kind.LIST, depth)
        parts = [f"({place in expr.optional_indices}, {item.code})" for place, item in enumerate(items)]
        return Piece(f"list_of({', '.join(parts)})", Kind.LIST, depth + 1)

    def _map(self, expr: ast.MakeMap) -> Piece:
        keys = [self.piece(entry.key) for entry in expr.entries]
        values = [self.piece(entry.value) for entry in expr.entries]
        self.write.charge(MAP_COST)
        depth = max((piece.depth for piece in (*keys, *values)), default=0) + 2
        written = [key.code for key in keys]
        plain = all(key.literal and key.sure is Kind.STRING for key in keys) and len(set(written)) == len(
            written
        )
        if plain and not any(entry.optional for entry in expr.entries):
            shown = ", ".join(f"{key.code}: {value.code}" for key, value in zip(keys, values, strict=True))
            return Piece(f"{{{shown}}}", Kind.MAP, depth)
        shown = "".join(
            f", ({entry.optional}, {key.code}, {value.code})"
            for entry, key, value in zip(expr.entries, keys, values, strict=True)
        )
        return Piece(f"map_of({self.strict}{shown})", Kind.MAP, depth)

    def _struct(self, expr: ast.MakeStruct) -> Piece:
        if self.write.counts or any(field.optional for field in expr.fields):
            raise NotGenerated
        reference = self.checked.references.get(expr.id)
        name = (
            reference.name if reference is not None and reference.name else expr.type_name.removeprefix(".")
        )
        values = [self.piece(field.value) for field in expr.fields]
        shown = ", ".join(
            f"{field.name!r}: {value.code}" for field, value in zip(expr.fields, values, strict=True)
        )
        depth = max((value.depth for value in values), default=0) + 2
        return Piece(f"{self.write.value(builder(name))}({{{shown}}})", None, depth)

    def truth(self, piece: Piece) -> str:
        """Return code that is True or False where a value is, and bails out otherwise."""
        if piece.sure is Kind.BOOL:
            return piece.code
        found = self.write.name()
        return f"({found} if ({found} := {piece.code}) is True or {found} is False else bail_out())"
