"""
What type every part of an expression has, and what its names mean.

The algorithm is cel-go's, down to the order in which things are looked at,
because the order decides what type parameters become and which of several
complaints is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

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
from lamina.cel.check.names import Names, near, reference
from lamina.cel.check.unify import Substitution, most_general, same
from lamina.cel.declare import Environment, Function, Overload
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
_SIMPLE: Final = frozenset(
    {
        Kind.BOOL,
        Kind.BYTES,
        Kind.DOUBLE,
        Kind.DURATION,
        Kind.DYN,
        Kind.INT,
        Kind.NULL,
        Kind.STRING,
        Kind.TIMESTAMP,
    }
    | {Kind.UINT}
)
"""Types without parameters, of which there are only so many."""
_NUMBERS: Final = frozenset({Kind.INT, Kind.UINT, Kind.DOUBLE})


class Checker:
    """Checks one expression; what it learns is in `types`, `references`, `meant` and `issues`."""

    def __init__(self, parsed: Parsed, environment: Environment) -> None:
        self._parsed, self._environment = parsed, environment
        self._names = Names(environment)
        self._substitution = Substitution()
        self._fresh = 0
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self.meant: dict[int, Expr] = {}
        self.issues: list[Issue] = []

    def check(self, expr: Expr) -> Type:
        """Return the type of an expression, with type parameters still in it."""
        found = _METHODS[type(expr)](self, expr)
        self.types[expr.id] = found
        return found

    def settle(self) -> None:
        """Replace what is left of type parameters in all types found."""
        resolve = self._substitution.resolve
        for id_, found in self.types.items():
            if found.params or found.kind is Kind.PARAM:
                self.types[id_] = resolve(found, to_dyn=True)

    def _complain(self, at: int, message: str, suggestion: str | None = None) -> None:
        self.issues.append(Issue(at, message, suggestion))

    def _mismatch(self, at: int, expected: Type, actual: Type) -> None:
        self._complain(at, f"expected type '{expected}' but found '{actual}'")

    def _undeclared(self, at: int, name: str, suggestion: str | None) -> Type:
        container = self._environment.container
        self._complain(at, f"undeclared reference to '{name}' (in container '{container}')", suggestion)
        return ERROR

    def _literal(self, expr: Literal) -> Type:
        return _LITERALS[expr.kind]

    def _ident(self, expr: Ident) -> Type:
        found = self._names.find(expr.name)
        if found is None:
            return self._undeclared(expr.at, expr.name, self._names.near_variable(expr.name))
        name, type_, constant = found
        self.references[expr.id] = reference(name, constant)
        if name != expr.name and not (expr.name.startswith(".") and self._names.is_local(name)):
            self.meant[expr.id] = Ident(expr.id, expr.at, name)
        return type_

    def _select(self, expr: Select) -> Type:
        name = self._names.qualified(expr)
        if name is not None:
            found = self._names.find(name)
            if found is not None:
                full, type_, constant = found
                self.references[expr.id] = reference(full, constant)
                self.meant[expr.id] = Ident(expr.id, expr.at, full)
                return type_
        found_type = self._field(expr)
        if expr.test_only:
            return BOOL
        if expr.optional:
            self.references[expr.id] = Reference(overloads=("select_optional_field",))
        return self._substitution.resolve(found_type)

    def _field(self, expr: Select) -> Type:
        operand = self._substitution.resolve(self.check(expr.operand))
        target = operand.params[0] if operand.is_optional else operand
        kind = target.kind
        result = ERROR
        if kind is Kind.MAP:
            result = target.params[1]
        elif kind is Kind.OBJECT:
            result = self._object_field(expr.at, target, expr.field, expr)
        elif kind is Kind.PARAM:
            self._substitution.assignable(DYN, target)
            result = DYN
        else:
            if not target.is_dyn and kind is not Kind.ERROR:
                self._complain(expr.at, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if operand.is_optional or expr.optional else result

    def _object_field(self, at: int, target: Type, name: str, selected: Select | None = None) -> Type:
        declared = self._environment.types.get(target.name, target)
        if not isinstance(declared, ObjectType) or declared.is_closed:
            self._complain(at, f"unexpected failed resolution of '{target.name}'")
            return ERROR
        field = declared.fields.get(name)
        if field is not None:
            if field.key is not None and selected is not None:
                self.meant[selected.id] = replace(selected, field=field.key)
            return field.type
        if declared.preserves_unknown:
            return DYN
        self._complain(at, f"undefined field '{name}'", near(name, declared.fields))
        return ERROR

    def _call(self, expr: Call) -> Type:
        args = [self.check(arg) for arg in expr.args]
        if expr.target is None:
            function = self._names.function(expr.function)
            if function is None:
                return self._undeclared(expr.at, expr.function, self._names.near_function(expr.function))
            if function.name != expr.function:
                self.meant[expr.id] = Call(expr.id, expr.at, function.name, None, expr.args)
            return self._resolve(expr, function, args, member=False)
        prefix = self._names.qualified(expr.target)
        if prefix is not None:
            function = self._names.function(f"{prefix}.{expr.function}")
            if function is not None:
                self.meant[expr.id] = Call(expr.id, expr.at, function.name, None, expr.args)
                return self._resolve(expr, function, args, member=False)
        target = self.check(expr.target)
        function = self._names.function(expr.function)
        if function is None:
            return self._undeclared(expr.at, expr.function, self._names.near_function(expr.function))
        return self._resolve(expr, function, [target, *args], member=True)

    def _resolve(self, expr: Call, function: Function, args: list[Type], *, member: bool) -> Type:
        """Find the overloads a call may reach; the type of the call is theirs, or dyn where they differ."""
        if function.name in (AND, OR):
            return self._logic(expr, function, args)
        simple = all(arg.kind in _SIMPLE and not arg.nullable for arg in args)
        compares = self._environment.flags.cross_type_numeric_comparisons
        key = (member, compares, *args)
        if simple and key in function.memory:
            found, known, used = function.memory[key]
            self._fresh += used
            self.references[expr.id] = known
            return cast(Type, found)
        before = self._fresh
        result, reached = self._overloads(function, args, member, compares)
        if result is None:
            shown = [str(self._substitution.resolve(arg, to_dyn=True)) for arg in args]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._complain(
                expr.at, f"found no matching overload for '{function.name}' applied to '{signature}'"
            )
            return ERROR
        known = self.references[expr.id] = Reference(overloads=tuple(reached))
        if simple and result.kind in _SIMPLE:
            function.memory[key] = (result, known, self._fresh - before)
        return result

    def _overloads(
        self, function: Function, args: list[Type], member: bool, compares: bool
    ) -> tuple[Type | None, list[str]]:
        result: Type | None = None
        reached: list[str] = []
        for overload in function.members if member else function.globals:
            if len(overload.params) != len(args):
                self._fresh += len(overload.type_params)
                continue
            if not compares and _compares_across(function.name, overload):
                continue
            params, answer = overload.params, overload.result
            if overload.type_params:
                fresh = {name: self._parameter() for name in overload.type_params}
                params = tuple([_instance(param, fresh) for param in params])
                answer = _instance(answer, fresh)
            if not self._substitution.assignable_all(args, params):
                continue
            reached.append(overload.id)
            found = self._substitution.resolve(answer)
            if result is None:
                result = found
            elif not result.is_dyn and not same(found, result):
                result = DYN
        return result, reached

    def _logic(self, expr: Call, function: Function, args: list[Type]) -> Type:
        failed = False
        for arg, found in zip(expr.args, args, strict=True):
            if not self._substitution.assignable(found, BOOL):
                self._mismatch(arg.at, BOOL, found)
                failed = True
        if failed:
            return ERROR
        self.references[expr.id] = Reference(overloads=(function.overloads[0].id,))
        return BOOL

    def _list(self, expr: MakeList) -> Type:
        joined: Type | None = None
        for place, item in enumerate(expr.items):
            found = self.check(item)
            if place in expr.optional_indices:
                found = self._unwrapped(item, found)
            joined = self._join(joined, found)
        return list_of(self._parameter() if joined is None else joined)

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
            return map_of(self._parameter(), self._parameter())
        return map_of(keys, values)

    def _struct(self, expr: MakeStruct) -> Type:
        found = self._names.find(expr.type_name)
        if found is None:
            return self._undeclared(expr.at, expr.type_name, near(expr.type_name, self._environment.types))
        name, type_, _ = found
        if name != expr.type_name:
            self.meant[expr.id] = MakeStruct(expr.id, expr.at, name, expr.fields)
        self.references[expr.id] = Reference(name=name)
        result = ERROR
        if type_.kind is not Kind.TYPE:
            self._complain(expr.at, f"'{type_.name}' is not a type")
        elif type_.params and type_.params[0].kind is Kind.OBJECT:
            result = type_.params[0]
        else:
            shown = type_.params[0].name if type_.params else type_.name
            self._complain(expr.at, f"'{shown}' is not a message type")
        for field in expr.fields:
            value = self.check(field.value)
            wanted = ERROR
            if result is ERROR:
                self._complain(field.at, f"unexpected failed resolution of '{name}'")
            else:
                wanted = self._object_field(field.at, result, field.name)
            if field.optional:
                value = self._unwrapped(field.value, value)
            if not self._substitution.assignable(wanted, value):
                self._complain(
                    field.at,
                    f"expected type of field '{field.name}' is '{wanted}' but provided type is '{value}'",
                )
        return result

    def _comprehension(self, expr: Comprehension) -> Type:
        self.check(expr.iter_range)
        accumulated = self.check(expr.accu_init)
        range_ = self._substitution.resolve(self.types[expr.iter_range.id])
        first, second = self._loop_types(expr, range_)
        self._names.enter({expr.accu_var: accumulated})
        self._names.enter({expr.iter_var: first, **({expr.iter_var2: second} if expr.iter_var2 else {})})
        condition = self.check(expr.loop_condition)
        self._assert(expr.loop_condition, BOOL, condition)
        step = self.check(expr.loop_step)
        self._assert(expr.loop_step, accumulated, step)
        self._names.leave()
        result = self.check(expr.result)
        self._names.leave()
        return self._substitution.resolve(result)

    def _loop_types(self, expr: Comprehension, range_: Type) -> tuple[Type, Type]:
        """Return the types of a loop's variables."""
        if range_.kind is Kind.LIST:
            return (INT, range_.params[0]) if expr.iter_var2 else (range_.params[0], ERROR)
        if range_.kind is Kind.MAP:
            return range_.params[0], range_.params[1]
        if range_.kind in (Kind.DYN, Kind.ERROR, Kind.PARAM):
            self._substitution.assignable(DYN, range_)
            return DYN, DYN
        self._complain(
            expr.iter_range.at,
            f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _assert(self, expr: Expr, wanted: Type, found: Type) -> None:
        if not self._substitution.assignable(wanted, found):
            self._mismatch(expr.at, wanted, found)

    def _unwrapped(self, expr: Expr, found: Type) -> Type:
        """Return what an optional holds; an item marked with a question mark must be one."""
        if found.is_optional:
            return found.params[0]
        if not found.is_dyn:
            self._mismatch(expr.at, optional_of(found), found)
        return found

    def _join(self, before: Type | None, found: Type) -> Type:
        """Return one type for two items of a literal."""
        if before is None:
            return found
        if not self._substitution.assignable(before, found):
            return DYN
        # The specification keeps the type that may be null; cel-go, and so Kubernetes, makes it null.
        if found.kind is Kind.NULL and not self._environment.flags.homogeneous_literals:
            return before
        return most_general(before, found)

    def _parameter(self) -> Type:
        self._fresh += 1
        return Type(Kind.PARAM, f"_var{self._fresh - 1}")


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


def _instance(type_: Type, fresh: dict[str, Type]) -> Type:
    """Return a type with a signature's parameters replaced by ones nobody has used."""
    if type_.kind is Kind.PARAM:
        return fresh[type_.name]
    if not type_.params:
        return type_
    return Type(
        type_.kind, type_.name, tuple([_instance(inner, fresh) for inner in type_.params]), type_.nullable
    )


def _compares_across(function: str, overload: Overload) -> bool:
    return (
        function in ("_<_", "_<=_", "_>_", "_>=_")
        and overload.params[0].kind in _NUMBERS
        and overload.params[1].kind in _NUMBERS
        and overload.params[0].kind is not overload.params[1].kind
    )
