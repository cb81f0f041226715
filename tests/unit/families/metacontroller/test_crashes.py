"""
Simulated rollouts whose process crashes, gets a stale view, or misses events, at moments spread over each story.

`make torture` tries every moment; here it is one in `EVERY`, and other stories cover the moments in between.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.objects import meta
from lamina.simulation import Crashed
from lamina.testing.crash_explorer import Scenario, explore
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats, planned
from tests.unit.families.metacontroller.stories import WAYS, scenarios

EVERY = 31


@pytest.mark.parametrize("scenario", tuple(scenarios()), ids=lambda one: one.name)
def test_a_roll_bears_deaths_stale_views_and_unseen_states(scenario: Scenario) -> None:
    figures = explore(scenario, every=EVERY)

    assert figures.runs >= 3 * (figures.checkpoints // EVERY)


IMAGES = st.sampled_from(("one", "two", "three"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("image"), IMAGES),
        st.tuples(st.just("replicas"), st.integers(0, 4)),
        st.tuples(st.just("ready"), st.sampled_from(("True", "False"))),
        st.tuples(st.just("kill"), st.integers(0, 3)),
        st.tuples(st.just("lose"), st.integers(0, 2)),
        st.tuples(st.just("work"), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=10,
)


@given(way=st.sampled_from(tuple(WAYS)), steps=STEPS)
@settings(max_examples=60)
def test_whatever_is_done_to_it_it_comes_to_rest_where_the_spec_says_and_then_plans_nothing(
    way: str, steps: list[tuple[str, Any]]
) -> None:
    """The same view gives the same plan, all the way; a settled world gives an empty one."""
    cats, how = Cats(), WAYS[way]
    controller = cats.controller(**how)
    cats.start()
    cats.roll(**how)
    for what, amount in steps:
        _done(cats, what, amount, how)
        assert planned(cats, controller, PARENT) == planned(cats, controller, PARENT)
    cats.roll(**how)

    spec = cats.get(PARENT)["spec"]
    assert cats.pods() == {f"nginx-{number}": spec["template"]["image"] for number in range(spec["replicas"])}
    assert cats.condition()["status"] == "True"
    assert len(cats.revisions()) == 1
    assert planned(cats, controller, PARENT).actions == ()


def _done(cats: Cats, what: str, amount: Any, how: dict[str, Any]) -> None:
    match what:
        case "image":
            cats.want(template={"image": amount})
        case "replicas":
            cats.want(replicas=amount)
        case "ready":
            cats.ready(status=amount)
        case "kill":
            for pod in cats.listed(POD)[amount : amount + 1]:
                cats.delete(meta.ref(pod))
        case "lose":
            for revision in cats.revisions()[amount : amount + 1]:
                cats.delete(meta.ref(revision))
        case _:
            with suppress(Crashed):
                cats.settle(crash_after=amount, **how)
