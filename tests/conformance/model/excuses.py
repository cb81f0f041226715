"""Known differences between the embedded server and a real one, with reasons."""

from tests.bed.wire import APPLY
from tests.conformance.model.programs import Saying


def excused(saying: Saying, expected: list[str]) -> str:
    """Return why the embedded server may respond differently here, or an empty string."""
    if saying.content == APPLY and any('Invalid value: "null"' in line for line in expected):
        return "a map that is stated as empty stays an empty map; the real server makes it null, and refuses that"
    return ""
