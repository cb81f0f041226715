"""
Any answer of a hook, and any change of its children, is followed or refused, and no controller crashes.

A hook is a foreign program. Its answer is laid over with anything at all,
at any depth, and so is what stands on the objects it is asked about.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import (
    booleans,
    dictionaries,
    floats,
    integers,
    lists,
    none,
    one_of,
    recursive,
    sampled_from,
)

from lamina.core.model.queries import Answer, Call, HookResponse
from lamina.errors import LaminaError
from lamina.families.metacontroller.compile import decorator
from lamina.families.metacontroller.controller import controller
from lamina.families.metacontroller.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.paths import put
from lamina.objects.types import Made
from lamina.simulation import settle
from tests.unit.families.metacontroller.catset import CATSET, PARENT, POD, Cats, planned
from tests.unit.families.metacontroller.stories import WAYS

WORDS = sampled_from(("", "a", "v1", "Pod", "nginx-0", "nginx", "default", "True", "2026-01-01T00:00:00Z"))
KEYS = sampled_from(
    ("name", "uid", "type", "status", "app", "key", "kind", "conditions", "observedGeneration")
)
VALUES = recursive(
    one_of(
        none(), booleans(), integers(-3, 3), floats(allow_nan=False, allow_infinity=False, width=16), WORDS
    ),
    lambda below: one_of(lists(below, max_size=2), dictionaries(KEYS, below, max_size=2)),
    max_leaves=4,
)
IN_A_CHILD = (
    "apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.labels", "metadata.labels.app",
    "metadata.annotations", "metadata.annotations.key", "metadata.ownerReferences", "metadata.finalizers",
    "metadata.managedFields", "metadata.creationTimestamp", "metadata.uid", "metadata.resourceVersion",
    "metadata.generation", "spec.image", "status", "status.conditions",
)  # fmt: skip
IN_AN_ANSWER = (
    "children", "status", "status.conditions", "resyncAfterSeconds", "finalized", "labels", "annotations",
)  # fmt: skip


def laid_over(value: Made, path: str, with_this: Any) -> Any:
    """Return a value with something else at a path, and all of it where nothing can be put there."""
    try:
        return put(value, tuple(path.split(".")), with_this)
    except (TypeError, AttributeError):
        return with_this


class Fickle(Cats):
    """A hook whose answers are laid over with something."""

    over: tuple[str, Any] | None = None
    in_a_child: tuple[str, Any] | None = None

    def _called(self, call: Call) -> Answer:
        said = self.hook(json.loads(call.body))
        if self.in_a_child is not None and said["children"]:
            said["children"] = [laid_over(said["children"][0], *self.in_a_child), *said["children"][1:]]
        if self.over is not None:
            said = laid_over(said, *self.over)
        return HookResponse(json.dumps(said).encode())


def worked(cats: Cats, how: dict[str, Any]) -> None:
    """Let the controller work; what it refuses, it refuses in a sentence."""
    controller = cats.controller(**how)
    try:
        settle(cats, controller)
        planned(cats, controller, PARENT)
    except LaminaError as refused:
        assert str(refused)


@settings(max_examples=60, deadline=None)
@given(way=sampled_from((*WAYS, "plain")), path=sampled_from(IN_A_CHILD), value=VALUES, later=booleans())
def test_whatever_a_hook_wants_of_a_child_is_made_or_refused(
    way: str, path: str, value: Any, later: bool
) -> None:
    cats, how = Fickle(), WAYS.get(way, {"method": "InPlace"})
    cats.start(replicas=2)
    if later:
        cats.roll(**how)
        cats.want(template={"image": "two"})
    cats.in_a_child = (path, value)

    worked(cats, how)


@settings(max_examples=40, deadline=None)
@given(way=sampled_from((*WAYS, "plain")), path=sampled_from(IN_AN_ANSWER), value=VALUES)
def test_whatever_a_hook_says_of_a_parent_is_written_or_refused(way: str, path: str, value: Any) -> None:
    cats, how = Fickle(), WAYS.get(way, {"method": "InPlace"})
    cats.start(replicas=2)
    cats.roll(**how)
    cats.over = (path, value)
    cats.want(template={"image": "two"})

    worked(cats, how)


ON_A_CHILD = (
    "spec.image", "status", "status.conditions", "status.observedGeneration", "metadata.annotations.key",
)  # fmt: skip
LAST = "metacontroller.k8s.io/last-applied-configuration"


@settings(max_examples=40, deadline=None)
@given(
    way=sampled_from((*WAYS, "plain")),
    path=sampled_from(ON_A_CHILD),
    value=VALUES,
    record=one_of(none(), VALUES.map(json.dumps), WORDS),
    parent=one_of(none(), VALUES),
)
def test_whatever_others_write_on_children_and_parents_is_borne(
    way: str, path: str, value: Any, record: str | None, parent: Any
) -> None:
    cats, how = Cats(), WAYS.get(way, {"method": "InPlace"})
    cats.start(replicas=2)
    cats.roll(**how)
    for pod in cats.listed(POD)[:1]:
        if path.startswith("metadata"):
            value = str(value)
        changed = laid_over(pod, path, value)
        if record is not None:
            changed = meta.with_annotation(changed, LAST, record)
        cats.replace(changed)
    if parent is not None:
        cats.patch(PARENT, {"status": parent}, subresource="status")
    cats.want(template={"image": "two"})

    worked(cats, how)


# ── decorators, and what they ask to see ──


RELATED = ("apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names",
           "labelSelector.matchLabels", "labelSelector.matchExpressions", "namespaceSelector.matchLabels")  # fmt: skip
DECORATOR: Made = {
    "apiVersion": API_VERSION,
    "kind": "DecoratorController",
    "metadata": {"name": "extras", "uid": "dc"},
    "spec": {
        "resources": [{"apiVersion": CATSET.api_version, "resource": CATSET.plural}],
        "attachments": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "InPlace"}}],
        "hooks": {
            name: {"version": "v2", "webhook": {"url": f"http://hook/{name}"}}
            for name in ("sync", "customize")
        },
    },
}


class Decorated(Cats):
    """A decorator whose hooks' answers are laid over with something."""

    over: tuple[str, Any] = ("", None)
    rule: tuple[str, Any] = ("", None)

    def _called(self, call: Call) -> Answer:
        if call.purpose == "customize":
            rule = {"apiVersion": "v1", "resource": "pods"}
            said: Any = {"relatedResources": [laid_over(rule, *self.rule) if self.rule[0] else rule]}
        else:
            said = {"attachments": [self.pod(0, "one")], "labels": {"a": "b"}, "status": {"a": 1}}
        path, value = self.over
        return HookResponse(json.dumps(laid_over(said, path, value) if path else said).encode())


