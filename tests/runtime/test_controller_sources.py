"""Controllers that start and stop with the objects that define them, and their dynamic watches."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.app import App
from lamina.client.client import Client
from lamina.client.transport.base import Response
from lamina.core.model.controller import AnyController, Controller, Source, Watch, itself, no_keys, only
from lamina.core.model.plan import NOTHING, Create, Plan, change, one_stage
from lamina.core.model.queries import Answers, Follow, Listed, Query
from lamina.core.model.world import World, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.testing.waiting import eventually, idle
from tests.runtime.cluster import at, config_map, embedded, reader, running

CONFIG_MAPS = GroupKind("", "ConfigMap")
SECRETS = Kind("v1", "Secret", "secrets", True, frozenset({"list", "watch"}))


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with embedded() as app:
        yield app


@pytest.fixture
def client(app: App) -> Client:
    return app.client()


def painter(order: Obj) -> Controller[Obj]:
    """Return the controller that an order defines: it gives every canvas the colour that the order names."""
    colour = order["data"]["colour"]

    def plan(canvas: Obj, answers: Answers, now: datetime) -> Plan:
        if "canvas" not in meta.labels(canvas) or canvas.get("data") == {"colour": colour}:
            return NOTHING
        return one_stage("paint", [change(canvas, {"data": {"colour": colour}})], because=f"all are {colour}")

    return Controller(
        name=f"painter {meta.name(order)}",
        config_hash=colour,
        watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=plan,
        manager="painter",
    )


def orders(world: World) -> tuple[AnyController, ...]:
    found = [obj for obj in world.every(CONFIG_MAPS) if "order" in meta.labels(obj)]
    return tuple(painter(order) for order in found)


PAINTERS = Source(
    name="painters",
    watches=(Watch(selects=only("", "ConfigMap"), enqueue=no_keys, keep=whole),),
    controllers=orders,
)


def order(colour: str) -> Made:
    return {**config_map("order", labels={"order": "yes"}), "data": {"colour": colour}}


def canvas(name: str) -> Made:
    return config_map(name, labels={"canvas": "yes"})


async def wait_painted(client: Client, name: str, colour: str) -> None:
    await eventually(
        reader(client, at(name)), lambda obj: obj is not None and obj.get("data") == {"colour": colour}
    )


async def test_a_controller_starts_with_its_object_and_reconciles_existing_objects(client: Client) -> None:
    await client.create(canvas("a"))
    async with running(client, sources=[PAINTERS]):
        await client.create(canvas("b"))
        await client.create(order("red"))

        await wait_painted(client, "a", "red")
        await wait_painted(client, "b", "red")


async def test_no_controller_starts_while_the_manager_shuts_down(client: Client) -> None:
    async with running(client, sources=[PAINTERS]) as manager:
        await manager.finish(60)

        await client.create(order("red"))
        await eventually(reader(client, at("order")), lambda obj: obj is not None)
        for _ in range(100):
            await asyncio.sleep(0)

        assert manager.names == ()


async def test_a_controller_whose_object_exists_before_the_start_runs_from_the_start(client: Client) -> None:
    await client.create(order("red"))
    await client.create(canvas("a"))

    async with running(client, sources=[PAINTERS]):
        await wait_painted(client, "a", "red")


async def test_a_changed_controller_replaces_the_old_one(client: Client) -> None:
    await client.create(order("red"))
    async with running(client, sources=[PAINTERS]):
        await client.create(canvas("a"))
        await wait_painted(client, "a", "red")

        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await wait_painted(client, "a", "blue")
        await client.create(canvas("b"))

        await wait_painted(client, "b", "blue")


async def test_a_controller_stops_with_its_object(client: Client) -> None:
    await client.create(order("red"))
    async with running(client, sources=[PAINTERS]) as manager:
        await client.create(canvas("a"))
        await wait_painted(client, "a", "red")
        await client.delete(at("order"))
        await client.create({**order("blue"), "metadata": {**order("blue")["metadata"], "name": "z"}})

        await wait_painted(client, "a", "blue")
        assert manager.names == ("painter z",)


def gatherer() -> Controller[Obj]:
    """Return a controller that writes to each list the names of the secrets that its labels select."""

    def follow(listing: Obj) -> Follow:
        wanted = parse_label_selector(listing["data"]["wants"])
        return Follow(kind=SECRETS, namespaces=(meta.namespace(listing),), labels=wanted)

    def gather(world: World, ref: Ref) -> Obj | None:
        found = world.get(ref)
        return found if found is not None and "listing" in meta.labels(found) else None

    def queries(listing: Obj, answers: Answers) -> tuple[Query, ...]:
        asked = follow(listing)
        return () if asked in answers else (asked,)

    def plan(listing: Obj, answers: Answers, now: datetime) -> Plan:
        found = answers.get(follow(listing))
        assert isinstance(found, Listed)
        names = ",".join(sorted(map(meta.name, found.objects)))
        if listing["data"].get("found") == names:
            return NOTHING
        return one_stage("write", [change(listing, {"data": {"found": names}})], because="so it is")

    return Controller(
        name="gatherer",
        watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself),),
        gather=gather,
        queries=queries,
        plan=plan,
        manager="gatherer",
    )


def secret(name: str, **labels: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
    }


def listing(name: str, wants: str) -> Made:
    return {**config_map(name, labels={"listing": "yes"}), "data": {"wants": wants}}


async def wait_found(client: Client, name: str, found: str) -> None:
    await eventually(
        reader(client, at(name)), lambda obj: obj is not None and obj["data"].get("found") == found
    )


async def test_a_followed_kind_is_listed_and_watched(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    async with running(client, [gatherer()]):
        await client.create(listing("l", "tier=a"))
        await wait_found(client, "l", "one")

        await client.create(secret("two", tier="a"))
        await wait_found(client, "l", "one,two")
        await client.patch(Ref("v1", "Secret", "default", "one"), {"metadata": {"labels": {"tier": "b"}}})
        await wait_found(client, "l", "two")
        await client.delete(Ref("v1", "Secret", "default", "two"))

        await wait_found(client, "l", "")


async def test_a_changed_query_follows_other_objects(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    await client.create(secret("two", tier="b"))
    async with running(client, [gatherer()]):
        await client.create(listing("l", "tier=a"))
        await wait_found(client, "l", "one")

        await client.patch(at("l"), {"data": {"wants": "tier=b"}})
        await wait_found(client, "l", "two")
        await client.create(secret("three", tier="b"))

        await wait_found(client, "l", "three,two")


async def test_on_removed_runs_for_a_deleted_controller_and_not_for_a_replaced_one(
    client: Client,
) -> None:
    def leaving(world: World) -> tuple[AnyController, ...]:
        return tuple(replace(one, on_removed=partial(_note, one.config_hash)) for one in orders(world))

    async with running(client, sources=[replace(PAINTERS, controllers=leaving)]):
        await client.create(canvas("a"))
        await client.create(order("red"))
        await wait_painted(client, "a", "red")
        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await wait_painted(client, "a", "blue")

        await client.delete(at("order"))

        await eventually(reader(client, at("gone-blue")), lambda obj: obj is not None)
        await eventually(reader(client, at("gone-red")), lambda obj: obj is None)


def _note(edition: str, now: datetime) -> Plan:
    return one_stage("note", [Create(obj=config_map(f"gone-{edition}"))], because="it goes")


async def test_a_kind_that_no_query_follows_is_no_longer_watched(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    async with running(client, [gatherer()], sources=[PAINTERS]) as manager:
        await client.create(listing("l", "tier=a"))
        await wait_found(client, "l", "one")
        assert SECRETS in _followed(manager)

        await client.delete(at("l"))
        await client.create(listing("m", "tier=b"))
        await wait_found(client, "m", "")
        assert SECRETS in _followed(manager)
        await client.delete(at("m"))
        await client.create(order("red"))
        await client.create(canvas("a"))
        await wait_painted(client, "a", "red")

        assert SECRETS not in _followed(manager)


def _followed(manager: Manager) -> set[Kind]:
    """Return the kinds of dynamic watches."""
    return {what.kind for runner in manager._runners.values() for _, what in runner.follows}


class Recording:
    """Passes requests on, and notes the paths of watches."""

    def __init__(self, client: Client) -> None:
        self._transport = client._transport
        self.watched: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if ("watch", "true") in options.get("query", ()):
            self.watched.append(path)
        return await self._transport.request(method, path, **options)

    async def close(self) -> None:
        await self._transport.close()


@pytest.fixture
def recording(client: Client) -> Recording:
    return Recording(client)


async def test_a_changed_controller_goes_on_with_the_informers_that_both_use(
    client: Client, recording: Recording
) -> None:
    def with_secrets_if_blue(world: World) -> tuple[AnyController, ...]:
        secrets = Watch(selects=only("", "Secret"), enqueue=no_keys)
        return tuple(
            replace(one, watches=(*one.watches, secrets)) if one.config_hash == "blue" else one
            for one in orders(world)
        )

    await client.create(order("red"))
    source = replace(PAINTERS, controllers=with_secrets_if_blue)
    async with running(Client(recording), sources=[source]):
        await client.create(canvas("a"))
        await wait_painted(client, "a", "red")
        recording.watched.clear()

        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await wait_painted(client, "a", "blue")

        assert recording.watched == ["/api/v1/secrets"]


async def test_a_changed_controller_goes_on_following_what_its_keys_followed(
    client: Client, recording: Recording
) -> None:
    def gatherers(world: World) -> tuple[AnyController, ...]:
        return tuple(replace(gatherer(), config_hash=one.config_hash) for one in orders(world))

    await client.create(order("red"))
    await client.create(secret("one", tier="a"))
    async with running(Client(recording), sources=[replace(PAINTERS, controllers=gatherers)]) as manager:
        await client.create(listing("l", "tier=a"))
        await wait_found(client, "l", "one")

        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await eventually(
            lambda: [one.controller.config_hash for one in manager._runners.values()],
            lambda found: found == ["blue"],
        )
        await client.create(secret("two", tier="a"))
        await wait_found(client, "l", "one,two")
        assert recording.watched.count("/api/v1/secrets") == 1

        await client.delete(at("l"))
        await client.patch(at("order"), {"data": {"colour": "green"}})
        await eventually(
            lambda: [runner.follows for runner in manager._runners.values()], lambda found: found == [{}]
        )


async def test_a_source_is_not_asked_again_because_of_what_its_watch_does_not_keep(client: Client) -> None:
    asked: list[int] = []

    def counted(world: World) -> tuple[AnyController, ...]:
        asked.append(1)
        return orders(world)

    def without_annotations(obj: Obj) -> Obj:
        kept = whole(obj)
        return {**kept, "metadata": {**kept["metadata"], "annotations": {}}}

    watch = replace(PAINTERS.watches[0], keep=without_annotations)
    source = replace(PAINTERS, controllers=counted, watches=(watch,))
    await client.create(order("red"))
    async with running(client, sources=[source]) as manager:
        await idle(manager)
        before = len(asked)
        for number in range(20):
            await client.patch(at("order"), {"metadata": {"annotations": {"seen": str(number)}}})
        await idle(manager)
        assert len(asked) == before

        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await client.create(canvas("a"))
        await wait_painted(client, "a", "blue")
