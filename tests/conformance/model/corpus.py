"""
The recorded programs and sequences of requests, one per line.

They were generated at random once and recorded, so that a run tests the change and not
chance: what hypothesis generates from a seed depends on the constants of all imported
modules. `python -m tests.conformance.model record` records others.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tests.conformance.model.conversation import Said
from tests.conformance.model.programs import Saying

PROGRAMS = Path(__file__).with_name("programs.jsonl")
CONVERSATIONS = Path(__file__).with_name("conversations.jsonl")

_USUAL = {one.name: one.default for one in fields(Saying)} | {"query": {}}


def read_programs() -> list[list[Saying]]:
    """Return the recorded programs."""
    return [[Saying(**one) for one in json.loads(line)] for line in PROGRAMS.read_text().splitlines()]


def read_conversations() -> list[list[Said]]:
    """Return the recorded sequences."""
    lines = CONVERSATIONS.read_text().splitlines()
    return [[_said(*one) for one in json.loads(line)] for line in lines]


def write_programs(programs: Iterable[list[Saying]]) -> None:
    """Record these programs and no others."""
    _write(PROGRAMS, ([_unusual(saying) for saying in program] for program in programs))


def write_conversations(conversations: Iterable[list[Said]]) -> None:
    """Record these sequences and no others."""
    kept = ([[rule, _plain(given), _plain(drawn)] for rule, given, drawn in said] for said in conversations)
    _write(CONVERSATIONS, kept)


def _write(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def _unusual(saying: Saying) -> dict[str, Any]:
    return {name: value for name, value in asdict(saying).items() if value != _USUAL[name]}


def _said(rule: str, given: dict[str, Any], drawn: list[Any]) -> Said:
    return Said(rule, {name: _lively(value) for name, value in given.items()}, [*map(_lively, drawn)])


def _plain(value: Any) -> Any:
    """Return a value as JSON: a tuple is {"path": …}, and leaves are {"leaves": …} with the value last."""
    if isinstance(value, tuple):
        return {"path": [*map(_plain, value)]}
    if isinstance(value, dict) and all(isinstance(key, tuple) for key in value) and value:
        return {"leaves": [[*path, leaf] for path, leaf in value.items()]}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, list) else value


def _lively(value: Any) -> Any:
    if isinstance(value, dict) and "path" in value:
        return tuple(map(_lively, value["path"]))
    if isinstance(value, dict) and "leaves" in value:
        return {tuple(path): leaf for *path, leaf in value["leaves"]}
    return value
