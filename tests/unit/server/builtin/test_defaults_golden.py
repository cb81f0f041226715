"""What a real server made of many bodies, and what ours makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.server.builtin.golden.cases import Case, cases
from tests.unit.server.builtin.golden.compare import answers, created, updated

CASES = list(cases())
CHANGES = [
    pytest.param(case, number, id=f"{case.name}-{number}-{endpoint or 'itself'}")
    for case in CASES
    for number, (endpoint, _) in enumerate(case.updates)
]


def _text(obj: Any) -> str:
    """Return JSON in which 1, 1.0 and true differ."""
    return json.dumps(obj, indent=1, sort_keys=True)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_new_object_becomes_what_a_real_server_makes_of_it(case: Case) -> None:
    real = answers()[case.name]["created"]

    assert _text(created(case, real)) == _text(real)


@pytest.mark.parametrize(("case", "number"), CHANGES)
def test_a_changed_object_becomes_what_a_real_server_makes_of_it(case: Case, number: int) -> None:
    endpoint, body = case.updates[number]
    recorded = answers()[case.name]["updates"][number]

    ours = updated(case, endpoint, body, recorded["before"], recorded["after"])

    assert _text(ours) == _text(recorded["after"])
