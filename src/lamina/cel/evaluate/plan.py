"""
Plans a checked expression as a tree of interpretables, as cel-go's planner does.

Constants are folded here: lists and maps of constants, and conversions of them. As in
Kubernetes, folded constants have no run-time cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.cel import ast, operators
from lamina.cel.ast import Checked, Expr
from lamina.cel.check.literals import literal_value
from lamina.cel.declarations import Environment, Overload
from lamina.cel.errors import EvaluationError
from lamina.cel.evaluate import interpretables
from lamina.cel.evaluate.activation import Interpretable, RootActivation
from lamina.cel.evaluate.attributes import (
    AbsoluteAttribute,
    Attribute,
    ConditionalAttribute,
    EvalAttribute,
    Qualifier,
    RelativeAttribute,
)
from lamina.cel.evaluate.coerce import Coercer, coercer
from lamina.cel.evaluate.cost import CallCost, call_cost
from lamina.cel.evaluate.dispatch import Dispatch
from lamina.cel.evaluate.structs import builder
from lamina.cel.macros import MAP_INSERT
from lamina.cel.types import DYN, Kind, ObjectType, Type
from lamina.cel.values import TypeValue, Value

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_EMPTY_ACTIVATION: Final = RootActivation({}, None)


class Planner:
    """Plans one expression. `locals` are the variables of the enclosing loops."""

    def __init__(self, checked: Checked, environment: Environment) -> None:
        self._checked = checked
        self._environment = environment
        # Kubernetes is more lenient than the specification about map keys and presence tests.
        self._strict = environment.flags.strict_values
        self._locals: list[set[str]] = []
        self._gathering: list[bool] = []
        self.constants: dict[int, Value] = {}
        """Folded constants that are not literals, by the id of the expression."""

    def plan(self, expr: Expr) -> Interpretable:
        match expr:
            case ast.Literal():
                return interpretables.Constant(literal_value(expr))
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                return self._call(expr)
            case ast.MakeList():
                return self._list(expr)
            case ast.MakeMap():
                return self._map(expr)
            case ast.MakeStruct():
                return self._struct(expr)
            case ast.Comprehension():
                return self._comprehension(expr)

    def _type(self, expr: Expr) -> Type:
        return self._checked.types.get(expr.id, DYN)

    def _coercer(self, expr: Expr) -> Coercer | None:
        declared = self._type(expr)
        return coercer(declared.params[0] if declared.is_optional and declared.params else declared)

    def _ident(self, expr: ast.Ident) -> Interpretable:
        reference = self._checked.references.get(expr.id)
        if reference is not None and reference.constant is not None:
            return self._constant(expr, literal_value(reference.constant))
        name = reference.name if reference is not None and reference.name else expr.name.removeprefix(".")
        if self._is_local(name) and not expr.name.startswith("."):
            return EvalAttribute(AbsoluteAttribute(expr.at, name, None))
        if self._type(expr).kind is Kind.TYPE and name not in self._environment.variables:
            return self._constant(expr, TypeValue(name))
        outermost = expr.name.startswith(".") and self._is_local(name)
        return EvalAttribute(
            AbsoluteAttribute(expr.at, f".{name}" if outermost else name, self._coercer(expr))
        )

    def _is_local(self, name: str) -> bool:
        return any(name in names for names in self._locals)

    def _read_from(self, operand: Expr) -> EvalAttribute:
        step = self.plan(operand)
        return (
            step
            if isinstance(step, EvalAttribute) and not step.test_only
            else EvalAttribute(RelativeAttribute(step))
        )

    def _select(self, expr: ast.Select) -> Interpretable:
        step = self._read_from(expr.operand)
        step.attribute.add(
            Qualifier(
                expr.at,
                field_key(self._type(expr.operand), expr.field),
                optional=expr.optional,
                test_only=expr.test_only,
                strict=self._strict,
                coerce=None if expr.test_only else self._coercer(expr),
            )
        )
        return EvalAttribute(step.attribute, test_only=True) if expr.test_only else step

    def _index(self, expr: ast.Call) -> Interpretable:
        step = self._read_from(expr.args[0])
        index = self.plan(expr.args[1])
        key: Any
        if isinstance(index, interpretables.Constant):
            key = index.value
        elif isinstance(index, EvalAttribute) and not index.test_only:
            key = index.attribute
        else:
            key = RelativeAttribute(index)
        optional = expr.function != ast.INDEX
        step.attribute.add(
            Qualifier(
                expr.at,
                key,
                optional=optional,
                test_only=False,
                strict=self._strict,
                coerce=self._coercer(expr),
            )
        )
        return step

    def _call(self, expr: ast.Call) -> Interpretable:
        name = expr.function
        if name == ast.INDEX or name == ast.OPTIONAL_INDEX:
            return self._index(expr)
        args = [self.plan(arg) for arg in ast.children(expr)]
        match name:
            case ast.AND | ast.OR:
                return interpretables.Logic(expr.at, args, decisive=name == ast.OR)
            case ast.CONDITIONAL:
                condition, truthy, falsy = args
                chosen = ConditionalAttribute(expr.at, condition, _attribute(truthy), _attribute(falsy))
                return EvalAttribute(chosen)
            case ast.NOT_STRICTLY_FALSE:
                return interpretables.NotStrictlyFalse(args[0])
            case "or" | "orValue" if expr.target is not None and self._is_optional_or(expr):
                return interpretables.OptionalOr(expr.at, args[0], args[1], unwraps=name == "orValue")
        return self._plain_call(expr, args)

    def _is_optional_or(self, expr: ast.Call) -> bool:
        ids = self._overload_ids(expr)
        return not ids or bool({"optional_or_optional", "optional_orValue_value"} & set(ids))

    def _overload_ids(self, expr: ast.Call) -> tuple[str, ...]:
        reference = self._checked.references.get(expr.id)
        return reference.overloads if reference is not None else ()

    def _plain_call(self, expr: ast.Call, args: list[Interpretable]) -> Interpretable:
        items = args[1].value if len(args) == 2 and isinstance(args[1], interpretables.Constant) else None
        if self.is_free_membership(expr, items):
            return (
                interpretables.Membership(args[0], items, operators.is_in)
                if items
                else self._constant(expr, False)
            )
        work = self._work(expr)
        if self._gathering and self._gathering[-1] and _adds_to_accumulator(expr):
            work = _IN_PLACE.get(expr.function, work)
        call = interpretables.Call(expr.at, args, work, self.call_cost(expr))
        if expr.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], interpretables.Constant):
            value = call.run(_EMPTY_ACTIVATION)
            if not isinstance(value, EvaluationError):
                return self._constant(expr, value)
        return call

    def _constant(self, expr: Expr, value: Value) -> Interpretable:
        self.constants[expr.id] = value
        return interpretables.Constant(value)

    def _folded(self, expr: Expr, made: Interpretable, parts: list[Interpretable]) -> Interpretable:
        if all(isinstance(part, interpretables.Constant) for part in parts):
            value = made.run(_EMPTY_ACTIVATION)
            if not isinstance(value, EvaluationError):
                return self._constant(expr, value)
        return made

    def is_free_membership(self, expr: ast.Call, items: Value) -> bool:
        """Say whether a call tests membership in a constant list, which has no cost in Kubernetes."""
        return self._overload_ids(expr) == ("in_list",) and _is_primitive(items)

    def call_cost(self, expr: ast.Call) -> CallCost | None:
        """Return the cost function of a call; None where it is always 1."""
        ids = self._overload_ids(expr)
        overload = ids[0] if len(ids) == 1 else ""
        if expr.function in (ast.EQUALS, ast.NOT_EQUALS):
            overload = "equals" if expr.function == ast.EQUALS else "not_equals"
        declared = None
        if expr.function not in operators.BINARY and expr.function not in operators.UNARY:
            candidates = self._candidates(expr)
            meant = [one for one in candidates if one.id in ids] if ids else candidates
            # With several possible overloads, the cost of none of them applies.
            declared = meant[0].cost if len(meant) == 1 else None
        kubernetes = self._environment.flags.kubernetes_costs
        return call_cost(expr.function, overload, declared, kubernetes=kubernetes)

    def _work(self, expr: ast.Call) -> Callable[..., Value]:
        if expr.function in operators.BINARY and len(expr.args) == 2:
            return operators.BINARY[expr.function]
        if expr.function in operators.UNARY and len(expr.args) == 1:
            return operators.UNARY[expr.function]
        return Dispatch(expr.function, self._candidates(expr))

    def _candidates(self, expr: ast.Call) -> list[Overload]:
        """Return the overloads of a call with its number of arguments, member or global."""
        declared = self._environment.functions.get(expr.function)
        count, member = len(expr.args) + (expr.target is not None), expr.target is not None
        found = declared.overloads if declared is not None else ()
        return [one for one in found if len(one.params) == count and one.member is member]

    def _list(self, expr: ast.MakeList) -> Interpretable:
        items = [self.plan(item) for item in expr.items]
        made = interpretables.MakeList(expr.at, items, expr.optional_indices)
        return self._folded(expr, made, items)

    def _map(self, expr: ast.MakeMap) -> Interpretable:
        entries = [
            (self.plan(entry.key), self.plan(entry.value), entry.optional, entry.at) for entry in expr.entries
        ]
        made = interpretables.MakeMap(entries, self._strict)
        return self._folded(expr, made, [part for key, value, _, _ in entries for part in (key, value)])

    def _struct(self, expr: ast.MakeStruct) -> Interpretable:
        fields = [(field.name, self.plan(field.value), field.optional) for field in expr.fields]
        reference = self._checked.references.get(expr.id)
        name = (
            reference.name if reference is not None and reference.name else expr.type_name.removeprefix(".")
        )
        return interpretables.MakeStruct(expr.at, fields, builder(name))

    def _comprehension(self, expr: ast.Comprehension) -> Interpretable:
        over = self.plan(expr.iter_range)
        first = self.plan(expr.accu_init)
        names = (expr.iter_var, expr.iter_var2) if expr.iter_var2 else (expr.iter_var,)
        gathers = (
            isinstance(first, interpretables.Constant)
            and first.value in ([], {})
            and expr.accu_var == ast.ACCUMULATOR
        )
        if gathers:
            first = _EmptyAggregate(type(first.value))  # type: ignore[attr-defined]  # a constant, as was just seen
        self._locals.append({expr.accu_var, *names})
        self._gathering.append(gathers)
        condition, step = self.plan(expr.loop_condition), self.plan(expr.loop_step)
        self._gathering.pop()
        self._locals.pop()
        self._locals.append({expr.accu_var})
        self._gathering.append(False)
        result = self.plan(expr.result)
        self._gathering.pop()
        self._locals.pop()
        return interpretables.Fold(
            expr.at,
            names=names,
            over=over,
            accumulator=expr.accu_var,
            first=first,
            condition=condition,
            step=step,
            result=result,
        )


class _EmptyAggregate(interpretables.Constant):
    """A new empty list or map for each loop, which the loop fills in place."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Value]) -> None:
        super().__init__(None)
        self.make = make

    def run(self, activation: Any) -> Value:
        return self.make()


