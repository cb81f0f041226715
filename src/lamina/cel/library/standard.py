"""
The standard library: operators, conversions, sizes, strings, times.

The declarations of operators are for the checker; `lamina.cel.operators` implements
them and dispatches on the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.cel import ast, operators
from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library import patterns
from lamina.cel.library.signature import Definition, function, method, to_functions
from lamina.cel.macros import STANDARD as MACROS
from lamina.cel.numbers import (
    INT_MAX,
    UInt,
    checked_uint,
    int_from_double,
    parse_bool,
    parse_double,
    parse_int,
    parse_uint,
    uint_from_double,
)
from lamina.cel.times import Duration, Timestamp, duration, parse_duration, parse_timestamp, timestamp, zone
from lamina.cel.values import Value, type_of
from lamina.objects.durations import SECOND
from lamina.objects.go_quote import format_float

_NUMBERS: Final = ("int", "uint", "double")
_NAMES: Final = {"int": "int64", "uint": "uint64", "double": "double"}


def _refused(value: Value, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_of(value)}' to '{wanted}'")


def _from_text(parse: Callable[[str], Any], wanted: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        found = parse(text)
        if found is None:
            raise _refused(text, wanted)
        return found

    return convert


def same(value: Value) -> Value:
    """Return the value itself."""
    return value


def uint_to_int(value: UInt) -> int:
    if value > INT_MAX:
        raise EvaluationError("integer overflow")
    return int(value)


def int_to_uint(value: int) -> UInt:
    return checked_uint(value)


def int_to_double(value: int) -> float:
    return float(value)


def bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def int_to_string(value: int) -> str:
    return str(int(value))


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_to_bytes(value: str) -> bytes:
    return value.encode("utf-8", "replace")


def duration_to_int(value: Duration) -> int:
    return value.nanoseconds


def timestamp_to_int(value: Timestamp) -> int:
    return value.nanoseconds // SECOND


def int_to_timestamp(value: int) -> Timestamp:
    return timestamp(value * SECOND)


def int_to_duration(value: int) -> Duration:
    return duration(value)


string_to_int: Final = _from_text(parse_int, "int")
string_to_uint: Final = _from_text(parse_uint, "uint")
string_to_double: Final = _from_text(parse_double, "double")
string_to_bool: Final = _from_text(parse_bool, "bool")
string_to_duration: Final = _from_text(parse_duration, "google.protobuf.Duration")
string_to_timestamp: Final = _from_text(parse_timestamp, "google.protobuf.Timestamp")


def size(value: Value) -> int:
    """Return the number of characters, bytes, items or entries."""
    return len(value)


def contains(text: str, part: str) -> bool:
    return part in text


def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


def not_strictly_false(value: Value) -> bool:
    return value is not False


_PARTS: Final[dict[str, tuple[str, Callable[[Any, int], int]]]] = {
    "getFullYear": ("timestamp_to_year", lambda moment, years: moment.year + years),
    "getMonth": ("timestamp_to_month", lambda moment, years: moment.month - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", lambda moment, years: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda moment, years: moment.day - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda moment, years: moment.day),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda moment, years: moment.isoweekday() % 7),
    "getHours": ("timestamp_to_hours", lambda moment, years: moment.hour),
    "getMinutes": ("timestamp_to_minutes", lambda moment, years: moment.minute),
    "getSeconds": ("timestamp_to_seconds", lambda moment, years: moment.second),
}


def _milliseconds(value: Timestamp, where: str = "UTC") -> int:
    zone(where)
    return value.nanoseconds % SECOND // 1_000_000


def _getters() -> list[Definition]:
    found: list[Definition] = []
    for name, (overload, part) in _PARTS.items():

        def get(value: Timestamp, where: str = "UTC", part: Callable[[Any, int], int] = part) -> int:
            return part(*value.local(zone(where)))

        with_zone = f"{overload}_tz" if name == "getSeconds" else f"{overload}_with_tz"
        found.append(method(name, overload, "timestamp -> int", get))
        found.append(method(name, with_zone, "timestamp, string -> int", get))
    for name, unit in [
        ("Hours", 3600 * SECOND),
        ("Minutes", 60 * SECOND),
        ("Seconds", SECOND),
        ("Milliseconds", 1_000_000),
    ]:

        def whole(value: Duration, unit: int = unit) -> int:
            length = abs(value.nanoseconds) // unit
            return -length if value.nanoseconds < 0 else length

        found.append(method(f"get{name}", f"duration_to_{name.lower()}", "duration -> int", whole))
    found.append(method("getMilliseconds", "timestamp_to_milliseconds", "timestamp -> int", _milliseconds))
    found.append(
        method(
            "getMilliseconds", "timestamp_to_milliseconds_with_tz", "timestamp, string -> int", _milliseconds
        )
    )
    return found


def _arithmetic() -> list[Definition]:
    found: list[Definition] = []
    for operator, word, extra in [
        (ast.ADD, "add", ("bytes", "string")),
        (ast.SUBTRACT, "subtract", ()),
        (ast.MULTIPLY, "multiply", ()),
        (ast.DIVIDE, "divide", ()),
    ]:
        run = operators.BINARY[operator]
        found += [
            function(operator, f"{word}_{_NAMES.get(kind, kind)}", f"{kind}, {kind} -> {kind}", run)
            for kind in (*_NUMBERS, *extra)
        ]
    modulo = operators.modulo
    found += [
        function(ast.MODULO, "modulo_int64", "int, int -> int", modulo),
        function(ast.MODULO, "modulo_uint64", "uint, uint -> uint", modulo),
        function(ast.NEGATE, "negate_double", "double -> double", operators.negate),
        function(ast.NEGATE, "negate_int64", "int -> int", operators.negate),
        function(ast.ADD, "add_list", "list(A), list(A) -> list(A)", operators.add),
        function(ast.ADD, "add_duration_duration", "duration, duration -> duration", operators.add),
        function(ast.ADD, "add_duration_timestamp", "duration, timestamp -> timestamp", operators.add),
        function(ast.ADD, "add_timestamp_duration", "timestamp, duration -> timestamp", operators.add),
        function(
            ast.SUBTRACT, "subtract_duration_duration", "duration, duration -> duration", operators.subtract
        ),
        function(
            ast.SUBTRACT,
            "subtract_timestamp_duration",
            "timestamp, duration -> timestamp",
            operators.subtract,
        ),
        function(
            ast.SUBTRACT,
            "subtract_timestamp_timestamp",
            "timestamp, timestamp -> duration",
            operators.subtract,
        ),
    ]
    # In cel-go's order: an unbound type parameter is bound by the first overload.
    return sorted(
        found, key=lambda definition: definition.overload.id.replace("add_timestamp", "add_duration_z")
    )


def _comparisons() -> list[Definition]:
    found = [
        function(ast.EQUALS, "equals", "A, A -> bool", operators.BINARY[ast.EQUALS]),
        function(ast.NOT_EQUALS, "not_equals", "A, A -> bool", operators.not_equal),
        function(ast.IN, "in_list", "A, list(A) -> bool", operators.is_in),
        function(ast.IN, "in_map", "A, map(A, B) -> bool", operators.is_in),
    ]
    for operator, word in [
        (ast.LESS, "less"),
        (ast.LESS_EQUALS, "less_equals"),
        (ast.GREATER, "greater"),
        (ast.GREATER_EQUALS, "greater_equals"),
    ]:
        run = operators.BINARY[operator]
        found.append(function(operator, f"{word}_bool", "bool, bool -> bool", run))
        for kind, others in [
            ("int", ("double", "uint")),
            ("uint", ("double", "int")),
            ("double", ("int", "uint")),
        ]:
            found.append(function(operator, f"{word}_{_NAMES[kind]}", f"{kind}, {kind} -> bool", run))
            found += [
                function(operator, f"{word}_{_NAMES[kind]}_{_NAMES[other]}", f"{kind}, {other} -> bool", run)
                for other in others
            ]
        found += [
            function(operator, f"{word}_{kind}", f"{kind}, {kind} -> bool", run)
            for kind in ("string", "bytes", "timestamp", "duration")
        ]
    return found


_LOGIC: Final = [
    function(ast.CONDITIONAL, "conditional", "bool, A, A -> A", None),
    function(ast.AND, "logical_and", "bool, bool -> bool", None),
    function(ast.OR, "logical_or", "bool, bool -> bool", None),
    function(ast.NOT, "logical_not", "bool -> bool", operators.logical_not),
    function(ast.NOT_STRICTLY_FALSE, "not_strictly_false", "bool -> bool", not_strictly_false),
    function(ast.INDEX, "index_list", "list(A), int -> A", operators.index),
    function(ast.INDEX, "index_map", "map(A, B), A -> B", operators.index),
]

_CONVERSIONS: Final = [
    function("bool", "bool_to_bool", "bool -> bool", same),
    function("bool", "string_to_bool", "string -> bool", string_to_bool),
    function("bytes", "bytes_to_bytes", "bytes -> bytes", same),
    function("bytes", "string_to_bytes", "string -> bytes", string_to_bytes),
    function("double", "double_to_double", "double -> double", same),
    function("double", "int64_to_double", "int -> double", int_to_double),
    function("double", "string_to_double", "string -> double", string_to_double),
    function("double", "uint64_to_double", "uint -> double", int_to_double),
    function("duration", "duration_to_duration", "duration -> duration", same),
    function("duration", "int64_to_duration", "int -> duration", int_to_duration),
    function("duration", "string_to_duration", "string -> duration", string_to_duration),
    function("dyn", "to_dyn", "A -> dyn", same),
    function("int", "int64_to_int64", "int -> int", same),
    function("int", "double_to_int64", "double -> int", int_from_double),
    function("int", "duration_to_int64", "duration -> int", duration_to_int),
    function("int", "string_to_int64", "string -> int", string_to_int),
    function("int", "timestamp_to_int64", "timestamp -> int", timestamp_to_int),
    function("int", "uint64_to_int64", "uint -> int", uint_to_int),
    function("string", "string_to_string", "string -> string", same),
    function("string", "bool_to_string", "bool -> string", bool_to_string),
    function("string", "bytes_to_string", "bytes -> string", bytes_to_string),
    function("string", "double_to_string", "double -> string", format_float),
    function("string", "duration_to_string", "duration -> string", str),
    function("string", "int64_to_string", "int -> string", int_to_string),
    function("string", "timestamp_to_string", "timestamp -> string", str),
    function("string", "uint64_to_string", "uint -> string", int_to_string),
    function("timestamp", "timestamp_to_timestamp", "timestamp -> timestamp", same),
    function("timestamp", "int64_to_timestamp", "int -> timestamp", int_to_timestamp),
    function("timestamp", "string_to_timestamp", "string -> timestamp", string_to_timestamp),
    function("type", "type", "A -> type(A)", type_of),
    function("uint", "uint64_to_uint64", "uint -> uint", same),
    function("uint", "double_to_uint64", "double -> uint", uint_from_double),
    function("uint", "int64_to_uint64", "int -> uint", int_to_uint),
    function("uint", "string_to_uint64", "string -> uint", string_to_uint),
]

_TEXT: Final = [
    method("contains", "contains_string", "string, string -> bool", contains),
    method("endsWith", "ends_with_string", "string, string -> bool", ends_with),
    method("startsWith", "starts_with_string", "string, string -> bool", starts_with),
    function("matches", "matches", "string, string -> bool", patterns.matches),
    method("matches", "matches_string", "string, string -> bool", patterns.matches),
]

_SIZES: Final = [
    definition
    for kind, signature in [
        ("bytes", "bytes"),
        ("list", "list(A)"),
        ("map", "map(A, B)"),
        ("string", "string"),
    ]
    for definition in (
        function("size", f"size_{kind}", f"{signature} -> int", size),
        method("size", f"{kind}_size", f"{signature} -> int", size),
    )
]

STANDARD: Final = Library(
    name="standard",
    functions=to_functions(
        [*_LOGIC, *_arithmetic(), *_comparisons(), *_CONVERSIONS, *_TEXT, *_SIZES, *_getters()]
    ),
    macros=MACROS,
)
"""The functions of the language definition."""