def decorated(cats: Decorated) -> None:
    running = controller(decorator(DECORATOR, cats.kinds))
    try:
        settle(cats, running)
        planned(cats, running, PARENT)
    except LaminaError as refused:
        assert str(refused)


@settings(max_examples=60, deadline=None)
@given(
    path=sampled_from(("attachments", "labels", "labels.a", "annotations", "status", "resyncAfterSeconds", "relatedResources")),
    value=VALUES,
    status=one_of(none(), VALUES),
)  # fmt: skip
def test_whatever_a_decorators_hook_answers_is_followed_or_refused(
    path: str, value: Any, status: Any
) -> None:
    cats = Decorated()
    cats.start()
    if status is not None:
        cats.patch(PARENT, {"status": status}, subresource="status")
    cats.over = (path, value)

    decorated(cats)


@settings(max_examples=80, deadline=None)
@given(path=sampled_from(RELATED), value=VALUES)
def test_whatever_a_customize_hook_asks_to_see_is_looked_for_or_refused(path: str, value: Any) -> None:
    cats = Decorated()
    cats.start()
    cats.rule = (path, value)

    decorated(cats)


IN_A_PARENT = ("spec.selector", "spec.selector.matchLabels", "spec.selector.matchExpressions", "spec.template",
               "spec.template.metadata", "spec.template.metadata.labels", "spec.other")  # fmt: skip


class Steady(Cats):
    """A hook that wants the same whatever it is told."""

    def hook(self, said: Made) -> Made:
        return {"children": [self.pod(0, "one")]}


@settings(max_examples=60, deadline=None)
@given(way=sampled_from((*WAYS, "plain")), path=sampled_from(IN_A_PARENT), value=VALUES, again=VALUES)
def test_whatever_stands_in_a_parents_spec_is_followed_or_refused(
    way: str, path: str, value: Any, again: Any
) -> None:
    cats, how = Steady(), WAYS.get(way, {"method": "InPlace"})
    cats.start()
    for said in (value, again):
        parent = cats.get(PARENT)
        cats.replace({**parent, "spec": laid_over(parent, path, said)["spec"]})
        worked(cats, how)
