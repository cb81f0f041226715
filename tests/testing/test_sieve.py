"""The sieve finds what it is for: controllers that forget, that trust old views, and that need to see everything."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec import structs

from lamina.core.controller import Controller, Watch, itself, nobody, only
from lamina.core.plan import NOTHING, Create, Delete, Plan, Stage, change, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.paper import Paper
from lamina.paper.kinds import CONFIG_MAP, WIDGET, make
from lamina.testing.sieve import Mishap, Scenario, SieveError, Wrote, sieve, state

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

    # The beginning, the step, and two writes.
    assert figures.moments == 4
    assert figures.tellings >= 11


def test_who_makes_again_what_it_does_not_see_is_found_by_a_stale_view() -> None:
    with pytest.raises(SieveError, match="resized: a stale view after write .*another end") as found:
        sieve(scenario(by_count))

    assert "create configmap" in str(found.value)


def test_who_believes_what_was_said_and_not_done_is_found_by_a_death() -> None:
    with pytest.raises(SieveError, match="resized: a death after write 1, patch widget default/w"):
        sieve(scenario(in_two_steps), mishaps=[Mishap.DEATH])


def test_what_is_done_twice_after_a_death_is_found_whatever_comes_of_it() -> None:
    def by_note(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
        """Does it first and makes a note of it then; whoever dies in between does it again."""
        owner, _ = view
        note = set_status(owner, {"made": owner["spec"]["size"]})
        if note is None:
            return NOTHING
        new = make(CONFIG_MAP, "")
        new["metadata"] = {"namespace": "default", "generateName": "sent-"}
        return Plan(stages=(Stage("send", (Create(obj=new),)), Stage("note it", (note,))), because="new")

    story = replace(scenario(by_note), outcome=lambda paper: "whatever")
    sieve(story, mishaps=[Mishap.DEATH])

    with pytest.raises(
        SieveError, match="a death after write 1, .*: another way than undisturbed: 3, .* be 2"
    ):
        sieve(replace(story, deeds=lambda paper: len(paper.listed(CONFIG_MAP))), mishaps=[Mishap.DEATH])


def test_a_promise_is_checked_after_each_write_and_named_when_it_is_broken() -> None:
    def at_most_two(wrote: Wrote) -> None:
        assert len(wrote.paper.listed(CONFIG_MAP)) <= 2, "there are three"

    with pytest.raises(SieveError, match="resized: undisturbed: there are three"):
        sieve(scenario(by_name, promises=(at_most_two,)))


def test_a_report_says_at_which_step_it_was_and_what_is_other_than_it_should_be() -> None:
    story = replace(scenario(in_two_steps), outcome=state)

    with pytest.raises(SieveError) as found:
        sieve(story, mishaps=[Mishap.DEATH])

    assert str(found.value).splitlines() == [
        "resized: a death after write 1, patch widget default/w, in step 2 of 2: another end than undisturbed: ",
        "  configmap default/w-1 is missing",
        "  configmap default/w-2 is missing",
        "what it wrote since, to the end or the last thirty: nothing",
    ]


def refer(paper: Paper) -> None:
    """Make something, and then say on the widget that it is there."""
    paper.create(make(CONFIG_MAP, "settings"))
    paper.patch(OWNER, {"spec": {"settings": "settings"}})


def test_a_planner_that_stumbles_over_what_it_has_not_heard_of_yet_is_found() -> None:
    def trusting(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
        owner, there = view
        if settings := owner["spec"].get("settings"):
            assert {meta.name(one): one for one in there}[settings]
        return by_name(view, answers, now)

    story = replace(scenario(trusting), steps=(resized, timedelta(seconds=1), refer))

    with pytest.raises(
        SieveError, match="resized: unseen states as it begins: KeyError: .settings."
    ) as found:
        sieve(story)
    assert isinstance(found.value.__cause__, KeyError)


def test_who_has_to_see_every_state_is_found_by_those_it_does_not_see() -> None:
    """It is told of a widget that grows only when it sees it grow, from one to two and from two to three."""

    def grew(world: World, change: Change) -> tuple[Ref, ...]:
        before, after = ((one or {}).get("spec", {}).get("size", 0) for one in (change.before, change.after))
        return (change.ref,) if change.before is None or after == before + 1 else ()

    told = controller(by_name)
    widgets, maps = told.watches
    seen = (structs.replace(widgets, concerns=grew), structs.replace(maps, concerns=nobody))
    watching = structs.replace(told, watches=seen)
    steps = tuple(
        step
        for size in (2, 3, 4)
        for step in (
            lambda paper, size=size: paper.patch(OWNER, {"spec": {"size": size}}),
            timedelta(seconds=1),
        )
    )
    story = replace(scenario(by_name), controllers=(watching,), steps=steps)

    with pytest.raises(
        SieveError, match="resized: unseen states as it begins: another end than undisturbed: 1"
    ):
        sieve(story, mishaps=[Mishap.UNSEEN])
    # By whatever the end is told: who starts anew sees what was missed.
    with pytest.raises(SieveError, match="unseen states as it begins: .*: create configmap default/w-1"):
        sieve(replace(story, outcome=lambda paper: "whatever"), mishaps=[Mishap.UNSEEN])


def test_a_story_in_which_nothing_is_written_is_refused() -> None:
    with pytest.raises(SieveError, match="resized: undisturbed: whoever is put to the test writes nothing"):
        sieve(scenario(lambda view, answers, now: NOTHING))


def test_who_still_finds_something_to_do_at_the_end_is_found() -> None:
    def fickle(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
        _, there = view
        if not there:
            return one_stage("make it", [Create(obj=make(CONFIG_MAP, "w-0"))], because="there is none")
        gone = [Delete(ref=meta.ref(one), uid=meta.uid(one)) for one in there]
        return Plan(stages=one_stage("end it", gone, because="").stages, because="there is one")

    with pytest.raises(SieveError, match="nobody comes to rest"):
        sieve(scenario(fickle))


def test_what_is_left_to_do_at_the_end_is_named() -> None:
    seen: list[str] = []

    def forgetful(view: tuple[Obj, list[Obj]], answers: Answers, now: datetime) -> Plan:
        """Does something the first time it sees a size, and not again; and whoever comes after it does it again."""
        owner, _ = view
        if str(owner["spec"]["size"]) in seen:
            return NOTHING
        seen.append(str(owner["spec"]["size"]))
        return one_stage("say so", [change(owner, {"status": {"size": len(seen)}}, "status")], because="new")

    told = scenario(forgetful)
    ends = replace(told, outcome=lambda paper: seen.clear())

    with pytest.raises(SieveError, match="still finds something to do: patch widget default/w\n"):
        sieve(ends)
