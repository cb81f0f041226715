"""
Assigns types and references to all nodes of an expression.

The algorithm is cel-go's, including the order of the walk, because the order
decides the binding of type parameters and which of several errors is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from lamina.cel.ast import (
    AND,
    OR,
    Call,
    Comprehension,
    Expr,
    Ident,
    Literal,
    LiteralKind,
    MakeList,
    MakeMap,
    MakeStruct,
    Parsed,
    Reference,
    Select,
)
from lamina.cel.check.names import Names, closest_name
from lamina.cel.check.overloads import Overloads
from lamina.cel.check.unify import Substitution, most_general
from lamina.cel.declarations import Environment, Function
from lamina.cel.errors import Issue
from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    ObjectType,
    Type,
    list_of,
    map_of,
    optional_of,
)

_LITERALS: Final = {
    LiteralKind.BOOL: BOOL,
    LiteralKind.BYTES: BYTES,
    LiteralKind.DOUBLE: DOUBLE,
    LiteralKind.INT: INT,
    LiteralKind.NULL: NULL,
    LiteralKind.STRING: STRING,
    LiteralKind.UINT: UINT,
}
_DYN, _ERROR, _LIST, _MAP, _NULL, _OBJECT, _PARAM, _TYPE = (
    *(Kind.DYN, Kind.ERROR, Kind.LIST, Kind.MAP, Kind.NULL, Kind.OBJECT, Kind.PARAM, Kind.TYPE),
)
_OPTIONAL_FIELD: Final = Reference(overloads=("select_optional_field",))


class Checker:
    """Checks one expression; the results are in `types`, `references`, `resolved` and `issues`."""

    def __init__(self, parsed: Parsed, environment: Environment) -> None:
        self._parsed, self._environment = parsed, environment
        self._names = Names(environment)
        self._substitution = Substitution()
        self._overloads = Overloads(environment, self._substitution)
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self.resolved: dict[int, Expr] = {}
        self.issues: list[Issue] = []

    def check(self, expr: Expr) -> Type:
        """Return the type of an expression, which may contain type parameters."""
        found = _METHODS[type(expr)](self, expr)
        self.types[expr.id] = found
        return found

    def resolve_type_parameters(self) -> None:
        """Replace all remaining type parameters."""
        if not self._overloads.made_parameters:
            return
        types, resolved_types = self.types, dict[int, Type]()
        for id_, found in types.items():
            if not found.code:
                # Equal types are resolved once: loops have many of them.
                known = resolved_types.get(id(found))
                if known is None:
                    known = resolved_types[id(found)] = self._substitution.resolve(found, to_dyn=True)
                types[id_] = known

    def _report(self, at: int, message: str, suggestion: str | None = None) -> None:
        self.issues.append(Issue(at, message, suggestion))

    def _mismatch(self, at: int, expected: Type, actual: Type) -> None:
        self._report(at, f"expected type '{expected}' but found '{actual}'")

    def _undeclared(self, at: int, name: str, suggestion: str | None) -> Type:
        container = self._environment.container
        self._report(at, f"undeclared reference to '{name}' (in container '{container}')", suggestion)
        return ERROR

    def _literal(self, expr: Literal) -> Type:
        return _LITERALS[expr.kind]

    def _ident(self, expr: Ident) -> Type:
        found = self._names.find(expr.name)
        if found is None:
            return self._undeclared(expr.at, expr.name, self._names.closest_variable(expr.name))
        name, type_, _, reference = found
        self.references[expr.id] = reference
        if name != expr.name and not (expr.name.startswith(".") and self._names.is_local(name)):
            self.resolved[expr.id] = Ident(expr.id, expr.at, name)
        return type_

    def _select(self, expr: Select) -> Type:
        chain = [expr]
        operand = expr.operand
        while type(operand) is Select:
            chain.append(operand)
            operand = operand.operand
        if type(operand) is Ident and self._names.may_be_prefix(operand.name):
            return self._qualified(expr)
        found, types = self.check(operand), self.types
        for select in reversed(chain):
            if found is not DYN or select.test_only or select.optional:
                found = self._field(select, found)
            types[select.id] = found
        return found

    def _qualified(self, expr: Select) -> Type:
        """Return the type of a selection that may be a qualified name."""
        name = self._names.qualified(expr)
        found = None if name is None else self._names.find(name)
        if found is None:
            operand = expr.operand
            return self._field(expr, self.check(operand))
        full, type_, _, reference = found
        self.references[expr.id] = reference
        self.resolved[expr.id] = Ident(expr.id, expr.at, full)
        return type_

    def _field(self, expr: Select, operand: Type) -> Type:
        if not operand.code:
            operand = self._substitution.resolve(operand)
        optional = operand.is_optional
        target = operand.params[0] if optional else operand
        kind = target.kind
        result = DYN
        if kind is _MAP:
            result = target.params[1]
        elif kind is _OBJECT:
            result = self._object_field(expr.at, target, expr.field, expr)
        elif kind is _PARAM:
            self._substitution.assignable(DYN, target)
        elif not target.is_dyn and kind is not _ERROR:
            self._report(expr.at, f"type '{target}' does not support field selection")
        if expr.test_only:
            return BOOL
        if expr.optional:
            self.references[expr.id] = _OPTIONAL_FIELD
        if optional or expr.optional:
            result = optional_of(result)
        return result if result.code else self._substitution.resolve(result)

    def _object_field(self, at: int, target: Type, name: str, selected: Select | None = None) -> Type:
        declared = self._environment.types.get(target.name, target)
        if not isinstance(declared, ObjectType) or declared.is_closed:
            self._report(at, f"unexpected failed resolution of '{target.name}'")
            return ERROR
        field = declared.fields.get(name)
        if field is not None:
            if field.key is not None and selected is not None:
                self.resolved[selected.id] = replace(selected, field=field.key)
            return field.type
        if declared.preserves_unknown:
            return DYN
        self._report(at, f"undefined field '{name}'", closest_name(name, declared.fields))
        return ERROR

    def _call(self, expr: Call) -> Type:
        args = [self.check(arg) for arg in expr.args]
        target = expr.target
        if target is None:
            function = self._names.function(expr.function)
            if function is None:
                return self._undeclared(expr.at, expr.function, self._names.closest_function(expr.function))
            if function.name != expr.function:
                self.resolved[expr.id] = Call(expr.id, expr.at, function.name, None, expr.args)
            return self._resolve_call(expr, function, args, member=False)
        prefix = self._names.qualified(target)
        if prefix is not None:
            function = self._names.function(f"{prefix}.{expr.function}")
            if function is not None:
                self.resolved[expr.id] = Call(expr.id, expr.at, function.name, None, expr.args)
                return self._resolve_call(expr, function, args, member=False)
        args.insert(0, self.check(target))
        function = self._names.function(expr.function)
        if function is None:
            return self._undeclared(expr.at, expr.function, self._names.closest_function(expr.function))
        return self._resolve_call(expr, function, args, member=True)

    def _resolve_call(self, expr: Call, function: Function, args: list[Type], *, member: bool) -> Type:
        """Return the type of a call, and record its overloads."""
        name = function.name
        if name in (AND, OR):
            return self._logic(expr, function, args)
        found = self._overloads.found(function, args, member=member)
        if found is None:
            shown = [str(self._substitution.resolve(arg, to_dyn=True)) for arg in args]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._report(expr.at, f"found no matching overload for '{name}' applied to '{signature}'")
            return ERROR
        self.references[expr.id] = found[1]
        return found[0]

    def _logic(self, expr: Call, function: Function, args: list[Type]) -> Type:
        failed = False
        for arg, found in zip(expr.args, args, strict=True):
            if found is not BOOL and not self._substitution.assignable(found, BOOL):
                self._mismatch(arg.at, BOOL, found)
                failed = True
        if failed:
            return ERROR
        cache = function.cache
        if AND not in cache:
            cache[AND] = Reference(overloads=(function.overloads[0].id,))
        self.references[expr.id] = cache[AND]
        return BOOL

    def _list(self, expr: MakeList) -> Type:
        if not expr.items:
            return self._overloads.unknown_list()
        joined: Type | None = None
        for place, item in enumerate(expr.items):
            found = self.check(item)
            if place in expr.optional_indices:
                found = self._unwrapped(item, found)
            joined = self._join(joined, found)
        assert joined is not None
        return list_of(joined)

    def _map(self, expr: MakeMap) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in expr.entries:
            keys = self._join(keys, self.check(entry.key))
            found = self.check(entry.value)
            if entry.optional:
                found = self._unwrapped(entry.value, found)
            values = self._join(values, found)
        if keys is None or values is None:
            return map_of(self._overloads.parameter(), self._overloads.parameter())
        return map_of(keys, values)

    def _struct(self, expr: MakeStruct) -> Type:
        found = self._names.find(expr.type_name)
        if found is None:
            return self._undeclared(
                expr.at, expr.type_name, closest_name(expr.type_name, self._environment.types)
            )
        name, type_, _, reference = found
        if name != expr.type_name:
            self.resolved[expr.id] = MakeStruct(expr.id, expr.at, name, expr.fields)
        self.references[expr.id] = reference
        result = ERROR
        if type_.kind is not _TYPE:
            self._report(expr.at, f"'{type_.name}' is not a type")
        elif type_.params and type_.params[0].kind is _OBJECT:
            result = type_.params[0]
        else:
            shown = type_.params[0].name if type_.params else type_.name
            self._report(expr.at, f"'{shown}' is not a message type")
        for field in expr.fields:
            value = self.check(field.value)
            wanted = ERROR
            if result is ERROR:
                self._report(field.at, f"unexpected failed resolution of '{name}'")
            else:
                wanted = self._object_field(field.at, result, field.name)
            if field.optional:
                value = self._unwrapped(field.value, value)
            if not self._substitution.assignable(wanted, value):
                self._report(
                    field.at,
                    f"expected type of field '{field.name}' is '{wanted}' but provided type is '{value}'",
                )
        return result

    def _comprehension(self, expr: Comprehension) -> Type:
        range_, accumulated = self.check(expr.iter_range), self.check(expr.accu_init)
        first, second = self._loop_types(expr, self._substitution.resolve(range_))
        self._names.enter(expr.accu_var, accumulated)
        self._names.enter(expr.iter_var, first, expr.iter_var2, second)
        self._assert(expr.loop_condition, BOOL, self.check(expr.loop_condition))
        self._assert(expr.loop_step, accumulated, self.check(expr.loop_step))
        self._names.leave()
        result = self.check(expr.result)
        self._names.leave()
        return self._substitution.resolve(result)

    def _loop_types(self, expr: Comprehension, range_: Type) -> tuple[Type, Type]:
        """Return the types of the loop variables."""
        if range_.kind is _LIST:
            return (INT, range_.params[0]) if expr.iter_var2 else (range_.params[0], ERROR)
        if range_.kind is _MAP:
            return range_.params[0], range_.params[1]
        if range_.kind is _DYN:
            return DYN, DYN
        if range_.kind is _ERROR or range_.kind is _PARAM:
            self._substitution.assignable(DYN, range_)
            return DYN, DYN
        self._report(
            expr.iter_range.at,
            f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _assert(self, expr: Expr, wanted: Type, found: Type) -> None:
        if wanted is not found and not self._substitution.assignable(wanted, found):
            self._mismatch(expr.at, wanted, found)

    def _unwrapped(self, expr: Expr, found: Type) -> Type:
        """Return the value type of an optional; an item with a question mark must be one."""
        if found.is_optional:
            return found.params[0]
        if not found.is_dyn:
            self._mismatch(expr.at, optional_of(found), found)
        return found

    def _join(self, before: Type | None, found: Type) -> Type:
        """Return the common type of two items of a literal."""
        if before is None:
            return found
        if not self._substitution.assignable(before, found):
            return DYN
        # The specification keeps the nullable type; cel-go, and so Kubernetes, takes null.
        if found.kind is _NULL and not self._environment.flags.homogeneous_literals:
            return before
        return most_general(before, found)


_METHODS: Final[dict[type[Any], Callable[[Checker, Any], Type]]] = {
    Literal: Checker._literal,
    Ident: Checker._ident,
    Select: Checker._select,
    Call: Checker._call,
    MakeList: Checker._list,
    MakeMap: Checker._map,
    MakeStruct: Checker._struct,
    Comprehension: Checker._comprehension,
}
