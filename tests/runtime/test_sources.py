"""Controllers that come and go as objects do, and what they ask to follow."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial

import pytest
from msgspec.structs import replace

from lamina.app import App
from lamina.client.client import Client
from lamina.core.controller import AnyController, Controller, Source, Watch, itself, nobody, only
from lamina.core.plan import NOTHING, Create, Plan, change, one_stage
from lamina.core.questions import Answers, Follow, Listed, Question
from lamina.core.world import World, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import GroupKind, Made, Obj, Ref
from tests.runtime.cluster import at, config_map, embedded, running, until

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
    """A controller that an order brings to life: it gives every canvas the colour the order names."""
    colour = order["data"]["colour"]

    def plan(canvas: Obj, answers: Answers, now: datetime) -> Plan:
        if "canvas" not in meta.labels(canvas) or canvas.get("data") == {"colour": colour}:
            return NOTHING
        return one_stage("paint", [change(canvas, {"data": {"colour": colour}})], because=f"all are {colour}")

    return Controller(
        name=f"painter {meta.name(order)}",
        edition=colour,
        watches=(Watch(selects=only("", "ConfigMap"), concerns=itself),),
        gather=lambda world, ref: world.get(ref),
        plan=plan,
        manager="painter",
    )


def orders(world: World) -> tuple[AnyController, ...]:
    found = [obj for obj in world.every(CONFIG_MAPS) if "order" in meta.labels(obj)]
    return tuple(painter(order) for order in found)


PAINTERS = Source(
    name="painters",
    watches=(Watch(selects=only("", "ConfigMap"), concerns=nobody, keep=whole),),
    controllers=orders,
)


def order(colour: str) -> Made:
    return {**config_map("order", labels={"order": "yes"}), "data": {"colour": colour}}


def canvas(name: str) -> Made:
    return config_map(name, labels={"canvas": "yes"})


async def until_painted(client: Client, name: str, colour: str) -> None:
    await until(client, at(name), lambda obj: obj is not None and obj.get("data") == {"colour": colour})


async def test_a_controller_comes_with_its_object_and_works_on_what_was_there_before(client: Client) -> None:
    await client.create(canvas("a"))
    async with running(client, sources=[PAINTERS]):
        await client.create(canvas("b"))
        await client.create(order("red"))

        await until_painted(client, "a", "red")
        await until_painted(client, "b", "red")


async def test_nobody_comes_any_more_once_a_process_is_to_end(client: Client) -> None:
    async with running(client, sources=[PAINTERS]) as manager:
        await manager.finish(60)

        await client.create(order("red"))
        await until(client, at("order"), lambda obj: obj is not None)
        for _ in range(100):
            await asyncio.sleep(0)

        assert manager.names == ()


async def test_a_controller_that_was_wanted_before_the_start_runs_from_the_start(client: Client) -> None:
    await client.create(order("red"))
    await client.create(canvas("a"))

    async with running(client, sources=[PAINTERS]):
        await until_painted(client, "a", "red")


async def test_another_edition_takes_the_place_of_the_old_one(client: Client) -> None:
    await client.create(order("red"))
    async with running(client, sources=[PAINTERS]):
        await client.create(canvas("a"))
        await until_painted(client, "a", "red")

        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await until_painted(client, "a", "blue")
        await client.create(canvas("b"))

        await until_painted(client, "b", "blue")


async def test_a_controller_goes_with_its_object(client: Client) -> None:
    await client.create(order("red"))
    async with running(client, sources=[PAINTERS]) as manager:
        await client.create(canvas("a"))
        await until_painted(client, "a", "red")
        await client.delete(at("order"))
        await client.create({**order("blue"), "metadata": {**order("blue")["metadata"], "name": "z"}})

        await until_painted(client, "a", "blue")
        assert manager.names == ("painter z",)


def gatherer() -> Controller[Obj]:
    """A controller that writes on each list the names of the secrets whose labels it asks for."""

    def follow(listing: Obj) -> Follow:
        wanted = parse_label_selector(listing["data"]["wants"])
        return Follow(kind=SECRETS, namespaces=(meta.namespace(listing),), labels=wanted)

    def gather(world: World, ref: Ref) -> Obj | None:
        found = world.get(ref)
        return found if found is not None and "listing" in meta.labels(found) else None

    def questions(listing: Obj, answers: Answers) -> tuple[Question, ...]:
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
        watches=(Watch(selects=only("", "ConfigMap"), concerns=itself),),
        gather=gather,
        questions=questions,
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


async def until_found(client: Client, name: str, found: str) -> None:
    await until(client, at(name), lambda obj: obj is not None and obj["data"].get("found") == found)


async def test_what_is_followed_is_seen_now_and_from_now_on(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    async with running(client, [gatherer()]):
        await client.create(listing("l", "tier=a"))
        await until_found(client, "l", "one")

        await client.create(secret("two", tier="a"))
        await until_found(client, "l", "one,two")
        await client.patch(Ref("v1", "Secret", "default", "one"), {"metadata": {"labels": {"tier": "b"}}})
        await until_found(client, "l", "two")
        await client.delete(Ref("v1", "Secret", "default", "two"))

        await until_found(client, "l", "")


async def test_who_asks_for_something_else_is_told_of_something_else(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    await client.create(secret("two", tier="b"))
    async with running(client, [gatherer()]):
        await client.create(listing("l", "tier=a"))
        await until_found(client, "l", "one")

        await client.patch(at("l"), {"data": {"wants": "tier=b"}})
        await until_found(client, "l", "two")
        await client.create(secret("three", tier="b"))

        await until_found(client, "l", "three,two")


async def test_a_controller_that_goes_for_good_says_so_and_one_that_is_replaced_does_not(
    client: Client,
) -> None:
    def leaving(world: World) -> tuple[AnyController, ...]:
        return tuple(replace(one, farewell=partial(_note, one.edition)) for one in orders(world))

    async with running(client, sources=[replace(PAINTERS, controllers=leaving)]):
        await client.create(canvas("a"))
        await client.create(order("red"))
        await until_painted(client, "a", "red")
        await client.patch(at("order"), {"data": {"colour": "blue"}})
        await until_painted(client, "a", "blue")

        await client.delete(at("order"))

        await until(client, at("gone-blue"), lambda obj: obj is not None)
        await until(client, at("gone-red"), lambda obj: obj is None)


def _note(edition: str, now: datetime) -> Plan:
    return one_stage("note", [Create(obj=config_map(f"gone-{edition}"))], because="it goes")


async def test_what_nobody_asks_for_any_more_is_followed_no_more(client: Client) -> None:
    await client.create(secret("one", tier="a"))
    async with running(client, [gatherer()], sources=[PAINTERS]) as manager:
        await client.create(listing("l", "tier=a"))
        await until_found(client, "l", "one")
        assert SECRETS in manager.followed

        await client.delete(at("l"))
        await client.create(listing("m", "tier=b"))
        await until_found(client, "m", "")
        assert SECRETS in manager.followed
        await client.delete(at("m"))
        await client.create(order("red"))
        await client.create(canvas("a"))
        await until_painted(client, "a", "red")

        assert SECRETS not in manager.followed
