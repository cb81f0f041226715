"""Reads the tables that `make tables` wrote, each at most once and only when somebody asks."""

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
    Return one table. Everybody gets the same dict: look, and do not touch.

    Raises LookupError when there is no such table.
    """
    try:
        packed = (DATA / f"{name}.json.z").read_bytes()
    except FileNotFoundError:
        raise LookupError(f"there is no table of {name}") from None
    read: dict[str, Any] = orjson.loads(zlib.decompress(packed))
    return read
