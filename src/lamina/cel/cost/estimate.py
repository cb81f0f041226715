"""
Estimates the cost of an expression before it is evaluated, as cel-go's checker/cost does.

Each node has a cost; calls multiply it by the sizes of their arguments, loops by the
size of their range. Sizes come from literals, from function results, and from the
schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lamina.cel.ast import (
    ACCUMULATOR,
    Call,
    Checked,
    Comprehension,
    Expr,
    Ident,
    Literal,
    MakeList,
    MakeMap,
    MakeStruct,
    Select,
    walk,
)
from lamina.cel.cost.functions import extension_estimate, kubernetes_estimate
from lamina.cel.cost.size import (
    LIST_BASE,
    MAP_BASE,
    MOST,
    NOTHING,
    ONE,
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    STRUCT_BASE,
    UNKNOWN,
    CallEstimate,
    CostNode,
    Estimate,
    SizeEstimator,
    exactly,
    no_sizes,
)
from lamina.cel.declarations import Environment
from lamina.cel.types import Kind, Type

_ACCUMULATORS: Final = frozenset({ACCUMULATOR, "__result__"})
_SCALARS: Final = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})
_COMPARING: Final = frozenset(
    {
        *(f"{how}_{what}" for how in ("less", "greater", "less_equals", "greater_equals") for what in ("string", "bytes")),
        *("equals", "not_equals"),
    }
)  # fmt: skip


def estimate(checked: Checked, environment: Environment, sizes: SizeEstimator = no_sizes) -> Estimate:
    """Return the lowest and the highest cost of an expression."""
    try:
        return _Estimator(checked, environment, sizes).cost(checked.expr)
    except RecursionError:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of the keys and values of a list or map."""

    kind: Kind
    key: Estimate
    value: Estimate


@dataclass(frozen=True, slots=True)
class _Local:
    """A local variable: its path in the input, its size, and the sizes of its entries."""

    path: tuple[str, ...]
    size: Estimate | None
    entries: _Entries | None


