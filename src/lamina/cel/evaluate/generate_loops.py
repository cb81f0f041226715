"""Python for what macros become: loops that end early, lists and maps that are gathered, names for values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lamina.cel import ast
from lamina.cel.ast import Expr
from lamina.cel.evaluate.writer import NotWorthIt, Piece
from lamina.cel.macros import MAP_INSERT
from lamina.cel.types import Kind

if TYPE_CHECKING:
    from lamina.cel.evaluate.generate import Generator


def loop(gen: Generator, expr: ast.Comprehension) -> Piece:
    """Return Python for a comprehension; raises NotWorthIt where no macro of ours made it."""
    if _is_empty_list(expr.iter_range) and _is_literal(expr.loop_condition, False):
        return _bound(gen, expr)
    step = expr.loop_step
    if not isinstance(step, ast.Call):
        raise NotWorthIt
    if step.function in (ast.AND, ast.OR) and _is_accumulator(step.args[0], expr):
        return _search(gen, expr, step.args[1], decisive=step.function == ast.OR)
    condition: Expr | None = None
    if step.function == ast.CONDITIONAL and _is_accumulator(step.args[2], expr):
        condition, step = step.args[0], step.args[1]
    if not isinstance(step, ast.Call) or not step.args or not _is_accumulator(step.args[0], expr):
        raise NotWorthIt
    if step.function == ast.ADD and _is_empty_list(expr.accu_init) and isinstance(step.args[1], ast.MakeList):
        (item,) = step.args[1].items
        return _gathered(gen, expr, condition, item)
    if step.function == ast.ADD and _is_literal(expr.accu_init, 0) and condition is not None:
        return _counted(gen, expr, condition)
    if step.function == MAP_INSERT and isinstance(expr.accu_init, ast.MakeMap):
        return _mapped(gen, expr, condition, step.args[1:])
    raise NotWorthIt


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
    """Return the loop variables, and what stands between `for` and the colon."""
    over = gen.write.let(gen.piece(expr.iter_range))
    first = gen.write.name("i")
    names = {expr.iter_var: Piece(first, None, 0, simple=True)}
    if expr.iter_var2:
        second = gen.write.name("i")
        names[expr.iter_var2] = Piece(second, None, 0, simple=True)
        return names, f"{first}, {second} in pairs({over.code})"
    if over.sure not in (Kind.LIST, Kind.MAP):
        gen.write.line(f"if type({over.code}) is not list and type({over.code}) is not dict: leave()")
    return names, f"{first} in {over.code}"


def _search(gen: Generator, expr: ast.Comprehension, question: Expr, *, decisive: bool) -> Piece:
    result = gen.write.name("r")
    names, clause = _over(gen, expr)
    gen.write.line(f"{result} = {not decisive}")
    gen.write.line(f"for {clause}:")
    with _named(gen, names), gen.write.inside():
        piece = gen.piece(question)
        truth = gen.truth(piece)
        gen.write.line(f"if {truth}:" if decisive else f"if not {truth}:")
        with gen.write.inside():
            gen.write.line(f"{result} = {decisive}")
            gen.write.line("break")
    return Piece(result, Kind.BOOL, 0, simple=True)


def _counted(gen: Generator, expr: ast.Comprehension, question: Expr) -> Piece:
    count = gen.write.name("r")
    names, clause = _over(gen, expr)
    gen.write.line(f"{count} = 0")
    gen.write.line(f"for {clause}:")
    with _named(gen, names), gen.write.inside():
        gen.write.line(f"if {gen.truth(gen.piece(question))}: {count} += 1")
    return Piece(f"({count} == 1)", Kind.BOOL, 1)


def _gathered(gen: Generator, expr: ast.Comprehension, condition: Expr | None, item: Expr) -> Piece:
    result = gen.write.name("r")
    names, clause = _over(gen, expr)
    with _named(gen, names):
        with gen.write.aside() as before:
            kept = None if condition is None else gen.truth(gen.piece(condition))
        with gen.write.aside() as lines:
            piece = gen.piece(item)
    if not before and not lines:
        filtered = "" if kept is None else f" if {kept}"
        gen.write.line(f"{result} = [{piece.code} for {clause}{filtered}]")
        return Piece(result, Kind.LIST, 0, simple=True)
    gen.write.line(f"{result} = []")
    gen.write.line(f"for {clause}:")
    gen.write.add(before)
    with gen.write.inside():
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
            gen.write.line(f"if type({more.code}) is not dict: leave()")
            gen.write.line(f"for {key_name}, {value_name} in {more.code}.items():")
            with gen.write.inside():
                gen.write.line(f"{result} = inserted({result}, {key_name}, {value_name})")
    return Piece(result, Kind.MAP, 0, simple=True)
