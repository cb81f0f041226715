"""The sieve finds what it is for: controllers that forget, that trust old views, and that need to see everything."""

from datetime import datetime, timedelta

import pytest

from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Create, Delete, Plan, change, one_stage
from lamina.core.questions import Answers
from lamina.core.world import World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.paper import Paper
from lamina.paper.kinds import CONFIG_MAP, WIDGET, make
from lamina.testing.sieve import Mishap, Scenario, SieveError, Wrote, sieve

OWNER = WIDGET.ref("default", "w")


def given() -> Paper:
    paper = Paper()
    paper.create(make(WIDGET, "w", spec={"size": 1}))
    return paper


def resized(paper: Paper) -> None:
    paper.patch(OWNER, {"spec": {"size": 3}})


def maps(world: World) -> list[Obj]:
    return sorted(world.every(CONFIG_MAP.group_kind), key=meta.name)


def controller(plan: object) -> Controller[tuple[Obj, list[Obj]]]:
    """Return a controller that has as many ConfigMaps as its Widget says, by some plan."""

    def gather(world: World, ref: Ref) -> tuple[Obj, list[Obj]] | None:
        owner = world.get(ref)
        return (owner, maps(world)) if owner is not None else None

    return Controller(
        name="maps",
        watches=(
            Watch(selects=only("ex.example.com", "Widget"), concerns=itself),
            Watch(selects=only("", "ConfigMap"), concerns=lambda world, change: (OWNER,)),
        ),
        gather=gather,
        plan=plan,  # type: ignore[arg-type]
    )


def by_name(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
    """Names are given by number: who makes one twice is refused."""
    owner, there = view
    wanted = [f"w-{number}" for number in range(owner["spec"]["size"])]
    missing = [Create(obj=make(CONFIG_MAP, name)) for name in wanted if name not in map(meta.name, there)]
    return one_stage("make them", missing, because="some are missing")


def by_count(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
    """Names are given by the cluster: who does not see what it made makes it again."""
    owner, there = view
    lacks = owner["spec"]["size"] - len(there)
    new = make(CONFIG_MAP, "")
    new["metadata"] = {"namespace": "default", "generateName": "w-"}
    return one_stage("make them", [Create(obj=new)] * lacks, because="some are missing")


def in_two_steps(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
    """First it is said, then it is done, and whoever dies in between believes what was said."""
    owner, there = view
    size = owner["spec"]["size"]
    if (owner.get("status") or {}).get("made") == size:
        return NOTHING
    said = change(owner, {"status": {"made": size}}, "status")
    made = [Create(obj=make(CONFIG_MAP, f"w-{number}")) for number in range(len(there), size)]
    return one_stage("say so and do it", [said, *made], because="it is another size")


def scenario(plan: object, **more: object) -> Scenario:
    return Scenario(
        name="resized", given=given, steps=(resized, timedelta(seconds=1)), controllers=(controller(plan),),
        outcome=lambda paper: len(paper.listed(CONFIG_MAP)), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_controller_that_names_what_it_makes_bears_everything() -> None:
    figures = sieve(scenario(by_name))

    assert figures.moments == 2
    assert figures.tellings >= 6


def test_who_makes_again_what_it_does_not_see_is_found_by_a_stale_view() -> None:
    with pytest.raises(SieveError, match="resized: a stale view after write .*another end") as found:
        sieve(scenario(by_count))

    assert "create configmap" in str(found.value)


def test_who_believes_what_was_said_and_not_done_is_found_by_a_death() -> None:
    with pytest.raises(SieveError, match="resized: a death after write 1, patch widget default/w"):
        sieve(scenario(in_two_steps), mishaps=[Mishap.DEATH])


def test_a_promise_is_checked_after_each_write_and_named_when_it_is_broken() -> None:
    def at_most_two(wrote: Wrote) -> None:
        assert len(wrote.paper.listed(CONFIG_MAP)) <= 2, "there are three"

    with pytest.raises(SieveError, match="resized: undisturbed: there are three"):
        sieve(scenario(by_name, promises=(at_most_two,)))


def test_who_still_finds_something_to_do_at_the_end_is_found() -> None:
    def fickle(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
        _, there = view
        if not there:
            return one_stage("make it", [Create(obj=make(CONFIG_MAP, "w-0"))], because="there is none")
        gone = [Delete(ref=meta.ref(one), uid=meta.uid(one)) for one in there]
        return Plan(stages=one_stage("end it", gone, because="").stages, because="there is one")

    with pytest.raises(SieveError, match="nobody comes to rest"):
        sieve(scenario(fickle))