class _Estimator:
    def __init__(self, checked: Checked, environment: Environment, sizes: SizeEstimator) -> None:
        self._checked, self._environment, self._sizes = checked, environment, sizes
        self._kubernetes = environment.flags.kubernetes_costs
        self._paths: dict[int, tuple[str, ...]] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._known: dict[int, Estimate] = {}
        self._entries: dict[int, _Entries] = {}
        self._written = {
            node.id: node.field for node in walk(checked.parsed.expr) if isinstance(node, Select)
        }

    def cost(self, expr: Expr) -> Estimate:
        match expr:
            case Literal():
                return NOTHING
            case Ident():
                local = self._local(expr.name)
                self._paths[expr.id] = (expr.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case MakeList():
                return self._list(expr)
            case MakeMap():
                return self._map(expr)
            case MakeStruct():
                return self._sum(*(field.value for field in expr.fields)).plus(exactly(STRUCT_BASE))
            case Comprehension():
                return self._bind(expr) if _is_bind(expr) else self._comprehension(expr)

    def _sum(self, *parts: Expr) -> Estimate:
        total = NOTHING
        for part in parts:
            total = total.plus(self.cost(part))
        return total

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _select(self, expr: Select) -> Estimate:
        total = self.cost(expr.operand)
        if expr.test_only:
            return total if self._kubernetes else total.plus(ONE)
        if expr.optional:
            return total.plus(ONE)
        if self._checked.types[expr.operand.id].kind in (Kind.MAP, Kind.OBJECT, Kind.PARAM):
            total = total.plus(ONE)
        self._paths[expr.id] = (*self._path(expr.operand), self._written.get(expr.id, expr.field))
        return total

    def _call(self, expr: Call) -> Estimate:
        if expr.function == "dyn":
            total = ONE.plus(self.cost(expr.args[0]))
            self._copy(expr, expr.args[0])
            return total
        costs, nodes = [], []
        for arg in expr.args:
            costs.append(self.cost(arg))
            nodes.append(self._node(arg))
        total = NOTHING
        target: CostNode | None = None
        reference = self._checked.references.get(expr.id)
        if reference is None or not reference.overloads:
            return NOTHING
        if expr.target is not None:
            total = self.cost(expr.target)
            target = self._node(expr.target)
        spent = Estimate(MOST, 0)
        result: Estimate | None = None
        for overload in reference.overloads:
            found = self._function(expr, overload, target, nodes, costs)
            spent = spent.union(found.cost)
            if found.result is not None:
                result = found.result if result is None else result.union(found.result)
            if overload in ("index_list", "index_map") and expr.args:
                entries = self._entries_of(expr.args[0])
                result = entries.value if entries is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[expr.id] = (*self._path(expr.args[0]), step)
            if result is None:
                result = self._size(expr)
        if result is not None:
            self._known[expr.id] = result
        return total.plus(spent)

    def _function(
        self, expr: Call, overload: str, target: CostNode | None, args: list[CostNode], costs: list[Estimate]
    ) -> CallEstimate:
        arguments = NOTHING
        for cost in costs:
            arguments = arguments.plus(cost)
        found = self._declared(expr.function, overload, target, args)
        if found is None:
            found = self._basic(expr, overload, target, args, costs)
            if found is not None and overload in ("logical_or", "logical_and", "conditional"):
                return found
        if found is None:
            found = CallEstimate(ONE)
        return CallEstimate(found.cost.plus(arguments), found.result)

    def _declared(
        self, function: str, overload: str, target: CostNode | None, args: list[CostNode]
    ) -> CallEstimate | None:
        """Return the estimate of a library's function."""
        declared = self._environment.functions.get(function)
        for candidate in declared.overloads if declared else ():
            if candidate.id == overload and candidate.estimate is not None:
                found = candidate.estimate(target, args)
                if found is not None:
                    return found
        found = extension_estimate(overload, target, args)
        if found is None and self._kubernetes:
            found = kubernetes_estimate(function, overload, target, args)
        return found

    def _basic(
        self, expr: Call, overload: str, target: CostNode | None, args: list[CostNode], costs: list[Estimate]
    ) -> CallEstimate | None:
        """Return the estimate of a standard function."""

        def size(node: CostNode) -> Estimate:
            return UNKNOWN if node.computed is None else node.computed

        match overload:
            case "string_format" if target is not None:
                return CallEstimate(size(target).scaled(STRING_TRAVERSAL))
            case "string_to_bytes":
                span = size(args[0])
                return CallEstimate(
                    span.scaled(STRING_TRAVERSAL), Estimate(span.least, span.most * 4 % (MOST + 1))
                )
            case "bytes_to_string":
                span = size(args[0])
                return CallEstimate(span.scaled(STRING_TRAVERSAL), Estimate(span.least // 4, span.most))
            case "strings_quote":
                span = size(args[0])
                result = Estimate(span.least + 2, (span.most * 2 + 2) % (MOST + 1))
                return CallEstimate(span.scaled(STRING_TRAVERSAL), result)
            case "starts_with_string" | "ends_with_string":
                return CallEstimate(size(args[0]).scaled(STRING_TRAVERSAL))
            case "in_list":
                return CallEstimate(size(args[1]).scaled(1))
            case "matches_string" if target is not None:
                text = size(target).plus(ONE).scaled(STRING_TRAVERSAL)
                return CallEstimate(text.times(size(args[0]).scaled(REGEX_LENGTH)))
            case "contains_string" if target is not None:
                text = size(target).scaled(STRING_TRAVERSAL)
                return CallEstimate(text.times(size(args[0]).scaled(STRING_TRAVERSAL)))
            case "logical_or" | "logical_and":
                return CallEstimate(Estimate(costs[0].least, costs[0].plus(costs[1]).most))
            case "conditional":
                self._unite_entries(expr, expr.args[1], expr.args[2])
                spent = costs[0].plus(costs[1].union(costs[2]))
                return CallEstimate(spent, size(args[1]).union(size(args[2])))
            case "add_string" | "add_bytes" | "add_list":
                result = size(args[0]).plus(size(args[1]))
                self._unite_entries(expr, expr.args[0], expr.args[1])
                cost = ONE if overload == "add_list" else result.scaled(STRING_TRAVERSAL)
                return CallEstimate(cost, result)
            case _ if overload in _COMPARING:
                most = min(size(args[0]).most, size(args[1]).most)
                return CallEstimate(Estimate(1 if most > 0 else 0, most).scaled(STRING_TRAVERSAL))
        return None

    def _unite_entries(self, expr: Expr, one: Expr, other: Expr) -> None:
        first, second = self._entries_of(one), self._entries_of(other)
        if first is not None and second is not None:
            self._entries[expr.id] = _Entries(
                first.kind, first.key.union(second.key), first.value.union(second.value)
            )

    def _list(self, expr: MakeList) -> Estimate:
        total, items = NOTHING, Estimate(MOST, 0) if expr.items else NOTHING
        for item in expr.items:
            total = total.plus(self.cost(item))
            items = items.union(self._size(item) or UNKNOWN)
        self._entries[expr.id] = _Entries(Kind.LIST, ONE, items)
        return total.plus(exactly(LIST_BASE))

    def _map(self, expr: MakeMap) -> Estimate:
        total = NOTHING
        keys = values = Estimate(MOST, 0) if expr.entries else NOTHING
        for entry in expr.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size(entry.key) or UNKNOWN)
            values = values.union(self._size(entry.value) or UNKNOWN)
        self._entries[expr.id] = _Entries(Kind.MAP, keys, values)
        return total.plus(exactly(MAP_BASE))

    def _comprehension(self, expr: Comprehension) -> Estimate:
        total = self.cost(expr.iter_range).plus(self.cost(expr.accu_init))
        self._push_value(expr.accu_var, expr.accu_init)
        loop = self._loop_variables(expr)
        for name, local in loop:
            self._locals.setdefault(name, []).append(local)
        condition = self.cost(expr.loop_condition)
        step = self.cost(expr.loop_step)
        for name, _ in loop:
            self._locals[name].pop()
        total = total.plus(self.cost(expr.result))
        self._locals[expr.accu_var].pop()
        times = self._size(expr.iter_range) or UNKNOWN
        total = total.plus(times.times(step.plus(condition)))
        if isinstance(expr.accu_init, Literal):
            self._known[expr.id] = self._size(expr.accu_init) or UNKNOWN
        elif isinstance(expr.accu_init, MakeList | MakeMap):
            self._known[expr.id] = times
            entries = self._entries_of(expr.loop_step)
            if entries is not None:
                self._entries[expr.id] = entries
        return total

    def _loop_variables(self, expr: Comprehension) -> list[tuple[str, _Local]]:
        range_ = expr.iter_range
        entries, path = self._entries_of(range_), self._path(range_)
        kind = entries.kind if entries is not None else self._checked.types[range_.id].kind
        listed = kind is Kind.LIST
        keys = _Local((*path, "@indices" if listed else "@keys"), entries.key if entries else None, None)
        values = _Local((*path, "@items" if listed else "@values"), entries.value if entries else None, None)
        if expr.iter_var2:
            return [(expr.iter_var, keys), (expr.iter_var2, values)]
        return [(expr.iter_var, values if listed else keys)]

    def _bind(self, expr: Comprehension) -> Estimate:
        total = self.cost(expr.iter_range).plus(self.cost(expr.accu_init))
        self._push_value(expr.accu_var, expr.accu_init)
        total = total.plus(self.cost(expr.result))
        self._locals[expr.accu_var].pop()
        self._copy(expr, expr.result)
        return total

    def _push_value(self, name: str, expr: Expr) -> None:
        local = _Local(self._path(expr), self._size(expr), self._entries_of(expr))
        self._locals.setdefault(name, []).append(local)

    def _copy(self, to: Expr, source: Expr) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._known[to.id] = size
        if entries is not None:
            self._entries[to.id] = entries

    def _path(self, expr: Expr) -> tuple[str, ...]:
        if isinstance(expr, Ident):
            local = self._local(expr.name)
            if local is not None:
                return local.path
        return self._paths.get(expr.id, ())

    def _node(self, expr: Expr) -> CostNode:
        path = self._path(expr)
        if path and path[0] in _ACCUMULATORS:
            path = ()
        return CostNode(path, self._checked.types[expr.id], expr, self._size(expr), self._sizes)

    def _size(self, expr: Expr) -> Estimate | None:
        known = self._known.get(expr.id)
        if known is not None:
            return known
        written = _written_size(expr)
        if written is not None:
            return exactly(written)
        type_ = self._checked.types[expr.id]
        found = self._sizes(CostNode(self._path(expr), type_, expr, None, self._sizes))
        if found is not None:
            self._known[expr.id] = found
            return found
        if _is_scalar(type_):
            return ONE
        if isinstance(expr, Ident):
            local = self._local(expr.name)
            if local is not None:
                return local.size
        return None

    def _entries_of(self, expr: Expr) -> _Entries | None:
        found = self._entries.get(expr.id)
        if found is None and isinstance(expr, Ident):
            local = self._local(expr.name)
            if local is not None:
                return local.entries
        return found


def _is_bind(expr: Comprehension) -> bool:
    return (
        isinstance(expr.iter_range, MakeList)
        and not expr.iter_range.items
        and isinstance(expr.loop_condition, Literal)
        and expr.loop_condition.value is False
        and expr.accu_var != "__result__"
    )


def _written_size(expr: Expr) -> int | None:
    match expr:
        case Literal():
            return len(expr.value) if isinstance(expr.value, str | bytes) else 1
        case MakeList():
            return len(expr.items)
        case MakeMap():
            return len(expr.entries)
        case _:
            return None


def _is_scalar(type_: Type) -> bool:
    return type_.kind in _SCALARS or (type_.is_optional and _is_scalar(type_.params[0]))
