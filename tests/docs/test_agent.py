"""The page on agents agrees with the code."""

import re
from pathlib import Path

from lamina.core.apply.apply_order import OTHERS, RANKS
from lamina.core.model.agents import AgentOptions
from lamina.families.manifestwork.agent import condition_rules, status
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "concepts" / "agent.md"


def test_every_kind_that_has_a_turn_is_shown_in_it() -> None:
    shown = dict(re.findall(r"^\| (\d) \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    turns = {
        str(turn): ", ".join(k.kind for k, rank in RANKS.items() if rank == turn) for turn in range(OTHERS)
    }

    assert shown == {**turns, str(OTHERS): "all other kinds"}


def test_every_reason_of_a_condition_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    said = re.findall(
        r'"((?:Applied|Resource|Resources|Fetching|Incomplete|StatusFeedback|NoStatus)\w+)"', _source()
    )

    assert {*said, *condition_rules.REASONS, status.AGGREGATED} - {"StatusFeedbackSynced"} <= described
    assert {"Applying", "Completed", "Failed", "WorkDeleting", "StatusFeedbackSynced"} <= described


def _source() -> str:
    return Path(status.__file__).read_text()


def test_the_numbers_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert f"up to {AgentOptions().watches} kinds" in text
    assert "every 10 to 19 seconds" in text and AgentOptions().poll.total_seconds() == 10
    assert "an hour later" in text and AgentOptions().eviction.total_seconds() == 3600
