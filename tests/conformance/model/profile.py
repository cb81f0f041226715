"""The number of hypothesis examples, and the seed."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

F = TypeVar("F", bound=Callable[..., Any])


def chosen_seed() -> int | None:
    """Return the seed in LAMINA_TEST_SEED; without it every run is the same."""
    named = os.environ.get("LAMINA_TEST_SEED")
    return int(named) if named else None


def seeded(function: F) -> F:
    """Run a test with the selected seed."""
    chosen = chosen_seed()
    return function if chosen is None else seed(chosen)(function)


def profile(*, examples: int, steps: int = 50) -> settings:
    """Return settings with a number of examples, or with LAMINA_TEST_EXAMPLES."""
    return settings(
        max_examples=int(os.environ.get("LAMINA_TEST_EXAMPLES", examples)),
        stateful_step_count=steps,
        derandomize=chosen_seed() is None,
        database=None,
        deadline=None,
        print_blob=False,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
