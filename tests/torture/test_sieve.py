"""Every rollout of every family, with a death, a stale view and unseen states at every moment; prints how much that was."""

from collections.abc import Iterator

import pytest

from lamina.testing.sieve import Figures, Scenario, sieve
from tests.unit.families.manifestwork.stories import scenarios as rollouts
from tests.unit.families.metacontroller.stories import scenarios as rolls

_SO_FAR: list[Figures] = []


@pytest.fixture(scope="module", autouse=True)
def figures(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\nsieve: {sum(_SO_FAR, Figures())}", flush=True)


@pytest.mark.parametrize("scenario", (*rolls(), *rollouts()), ids=lambda one: one.name)
def test_a_rollout_bears_whatever_happens_at_any_moment(scenario: Scenario) -> None:
    _SO_FAR.append(sieve(scenario))
