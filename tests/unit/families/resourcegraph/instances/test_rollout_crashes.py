"""
The controllers of definitions and of instances together: their process crashes, gets a stale view, or misses events.

`make torture` tries every moment of each story.
"""

from datetime import timedelta

import pytest

from lamina.objects import meta
from lamina.simulation import SimulatedCluster
from lamina.testing.crash_explorer import Scenario, explore
from lamina.testing.scenario import Run
from tests.unit.families.resourcegraph.instances.promises import inputs_of
from tests.unit.families.resourcegraph.instances.rollout_stories import COUNT, STORIES, outcome, scenarios
from tests.unit.families.resourcegraph.instances.world import app, cm

EVERY = 97
ENDS = {
    "a definition that is edited, in waves": ["2", "1", "2", "2", "2"],
    "a definition that is rolled back in the middle of a wave": ["3", "1", "3", "3", "3"],
    "a definition that is rolled back in waves, in the middle of a wave": ["3", "1", "3", "3", "3"],
    "an instance that is pinned in the middle of a wave": ["2", "1", "1", "2", "2"],
}
"""The revisions of the instances at the end of each story."""
SCENARIOS = pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)


@pytest.mark.check("RG-84")
@pytest.mark.check("RG-104")
@SCENARIOS
def test_rollouts_bear_crashes_stale_views_and_missed_events(scenario: Scenario) -> None:
    figures = explore(scenario, every=EVERY)

    assert figures.runs >= 2 * (figures.checkpoints // EVERY)


@SCENARIOS
def test_every_story_ends_well(scenario: Scenario) -> None:
    cluster = scenario.given()
    Run(scenario, cluster).loop.until(cluster.now + timedelta(minutes=1))
    run = Run(scenario, cluster)
    run.resume()

    found = outcome(cluster)
    assert {found[f"instance a{number}"]["state"] for number in range(COUNT)} == {"ACTIVE"}
    stamps = [
        meta.annotations(cluster.get(cm(f"a{number}-b")))["kro.run/rgd-revision"] for number in range(COUNT)
    ]
    assert stamps == ENDS[scenario.name]
    if "rolled back" in scenario.name:
        # The rollback comes in the middle: the first instance was moved by then, and the last was not.
        assert [_recorded(cluster, f"a{number}") for number in (0, COUNT - 1)] == [[1, 2, 3], [1, 3]]


def _recorded(cluster: SimulatedCluster, name: str) -> list[int]:
    """The revisions of the definition that an instance was moved to."""
    found = inputs_of(cluster.objects, cluster.get(app(name)))
    return [found[number]["spec"]["rgdRevision"] for number in sorted(found)]


def test_each_story_has_an_end() -> None:
    assert ENDS.keys() == STORIES.keys()
