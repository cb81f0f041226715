"""The client against a whole server, for every way to reach it."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from lamina.client.client import Client, PatchType
from lamina.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound, UnknownKind
from lamina.objects import meta
from lamina.objects.types import Made, Ref, WatchEvent

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG_MAP = ("v1", "ConfigMap")


def config_map(namespace: str, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": data or {"colour": "red"},
    }


def at(namespace: str, name: str) -> Ref:
    return Ref("v1", "ConfigMap", namespace, name)


# ── reading ──


async def test_what_was_created_can_be_read(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "settings"))

    assert await client.get(at(namespace, "settings")) == made
    assert made["data"] == {"colour": "red"}
    assert meta.uid(made) and meta.resource_version(made)


async def test_metadata_alone_says_its_real_kind(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "settings"))

    read = await client.get(at(namespace, "settings"), metadata_only=True)

    assert (read["apiVersion"], read["kind"]) == CONFIG_MAP
    assert "data" not in read


async def test_a_list_is_whole_and_its_items_say_their_kind(client: Client, namespace: str) -> None:
    for number in range(3):
        await client.create(config_map(namespace, f"m{number}", labels={"mine": "yes"}))

    listing = await client.list(CONFIG_MAP, namespace, labels="mine=yes")

    assert [meta.name(obj) for obj in listing.items] == ["m0", "m1", "m2"]
    assert {obj["kind"] for obj in listing.items} == {"ConfigMap"}
    assert int(listing.version) >= max(int(meta.resource_version(obj)) for obj in listing.items)


async def test_a_list_can_be_read_page_by_page(client: Client, namespace: str) -> None:
    for number in range(5):
        await client.create(config_map(namespace, f"m{number}", labels={"mine": "yes"}))

    first = await client.page(CONFIG_MAP, namespace, labels="mine=yes", limit=2)
    second = await client.page(CONFIG_MAP, namespace, labels="mine=yes", limit=2, token=first.token)
    third = await client.page(CONFIG_MAP, namespace, labels="mine=yes", limit=2, token=second.token)

    names = [[meta.name(obj) for obj in page.items] for page in (first, second, third)]
    assert names == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert (third.token, first.version) == ("", third.version)


async def test_fields_select(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a"))
    await client.create(config_map(namespace, "b"))

    listing = await client.list(CONFIG_MAP, namespace, fields="metadata.name=b", metadata_only=True)

    assert [(obj["kind"], meta.name(obj)) for obj in listing.items] == [("ConfigMap", "b")]


# ── watching ──


async def test_a_watch_tells_what_happened_after_a_version_in_order(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "a", labels={"mine": "yes"}))
    start = meta.resource_version(made)
    await client.patch(at(namespace, "a"), {"data": {"colour": "blue"}})
    await client.create(config_map(namespace, "b", labels={"mine": "yes"}))
    await client.delete(at(namespace, "a"))

    heard = []
    async with aclosing(client.watch(CONFIG_MAP, namespace, version=start, labels="mine")) as events:
        async for event in events:
            if event["type"] != "BOOKMARK":
                heard.append((event["type"], meta.name(event["object"])))
            if len(heard) == 3:
                break

    assert heard == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_can_begin_with_what_exists(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a", labels={"mine": "yes"}))

    heard = []
    watch = client.watch(CONFIG_MAP, namespace, initial=True, labels="mine=yes", metadata_only=True)
    async with aclosing(watch) as events:
        async for event in events:
            heard.append((event["type"], event["object"]["kind"]))
            if event["type"] == "BOOKMARK":
                ended = "k8s.io/initial-events-end" in meta.annotations(event["object"])
                break

    assert heard == [("ADDED", "ConfigMap"), ("BOOKMARK", "ConfigMap")]
    assert ended


async def test_an_event_arrives_while_a_watch_waits_for_it(client: Client, namespace: str) -> None:
    version = (await client.list(CONFIG_MAP, namespace)).version

    async def first() -> str:
        async with aclosing(client.watch(CONFIG_MAP, namespace, version=version)) as events:
            async for event in events:
                if event["type"] == "ADDED" and meta.name(event["object"]) == "late":
                    return meta.name(event["object"])
        return ""

    waiting = asyncio.ensure_future(first())
    await client.get(Ref("v1", "Namespace", "", namespace))
    await client.create(config_map(namespace, "late"))

    async with asyncio.timeout(60):
        assert await waiting == "late"


async def test_a_watch_gets_every_event_once_and_in_order(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "there", labels={"mine": "yes"}))
    names = [f"n{number}" for number in range(12)]
    told: list[str] = []
    came = asyncio.Event()

    def record(event: WatchEvent) -> None:
        told.append(meta.name(event["object"]) if event["type"] == "ADDED" else event["type"])
        came.set()

    async def received(last: str) -> None:
        async with asyncio.timeout(60):
            while last not in told:
                came.clear()
                await came.wait()

    following = asyncio.ensure_future(
        client.follow(CONFIG_MAP, record, namespace, initial=True, labels="mine", seconds=600)
    )
    await received("BOOKMARK")
    for name in names:
        await client.create(config_map(namespace, name, labels={"mine": "yes"}))
    await received(names[-1])
    following.cancel()

    assert [one for one in told if one != "BOOKMARK"] == ["there", *names]


async def test_a_line_longer_than_any_buffer_arrives_whole(client: Client, namespace: str) -> None:
    version = (await client.list(CONFIG_MAP, namespace)).version
    long = "long " * 100_000
    await client.create(config_map(namespace, "long", {"text": long}))

    async with aclosing(client.watch(CONFIG_MAP, namespace, version=version)) as events:
        async for event in events:
            if meta.name(event["object"]) == "long":
                assert event["object"]["data"]["text"] == long
                break


async def test_a_watch_ends_when_its_time_is_over(client: Client, namespace: str) -> None:
    version = (await client.list(CONFIG_MAP, namespace)).version

    heard = [event async for event in client.watch(CONFIG_MAP, namespace, version=version, seconds=1)]

    assert {event["type"] for event in heard} <= {"BOOKMARK", "ADDED"}


# ── writing ──


async def test_a_name_is_given_once(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a"))

    with pytest.raises(AlreadyExists) as refused:
        await client.create(config_map(namespace, "a"))

    assert refused.value.details["name"] == "a"


async def test_an_update_of_an_old_version_is_refused(client: Client, namespace: str) -> None:
    old = await client.create(config_map(namespace, "a"))
    await client.update({**old, "data": {"colour": "blue"}})

    with pytest.raises(Conflict):
        await client.update({**old, "data": {"colour": "green"}})

    assert (await client.get(at(namespace, "a")))["data"] == {"colour": "blue"}


@pytest.mark.parametrize(
    ("how", "patch"),
    [
        (PatchType.MERGE, {"data": {"size": "big"}}),
        (PatchType.STRATEGIC, {"data": {"size": "big"}}),
        (PatchType.JSON, [{"op": "add", "path": "/data/size", "value": "big"}]),
    ],
)
async def test_patches_of_every_kind(client: Client, namespace: str, how: PatchType, patch: Any) -> None:
    await client.create(config_map(namespace, "a"))

    patched = await client.patch(at(namespace, "a"), patch, how=how)

    assert patched["data"] == {"colour": "red", "size": "big"}


async def test_a_patch_that_names_an_old_version_is_refused(client: Client, namespace: str) -> None:
    old = await client.create(config_map(namespace, "a"))
    await client.patch(at(namespace, "a"), {"data": {"colour": "blue"}})
    named = {"uid": meta.uid(old), "resourceVersion": meta.resource_version(old)}

    with pytest.raises(Conflict):
        await client.patch(at(namespace, "a"), {"metadata": named, "data": {"colour": "green"}})


async def test_applying_over_another_managers_field_is_refused_unless_forced(
    client: Client, namespace: str
) -> None:
    await client.apply(config_map(namespace, "a"), manager="alice")
    theirs = config_map(namespace, "a", {"colour": "blue"})

    with pytest.raises(Conflict) as refused:
        await client.apply(theirs, manager="bob")
    forced = await client.apply(theirs, manager="bob", force=True)

    assert [cause.field for cause in refused.value.causes] == [".data.colour"]
    assert "alice" in refused.value.causes[0].message
    assert forced["data"] == {"colour": "blue"}


async def test_a_manager_is_recorded(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "a"), manager="somebody")

    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["somebody"]


async def test_a_status_is_written_below_its_object(client: Client, namespace: str) -> None:
    ref = Ref("v1", "Namespace", "", namespace)
    condition = {"type": "Checked", "status": "True", "reason": "Test", "message": "seen"}

    await client.patch(ref, {"status": {"conditions": [condition]}}, subresource="status")
    read = await client.get(ref, subresource="status")

    assert [one["type"] for one in read["status"]["conditions"]] == ["Checked"]


async def test_a_dry_run_leaves_nothing(client: Client, namespace: str) -> None:
    made = await client.create(config_map(namespace, "a"), dry_run=True)

    assert meta.uid(made)
    with pytest.raises(NotFound):
        await client.get(at(namespace, "a"))


async def test_strict_validation_is_asked_for(client: Client, namespace: str) -> None:
    with pytest.raises(BadRequest, match="unknown field"):
        await client.create({**config_map(namespace, "a"), "bogus": 1}, validation="Strict")


async def test_what_is_wrong_is_named(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(config_map(namespace, "A_b"))

    assert [cause.field for cause in refused.value.causes] == ["metadata.name"]


# ── deleting ──


@pytest.mark.parametrize("wrong", ["uid", "version"])
async def test_a_deletion_of_something_else_is_refused(client: Client, namespace: str, wrong: str) -> None:
    made = await client.create(config_map(namespace, "a"))
    conditions: dict[str, Any] = {"uid": meta.uid(made), "version": meta.resource_version(made)}

    with pytest.raises(Conflict):
        await client.delete(at(namespace, "a"), **{**conditions, wrong: "1"})
    answer = await client.delete(at(namespace, "a"), **conditions)

    assert (answer["kind"], answer["status"]) == ("Status", "Success")


async def test_what_is_held_is_shown_and_goes_when_it_is_let_go(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a", finalizers=["ex.example.com/hold"]))

    held = await client.delete(at(namespace, "a"))
    await client.patch(at(namespace, "a"), {"metadata": {"finalizers": None}})

    assert held["kind"] == "ConfigMap" and meta.is_deleting(held)
    with pytest.raises(NotFound):
        await client.get(at(namespace, "a"))


async def test_a_selection_is_deleted_and_the_rest_stays(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, "a", labels={"mine": "yes"}))
    await client.create(config_map(namespace, "b", labels={"mine": "no"}))

    await client.delete_collection(CONFIG_MAP, namespace, labels="mine=yes")
    left = await client.list(CONFIG_MAP, namespace, labels="mine")

    assert [meta.name(obj) for obj in left.items] == ["b"]


# ── kinds ──


async def test_what_is_not_there_is_named(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound) as refused:
        await client.get(at(namespace, "none"))

    assert str(refused.value) == 'configmaps "none" not found'


async def test_a_kind_that_is_not_served_is_not_an_object_that_is_absent(
    client: Client, namespace: str
) -> None:
    with pytest.raises(UnknownKind, match='no matches for kind "Foo" in version "v1"'):
        await client.get(Ref("v1", "Foo", namespace, "a"))


async def test_a_kind_that_is_new_is_found(client: Client, namespace: str) -> None:
    plural = f"w{namespace.replace('-', '')}"
    kind = plural.capitalize()
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    ]
    group = "client.example.com"
    definition = await client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": versions,
            },
        }
    )
    async with asyncio.timeout(60):
        while (found := await _made(client, group, kind, namespace)) is None:
            await client.discover()

    assert found["kind"] == kind
    await client.delete(meta.ref(definition))


async def _made(client: Client, group: str, kind: str, namespace: str) -> Made | None:
    try:
        return await client.create(
            {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a", "namespace": namespace}}
        )
    except (UnknownKind, NotFound):
        return None


@pytest.mark.parametrize("name", ["a/b", "..", "a%2fb"])
async def test_a_name_that_would_be_another_place_is_refused(
    client: Client, namespace: str, name: str
) -> None:
    with pytest.raises(BadRequest):
        await client.get(at(namespace, name))
