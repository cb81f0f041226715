"""Differences between the embedded server and a real one that are known, and why they are there."""

from tests.bed.wire import APPLY
from tests.conformance.model.programs import Saying


def excused(saying: Saying, expected: list[str]) -> str:
    """Return why the embedded server may say something else here, or nothing if it may not."""
    if saying.content == APPLY and any('Invalid value: "null"' in line for line in expected):
        return "a map that is stated as empty stays an empty map; the real server makes it null, and refuses that"
    return ""