def field_key(operand: Type, field: str) -> str:
    """Return the JSON key of a field."""
    if operand.is_optional and operand.params:
        operand = operand.params[0]
    if isinstance(operand, ObjectType) and field in operand.fields:
        return operand.fields[field].key or field
    return field


def _attribute(step: Interpretable) -> Attribute:
    return step.attribute if isinstance(step, EvalAttribute) else RelativeAttribute(step)


def _is_primitive(value: Value) -> bool:
    return isinstance(value, list) and all(
        item is None or isinstance(item, (bool, int, float, str)) for item in value
    )


def _adds_to_accumulator(expr: ast.Call) -> bool:
    first = expr.args[0] if expr.args else None
    return isinstance(first, ast.Ident) and first.name == ast.ACCUMULATOR


def _extend(made: Value, more: Value) -> Value:
    if type(made) is list and isinstance(more, list):
        made.extend(more)
        return made
    return operators.add(made, more)


def _insert(made: Value, *more: Value) -> Value:
    pairs = more[0].items() if len(more) == 1 and isinstance(more[0], dict) else [more]
    for key, value in pairs:
        if type(made) is dict and isinstance(key, (str, int)) and type(key) is not bool and key not in made:
            made[key] = value
        else:
            made = operators.insert(made, key, value)
    return made


_IN_PLACE: Final[dict[str, Callable[..., Value]]] = {ast.ADD: _extend, MAP_INSERT: _insert}
