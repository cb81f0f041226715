"""The page on replica sets agrees with the code."""

import re

from lamina.families.manifestwork.hub import phase
from tests.docs.transitions import BEGIN, END, PAGE, printed


def test_the_tables_are_what_the_code_does() -> None:
    """If this fails, print them again: `python -m tests.docs.transitions`."""
    shown = PAGE.read_text().split(BEGIN)[1].split(END)[0].strip()

    assert shown == printed()


def test_every_reason_of_a_condition_is_described() -> None:
    reasons = {value for name, value in vars(phase).items() if name.isupper() and isinstance(value, str)}
    described = set(re.findall(r"`(\w+)`", PAGE.read_text()))

    assert reasons <= described
