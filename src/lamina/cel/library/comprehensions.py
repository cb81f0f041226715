"""The two-variable comprehensions extension: an index and an item, or a key and a value."""

from __future__ import annotations

from typing import Any, Final

from lamina.cel.declarations import Library
from lamina.cel.library.signature import function, to_functions
from lamina.cel.macros import MAP_INSERT, TWO_VARIABLES
from lamina.cel.operators import insert
from lamina.cel.values import Value


def insert_entry(mapping: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    return insert(mapping, key, value)


def insert_all(mapping: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        mapping = insert(mapping, key, value)
    return mapping


COMPREHENSIONS: Final = Library(
    name="comprehensions",
    functions=to_functions(
        [
            function(MAP_INSERT, "@mapInsert_map_key_value", "map(K, V), K, V -> map(K, V)", insert_entry),
            function(MAP_INSERT, "@mapInsert_map_map", "map(K, V), map(K, V) -> map(K, V)", insert_all),
        ]
    ),
    macros=TWO_VARIABLES,
)
