"""The objects of revisions as the targets of a rollout."""

from typing import Any

import pytest

from lamina.core.model.queries import Answers, Listed
from lamina.core.model.state import State
from lamina.core.phases.archive import RevisionFacts
from lamina.core.phases.contents import Contents
from lamina.core.phases.live_objects import follows, live_objects, unfollowed
from lamina.core.phases.targets import RevisionObjects, targets
from lamina.core.rollout.owner_status import TargetStatus
from lamina.objects.types import Condition, Obj
from tests.unit.core.phases.objects import BROKEN, READY, body, key, live, manifest, owner_object, ready


def revision(
    number: int,
    contains: str,
    controls: str = "",
    *,
    elsewhere: str = "",
    available: bool = False,
    succeeded: bool = False,
    message: str = "",
    **fields: Any,
) -> RevisionObjects:
    """A revision whose objects have names of one letter."""
    condition: Condition = {"type": "Available", "status": str(available), "message": message}
    obj = {**owner_object(number), "status": {"conditions": [condition] if message else []}}
    facts = RevisionFacts(
        obj=obj,
        number=number,
        contents=Contents({key(name): "east" if name in elsewhere else "" for name in contains}),
        controlled=frozenset(map(key, controls)),
        is_live=True,
        is_available=available,
        was_available=available,
        has_succeeded=succeeded,
        is_in_transition=False,
        is_reported=True,
    )
    return RevisionObjects(
        facts=facts,
        manifests=tuple(map(manifest, contains)),
        elsewhere=frozenset(map(key, elsewhere)),
        probes=ready(),
        **fields,
    )


def answered(*objects: Obj, revisions: list[RevisionObjects]) -> Answers:
    wanted = [one for each in revisions for one in each.here]
    return Answers({query: Listed(objects) for query in follows(wanted)})


def found(
    *revisions: RevisionObjects, objects: list[Obj] | None = None, owner: State = State.PROGRESSING
) -> dict[str, TargetStatus]:
    """Return the targets of revisions, of which the last one is the latest."""
    answers = answered(*objects, revisions=[*revisions]) if objects is not None else None
    return targets(revisions, revisions[-1], owner, answers)


def states(all_of_them: dict[str, TargetStatus]) -> dict[str, State]:
    return {name.rpartition("/")[2]: one.state for name, one in all_of_them.items()}


def test_targets_are_named_by_phase_and_have_the_revision_that_controls_them() -> None:
    those = found(revision(1, "ab", "b"), revision(2, "ab", "a"), objects=[live("a", conditions=[READY])])

    assert {name: one.revision for name, one in those.items()} == {
        "deploy/ConfigMap team/a": 2,
        "deploy/ConfigMap team/b": 1,
    }


def test_what_only_an_older_revision_has_comes_last() -> None:
    those = found(revision(1, "xa", "x"), revision(2, "y", "y"), revision(3, "ba", "a"), objects=[])

    assert list(states(those)) == ["b", "a", "y", "x"]


def test_what_an_older_revision_has_given_up_is_no_target() -> None:
    assert list(states(found(revision(1, "x"), revision(2, "a", "a"), objects=[]))) == ["a"]


@pytest.mark.parametrize(
    ("controls", "objects", "owner", "state"),
    [
        ("a", [live("a", conditions=[READY])],                 State.PROGRESSING, State.HEALTHY),
        ("a", [live("a", conditions=[BROKEN])],                State.PROGRESSING, State.PROGRESSING),
        ("a", [live("a", conditions=[BROKEN])],                State.DEGRADED,    State.DEGRADED),
        ("a", [live("a", conditions=[READY], deleting=True)],  State.HEALTHY,     State.DELETING),
        ("a", [],                                              State.PROGRESSING, State.PROGRESSING),
        ("",  [],                                              State.PROGRESSING, State.PENDING),
        ("",  [],                                              State.PAUSED,      State.PAUSED),
        ("a", [live("a", conditions=[BROKEN])],                State.PAUSED,      State.PROGRESSING),
    ],
)  # fmt: skip
def test_the_state_of_a_target(controls: str, objects: list[Obj], owner: State, state: State) -> None:
    assert states(found(revision(1, "a", controls), objects=objects, owner=owner)) == {"a": state}


def test_what_an_older_revision_controls_is_healthy_there() -> None:
    objects: list[Obj] = [live("x", 1, conditions=[READY])]

    [_, older] = found(revision(1, "x", "x"), revision(2, "a", "a"), objects=objects).values()

    assert (older.state, older.available, older.revision) == (State.HEALTHY, True, 1)
    assert older.message == "controlled by stack team/stack-1"


def test_a_message_says_who_controls_a_target_and_why_it_is_not_available() -> None:
    [failing, free] = found(revision(1, "ab", "a"), objects=[live("a", conditions=[BROKEN])]).values()

    assert failing.message == 'controlled by stack team/stack-1: .status.condition["Ready"] is False'
    assert free.message == "not controlled by any revision: not found"
    assert not failing.available


# What is only reported


@pytest.mark.parametrize(
    ("fields", "available", "words"),
    [
        ({"available": True}, True, "controlled by stack team/stack-1"),
        ({"message": "ConfigMap team/a: broken"}, False, "ConfigMap team/a: broken"),
        (
            {"message": "ConfigMap team/b: broken", "succeeded": True},
            True,
            "controlled by stack team/stack-1",
        ),
        ({"message": "ConfigMap team/a: broken", "succeeded": True}, False, "ConfigMap team/a: broken"),
        ({}, False, "no status reported"),
    ],
)
def test_without_answers_targets_are_as_their_revision_reports(
    fields: dict[str, Any], available: bool, words: str
) -> None:
    [one] = found(revision(1, "a", "a", **fields)).values()

    assert one.available == available
    assert one.message.endswith(words)


def test_a_target_that_nothing_controls_has_no_status() -> None:
    [one] = found(revision(1, "a")).values()

    assert one.message == "not controlled by any revision: no status reported"
    assert one.revision == 0


def test_a_target_on_another_cluster_is_as_its_revision_reports() -> None:
    [one] = found(revision(1, "a", "a", elsewhere="a", available=True), objects=[]).values()

    assert one.state is State.HEALTHY


def test_answers_that_lack_a_query_are_none() -> None:
    those = [revision(1, "a", "a", available=True)]

    assert states(targets(those, those[0], State.HEALTHY, Answers())) == {"a": State.HEALTHY}


# What is followed


def test_the_objects_of_a_revision_that_is_over_or_elsewhere_are_not_followed() -> None:
    assert [one.key.name for one in revision(1, "ab", elsewhere="b").here] == ["a"]
    assert revision(1, "ab", is_over=True).here == ()


def test_objects_are_followed_by_kind_and_namespace() -> None:
    wanted = [manifest("b"), manifest("a"), manifest("a"), manifest("c", namespace="other")]

    queries = follows(
        [*wanted, manifest(obj={**body("d"), "kind": "Gone"}), manifest(obj=body(name=""))], "east"
    )

    assert [(one.namespaces, one.names, one.cluster) for one in queries] == [
        (("team",), ("a", "b"), "east"),
        (("other",), ("c",), "east"),
    ]


def test_objects_are_found_by_their_keys() -> None:
    wanted = [manifest("a"), manifest("b")]
    answers = Answers({one: Listed((live("a"),)) for one in follows(wanted)})

    assert live_objects(wanted, answers) == {key("a"): live("a")}
    assert live_objects(wanted, Answers()) == {}
    assert unfollowed(wanted, answers) == ()
    assert unfollowed(wanted, Answers()) == follows(wanted)
