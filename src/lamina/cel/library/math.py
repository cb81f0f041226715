"""The math extension: least and greatest, rounding, signs, bits, square roots."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from lamina.cel.ast import Expr, Ident, Literal, LiteralKind, MakeList, MakeMap, MakeStruct
from lamina.cel.declarations import VARIADIC, Library, Macro, MacroContext
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import Definition, function, to_functions
from lamina.cel.numbers import INT_MIN, UINT_MAX, UInt, checked_int
from lamina.cel.values import Value, compare

_NUMBERS: Final = ("double", "int", "uint")
_LEAST: Final = "math.@min"
_GREATEST: Final = "math.@max"
_NUMERIC: Final = frozenset({LiteralKind.INT, LiteralKind.UINT, LiteralKind.DOUBLE})


def _is_numeric(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return expr.kind in _NUMERIC
    return not isinstance(expr, (MakeList, MakeMap, MakeStruct))


def _extreme(name: str, call: str) -> Macro:
    prefix = f"math.{name}()"

    def expand(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
        if not isinstance(target, Ident) or target.name != "math":
            return None
        if not args:
            raise make.fail(f"{prefix} requires at least one argument", target)
        if len(args) == 1:
            (only,) = args
            listed = isinstance(only, MakeList) and bool(only.items) and all(map(_is_numeric, only.items))
            if listed or _is_numeric(only):
                return make.call(call, only)
            raise make.fail(f"{prefix} invalid single argument value", only)
        for arg in args:
            if not _is_numeric(arg):
                raise make.fail(f"{prefix} simple literal arguments must be numeric", arg)
        return make.call(call, *args) if len(args) == 2 else make.call(call, make.make_list(*args))

    return Macro(name, VARIADIC, True, expand)


def _chooser(name: str, keep: int) -> Callable[..., Value]:
    def pair(one: Value, two: Value) -> Value:
        try:
            return two if compare(one, two) == -keep else one
        except EvaluationError as error:
            raise EvaluationError(f"{error.message}: {name}") from None

    def choose(*args: Value) -> Value:
        if len(args) == 1 and not isinstance(args[0], list):
            return args[0]
        items = args[0] if len(args) == 1 else list(args)
        if not items:
            raise EvaluationError(f"{name}(list) argument must not be empty")
        found = items[0]
        for item in items[1:]:
            found = pair(found, item)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise EvaluationError(f"no such overload: {name}")
        return found

    return choose


def _extremes(name: str, keep: int) -> list[Definition]:
    choose, prefix = _chooser(name, keep), name.replace(".", "_")
    mixed = [
        ("int", "uint"),
        ("int", "double"),
        ("double", "int"),
        ("double", "uint"),
        ("uint", "int"),
        ("uint", "double"),
    ]
    return [
        *(function(name, f"{prefix}_{kind}", f"{kind} -> {kind}", choose) for kind in _NUMBERS),
        *(
            function(name, f"{prefix}_{kind}_{kind}", f"{kind}, {kind} -> {kind}", choose)
            for kind in _NUMBERS
        ),
        *(function(name, f"{prefix}_{one}_{two}", f"{one}, {two} -> dyn", choose) for one, two in mixed),
        *(function(name, f"{prefix}_list_{kind}", f"list({kind}) -> {kind}", choose) for kind in _NUMBERS),
    ]


def _whole(round_it: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding function that preserves NaN, infinities and the sign of zero."""

    def rounded(value: float) -> float:
        return math.copysign(float(round_it(value)), value) if math.isfinite(value) else value

    return rounded


def _away_from_zero(value: float) -> int:
    whole = math.floor(abs(value))
    return int(math.copysign(whole + (abs(value) - whole >= 0.5), value))


def absolute(value: Any) -> Any:
    if type(value) is int:
        if value == INT_MIN:
            raise EvaluationError("integer overflow")
        return abs(value)
    return abs(value) if isinstance(value, float) else value


def sign(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isnan(value) else float((value > 0) - (value < 0))
    found = (value > 0) - (value < 0)
    return UInt(found) if isinstance(value, UInt) else found


def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else (value if math.isnan(value) else math.nan)


def _bits(work: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def run(one: Any, two: Any) -> Any:
        found = work(int(one), int(two))
        return UInt(found) if isinstance(one, UInt) else found

    return run


def bit_not(value: Any) -> Any:
    return UInt(~int(value) & UINT_MAX) if isinstance(value, UInt) else ~value


def shift_left(value: Any, places: int) -> Any:
    if places < 0:
        raise EvaluationError(f"math.bitShiftLeft() negative offset: {places}")
    found = (int(value) << places) & UINT_MAX if places < 64 else 0
    return UInt(found) if isinstance(value, UInt) else _signed(found)


def shift_right(value: Any, places: int) -> Any:
    """Shift as an unsigned number: a negative int becomes positive."""
    if places < 0:
        raise EvaluationError(f"math.bitShiftRight() negative offset: {places}")
    found = (int(value) & UINT_MAX) >> places if places < 64 else 0
    return UInt(found) if isinstance(value, UInt) else _signed(found)


def _signed(bits: int) -> int:
    return checked_int(bits - (1 << 64) if bits >= 1 << 63 else bits)


_FUNCTIONS: Final = [
    *_extremes(_LEAST, -1),
    *_extremes(_GREATEST, 1),
    function("math.ceil", "math_ceil_double", "double -> double", _whole(math.ceil)),
    function("math.floor", "math_floor_double", "double -> double", _whole(math.floor)),
    function("math.round", "math_round_double", "double -> double", _whole(_away_from_zero)),
    function("math.trunc", "math_trunc_double", "double -> double", _whole(math.trunc)),
    function("math.isInf", "math_isInf_double", "double -> bool", math.isinf),
    function("math.isNaN", "math_isNaN_double", "double -> bool", math.isnan),
    function("math.isFinite", "math_isFinite_double", "double -> bool", math.isfinite),
    *(function("math.abs", f"math_abs_{kind}", f"{kind} -> {kind}", absolute) for kind in _NUMBERS),
    *(function("math.sign", f"math_sign_{kind}", f"{kind} -> {kind}", sign) for kind in _NUMBERS),
    *(function("math.sqrt", f"math_sqrt_{kind}", f"{kind} -> double", square_root) for kind in _NUMBERS),
    *(
        function(f"math.bit{name}", f"math_bit{name}_{kind}_{kind}", f"{kind}, {kind} -> {kind}", _bits(work))
        for name, work in [("And", int.__and__), ("Or", int.__or__), ("Xor", int.__xor__)]
        for kind in ("int", "uint")
    ),
    *(
        function("math.bitNot", f"math_bitNot_{kind}_{kind}", f"{kind} -> {kind}", bit_not)
        for kind in ("int", "uint")
    ),
    *(
        function(f"math.bitShift{name}", f"math_bitShift{name}_{kind}_int", f"{kind}, int -> {kind}", work)
        for name, work in [("Left", shift_left), ("Right", shift_right)]
        for kind in ("int", "uint")
    ),
]

MATH: Final = Library(
    name="math",
    functions=to_functions(_FUNCTIONS),
    macros=(_extreme("least", _LEAST), _extreme("greatest", _GREATEST)),
)
