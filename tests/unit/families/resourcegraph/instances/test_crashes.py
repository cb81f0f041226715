"""
Simulated instances whose process crashes, gets a stale view, or misses events, at moments spread over each story.

`make torture` tries every moment of each.
"""

from datetime import timedelta

import pytest

from lamina.testing.crash_explorer import Scenario, explore
from lamina.testing.scenario import Run
from tests.unit.families.resourcegraph.instances.stories import scenarios

EVERY = 19
STORIES = pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)


@pytest.mark.check("RG-62")
@pytest.mark.check("RG-104")
@STORIES
def test_instances_bear_crashes_stale_views_and_missed_events(scenario: Scenario) -> None:
    figures = explore(scenario, every=EVERY)

    assert figures.runs >= 2 * (figures.checkpoints // EVERY)


@STORIES
def test_every_story_ends_well(scenario: Scenario) -> None:
    cluster = scenario.given()
    Run(scenario, cluster).loop.until(cluster.now + timedelta(minutes=1))
    run = Run(scenario, cluster)
    run.resume()

    states = {
        ref.name: (obj.get("status") or {}).get("state")
        for ref, obj in cluster.objects.items()
        if ref.kind == "App"
    }
    assert set(states.values()) <= {"ACTIVE"}
    assert run.writes
