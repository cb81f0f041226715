"""Every rollout of every family, with a crash, a stale cache and missed events at every step; prints the number of runs."""

from collections.abc import Iterator

import pytest

from lamina.testing.crash_explorer import Coverage, Scenario, explore
from tests.unit.families.manifestwork.stories import scenarios as rollouts
from tests.unit.families.metacontroller.stories import scenarios as rolls
from tests.unit.families.resourcegraph.definitions.stories import scenarios as definitions
from tests.unit.families.resourcegraph.instances.rollout_stories import scenarios as rollouts_of_graphs
from tests.unit.families.resourcegraph.instances.stories import scenarios as instances

_SO_FAR: list[Coverage] = []


@pytest.fixture(scope="module", autouse=True)
def figures(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\ncrash explorer: {sum(_SO_FAR, Coverage())}", flush=True)


@pytest.mark.parametrize(
    "scenario",
    (*rolls(), *rollouts(), *definitions(), *instances(), *rollouts_of_graphs()),
    ids=lambda one: one.name,
)
def test_a_rollout_bears_whatever_happens_at_any_moment(scenario: Scenario) -> None:
    _SO_FAR.append(explore(scenario))
