"""
kro's functions: seeded random values, digests, JSON, maps and lists.

All are deterministic; random values are derived from their seed.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.export import to_json
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.numbers import checked_int
from lamina.cel.values import Value

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_LONGEST: Final = 1_000_000


def _digest(seed: str) -> bytes:
    return hashlib.sha256(seed.encode("utf-8", "replace")).digest()


def seeded_string(length: int, seed: str) -> str:
    """Return characters derived from the digest of a seed, with a period of eight."""
    if length <= 0:
        raise EvaluationError("length must be positive")
    if length > _LONGEST:
        raise EvaluationError(f"length must be at most {_LONGEST}")
    digest = _digest(seed)
    period = "".join(_ALPHABET[int.from_bytes(digest[at : at + 4], "big") % 36] for at in range(0, 32, 4))
    return (period * (length // 8 + 1))[:length]


def seeded_int(low: int, high: int, seed: str) -> int:
    if low >= high:
        raise EvaluationError("min must be less than max")
    return checked_int(low + int.from_bytes(_digest(seed)[:8], "big") % (high - low))


def fnv64a(text: str) -> bytes:
    found = _FNV_OFFSET
    for byte in text.encode("utf-8", "replace"):
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return found.to_bytes(8, "big")


def sha256(text: str) -> bytes:
    return _digest(text)


def md5(text: str) -> bytes:
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


def unmarshal(text: str) -> Value:
    """Return decoded JSON; its numbers are doubles."""
    try:
        return _as_doubles(orjson.loads(text.encode("utf-8", "replace")))
    except (orjson.JSONDecodeError, RecursionError) as problem:
        raise EvaluationError(f"failed to parse JSON: {problem}") from None


def _as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def marshal(value: Value) -> str:
    """Return compact JSON with sorted keys; an integral double is written as an integer."""
    try:
        plain = _as_integers(to_json(value, encode_bytes=True))
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError) as problem:
        raise EvaluationError(f"failed to marshal JSON: {problem}") from None


def _as_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def merge(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    return {**one, **two}


def deep_merge(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    """Return two maps merged recursively; lists and scalars of the second replace those of the first."""
    merged = dict(one)
    for key, value in two.items():
        old = merged.get(key)
        merged[key] = deep_merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _checked_place(place: int, end: int, closing: str, length: int) -> None:
    if not 0 <= place < end:
        raise EvaluationError(f"index {place} out of bounds [0, {length}{closing}")


def set_at(items: list[Any], place: int, value: Value) -> list[Any]:
    _checked_place(place, len(items), ")", len(items))
    return [*items[:place], value, *items[place + 1 :]]


def insert_at(items: list[Any], place: int, value: Value) -> list[Any]:
    _checked_place(place, len(items) + 1, "]", len(items))
    return [*items[:place], value, *items[place:]]


def remove_at(items: list[Any], place: int) -> list[Any]:
    _checked_place(place, len(items), ")", len(items))
    return [*items[:place], *items[place + 1 :]]


GRAPH_FUNCTIONS: Final = Library(
    name="graph",
    functions=to_functions(
        [
            function(
                "random.seededString",
                "random_seededString_int_string",
                "int, string -> string",
                seeded_string,
            ),
            function(
                "random.seededInt", "random_seededInt_int_int_string", "int, int, string -> int", seeded_int
            ),
            function("hash.fnv64a", "hash_fnv64a_string", "string -> bytes", fnv64a),
            function("hash.sha256", "hash_sha256_string", "string -> bytes", sha256),
            function("hash.md5", "hash_md5_string", "string -> bytes", md5),
            function("json.unmarshal", "json_unmarshal_string", "string -> dyn", unmarshal),
            function("json.marshal", "json_marshal_dyn", "dyn -> string", marshal),
            method("merge", "map_merge", "map(string, T), map(string, T) -> map(string, T)", merge),
            method(
                "deepMerge",
                "map_deepMerge",
                "map(string, dyn), map(string, dyn) -> map(string, dyn)",
                deep_merge,
            ),
            function("lists.setAtIndex", "lists_setAtIndex", "list(T), int, T -> list(T)", set_at),
            function("lists.insertAtIndex", "lists_insertAtIndex", "list(T), int, T -> list(T)", insert_at),
            function("lists.removeAtIndex", "lists_removeAtIndex", "list(T), int -> list(T)", remove_at),
        ]
    ),
)
