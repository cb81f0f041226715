"""Parsing of stages, and the errors of invalid ones."""

from pathlib import Path
from typing import Any

import pytest

from lamina.actors.stages import read_stages
from lamina.control_plane.load_stages import load_stages
from lamina.errors import SettingsError
from lamina.objects.types import GroupKind
from tests.unit.actors.stages.life import Life


def manifest(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, **spec},
    }


def test_a_stage_says_which_kind_it_is_for() -> None:
    custom = manifest("two", resourceRef={"apiGroup": "example.com/v1", "kind": "Widget"})

    stages = read_stages([manifest(), None, {"kind": "List", "items": [custom]}], "mine")

    assert [stage.kind for stage in stages] == [GroupKind("", "Pod"), GroupKind("example.com", "Widget")]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("text", "mine: document 1 is not a Stage"),
        ({"kind": "Pod"}, "mine: document 1 is not a Stage"),
        ({**manifest(), "apiVersion": "v1"}, "mine: document 1: apiVersion: expected kwok.x-k8s.io/v1alpha1, got 'v1'"),
        ({**manifest(), "metadata": {}}, "mine: document 1: metadata.name: a stage needs a name"),
        (manifest(resourceRef={}), "mine: stage one: spec.resourceRef.kind: a stage needs a kind"),
        (manifest(wait=1), "mine: stage one: spec: there is no field wait; fields are resourceRef, selector, weight, "
                           "delay, next, immediateNextStage"),
        (manifest(weight="much"), "mine: stage one: spec.weight: expected an integer, got 'much'"),
        (manifest(delay={"durationMilliseconds": "few"}),
            "mine: stage one: spec.delay.durationMilliseconds: expected a number of milliseconds, got 'few'"),
        (manifest(delay={"durationFrom": {"expressionFrom": "annotations"}}),
            "mine: stage one: spec.delay.durationFrom.expressionFrom: 'annotations' is not a path: it begins with neither "
            "a dot nor a known name"),
        (manifest(selector={"matchExpressions": [{"key": ".status.phase", "operator": "Is", "values": ["x"]}]}),
            "mine: stage one: spec.selector.matchExpressions[0].operator: expected one of In, NotIn, Exists, "
            "DoesNotExist, Like, NotLike, got 'Is'"),
        (manifest(selector={"matchExpressions": [{"key": ".status.phase", "operator": "In"}]}),
            "mine: stage one: spec.selector.matchExpressions[0].values: In takes some"),
        (manifest(selector={"matchExpressions": [{"key": ".a", "operator": "Exists", "values": ["x"]}]}),
            "mine: stage one: spec.selector.matchExpressions[0].values: Exists takes none"),
        (manifest(selector={"share": "few"}),
            "mine: stage one: spec.selector.share: expected a share such as 20% or 0.2, got 'few'"),
        (manifest(next={"statusTemplate": "phase: {{ .x }}"}),
            "mine: stage one: spec.next.statusTemplate: expected a mapping; a string is a Go template, which is not "
            "supported (docs/concepts/workloads.md says what is)"),
        (manifest(next={"statusTemplate": {"phase": "{{ .x }}"}}),
            "mine: stage one: spec.next.statusTemplate.phase: Go templates are not supported; see "
            "docs/concepts/workloads.md"),
        (manifest(next={"statusTemplate": {"a": [{"b": {"$when": 1}}]}}),
            "mine: stage one: spec.next.statusTemplate.a[0].b: there is no form $when; forms are $from, $text, "
            "$number, $sum, $each, $address and $now"),
        (manifest(next={"statusTemplate": {"a": {"$address": "here"}}}),
            "mine: stage one: spec.next.statusTemplate.a: Expected 4 octets in 'here'"),
        (manifest(next={"delete": "yes"}), "mine: stage one: spec.next.delete: expected true or false, got 'yes'"),
        (manifest(next={"event": {"type": "Bad"}}),
            "mine: stage one: spec.next.event.type: expected Normal or Warning, got 'Bad'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named_with_its_place(document: Any, complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_stages([document], "mine")

    assert str(refused.value) == complaint


def test_two_stages_of_one_name_are_one_too_many() -> None:
    with pytest.raises(SettingsError, match="there are two stages called one"):
        read_stages([manifest(), manifest()], "mine")


def test_a_file_that_is_not_there_or_holds_no_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read stages from"):
        load_stages(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    with pytest.raises(SettingsError, match="the file has no stage"):
        load_stages(tmp_path / "empty.yaml")
    (tmp_path / "broken.yaml").write_text("{")
    with pytest.raises(SettingsError, match="is not valid YAML"):
        load_stages(tmp_path / "broken.yaml")


def widget(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": "w",
            "uid": "uid-1",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {"parts": [{"name": "a"}, {"name": "b"}], "size": "3"},
    }


def live(obj: dict[str, Any], *documents: dict[str, Any]) -> Life:
    """Return the life of any object with stages of one's own."""
    stages = [{**one, "spec": {**one["spec"], "resourceRef": {"kind": "Widget"}}} for one in documents]
    return Life(obj, stages=read_stages(stages, "mine"))


def test_a_status_is_made_from_what_the_object_says() -> None:
    template = {
        "phase": "Made",
        "since": "$now",
        "label": {"$text": "{.metadata.name} of size {.spec.size}"},
        "size": {"$sum": [{"$number": {"$from": ".spec.size"}}, 1]},
        "colour": {"$from": ".spec.colour", "$or": "grey"},
        "absent": {"$from": ".spec.colour"},
        "parts": {"$each": ".spec.parts.[]", "$give": {"name": {"$from": "item.name"}, "ready": True}},
        "address": {"$address": "10.0.0.0/30"},
    }
    pending = {"matchExpressions": [{"key": ".status.phase", "operator": "DoesNotExist"}]}

    life = live(widget(), manifest(selector=pending, next={"statusTemplate": template})).pass_time(1)

    assert life.obj["status"] == {
        "phase": "Made",
        "since": "2026-01-01T00:00:00Z",
        "label": "w of size 3",
        "size": 4,
        "colour": "grey",
        "parts": [{"name": "a", "ready": True}, {"name": "b", "ready": True}],
        "address": life.obj["status"]["address"],
    }
    assert life.obj["status"]["address"] in ("10.0.0.1", "10.0.0.2")


def test_stages_follow_one_another_each_after_its_delay() -> None:
    def step(name: str, before: str | None, after: str, seconds: int) -> dict[str, Any]:
        operator = {"operator": "In", "values": [before]} if before else {"operator": "DoesNotExist"}
        return manifest(
            name,
            selector={"matchExpressions": [{"key": ".status.phase", **operator}]},
            delay={"durationMilliseconds": seconds * 1000, "from": ".metadata.creationTimestamp"},
            next={"statusTemplate": {"phase": after}, "event": {"reason": after, "message": "now"}},
        )

    life = live(widget(), step("a", None, "First", 10), step("b", "First", "Second", 20))

    assert "status" not in life.pass_time(9).obj
    assert life.pass_time(2).phase == "First"
    assert life.pass_time(10).phase == "Second"
    assert life.events == [("First", "now"), ("Second", "now")]


def test_finalizers_are_put_on_and_taken_off_and_the_object_is_deleted() -> None:
    fresh = {"matchExpressions": [{"key": ".metadata.finalizers", "operator": "DoesNotExist"},
                                  {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}]}  # fmt: skip
    going = {"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]}
    life = live(
        widget(),
        manifest("hold", selector=fresh, next={"finalizers": {"add": [{"value": "mine"}]}}),
        manifest(
            "let-go", selector=going, next={"finalizers": {"remove": [{"value": "mine"}]}, "delete": True}
        ),
    ).pass_time(1)
    assert life.obj["metadata"]["finalizers"] == ["mine"]

    life.delete(grace=0)
    life.step()

    assert life.ended


def test_weights_decide_between_stages_and_the_order_where_there_are_none() -> None:
    def outcomes(first: int, second: int) -> list[str]:
        fresh = {"matchExpressions": [{"key": ".status.phase", "operator": "DoesNotExist"}]}
        one = manifest("one", selector=fresh, weight=first, next={"statusTemplate": {"phase": "One"}})
        two = manifest("two", selector=fresh, weight=second, next={"statusTemplate": {"phase": "Two"}})
        return [live(widget(uid=f"uid-{number}"), one, two).pass_time(1).phase for number in range(200)]

    assert set(outcomes(0, 0)) == {"One"}
    assert set(outcomes(0, 1)) == {"Two"}
    assert 130 <= outcomes(3, 1).count("One") <= 170


def test_stages_that_lead_in_a_circle_are_told_of() -> None:
    def step(name: str, before: str, after: str) -> dict[str, Any]:
        selector = {"matchExpressions": [{"key": ".status.phase", "operator": "NotIn", "values": [before]}]}
        return manifest(name, selector=selector, next={"statusTemplate": {"phase": after}})

    with pytest.raises(SettingsError, match="the stages of widget w form a cycle: there, back"):
        live(widget(), step("there", "There", "There"), step("back", "Back", "Back")).step()


def test_labels_and_annotations_select_too() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchAnnotations": {"sim": "yes"}}
    made = manifest(selector=selector, next={"statusTemplate": {"phase": "Met"}})

    def has_met(**metadata: Any) -> bool:
        return "status" in live(widget(**metadata), made).pass_time(1).obj

    assert has_met(labels={"app": "web"}, annotations={"sim": "yes"})
    assert not has_met(labels={"app": "web"})
    assert not has_met(annotations={"sim": "yes"})
