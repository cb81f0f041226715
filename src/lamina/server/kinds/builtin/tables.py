"""Loads the tables that `make tables` generates, each on first use and once."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

DATA: Final = Path(__file__).parent / "data"


@cache
def table(name: str) -> dict[str, Any]:
    """
    Return a table. The dict is shared and must not be modified.

    Raises LookupError for an unknown table.
    """
    try:
        compressed = (DATA / f"{name}.json.z").read_bytes()
    except FileNotFoundError:
        raise LookupError(f"there is no table of {name}") from None
    read: dict[str, Any] = orjson.loads(zlib.decompress(compressed))
    return read
