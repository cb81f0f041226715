"""Whether children still are as they were seen: a few are read, many are listed."""

from collections.abc import Mapping

from lamina.core.questions import Absent, Answers, Found, Listed, Read, ReadAll
from lamina.families.metacontroller.certain import looks, outdated
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj
from lamina.paper.kinds import POD, make


def pod(name: str, version: str = "1", uid: str = "") -> Made:
    made = make(POD, name)
    made["metadata"] |= {"uid": uid or f"uid-{name}", "resourceVersion": version}
    return made


def seen(count: int) -> Mapping[str, tuple[Kind, Obj]]:
    return {f"p{number}": (POD, pod(f"p{number}")) for number in range(count)}


def test_a_few_are_read_one_by_one() -> None:
    asked = looks(seen(3))

    assert list(asked.values()) == [Read(POD.ref("default", f"p{number}")) for number in range(3)]


def test_many_of_one_kind_and_namespace_are_listed_at_once() -> None:
    assert set(looks(seen(1000)).values()) == {ReadAll(POD, "default")}


def test_whatever_is_another_than_was_seen_is_outdated_and_what_was_not_asked_yet_is_not() -> None:
    children = seen(4)
    asked = looks(children)
    answers = Answers(
        {
            asked["p0"]: Found(pod("p0")),
            asked["p1"]: Found(pod("p1", version="2")),
            asked["p2"]: Absent(),
        }
    )

    assert outdated(children, asked, answers) == {"p1", "p2"}


def test_of_a_list_the_version_and_the_uid_count() -> None:
    children = seen(20)
    there = [pod(f"p{number}") for number in range(2, 20)]
    listed = Listed((pod("p0", uid="made-anew"), pod("p1", version="7"), *there))

    assert outdated(children, looks(children), Answers({ReadAll(POD, "default"): listed})) == {"p0", "p1"}
