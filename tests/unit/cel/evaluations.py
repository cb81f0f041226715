"""
What Kubernetes makes of expressions when it evaluates them, as it was recorded.

    python -m tests.unit.cel.evaluations

asks again: it builds and runs `golden/evaluator`, a small Go program with the
environment of Kubernetes 1.35. An answer has a value in Go's words, or an error,
and what it cost.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

_GOLDEN = Path(__file__).with_name("golden")
ANSWERS = _GOLDEN / "evaluations.jsonl"

VARIABLES: dict[str, Any] = {
    "x": {
        "a": {
            "b": "hello",
            "n": 3,
            "f": 1.5,
            "l": [1, 2, 3],
            "nil": None,
            "t": True,
            "s": ["x", "yy", "zzz"],
        },
        "m": {"k": "v"},
        "i": 1,
        "key": "a",
        "deep": {"x": {"y": {"z": 1}}},
        "items": [{"name": "n1", "v": 1}, {"name": "n2", "v": 2}],
        "e": [],
        "big": "lorem ipsum dolor sit amet consectetur",
    }
}


def answers() -> list[dict[str, Any]]:
    """Return every expression with its answer."""
    return [json.loads(line) for line in ANSWERS.read_text().splitlines()]


def record() -> None:
    """Ask about every expression, and write the answers down."""
    expressions = (_GOLDEN / "evaluations.txt").read_text().splitlines()
    asked = "\n".join(json.dumps({"Expression": text, "Variables": VARIABLES}) for text in expressions)
    done = subprocess.run(
        ["go", "run", "-mod=mod", "."],
        cwd=_GOLDEN / "evaluator",
        input=asked,
        text=True,
        capture_output=True,
        check=True,
    )
    with ANSWERS.open("w") as file:
        for text, line in zip(expressions, done.stdout.splitlines(), strict=True):
            file.write(json.dumps({"expression": text} | json.loads(line), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    record()
