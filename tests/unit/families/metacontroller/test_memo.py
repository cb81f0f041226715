"""What the memo keeps of a parent between passes, and what it does not."""

import orjson
import pytest

from lamina.core.model.memo import Memo, MemoStore
from lamina.core.model.queries import Answers, Call, HookResponse
from lamina.families.metacontroller.hooks.protocol import Response, encode, read_composite
from lamina.families.metacontroller.hooks.queries import _response
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.desired import desired
from lamina.objects.types import Made
from lamina.simulation import Loop, Process
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats
from tests.unit.families.metacontroller.test_hooks import LOOSE


def child(name: str, **fields: object) -> Made:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **fields}


def body(*children: Made, **fields: object) -> bytes:
    return orjson.dumps({"children": list(children), **fields})


def test_children_that_are_encoded_as_in_the_last_response_are_the_very_same() -> None:
    first = _response(None, read_composite, LOOSE, body(child("a", n=1), child("b", n=2)))

    second = _response(
        first, read_composite, LOOSE, body(child("b", n=2), child("c", n=True), child("a", n=1))
    )

    assert second.response.children[0] is first.response.children[1]
    assert second.response.children[2] is first.response.children[0]
    assert second.response.children[1]["n"] is True


def test_a_response_that_differs_only_in_its_status_has_the_same_tuple_of_children() -> None:
    first = _response(None, read_composite, LOOSE, body(child("a"), status={"n": 1}))
    second = _response(first, read_composite, LOOSE, body(child("a"), status={"n": 2}))

    assert second.response.children is first.response.children
    assert second.response.status == {"n": 2}


def test_a_response_with_the_same_bytes_is_not_read_again() -> None:
    first = _response(None, read_composite, LOOSE, body(child("a")))

    assert _response(first, read_composite, LOOSE, body(child("a"))) is first
    assert _response(first, read_composite, LOOSE, body(child("b"))) is not first


def test_a_child_that_is_desired_twice_is_there_twice() -> None:
    assert len(_response(None, read_composite, LOOSE, body(child("a"), child("a"))).response.children) == 2


def test_nothing_is_remembered_of_a_parent_that_is_gone() -> None:
    cats, memos = Cats(), MemoStore()
    cats.start()
    play = Loop(cats, Process(cats, [cats.controller("InPlace", memos=memos)]))
    play.settle()
    held = len(memos)

    cats.delete(PARENT)
    play.settle()

    assert (held, len(memos)) == (1, 0)


def test_a_response_that_changes_one_child_changes_that_child() -> None:
    wanted = {"image": "one"}

    def hook(call: Call) -> HookResponse:
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
        return HookResponse(orjson.dumps({"children": pods, "status": dict(wanted)}))

    cats = Cats()
    cats.call = hook
    cats.start()
    play = Loop(cats, Process(cats, [cats.controller("InPlace")]))
    play.settle()
    wanted["image"] = "two"
    cats.patch(PARENT, {"metadata": {"labels": {"look": "again"}}})
    play.settle()

    assert cats.pods() == {"a": "one", "b": "two"}


def test_a_child_is_compared_once_and_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from lamina.core.apply.three_way import ThreeWay

    merged: list[str] = []
    merge = ThreeWay.merge

    def counted(self: ThreeWay, live: Made, desired: Made, applied: object = None) -> Made:
        merged.append(live["metadata"]["name"])
        return merge(self, live, desired, applied)  # type: ignore[arg-type]

    cats = Cats()
    cats.start(replicas=1)
    cats.settle(method="InPlace")
    controller = cats.controller("InPlace")
    view = controller.gather(cats.world(controller), PARENT)
    assert view is not None
    (one,), _ = desired(view, Response(children=(cats.pod(0, "two"),)))
    strategy, (there,) = ApplyStrategy(view=view, answers=Answers()), cats.listed(POD)
    monkeypatch.setattr(ThreeWay, "merge", counted)

    assert not strategy.is_as_desired(one, there)
    assert not strategy.is_settled(one, there)
    strategy.update(one, there)

    assert merged == ["nginx-0"]


def test_a_child_is_encoded_under_the_key_that_the_version_of_the_hook_asks_for() -> None:
    memo, one = Memo(), {"metadata": {"namespace": "here", "name": "a"}}

    for version, key in (("v1", "a"), ("v2", "here/a"), ("v1", "a")):
        said = orjson.loads(orjson.dumps(encode({POD: (one,)}, "here", version, memo)))
        assert said == {"Pod.v1": {key: one}}


def test_children_that_did_not_change_are_not_encoded_again() -> None:
    memo, first, second = Memo(), pod("a"), pod("b")
    encode({POD: (first, second)}, "here", "v1", memo)
    # An object is never modified in place; this one is, to show that its encoding is kept.
    first["metadata"]["labels"] = {"not": "encoded"}

    said = orjson.loads(orjson.dumps(encode({POD: (first, pod("b", n=2))}, "here", "v1", memo)))

    assert said == {"Pod.v1": {"a": pod("a"), "b": pod("b", n=2)}}
    assert memo.size > 0


def pod(name: str, **fields: object) -> Made:
    return {"metadata": {"namespace": "here", "name": name}, **fields}
