"""What is remembered of a parent from one pass to the next, and what is not."""

from typing import Any

import orjson
import pytest

from lamina.core.questions import Answers, Call, Said
from lamina.families.metacontroller.apply import merged
from lamina.families.metacontroller.desired import desired
from lamina.families.metacontroller.herd import Seen
from lamina.families.metacontroller.hooks import Response, written
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.recall import Memory, Recall, Recent, Worked
from lamina.objects.selectors import EVERYTHING, LabelSelector, Requirement
from lamina.objects.types import Ref
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


def cat(name: str) -> Ref:
    return Ref("example.com/v1", "CatSet", "default", name)


@pytest.mark.parametrize(("parents", "text"), [(2, 1000), (100, 30)])
def test_those_looked_at_longest_ago_are_forgotten_once_there_is_too_much(parents: int, text: int) -> None:
    """However many controllers remember something, they have one memory."""
    memory = Memory(parents, text)
    one, other = Recent(memory), Recent(memory)
    first = one.of(cat("a"), "uid of a")
    first.show(20)
    other.of(cat("a"), "uid of a").note("sync", b"what a hook says", Response())

    one.of(cat("b"), "uid of b")

    assert one.of(cat("a"), "uid of a") is not first


def test_what_one_controller_remembers_is_not_what_another_does() -> None:
    memory = Memory()

    assert Recent(memory).of(cat("a"), "uid") is not Recent(memory).of(cat("a"), "uid")


def test_another_parent_of_the_same_name_is_not_taken_for_the_one_before() -> None:
    recent = Recent()
    first = recent.of(cat("a"), "first")

    assert recent.of(cat("a"), "second") is not first


def test_nothing_is_remembered_of_a_parent_that_is_gone() -> None:
    cats, memory = Cats(), Memory()
    cats.start()
    play = Play(cats, Desk(cats, [cats.controller("InPlace", memory=memory)]))
    play.settle()
    held = len(memory)

    cats.delete(PARENT)
    play.settle()

    assert (held, len(memory)) == (1, 0)


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


def test_what_a_child_would_become_is_kept_only_while_it_differs() -> None:
    cats = Cats()
    cats.start(replicas=1)
    cats.settle(method="InPlace")
    controller = cats.controller("InPlace")
    view = controller.gather(cats.world(controller), PARENT)
    assert view is not None
    (child,), _ = desired(view, Response(children=(cats.pod(0, "two"),)))
    means, (before,) = Means(view=view, answers=Answers()), cats.listed(POD)

    differed = not means.is_as_merged(child, before) and child.notes.became.find(before) is not None
    after = merged(before, child.obj)

    assert differed
    assert means.is_as_merged(child, after)
    assert child.notes.became.find(before) is None
    assert child.notes.became.find(after) is None


def test_a_child_is_shown_under_the_key_that_the_version_of_the_hook_asks_for() -> None:
    recall, parent = Recall(), {"metadata": {"namespace": "here"}}
    child = {"metadata": {"namespace": "here", "name": "a"}}
    herd = recall.herd(POD.group_kind, [child], lambda obj: Seen(own=True, matches=True))

    for version, key in (("v1", "a"), ("v2", "here/a"), ("v1", "a")):
        said = orjson.loads(orjson.dumps(written({POD: herd.children}, parent, version, recall)))
        assert said == {"Pod.v1": {key: child}}
