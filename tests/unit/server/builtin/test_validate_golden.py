"""Hundreds of invalid objects, with the errors of a real server of the same version."""

import pytest

from tests.unit.server.builtin.validation import Case, cases, said

_CASES = dict(cases())


@pytest.mark.parametrize("name", _CASES)
def test_what_is_wrong_is_said_as_a_real_server_says_it(name: str) -> None:
    case: Case = _CASES[name]

    assert said(case) == sorted((field, reason, message) for field, reason, message in case["causes"])
