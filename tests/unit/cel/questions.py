"""The expressions whose results were recorded from cel-go and Kubernetes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    wrapper,
)

GOLDEN: Final = Path(__file__).with_name("golden")
CHECKS: Final = GOLDEN / "checks.jsonl"
RULES: Final = GOLDEN / "rules.jsonl"
VERDICTS: Final = GOLDEN / "verdicts.jsonl"
SYNTAX: Final = GOLDEN / "syntax.jsonl"

VARIABLES: Final[dict[str, Type]] = {
    "i": INT,
    "u": UINT,
    "d": DOUBLE,
    "s": STRING,
    "b": BOOL,
    "y": BYTES,
    "x": DYN,
    "n": NULL,
    "t": TIMESTAMP,
    "dur": DURATION,
    "l": list_of(INT),
    "ls": list_of(STRING),
    "ld": list_of(DYN),
    "ll": list_of(list_of(INT)),
    "m": map_of(STRING, INT),
    "mm": map_of(STRING, map_of(STRING, DYN)),
    "o": optional_of(INT),
    "om": optional_of(map_of(STRING, INT)),
    "w": wrapper(INT),
    "ws": wrapper(STRING),
    "a.b": INT,
    "a.b.c": STRING,
}
"""The declarations for the expressions of checks.txt."""

SCHEMA: Final[dict[str, Any]] = json.loads((GOLDEN / "schema.json").read_text())
"""The type of `self` in the rules of rules.txt."""


EVALUATED: Final[dict[str, Any]] = json.loads((GOLDEN / "evaluated.json").read_text())
"""The input of the rules of verdicts.txt: a schema, an object and the old object."""


def lines(name: str) -> list[str]:
    """Return the expressions of a file, one a line, with line breaks written `\\n`."""
    return [line.replace("\\n", "\n") for line in (GOLDEN / name).read_text().splitlines()]


def answers(path: Path) -> list[dict[str, Any]]:
    """Return what was recorded, question and answer together."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def broken(count: int, seed: int = 1) -> list[str]:
    """Return random rows of words that are seldom an expression."""
    words = (
        "a b.c 1 2.0 's' ( ) [ ] { } . , ? : + - * ! == < in && || f( true null `x` A{ $ b'y' 3u".split()  # noqa: SIM905
    )
    chance = random.Random(seed)
    return [" ".join(chance.choice(words) for _ in range(chance.randint(1, 8))) for _ in range(count)]
