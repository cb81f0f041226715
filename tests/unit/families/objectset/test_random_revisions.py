"""
Random sequences of revisions, with failures, crashes, old views and edits by hand at random moments.

Whatever is done, the promises hold after each write; and once everything is healthy, the
latest revision has succeeded, all others are archived, and nothing is left to plan.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.families.objectset.random_cluster import Overtaken, Placed, RandomCluster, Template

NAMES = ("a", "b", "c", "d", "e")
PROTECTIONS = ("", "", "Prevent", "IfNoController", "None")
SOAKS = (0, 0, 3, 40)
STATES = ("Paused", "Active", "Archived", "Deleted", "Deleted in the foreground", "Orphaned")
NUMBERS = (None, "0", "1", "3", "99")
EXAMPLES, SEEDS = 40, 60
ORPHANED_ONE_AFTER_THE_OTHER = (
    700128, 700249, 700522, 700533, 700569, 800112, 800148, 800295, 800769, 900107,
)  # fmt: skip
"""Seeds of sequences in which an object is orphaned while other revisions are owners of it, too."""


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """A template with some of the objects, each in one of three phases; an image `bad` fails until the end."""
    placed = []
    for name in NAMES:
        place = draw(st.sampled_from((None, 0, 0, 1, 1, 2)))
        if place is not None:
            image = draw(st.sampled_from(("one", "two", "three", "bad")))
            placed.append(Placed(name, place, image, draw(st.sampled_from((False, False, False, True)))))
    if not placed:
        placed = [Placed("a", 0, "one", False)]
    classed = tuple(draw(st.sampled_from((False, False, True))) for _ in range(3))
    protection = draw(st.sampled_from(PROTECTIONS))
    return Template(tuple(placed), classed, protection, draw(st.sampled_from(SOAKS)))


names = st.sampled_from(NAMES)
WORK = st.tuples(st.just("work"), st.integers(0, 25))
STEP = st.one_of(
    st.tuples(st.just("want"), templates()),
    WORK,
    WORK,
    st.tuples(st.just("time"), st.sampled_from((0.1, 2, 31))),
    st.tuples(st.just("report"), st.none()),
    st.tuples(st.just("report"), st.none()),
    st.tuples(st.just("fail"), names),
    st.tuples(st.just("heal"), names),
    st.tuples(
        st.just("object"), st.tuples(names, st.sampled_from(("deleted", "edited", "held", "released")))
    ),
    st.tuples(st.just("set"), st.tuples(st.integers(0, 2), st.sampled_from(STATES))),
    st.tuples(st.just("number"), st.tuples(names, st.sampled_from(NUMBERS))),
    st.tuples(st.just("lose phase"), st.integers(0, 5)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("crash after"), st.integers(0, 12)),
    st.tuples(
        st.just("overtake"),
        st.builds(Overtaken, st.integers(0, 3), st.integers(1, 40), st.none() | templates()),
    ),
    st.tuples(st.just("crash"), st.sampled_from((0, 1, 5, 20, 60))),
    st.tuples(st.just("no events"), st.none()),
    st.tuples(st.just("deliver"), st.tuples(st.integers(0, 5), st.booleans())),
    st.tuples(st.just("all events"), st.none()),
)
STEPS = st.lists(STEP, max_size=25)


def perform(world: RandomCluster, what: str, how: Any) -> None:
    match what:
        case "want":
            world.want(how)
        case "work":
            world.work(how)
        case "time":
            world.pass_time(how)
        case "report":
            world.report()
        case "fail":
            world.sick.add(how)
        case "heal":
            world.sick.discard(how)
        case "object":
            world.object(*how)
        case "set":
            world.set(*how)
        case "number":
            world.number(*how)
        case "lose phase":
            world.lose_phase(how)
        case "pause":
            world.pause(how)
        case "crash after":
            world.crash_after = how
        case "overtake":
            world.overtaken = how
        case "crash":
            world.crash(how)
        case "no events":
            world.stop_events()
        case "deliver":
            world.deliver(*how)
        case _:
            world.catch_up()


def plain_template(random: Random) -> Template:
    placed = [
        Placed(name, place, random.choice(("one", "two", "three", "bad")), random.random() < 0.25)
        for name in NAMES
        if (place := random.choice((None, 0, 0, 1, 1, 2))) is not None
    ]
    classed = tuple(random.random() < 0.4 for _ in range(3))
    protection, soak = random.choice(PROTECTIONS), random.choice(SOAKS)
    return Template(tuple(placed) or (Placed("a", 0, "one", False),), classed, protection, soak)


def plain_steps(random: Random, weights: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    """Yield random steps, as many and as mixed as hypothesis seldom makes them."""
    for _ in range(random.randrange(15, 45)):
        match random.choices(*zip(*weights.items(), strict=True))[0]:
            case "want":
                yield "want", plain_template(random)
            case "work":
                yield "work", random.randrange(25)
            case "time":
                yield "time", random.choice((0.1, 2, 31))
            case "fail" | "heal" as what:
                yield what, random.choice(NAMES)
            case "object":
                how = random.choice(("deleted", "edited", "held", "released"))
                yield "object", (random.choice(NAMES), how)
            case "set":
                yield "set", (random.randrange(3), random.choice(STATES))
            case "number":
                yield "number", (random.choice(NAMES), random.choice(NUMBERS))
            case "lose phase":
                yield "lose phase", random.randrange(6)
            case "pause":
                yield "pause", random.random() < 0.5
            case "crash after":
                yield "crash after", random.randrange(12)
            case "overtake":
                then = plain_template(random) if random.random() < 0.5 else None
                yield "overtake", Overtaken(random.randrange(4), random.randrange(1, 41), then)
            case "crash":
                yield "crash", random.choice((0, 1, 5, 20, 60))
            case "deliver":
                yield "deliver", (random.randrange(6), random.random() < 0.5)
            case what:
                yield what, None


WEIGHTS = {
    "want": 18, "work": 27, "time": 10, "report": 10, "fail": 4, "heal": 3, "object": 5, "set": 3, "number": 2,
    "lose phase": 2, "pause": 3, "crash after": 3, "crash": 3, "no events": 2, "deliver": 3, "all events": 2,
}  # fmt: skip
"""How often each step is taken by one worker."""
SEVERAL_WORKERS = WEIGHTS | {"overtake": 20}
"""How often where another worker may reconcile other keys between a plan and its writes."""


def plain_run(seed: int, weights: Mapping[str, int] = WEIGHTS) -> None:
    """Run the random steps of a seed, on sets without a deployment for every third one."""
    random = Random(seed)
    first, steps = plain_template(random), list(plain_steps(random, weights))
    run(first, steps, seed, has_deployment=seed % 3 != 0)


def run(first: Template, steps: list[tuple[str, Any]], seed: int, *, has_deployment: bool = True) -> None:
    world = RandomCluster(seed, has_deployment=has_deployment)
    world.sick.add("bad")
    world.want(first)
    world.pass_time(1)
    world.report()
    try:
        for what, how in steps:
            world.log.append(f"-- {what} {how}")
            perform(world, what, how)
        world.log.append("-- come to rest")
        world.come_to_rest()
        world.check_rest()
    except AssertionError as violation:
        writes = "\n".join(world.log[-80:])
        pytest.fail(f"{violation}\n{writes}", pytrace=False)


@given(first=templates(), steps=STEPS, seed=st.integers(0, 2**16), has_deployment=st.booleans())
@settings(max_examples=EXAMPLES)
def test_whatever_happens_no_needed_object_is_lost_and_the_latest_revision_has_everything_in_the_end(
    first: Template, steps: list[tuple[str, Any]], seed: int, has_deployment: bool
) -> None:
    run(first, steps, seed, has_deployment=has_deployment)


@pytest.mark.parametrize("seed", (*range(SEEDS), *ORPHANED_ONE_AFTER_THE_OTHER))
def test_a_long_random_sequence_loses_nothing_either(seed: int) -> None:
    plain_run(seed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_several_workers_lose_nothing_either(seed: int) -> None:
    plain_run(seed, SEVERAL_WORKERS)
