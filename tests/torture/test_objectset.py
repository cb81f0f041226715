"""ObjectSets with a crash, a stale view and missed events at every moment, and many random sequences of revisions."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.testing.crash_explorer import Scenario, explore
from tests.unit.families.objectset.random_cluster import Template
from tests.unit.families.objectset.stories import scenarios
from tests.unit.families.objectset.test_random_revisions import (
    SEVERAL_WORKERS,
    STEP,
    plain_run,
    run,
    templates,
)

EXAMPLES, SHORTEST, LONGEST = 5_000, 15, 70
SEEDS, AT_ONCE = 5_000, 100


@pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)
def test_revisions_bear_whatever_happens_at_any_moment(scenario: Scenario) -> None:
    explore(scenario)


@given(
    first=templates(),
    steps=st.lists(STEP, min_size=SHORTEST, max_size=LONGEST),
    seed=st.integers(0, 2**16),
    has_deployment=st.booleans(),
)
@settings(max_examples=EXAMPLES, derandomize=False, suppress_health_check=list(HealthCheck))
def test_random_revisions_bear_whatever_happens(
    first: Template, steps: list[tuple[str, Any]], seed: int, has_deployment: bool
) -> None:
    run(first, steps, seed, has_deployment=has_deployment)


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_long_random_sequences_lose_nothing(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        plain_run(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_long_random_sequences_of_several_workers_lose_nothing(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        plain_run(seed, SEVERAL_WORKERS)
