"""Code for comprehensions: searches, counts, lists, maps, and bound names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lamina.cel import ast
from lamina.cel.ast import Expr
from lamina.cel.evaluate.cost import LIST_COST
from lamina.cel.evaluate.writer import NotGenerated, Piece
from lamina.cel.macros import MAP_INSERT
from lamina.cel.types import Kind

if TYPE_CHECKING:
    from lamina.cel.evaluate.codegen import Generator


def loop(gen: Generator, expr: ast.Comprehension) -> Piece:
    """Return code for a comprehension; raises NotGenerated for one that no known macro expands to."""
    if _is_empty_list(expr.iter_range) and _is_literal(expr.loop_condition, False):
        if gen.write.counts:
            # A bound value is only evaluated, and counted, where its name is used.
            raise NotGenerated
        return _bound(gen, expr)
    step = expr.loop_step
    if not isinstance(step, ast.Call):
        raise NotGenerated
    if step.function in (ast.AND, ast.OR) and _is_accumulator(step.args[0], expr):
        return _search(gen, expr, step.args[1], decisive=step.function == ast.OR)
    condition: Expr | None = None
    if step.function == ast.CONDITIONAL and _is_accumulator(step.args[2], expr):
        condition, step = step.args[0], step.args[1]
    if not isinstance(step, ast.Call) or not step.args or not _is_accumulator(step.args[0], expr):
        raise NotGenerated
    if step.function == ast.ADD and _is_empty_list(expr.accu_init) and isinstance(step.args[1], ast.MakeList):
        return _gathered(gen, expr, condition, step.args[1])
    if step.function == ast.ADD and _is_literal(expr.accu_init, 0) and condition is not None:
        return _counted(gen, expr, condition)
    if step.function == MAP_INSERT and isinstance(expr.accu_init, ast.MakeMap) and not gen.write.counts:
        return _mapped(gen, expr, condition, step.args[1:])
    raise NotGenerated


def _is_literal(expr: Expr, value: object) -> bool:
    return isinstance(expr, ast.Literal) and expr.value == value and type(expr.value) is type(value)


def _is_empty_list(expr: Expr) -> bool:
    return isinstance(expr, ast.MakeList) and not expr.items


def _is_accumulator(expr: Expr, within: ast.Comprehension) -> bool:
    return isinstance(expr, ast.Ident) and expr.name == within.accu_var


@contextmanager
def _named(gen: Generator, names: dict[str, Piece]) -> Iterator[None]:
    before = gen.locals
    gen.locals = {**before, **names}
    try:
        yield
    finally:
        gen.locals = before


def _bound(gen: Generator, expr: ast.Comprehension) -> Piece:
    value = gen.write.let(gen.piece(expr.accu_init))
    with _named(gen, {expr.accu_var: value}):
        return gen.piece(expr.result)


def _over(gen: Generator, expr: ast.Comprehension) -> tuple[dict[str, Piece], str]:
    """Return the loop variables, and the clause of the `for` statement."""
    over = gen.write.let(gen.piece(expr.iter_range))
    first = gen.write.name("i")
    names = {expr.iter_var: Piece(first, None, 0, simple=True)}
    if expr.iter_var2:
        second = gen.write.name("i")
        names[expr.iter_var2] = Piece(second, None, 0, simple=True)
        return names, f"{first}, {second} in pairs({over.code})"
    if over.sure not in (Kind.LIST, Kind.MAP):
        gen.write.line(f"if type({over.code}) is not list and type({over.code}) is not dict: bail_out()")
    return names, f"{first} in {over.code}"


def _search(gen: Generator, expr: ast.Comprehension, question: Expr, *, decisive: bool) -> Piece:
    result = gen.write.name("r")
    names, clause = _over(gen, expr)
    gen.write.line(f"{result} = {not decisive}")
    gen.write.line(f"for {clause}:")
    # The loop condition costs the accumulator, the call and, for `exists`, the `!`.
    asking = 3 if decisive else 2
    with _named(gen, names), _each(gen):
        if gen.write.counts:
            gen.write.line(f"if {result} is {decisive}:")
            gen.write.line(f"    C += {asking}")
            gen.write.line("    break")
        with gen.write.block():
            gen.write.charge(asking + 1)
            truth = gen.truth(gen.piece(question))
            gen.write.line(f"if {truth}:" if decisive else f"if not {truth}:")
            with gen.write.inside():
                gen.write.line(f"{result} = {decisive}")
                if not gen.write.counts:
                    gen.write.line("break")
    gen.write.charge(1)
    return Piece(result, Kind.BOOL, 0, simple=True)


@contextmanager
def _each(gen: Generator) -> Iterator[None]:
    """Write the loop body; the cost limit is checked at its start."""
    with gen.write.inside():
        if gen.write.counts:
            gen.write.check()
        yield


def _counted(gen: Generator, expr: ast.Comprehension, question: Expr) -> Piece:
    count = gen.write.name("r")
    names, clause = _over(gen, expr)
    gen.write.line(f"{count} = 0")
    gen.write.line(f"for {clause}:")
    with _named(gen, names), _each(gen):
        gen.write.line(f"if {gen.truth(gen.piece(question))}:")
        with gen.write.inside():
            gen.write.charge(2)
            gen.write.line(f"{count} += 1")
    gen.write.charge(2)
    return Piece(f"({count} == 1)", Kind.BOOL, 1)


def _gathered(gen: Generator, expr: ast.Comprehension, condition: Expr | None, more: ast.MakeList) -> Piece:
    (item,), list_id = more.items, more.id
    result = gen.write.name("r")
    names, clause = _over(gen, expr)
    with _named(gen, names):
        with gen.write.aside() as before:
            kept = None if condition is None else gen.truth(gen.piece(condition))
        with gen.write.aside() as lines:
            piece = gen.piece(item)
            # The accumulator, the list of one item, and the concatenation.
            gen.write.charge(2 if list_id in gen.constants else 2 + LIST_COST)
    gen.write.charge(1)
    if not before and not lines:
        filtered = "" if kept is None else f" if {kept}"
        gen.write.line(f"{result} = [{piece.code} for {clause}{filtered}]")
        return Piece(result, Kind.LIST, 0, simple=True)
    gen.write.line(f"{result} = []")
    gen.write.line(f"for {clause}:")
    with _each(gen):
        gen.write.add(before)
        if kept is not None:
            gen.write.line(f"if not {kept}: continue")
        gen.write.add(lines)
        gen.write.line(f"{result}.append({piece.code})")
    return Piece(result, Kind.LIST, 0, simple=True)


def _mapped(
    gen: Generator, expr: ast.Comprehension, condition: Expr | None, entry: tuple[Expr, ...]
) -> Piece:
    result = gen.write.name("r")
    names, clause = _over(gen, expr)
    gen.write.line(f"{result} = {{}}")
    gen.write.line(f"for {clause}:")
    with _named(gen, names), gen.write.inside():
        if condition is not None:
            gen.write.line(f"if not {gen.truth(gen.piece(condition))}: continue")
        if len(entry) == 2:
            key, value = gen.piece(entry[0]), gen.piece(entry[1])
            gen.write.line(f"{result} = inserted({result}, {key.code}, {value.code})")
        else:
            more, key_name, value_name = (
                gen.write.let(gen.piece(entry[0])),
                gen.write.name(),
                gen.write.name(),
            )
            gen.write.line(f"if type({more.code}) is not dict: bail_out()")
            gen.write.line(f"for {key_name}, {value_name} in {more.code}.items():")
            with gen.write.inside():
                gen.write.line(f"{result} = inserted({result}, {key_name}, {value_name})")
    return Piece(result, Kind.MAP, 0, simple=True)
