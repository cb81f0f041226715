"""The actors on a whole server: what kubectl's users see them do."""

from collections.abc import AsyncIterator

import pytest

from lamina.app import App
from lamina.client.client import Client
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Ref
from tests.runtime.cluster import (
    at,
    config_map,
    definition,
    embedded,
    namespace,
    until,
    until_gone,
    until_there,
)

HOLD = ["ex.example.com/hold"]


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with embedded() as app:
        yield app


@pytest.fixture
def client(app: App) -> Client:
    return app.client()


def web() -> Ref:
    return Ref("v1", "Namespace", "", "web")


async def test_what_belongs_to_a_deleted_object_goes_with_it_to_the_last_generation(client: Client) -> None:
    owner = await client.create(config_map("owner"))
    child = await client.create(config_map("child", "default", owner))
    await client.create(config_map("grandchild", "default", child))

    await client.delete(at("owner"))

    await until_gone(client, at("child"))
    await until_gone(client, at("grandchild"))


async def test_an_owner_in_the_foreground_waits_for_what_blocks_it(client: Client) -> None:
    owner = await client.create(config_map("owner"))
    await client.create(config_map("child", "default", owner, blocks=True, finalizers=HOLD))

    held = await client.delete(at("owner"), propagation="Foreground")
    await until(client, at("child"), lambda obj: obj is not None and meta.is_deleting(obj))
    assert meta.finalizers(held) == ["foregroundDeletion"]
    assert meta.is_deleting(await client.get(at("owner")))

    await client.patch(at("child"), {"metadata": {"finalizers": None}})
    await until_gone(client, at("owner"))


async def test_orphans_stay_and_lose_their_owner(client: Client) -> None:
    owner = await client.create(config_map("owner"))
    await client.create(config_map("child", "default", owner))
    # The collector has seen the child once it has seen something that happened after it.
    bait = await client.create(config_map("bait"))
    await client.create(config_map("fish", "default", bait))
    await client.delete(at("bait"))
    await until_gone(client, at("fish"))

    await client.delete(at("owner"), propagation="Orphan")
    await until_gone(client, at("owner"))

    assert meta.owner_refs(await client.get(at("child"))) == ()


async def test_absent_owners_take_their_dependents_along_and_unknown_kinds_do_not(client: Client) -> None:
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zzz", "uid": "1"}
    unknown = {"apiVersion": "foo.example.com/v1", "kind": "Foo", "name": "zzz", "uid": "2"}
    await client.create(config_map("kept", ownerReferences=[unknown]))
    await client.create(config_map("lost", ownerReferences=[absent]))

    await until_gone(client, at("lost"))

    assert meta.owner_refs(await client.get(at("kept"))) == [unknown]


async def test_a_circle_comes_apart(client: Client) -> None:
    first = await client.create(config_map("first"))
    second = await client.create(config_map("second", "default", first, blocks=True))
    closing = [meta.owner_ref(second, blocks=True)]
    await client.patch(at("first"), {"metadata": {"ownerReferences": closing}})

    await client.delete(at("first"), propagation="Foreground")

    await until_gone(client, at("first"))
    await until_gone(client, at("second"))


async def test_every_namespace_is_furnished_and_stays_so(client: Client) -> None:
    await client.create(namespace("web"))
    root = await until_there(client, at("kube-root-ca.crt", "web"))
    await until_there(client, Ref("v1", "ServiceAccount", "web", "default"))

    await client.delete(meta.ref(root))
    again = await until(
        client, meta.ref(root), lambda obj: obj is not None and meta.uid(obj) != meta.uid(root)
    )

    assert again is not None
    assert again["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert [entry["manager"] for entry in again["metadata"]["managedFields"]] == ["kube-controller-manager"]


async def test_a_namespace_goes_with_everything_in_it_custom_kinds_included(client: Client) -> None:
    await client.create(namespace("web"))
    await client.create(config_map("settings", "web"))
    made = await client.create(definition("widgets", "Widget"))
    await until(client, meta.ref(made), lambda obj: _condition(obj, "Established") == "True")
    await client.create(
        {
            "apiVersion": "runtime.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "web"},
        }
    )

    await client.delete(web())
    await until_gone(client, web())

    assert (await client.list(("v1", "ConfigMap"), "web")).items == ()
    assert (await client.list(("runtime.example.com/v1", "Widget"), "web")).items == ()


async def test_what_holds_a_namespace_is_said(client: Client) -> None:
    await client.create(namespace("web"))
    await client.create(config_map("held", "web", finalizers=HOLD))

    await client.delete(web())
    told = await until(client, web(), lambda obj: _condition(obj, "NamespaceFinalizersRemaining") == "True")
    assert told is not None
    said = conditions.find(told["status"]["conditions"], "NamespaceContentRemaining")
    assert said is not None
    assert said.get("message") == "Some resources are remaining: configmaps. has 1 resource instances"
    assert told["status"]["phase"] == "Terminating"

    await client.patch(at("held", "web"), {"metadata": {"finalizers": None}})
    await until_gone(client, web())


async def test_a_definition_goes_with_its_objects_and_theirs(client: Client) -> None:
    made = await client.create(definition("widgets", "Widget"))
    await until(client, meta.ref(made), lambda obj: _condition(obj, "Established") == "True")
    widget = await client.create(
        {
            "apiVersion": "runtime.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default", "finalizers": HOLD},
        }
    )
    await client.create(config_map("child", "default", widget))

    await client.delete(meta.ref(made))
    await until(client, meta.ref(made), lambda obj: _condition(obj, "Terminating") == "True")
    await client.patch(meta.ref(widget), {"metadata": {"finalizers": None}})

    await until_gone(client, meta.ref(made))
    await until_gone(client, at("child"))


async def test_the_wrong_namespace_is_warned_about(client: Client) -> None:
    await client.create(namespace("far"))
    owner = await client.create(config_map("owner", "far"))
    child = await client.create(config_map("child", "default", owner))

    await until_gone(client, at("child"))

    found = await client.list(("v1", "Event"), "default", fields="reason=OwnerRefInvalidNamespace")
    assert [event["involvedObject"]["uid"] for event in found.items] == [meta.uid(child)]


def _condition(obj: Made | None, name: str) -> str:
    found = conditions.find(((obj or {}).get("status") or {}).get("conditions") or (), name)
    return found["status"] if found is not None else ""
