"""Live reads before a decision: what of an instance and its definition has to be as the cache has it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamina.core.model.queries import Absent, Answer, Answers, Found, Read
from lamina.families.resourcegraph.instances.confirm import check_both, check_instance
from lamina.families.resourcegraph.instances.view import View
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.instances.world import instance

DEFINITION: Made = {
    "apiVersion": "kro.run/v1alpha1",
    "kind": "ResourceGraphDefinition",
    "metadata": {"name": "app", "uid": "d"},
    "status": {"currentRevision": 2},
}


def app(**changes: Any) -> Made:
    made = instance("a1", color="red")
    made["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": "5"}
    made["metadata"] |= changes.pop("metadata", {})
    return {**made, **changes}


def view(*, inline: bool = False) -> View:
    return cast(View, SimpleNamespace(obj=app(), definition=DEFINITION, is_inline=inline))


def confirms(live: Answer, definition: Answer | None = None, *, inline: bool = False) -> bool:
    cached = view(inline=inline)
    asked = check_both(cached, Answers()).pending
    assert check_instance(cached, Answers()).pending == asked[:1]
    answers = Answers() | dict(zip(asked, (live, definition or Found(DEFINITION)), strict=True))
    return check_both(cached, answers).is_confirmed


@pytest.mark.parametrize(
    "live",
    [
        Absent(),
        Found(app(metadata={"uid": "other"})),
        Found(app(metadata={"generation": 2})),
        Found(app(metadata={"deletionTimestamp": "t"})),
        Found(app(metadata={"annotations": {"kro.run/rgd-revision": "1"}})),
        # The cache was filled by a watch that began before the schema had the field.
        Found(app(spec={**app()["spec"], "added": "x"})),
    ],
)
def test_an_instance_that_is_another_one_by_now_is_not_decided_about(live: Answer) -> None:
    assert not confirms(live)


def test_children_are_written_although_a_newer_schema_shows_more_of_the_spec() -> None:
    shown = Found(app(spec={**app()["spec"], "added": "x"}))
    answers = Answers() | {Read(meta.ref(app()), whole=True): shown}

    assert check_instance(view(), answers).is_confirmed
    pinned = Found(app(metadata={"annotations": {"kro.run/rgd-revision": "1"}}))
    assert not check_instance(view(), answers | {Read(meta.ref(app()), whole=True): pinned}).is_confirmed


@pytest.mark.parametrize("definition", [Absent(), Found({**DEFINITION, "status": {"currentRevision": 3}})])
def test_a_definition_that_has_moved_on_is_waited_for(definition: Answer) -> None:
    assert not confirms(Found(app()), definition)


def test_what_does_not_decide_may_have_changed() -> None:
    changed = Found(app(metadata={"resourceVersion": "6", "labels": {"a": "b"}}, status={"state": "ACTIVE"}))

    assert confirms(Found(app())) and confirms(changed)
    # Inline input revisions are in the status.
    assert confirms(Found(app()), inline=True) and not confirms(changed, inline=True)
