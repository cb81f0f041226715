"""The kinds, selectors, hooks and intervals that a controller's spec resolves to on a cluster."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from lamina.core.model.world import World
from lamina.errors import SpecError
from lamina.families.metacontroller.compile import composite, decorator
from lamina.families.metacontroller.controller import DEFAULTS, setups
from lamina.families.metacontroller.family import family
from lamina.families.metacontroller.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.simulation.cluster.kinds import ALL_VERBS, POD

THING = Kind("ex.example.com/v1", "Thing", "things", True, ALL_VERBS, frozenset({"status"}))
CONTROLLER = Kind(API_VERSION, "CompositeController", "compositecontrollers", False, ALL_VERBS)
KINDS = Kinds((THING, CONTROLLER, POD))
HOOK = {"webhook": {"url": "http://hook/"}}
THINGS = {"apiVersion": "ex.example.com/v1", "resource": "things"}


def manifest(**spec: Any) -> Made:
    filled = {"parentResource": THINGS, "hooks": {"sync": HOOK}, **spec}
    metadata = {"name": "cc", "uid": "cc"}
    return {"apiVersion": API_VERSION, "kind": "CompositeController", "metadata": metadata, "spec": filled}


def decorates(**resource: Any) -> Made:
    spec = {"resources": [{**THINGS, **resource}], "hooks": {"sync": HOOK}}
    return {
        "apiVersion": API_VERSION,
        "kind": "DecoratorController",
        "metadata": {"name": "dc"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("seconds", "period"),
    [(None, None), (-3, 1), (0, 1), (1, 1), (7, 7)],
)
def test_parents_are_looked_at_no_more_often_than_once_a_second(
    seconds: int | None, period: int | None
) -> None:
    spec = {} if seconds is None else {"resyncPeriodSeconds": seconds}

    assert composite(manifest(**spec), KINDS).resync == (timedelta(seconds=period) if period else None)


SENSELESS: dict[str, Any] = {
    "text": "app=x",
    "labels that are text": {"matchLabels": "app=x"},
    "labels that are numbers": {"matchLabels": {"app": 1}},
    "terms that are text": {"matchExpressions": ["app"]},
    "a term without an operator": {"matchExpressions": [{"key": "app"}]},
    "an unknown operator": {"matchExpressions": [{"key": "app", "operator": "Like"}]},
    "one of none": {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]},
    "there, and something": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]},
}


@pytest.mark.parametrize("selector", SENSELESS.values(), ids=SENSELESS)
def test_an_invalid_selector_is_named_and_harms_no_other_controller(selector: Any) -> None:
    """Some definitions admit it, and the controllers beside it have to run all the same."""
    wrong = manifest(parentResource={**THINGS, "labelSelector": selector})
    with pytest.raises(SpecError, match=r"spec\.parentResource\.labelSelector"):
        composite(wrong, KINDS)
    with pytest.raises(SpecError, match=r"spec\.resources\[.*\]\.labelSelector"):
        decorator(decorates(labelSelector=selector), KINDS)

    good = manifest()
    good["metadata"] = {"name": "good", "uid": "good"}
    assert [setup.name for setup in setups(world(wrong, good), DEFAULTS)] == ["good"]


@pytest.mark.parametrize("selector", SENSELESS.values(), ids=SENSELESS)
def test_a_selector_of_annotations_is_judged_like_one_of_labels(selector: Any) -> None:
    said = selector
    if isinstance(selector, dict) and "matchLabels" in selector:
        said = {"matchAnnotations": selector["matchLabels"]}
    with pytest.raises(SpecError, match=r"spec\.resources\[.*\]\.annotationSelector"):
        decorator(decorates(annotationSelector=said), KINDS)


def test_annotations_may_be_any_text() -> None:
    rule = decorator(
        decorates(
            annotationSelector={
                "matchAnnotations": {"note": "two words, and more"},
                "matchExpressions": [
                    {"key": "colour", "operator": "NotIn", "values": ["dark red"]},
                    {"key": "there", "operator": "Exists"},
                ],
            }
        ),
        KINDS,
    ).parents[THING.group_kind]

    def target(**annotations: str) -> Made:
        return {"metadata": {"name": "a", "annotations": annotations}}

    assert rule.wants(target(note="two words, and more", there=""))
    assert not rule.wants(target(note="two words, and more", there="", colour="dark red"))
    assert not rule.wants(target(note="two words, and more"))
    assert not rule.wants(target(there=""))


def world(*controllers: Made, things: Sequence[Made] = ()) -> World:
    shelves, memory = {kind.group_kind: Indexer(kind) for kind in (CONTROLLER, THING)}, Lister(DeletedUids())
    for kind, those in ((CONTROLLER, controllers), (THING, things)):
        for one in those:
            shelves[kind.group_kind].put(one)
    memory.set_indexers(KINDS, shelves)
    return memory


def test_an_owner_that_several_controllers_work_for_is_one_owner() -> None:
    other = manifest()
    other["metadata"] = {"name": "other", "uid": "other"}
    things: list[Made] = [
        {
            "apiVersion": THING.api_version,
            "kind": "Thing",
            "metadata": {"name": name, "namespace": "ns", "uid": name},
        }
        for name in ("a", "b")
    ]

    owners = family().owners(world(manifest(), other, things=things))

    assert sorted(map(meta.name, owners)) == ["a", "b"]


def test_a_parent_that_makes_no_sense_is_accounted_for_with_what_is_wrong_with_it() -> None:
    obj: Made = {
        "apiVersion": THING.api_version,
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "ns"},
    }
    seen = world(manifest(), things=[obj])
    (owner,) = family().owners(seen)

    told = family().owner_status(seen, meta.ref(owner))

    assert told is not None
    assert (told.state, told.goal) == ("Degraded", 0)
    assert "spec.selector: expected a label selector" in told.message
    with pytest.raises(SpecError, match="spec.selector"):
        family().rollback(seen, meta.ref(owner), None)


@pytest.mark.parametrize(
    ("host", "url", "counts"),
    [
        ("hook.example.com", "https://hook.example.com/sync", True),
        ("HOOK.example.com:443", "https://hook.example.com/sync", True),
        ("hook.example.com:80", "https://hook.example.com/sync", False),
        ("hook.example.com", "http://hook.example.com:80/sync", True),
        ("hook.example.com", "http://hook.example.com:8080/sync", False),
        ("hook.example.com:8080", "http://hook.example.com:8080/sync", True),
        ("other.example.com", "https://hook.example.com/sync", False),
    ],
)
def test_what_is_said_of_a_host_counts_for_its_hooks(host: str, url: str, counts: bool) -> None:
    config = {"host": host, "caBundle": {"inline": "pem"}}
    setup = composite(manifest(hooks={"sync": {"webhook": {"url": url}}}, endpointConfigs=[config]), KINDS)

    assert setup.sync is not None
    assert (setup.sync.secured is not None) is counts


@pytest.mark.parametrize(
    ("port", "host", "counts"),
    [(None, "hook.team", True), (None, "hook.team:80", True), (8080, "hook.team:8080", True), (8080, "hook.team", False)],
)  # fmt: skip
def test_a_hook_that_is_a_service_is_known_by_its_name_and_namespace(
    port: int | None, host: str, counts: bool
) -> None:
    service = {"name": "hook", "namespace": "team", **({"port": port} if port else {})}
    config = {"host": host, "caBundle": {"inline": "pem"}}
    hooks = {"sync": {"webhook": {"service": service, "path": "/sync"}}}
    setup = composite(manifest(hooks=hooks, endpointConfigs=[config]), KINDS)

    assert setup.sync is not None
    assert setup.sync.url == f"http://hook.team:{port or 80}/sync"
    assert (setup.sync.secured is not None) is counts


@pytest.mark.parametrize(
    ("webhook", "given"),
    [
        ({"service": {"name": "hook", "namespace": "team"}}, "service without path"),
        ({"path": "/sync"}, "path without service"),
        ({}, "neither"),
    ],
)
def test_a_hook_without_a_whole_address_is_refused_with_what_is_missing(webhook: Made, given: str) -> None:
    with pytest.raises(SpecError) as refused:
        composite(manifest(hooks={"sync": {"webhook": webhook}}), KINDS)

    said = "spec.hooks.sync.webhook: expected url, or service and path, got "
    assert str(refused.value) == said + given


def test_of_two_entries_for_a_host_the_first_counts_and_a_hook_that_says_anything_itself_says_all() -> None:
    url = "https://hook.example.com/sync"
    first, second = ({"host": "hook.example.com", "caBundle": {"inline": pem}} for pem in ("first", "second"))
    named = composite(
        manifest(hooks={"sync": {"webhook": {"url": url}}}, endpointConfigs=[first, second]), KINDS
    )
    own = {"authorization": {"secretRef": {"name": "n", "namespace": "ns"}}}
    itself = composite(
        manifest(hooks={"sync": {"webhook": {"url": url, **own}}}, endpointConfigs=[first]), KINDS
    )

    assert (
        named.sync is not None and named.sync.secured is not None and named.sync.secured.ca_bundle is not None
    )
    assert named.sync.secured.ca_bundle.inline == "first"
    assert itself.sync is not None and itself.sync.secured is not None
    assert itself.sync.secured.ca_bundle is None


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("", 10), ("1m30s", 90), ("500ms", 0.5), ("0s", 10), ("-3s", 10)]
)
def test_a_hook_has_ten_seconds_unless_it_asks_for_another_time(timeout: str, seconds: float) -> None:
    webhook = {"url": "http://hook/", **({"timeout": timeout} if timeout else {})}
    setup = composite(manifest(hooks={"sync": {"webhook": webhook}}), KINDS)

    assert setup.sync is not None
    assert setup.sync.seconds == seconds
