"""What is remembered of a parent from one pass to the next, and what is not."""

from typing import Any

import orjson
import pytest

from lamina.core.questions import Call, Said
from lamina.families.metacontroller.hooks import Response, written
from lamina.families.metacontroller.recall import Recall, Recent, Seen, Worked
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement
from lamina.paper import Desk, Play
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats

NOBODY = LabelSelector((Requirement("app", "=", ("nobody",)),))


def test_what_one_pass_does_not_ask_for_is_forgotten_with_the_next() -> None:
    worked: Worked[str] = Worked()
    one, two = {"one": 1}, {"two": 2}
    worked.keep("of one", one)
    worked.keep("of two", two)

    worked.turn()
    assert worked.find(one) == "of one"
    worked.turn()

    assert worked.find(one) == "of one"
    assert worked.find(two) is None


def test_an_equal_object_is_another_one() -> None:
    worked: Worked[str] = Worked()
    worked.keep("it", {"a": 1})

    assert worked.find({"a": 1}) is None


def test_children_that_are_wanted_to_the_letter_are_the_very_same() -> None:
    recall = Recall()
    (first, second) = recall.same("sync", [{"n": 1}, {"n": 2}])

    again = recall.same("sync", [{"n": 2}, {"n": True}, {"n": 1}])

    assert again[0] is second
    assert again[2] is first
    assert again[1] == {"n": True}
    assert again[1]["n"] is True


def test_a_child_that_is_wanted_twice_is_there_twice() -> None:
    assert recall_of([{"n": 1}, {"n": 1}]) == ({"n": 1}, {"n": 1})


def recall_of(children: list[dict[str, Any]]) -> tuple[Any, ...]:
    return Recall().same("sync", children)


def test_an_answer_is_known_again_by_its_bytes() -> None:
    recall = Recall()
    meant = recall.note("sync", b"{}", Response())
    recall.same("sync", ())

    assert recall.answer("sync", b"{}") is meant
    assert recall.answer("sync", b"{ }") is None
    recall.only(())
    assert recall.answer("sync", b"{}") is None


def test_another_selector_has_everything_looked_at_anew() -> None:
    recall = Recall()
    recall.turn(EVERYTHING)
    recall.followed.keep((), "response")

    recall.turn(NOBODY)

    assert recall.followed.find("response") is None


@pytest.mark.parametrize(("parents", "children"), [(2, 100), (100, 3)])
def test_those_looked_at_longest_ago_are_forgotten_once_there_are_too_many(
    parents: int, children: int
) -> None:
    recent = Recent(parents, children)
    first = recent.of("a")
    first.same("sync", [{"n": 1}, {"n": 2}])
    recent.of("b").same("sync", [{"n": 1}, {"n": 2}])

    recent.of("c")

    assert recent.of("a") is not first


def test_a_hook_that_changes_its_mind_about_one_child_is_heeded() -> None:
    """Nothing of the pass before is believed that does not hold any more."""
    wanted = {"image": "one"}

    def hook(call: Call) -> Said:
        parent = orjson.loads(call.body)["parent"]
        labels = parent["spec"]["selector"]["matchLabels"]
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels},
                "spec": {"image": image},
            }
            for name, image in (("a", "one"), ("b", wanted["image"]))
        ]
        return Said(orjson.dumps({"children": pods, "status": dict(wanted)}))

    cats = Cats()
    cats.call = hook
    cats.start()
    play = Play(cats, Desk(cats, [cats.controller("InPlace")]))
    play.settle()
    wanted["image"] = "two"
    cats.patch(PARENT, {"metadata": {"labels": {"look": "again"}}})
    play.settle()

    assert cats.pods() == {"a": "one", "b": "two"}


def test_a_child_is_shown_under_the_key_that_the_version_of_the_hook_asks_for() -> None:
    recall, parent = Recall(), {"metadata": {"namespace": "here"}}
    child = {"metadata": {"namespace": "here", "name": "a"}}
    recall.seen.keep(Seen(own=True, matches=True), child)

    for version, key in (("v1", "a"), ("v2", "here/a"), ("v1", "a")):
        said = orjson.loads(orjson.dumps(written({POD: [child]}, parent, version, recall)))
        assert said == {"Pod.v1": {key: child}}
