"""Following which kinds there are."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from lamina.client.client import Client
from lamina.core.crd.kinds import kinds_of, names_only
from lamina.core.model.world import Change
from lamina.objects.kinds import Kind
from lamina.runtime.cache.discovery import DiscoveryCache
from tests.runtime.scripted import Script, groups

DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
CORE = groups(("v1", "ConfigMap", "configmaps"))
NOTHING = groups(group="ex.example.com")
WIDGETS = groups(("v1", "Widget", "widgets"), group="ex.example.com")

ODD = {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "odd"}, "versions": [{}]}]}


def definition(*, established: bool = True) -> Any:
    return names_only(
        {
            "apiVersion": DEFINITION.api_version,
            "kind": DEFINITION.kind,
            "metadata": {"name": "widgets.ex.example.com"},
            "spec": {
                "group": "ex.example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": True}],
            },
            "status": {"conditions": [{"type": "Established", "status": str(established)}]},
        }
    )


class Watched:
    def __init__(self, script: Script) -> None:
        self.discovery = DiscoveryCache(Client(script), structlog.get_logger(), period=3600)
        self.changed = asyncio.Event()

    def has_widgets(self) -> bool:
        return self.discovery.kinds.find("ex.example.com/v1", "Widget") is not None

    def handle_crd(self, before: Any, after: Any) -> None:
        self.discovery.handle_crd(Change(DEFINITION, before, after))

    async def next_change(self) -> None:
        async with asyncio.timeout(60):
            await self.changed.wait()
        self.changed.clear()


@pytest.fixture
def script() -> Script:
    script = Script()
    script.reply("GET", "/api", CORE)
    return script


@pytest.fixture
async def watched(script: Script) -> AsyncIterator[Watched]:
    watched = Watched(script)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watched.discovery.follow(watched.changed.set))
        yield watched
        task.cancel()


async def test_a_new_definition_brings_its_kind(script: Script, watched: Watched) -> None:
    script.reply("GET", "/apis", WIDGETS)

    watched.handle_crd(None, definition())
    await watched.next_change()

    assert watched.has_widgets()


async def test_a_server_that_takes_its_time_is_asked_again(script: Script, watched: Watched) -> None:
    script.reply("GET", "/apis", NOTHING, NOTHING, NOTHING, WIDGETS)

    watched.handle_crd(None, definition())
    await watched.next_change()
    assert not watched.has_widgets()
    await watched.next_change()

    assert watched.has_widgets()


async def test_a_kind_goes_with_its_definition(script: Script, watched: Watched) -> None:
    script.reply("GET", "/apis", WIDGETS, WIDGETS, NOTHING)
    watched.handle_crd(None, definition())
    await watched.next_change()

    watched.handle_crd(definition(), None)
    await watched.next_change()

    assert not watched.has_widgets()


async def test_a_definition_that_says_nothing_new_costs_nothing(script: Script, watched: Watched) -> None:
    script.reply("GET", "/apis", WIDGETS)
    watched.handle_crd(None, definition(established=False))
    for _ in range(3):
        await asyncio.sleep(0)
    assert script.asked == []

    watched.handle_crd(definition(established=False), definition())
    await watched.next_change()
    asked = len(script.asked)
    watched.handle_crd(definition(), definition())
    for _ in range(3):
        await asyncio.sleep(0)

    assert len(script.asked) == asked


@pytest.mark.parametrize("answer", [b"<html>", ODD], ids=["no document", "one that says too little"])
async def test_an_answer_that_fails_changes_nothing_and_is_asked_for_again(
    script: Script, watched: Watched, answer: Any
) -> None:
    script.reply("GET", "/apis", answer, WIDGETS)

    watched.handle_crd(None, definition())
    await watched.next_change()

    assert watched.has_widgets()


async def test_discovery_of_a_group_is_kept_while_its_server_does_not_answer(script: Script) -> None:
    stale = {**WIDGETS, "items": [{**WIDGETS["items"][0]}]}
    stale["items"][0]["versions"] = [{"version": "v1", "freshness": "Stale", "resources": []}]
    script.reply("GET", "/apis", WIDGETS, stale)
    discovery = DiscoveryCache(Client(script), structlog.get_logger())

    assert await discovery.refresh()
    assert not await discovery.refresh()


def test_what_a_definition_adds_to_its_kind_is_news() -> None:
    plain, with_status = definition(), definition()
    with_status["spec"]["versions"][0]["subresources"] = {"status": {}}

    assert [kind.subresources for kind in kinds_of(plain)] == [frozenset()]
    assert [kind.subresources for kind in kinds_of(names_only(with_status))] == [frozenset({"status"})]
