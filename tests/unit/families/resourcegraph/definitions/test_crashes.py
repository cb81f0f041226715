"""
Simulated definitions whose controller crashes, gets a stale view, or misses events, at moments spread over each story.

`make torture` tries every moment of each.
"""

import pytest

from lamina.testing.crash_explorer import Scenario, explore
from tests.unit.families.resourcegraph.definitions.stories import scenarios

EVERY = 17


@pytest.mark.check("RG-72")
@pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)
def test_definitions_bear_crashes_stale_views_and_missed_events(scenario: Scenario) -> None:
    figures = explore(scenario, every=EVERY)

    assert figures.runs >= 3 * (figures.checkpoints // EVERY)
