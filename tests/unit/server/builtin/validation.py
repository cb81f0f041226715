"""
Invalid objects, and the errors of a real server.

A golden file is a list of cases. A create case has an `object`; an update case has the `old`
object as stored, the `new` one, and perhaps a `subresource`. `causes` are the errors: field,
reason, message.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.server.kinds import metadata
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.kind import Findings, Kind

GOLDEN = Path(__file__).with_name("golden_validation")
UID = "5f2c9d5e-8f0e-4f0e-9b67-5a3c0c1d2e3f"

KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}

Case = dict[str, Any]
Said = list[tuple[str, str, str]]


def cases() -> Iterator[tuple[str, Case]]:
    """Yield every case with a name."""
    for file in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(file.read_text()):
            yield f"{file.stem}: {case['case']}", case


def kind_of(obj: dict[str, Any]) -> Kind:
    return KINDS[obj["apiVersion"], obj["kind"]]


def said(case: Case) -> Said:
    """Return our errors for a case, only the first line of each message."""
    causes = _created(case["object"]) if "object" in case else _updated(case)
    return first_lines([(cause.field, cause.reason, cause.message) for cause in causes])


def first_lines(causes: Said) -> Said:
    """Return causes without repetition, and without the diffs in some messages."""
    shown = [(field, reason, message.partition("\n")[0]) for field, reason, message in causes]
    return sorted(set(shown))


def _created(obj: dict[str, Any]) -> list[Any]:
    kind = kind_of(obj)
    made = _decoded(kind, obj)
    meta = made["metadata"]
    if kind.stored:
        meta |= {"uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}
    kind.shape.default(made)
    kind.shape.prepare_create(made)
    about_metadata = metadata.validate_create(kind, made) if kind.stored else []
    return [*about_metadata, *kind.shape.validate_create(made)]


def _updated(case: Case) -> list[Any]:
    kind, below = kind_of(case["old"]), case.get("subresource", "")
    old, new = _decoded(kind, case["old"]), _decoded(kind, case["new"])
    metadata.restore(new["metadata"], old["metadata"])
    kind.shape.default(new)
    kind.shape.prepare_update(new, old, below)
    return [*metadata.validate_update(kind, new, old), *kind.shape.validate_update(new, old, below)]


def _decoded(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    body = {key: copy.deepcopy(value) for key, value in obj.items() if key not in {"apiVersion", "kind"}}
    made = kind.shape.decode(body, Findings())
    meta = made.setdefault("metadata", {})
    if kind.namespaced:
        meta.setdefault("namespace", "default")
    return made
