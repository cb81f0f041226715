"""
The actors on a whole server: what kubectl's users see them do.

On a real server it is the controller manager that is seen at work, and it
passes the same tests.
"""

import pytest

from lamina.client.client import Client
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Ref
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, definition, reader, wait_created, wait_deleted

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOLD = ["ex.example.com/hold"]


def place(name: str) -> Ref:
    return Ref("v1", "Namespace", "", name)


async def widgets(client: Client, namespace: str) -> Made:
    """Define a kind of Widget that no other test has, and wait until it is served."""
    made = await client.create(definition("widgets", "Widget", f"{namespace}.example.com"))
    await eventually(reader(client, meta.ref(made)), lambda obj: _condition(obj, "Established") == "True")
    return made


async def widget(client: Client, namespace: str, **metadata: object) -> Made:
    api_version = f"{namespace}.example.com/v1"
    wanted = {"name": "w", "namespace": namespace, **metadata}
    return await client.create({"apiVersion": api_version, "kind": "Widget", "metadata": wanted})


async def test_what_belongs_to_a_deleted_object_goes_with_it_to_the_last_generation(
    client: Client, namespace: str
) -> None:
    owner = await client.create(config_map("owner", namespace))
    child = await client.create(config_map("child", namespace, owner))
    await client.create(config_map("grandchild", namespace, child))

    await client.delete(at("owner", namespace))

    await wait_deleted(client, at("child", namespace))
    await wait_deleted(client, at("grandchild", namespace))


async def test_an_owner_in_the_foreground_waits_for_what_blocks_it(client: Client, namespace: str) -> None:
    owner = await client.create(config_map("owner", namespace))
    await client.create(config_map("child", namespace, owner, blocks=True, finalizers=HOLD))

    held = await client.delete(at("owner", namespace), propagation="Foreground")
    await eventually(
        reader(client, at("child", namespace)), lambda obj: obj is not None and meta.is_deleting(obj)
    )
    assert meta.finalizers(held) == ["foregroundDeletion"]
    assert meta.is_deleting(await client.get(at("owner", namespace)))

    await client.patch(at("child", namespace), {"metadata": {"finalizers": None}})
    await wait_deleted(client, at("owner", namespace))


async def test_orphans_stay_and_lose_their_owner(client: Client, namespace: str) -> None:
    owner = await client.create(config_map("owner", namespace))
    await client.create(config_map("child", namespace, owner))
    # The collector has seen the child once it has seen something that happened after it.
    bait = await client.create(config_map("bait", namespace))
    await client.create(config_map("fish", namespace, bait))
    await client.delete(at("bait", namespace))
    await wait_deleted(client, at("fish", namespace))

    await client.delete(at("owner", namespace), propagation="Orphan")
    await wait_deleted(client, at("owner", namespace))

    assert list(meta.owner_refs(await client.get(at("child", namespace)))) == []


async def test_absent_owners_take_their_dependents_along_and_unknown_kinds_do_not(
    client: Client, namespace: str
) -> None:
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zzz", "uid": "1"}
    unknown = {"apiVersion": "foo.example.com/v1", "kind": "Foo", "name": "zzz", "uid": "2"}
    await client.create(config_map("kept", namespace, ownerReferences=[unknown]))
    await client.create(config_map("lost", namespace, ownerReferences=[absent]))

    await wait_deleted(client, at("lost", namespace))

    assert meta.owner_refs(await client.get(at("kept", namespace))) == [unknown]


async def test_a_circle_comes_apart(client: Client, namespace: str) -> None:
    first = await client.create(config_map("first", namespace))
    second = await client.create(config_map("second", namespace, first, blocks=True))
    closing = [meta.owner_ref(second, blocks=True)]
    await client.patch(at("first", namespace), {"metadata": {"ownerReferences": closing}})

    await client.delete(at("first", namespace), propagation="Foreground")

    await wait_deleted(client, at("first", namespace))
    await wait_deleted(client, at("second", namespace))


async def test_every_namespace_is_furnished_and_stays_so(client: Client, namespace: str) -> None:
    root = await wait_created(client, at("kube-root-ca.crt", namespace))
    await wait_created(client, Ref("v1", "ServiceAccount", namespace, "default"))

    await client.delete(meta.ref(root))
    again = await eventually(
        reader(client, meta.ref(root)), lambda obj: obj is not None and meta.uid(obj) != meta.uid(root)
    )

    assert again is not None
    assert again["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert [entry["manager"] for entry in again["metadata"]["managedFields"]] == ["kube-controller-manager"]


async def test_a_namespace_goes_with_everything_in_it_custom_kinds_included(
    client: Client, namespace: str
) -> None:
    await client.create(config_map("settings", namespace))
    made = await widgets(client, namespace)
    await widget(client, namespace)

    await client.delete(place(namespace))
    await wait_deleted(client, place(namespace))

    assert (await client.list(("v1", "ConfigMap"), namespace)).items == ()
    assert (await client.list((f"{namespace}.example.com/v1", "Widget"), namespace)).items == ()
    await client.delete(meta.ref(made))


async def test_what_holds_a_namespace_is_said(client: Client, namespace: str) -> None:
    await client.create(config_map("held", namespace, finalizers=HOLD))

    await client.delete(place(namespace))
    told = await eventually(
        reader(client, place(namespace)),
        lambda obj: _condition(obj, "NamespaceFinalizersRemaining") == "True",
    )
    assert told is not None
    said = conditions.find(told["status"]["conditions"], "NamespaceContentRemaining")
    assert said is not None
    assert said.get("message") == "Some resources are remaining: configmaps. has 1 resource instances"
    assert told["status"]["phase"] == "Terminating"

    await client.patch(at("held", namespace), {"metadata": {"finalizers": None}})
    await wait_deleted(client, place(namespace))


async def test_a_definition_goes_with_its_objects_and_theirs(client: Client, namespace: str) -> None:
    defined = await widgets(client, namespace)
    made = await widget(client, namespace, finalizers=HOLD)
    await client.create(config_map("child", namespace, made))

    await client.delete(meta.ref(defined))
    told = await eventually(
        reader(client, meta.ref(defined)), lambda obj: _condition(obj, "Terminating") == "True"
    )
    await eventually(reader(client, meta.ref(made)), lambda obj: obj is not None and meta.is_deleting(obj))
    await client.patch(meta.ref(made), {"metadata": {"finalizers": None}})

    assert told is not None
    await wait_deleted(client, meta.ref(defined))
    await wait_deleted(client, at("child", namespace))


async def test_the_wrong_namespace_is_warned_about(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(f"owner-{namespace}", "default"))
    # It has to have been seen where it is before it can be missed where it is not.
    bait = await client.create(config_map("bait", namespace))
    await client.create(config_map("fish", namespace, bait))
    await client.delete(at("bait", namespace))
    await wait_deleted(client, at("fish", namespace))

    child = await client.create(config_map("child", namespace, owner))
    await wait_deleted(client, at("child", namespace))
    events = ("v1", "Event")
    found = await client.list(events, namespace, fields="reason=OwnerRefInvalidNamespace")

    assert [event["involvedObject"]["uid"] for event in found.items] == [meta.uid(child)]
    await client.delete(meta.ref(owner))


def _condition(obj: Made | None, name: str) -> str:
    found = conditions.find(((obj or {}).get("status") or {}).get("conditions") or (), name)
    return found["status"] if found is not None else ""
