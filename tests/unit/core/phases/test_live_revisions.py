"""Revisions and other objects that are read live, because a cache may lack them."""

from collections.abc import Iterable

import pytest

from lamina.core.model.plan import Plan
from lamina.core.model.queries import Absent, Answer, Answers, Found, Listed, Read, ReadAll, Refused, Unserved
from lamina.core.phases.live_revisions import linked_to, live_revisions, uncached, uncached_owner
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.object_list import listed, read_listed
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj
from tests.unit.core.phases.objects import owner_object

STACK = Kind("ex.com/v1", "Stack", "stacks", True)
LISTED = ReadAll(STACK, "team")


def read(number: int, *, whole: bool = True) -> Read:
    return Read(STACK.ref("team", f"stack-{number}"), whole)


@pytest.mark.parametrize(
    ("links", "found"),
    [({}, []), ({1: [2]}, [2]), ({1: [2], 2: [3, 1], 3: [2]}, [2, 3]), ({2: [3]}, [])],
    ids=["none", "direct", "by another one, and in a circle", "of others"],
)
def test_revisions_are_linked_by_others(links: dict[int, list[int]], found: list[int]) -> None:
    numbers = {f"uid-{number}": number for number in (1, 2, 3)}

    def linked(one: Obj) -> Iterable[Obj]:
        return map(owner_object, links.get(numbers[meta.uid(one)], ()))

    assert [numbers[meta.uid(one)] for one in linked_to(owner_object(1), linked)] == found


def test_the_metadata_of_all_is_listed_and_only_some_are_read_whole() -> None:
    first = live_revisions(STACK, "team", {"uid-2"}, Answers())
    assert isinstance(first, Plan)
    assert first.queries == (LISTED,)

    there = Answers({LISTED: Listed(tuple(map(owner_object, (1, 2, 3))))})
    second = live_revisions(STACK, "team", {"uid-2"}, there)
    assert isinstance(second, Plan)
    assert second.queries == (read(1), read(3))

    there |= {read(1): Found(owner_object(1)), read(3): Absent()}
    assert live_revisions(STACK, "team", {"uid-2"}, there) == [owner_object(1)]


@pytest.mark.parametrize(
    "answers",
    [
        {LISTED: Refused(503, "no")},
        {LISTED: Unserved()},
        {LISTED: Listed((owner_object(1),)), read(1): Refused(503, "no")},
    ],
)
def test_what_cannot_be_read_is_waited_for(answers: dict[object, Answer]) -> None:
    found = live_revisions(STACK, "team", (), Answers(answers))  # type: ignore[arg-type]

    assert isinstance(found, Plan)
    assert not found.queries
    assert found.requeue_after is not None


@pytest.mark.parametrize(
    ("answer", "waits"), [(Absent(), False), (Found(owner_object(1)), True), (Unserved(), True)]
)
def test_an_object_that_a_cache_lacks_is_waited_for_unless_there_is_none(answer: Answer, waits: bool) -> None:
    ref = STACK.ref("team", "stack-1")
    asked = uncached([ref], Answers())
    assert asked is not None
    assert asked.queries == (Read(ref),)

    found = uncached([ref], Answers({Read(ref): answer}))

    assert (found is not None) == waits
    assert found is None or found.because == "stack team/stack-1 is not in the cache yet"


def owned(uid: str = "uid-1") -> Made:
    reference = {**meta.owner_ref(owner_object(1), controller=True), "uid": uid}
    metadata = {"name": "a", "namespace": "team", "ownerReferences": [reference]}
    return {"apiVersion": "ex.com/v1", "kind": "StackPhase", "metadata": metadata}


def test_the_controller_of_an_object_is_waited_for_where_it_is_that_very_one() -> None:
    there = Answers({read(1, whole=False): Found(owner_object(1))})

    assert uncached_owner({"metadata": {"name": "a"}}, Answers()) is None
    asked = uncached_owner(owned(), Answers())
    assert asked is not None
    assert asked.queries == (read(1, whole=False),)
    assert uncached_owner(owned(), there) is not None
    assert uncached_owner(owned("uid of one before"), there) is None
    assert uncached_owner(owned(), Answers({read(1, whole=False): Absent()})) is None


def test_a_status_lists_objects_without_the_version_of_their_kind() -> None:
    keys = [ObjectKey("apps", "Deployment", "team", "web"), ObjectKey("", "Node", "", "one")]

    entries = listed(keys)

    assert entries[0] == {
        "kind": "Deployment",
        "group": "apps",
        "name": "web",
        "namespace": "team",
        "version": "",
    }
    assert entries[1] == {"kind": "Node", "group": "", "name": "one", "version": ""}
    assert list(read_listed(entries)) == keys
