"""Asking a server for the schema of a kind."""

import asyncio
import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.core.model.queries import Answer, Found, ReadSchema, Unserved
from lamina.errors import ApiError, Forbidden, LaminaError, UnknownCluster
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj
from lamina.runtime.cache.published_schemas import PublishedSchemas
from lamina.runtime.controller.live_queries import LiveQueries
from lamina.testing.builders import definition
from lamina.testing.waiting import eventually

DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments", True)
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets", True)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
SECRET = Kind("v1", "Secret", "secrets", True)
WIDGET = Kind("ex.example.com/v1", "Widget", "widgets", True)


def has_references(schema: Any) -> bool:
    if isinstance(schema, dict):
        return isinstance(schema.get("$ref"), str) or any(map(has_references, schema.values()))
    return isinstance(schema, list) and any(map(has_references, schema))


async def schema_of(queries: LiveQueries, kind: Kind) -> Obj:
    query = ReadSchema(kind)
    answer = (await queries.ask([query]))[query]
    assert isinstance(answer, Found)
    schema: Obj = answer.obj["schema"]
    return schema


# On a server


@pytest.mark.asyncio(loop_scope="session")
async def test_the_schema_of_a_built_in_kind_has_no_references(client: Client) -> None:
    schema = await schema_of(LiveQueries(client), DEPLOYMENT)

    template = schema["properties"]["spec"]["properties"]["template"]["properties"]
    containers = template["spec"]["properties"]["containers"]
    assert containers["items"]["properties"]["image"]["type"] == "string"
    for metadata in (schema["properties"]["metadata"], template["metadata"]):
        assert metadata["properties"]["labels"]["additionalProperties"]["type"] == "string"
    assert not has_references(schema)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_schema_of_schemas_is_open_where_it_contains_itself(client: Client) -> None:
    crd = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
    schema = await schema_of(LiveQueries(client), crd)

    version = schema["properties"]["spec"]["properties"]["versions"]["items"]["properties"]
    validation = version["schema"]["properties"]["openAPIV3Schema"]
    assert validation["properties"]["maxLength"] == {"type": "integer", "format": "int64"}
    assert validation["properties"]["not"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert not has_references(schema)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_custom_kind_has_a_schema_from_when_it_is_served_until_it_is_not(
    client: Client, namespace: str
) -> None:
    group = f"{namespace}.example.com"
    wanted = definition("Widget", group=group, schema={"type": "object", "properties": {"spec": SIZED}})
    queries = LiveQueries(client)
    query = ReadSchema(Kind(f"{group}/v1", "Widget", "widgets", True))

    async def answer() -> Answer:
        # What the informers of CRDs do in a process: discovery is requested again.
        await client.discover()
        return (await queries.ask([query]))[query]

    assert await answer() == Unserved()
    made = await client.create(wanted)
    found = await eventually(answer, lambda answer: isinstance(answer, Found))
    assert isinstance(found, Found)
    properties = found.obj["schema"]["properties"]
    assert properties["spec"]["properties"]["size"]["type"] == "integer"
    assert properties["metadata"]["properties"]["labels"]["type"] == "object"

    await client.delete(meta.ref(made))
    assert await eventually(answer, lambda answer: answer == Unserved())


@pytest.mark.asyncio(loop_scope="session")
async def test_the_cluster_that_a_query_names_is_asked(client: Client) -> None:
    queries, query = LiveQueries(client, others={"hub": client}), ReadSchema(CONFIG_MAP, "hub")
    assert isinstance((await queries.ask([query]))[query], Found)
    with pytest.raises(UnknownCluster):
        await queries.ask([ReadSchema(CONFIG_MAP, "east")])


SIZED = {"type": "object", "properties": {"size": {"type": "integer"}}}


# What is read, and when


@dataclass(eq=False)
class Publishing:
    """A server whose documents change, and that counts how often they are read."""

    known_kinds: Kinds = field(default_factory=Kinds)
    documents: dict[str, Made] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refuses: list[LaminaError] = field(default_factory=list)

    def publish(self, name: str, hashed: str, *kinds: Kind, **schema: Any) -> None:
        self.documents[name] = {
            "components": {"schemas": {kind.kind: {**schema, **_named(kind)} for kind in kinds}}
        }
        self.hashes[name] = hashed

    def discover(self) -> None:
        self.known_kinds = Kinds()

    async def kind(self, api_version: str, kind: str) -> Kind:
        return Kind(api_version, kind, f"{kind.lower()}s", True)

    async def openapi_documents(self) -> Mapping[str, str]:
        await self._answer("list")
        return {name: f"/{name}?hash={hashed}" for name, hashed in self.hashes.items()}

    async def openapi(self, url: str) -> Made:
        await self._answer(url)
        name, _, hashed = url.strip("/").partition("?hash=")
        if hashed != self.hashes[name]:
            raise ApiError("the server answered 301")
        return self.documents[name]

    async def _answer(self, what: str) -> None:
        self.asked.append(what)
        await asyncio.sleep(0)
        if self.refuses:
            raise self.refuses.pop()


def _named(kind: Kind) -> Obj:
    version = kind.api_version.rpartition("/")[2]
    return {"x-kubernetes-group-version-kind": [{"group": kind.group, "version": version, "kind": kind.kind}]}


@pytest.fixture
def server() -> Publishing:
    made = Publishing()
    made.publish("apis/apps/v1", "1", DEPLOYMENT, STATEFUL_SET, description="old")
    made.publish("api/v1", "1", CONFIG_MAP, SECRET)
    return made


def described(schema: Obj | None) -> str:
    assert schema is not None
    return str(schema["description"])


async def test_a_schema_is_read_once_while_nothing_suggests_a_change(server: Publishing) -> None:
    schemas = PublishedSchemas()

    first = await schemas.schema(server, DEPLOYMENT)
    second = await schemas.schema(server, DEPLOYMENT)

    assert first is second is not None
    assert server.asked == ["list", "/apis/apps/v1?hash=1"]


async def test_kinds_that_are_asked_for_together_take_one_list_and_one_read_of_their_document(
    server: Publishing,
) -> None:
    schemas = PublishedSchemas()
    kinds = (DEPLOYMENT, CONFIG_MAP, STATEFUL_SET, SECRET, DEPLOYMENT)

    found = await asyncio.gather(*(schemas.schema(server, kind) for kind in kinds))

    assert all(found)
    assert server.asked == ["list", "/apis/apps/v1?hash=1", "/api/v1?hash=1"]


async def test_a_kind_that_is_asked_for_later_takes_another_read_of_its_document(server: Publishing) -> None:
    schemas = PublishedSchemas()
    for kind in (DEPLOYMENT, STATEFUL_SET, DEPLOYMENT):
        await schemas.schema(server, kind)

    assert server.asked == ["list", "/apis/apps/v1?hash=1", "/apis/apps/v1?hash=1"]


async def test_after_discovery_the_list_is_read_again_and_changed_documents_only(server: Publishing) -> None:
    schemas = PublishedSchemas()
    for kind in (DEPLOYMENT, CONFIG_MAP):
        await schemas.schema(server, kind)
    server.publish("apis/apps/v1", "2", DEPLOYMENT, description="new")
    server.asked.clear()
    assert described(await schemas.schema(server, DEPLOYMENT)) == "old", "nothing suggests a change"

    server.discover()

    assert described(await schemas.schema(server, DEPLOYMENT)) == "new"
    assert await schemas.schema(server, CONFIG_MAP) is not None
    assert server.asked == ["list", "/apis/apps/v1?hash=2"]


async def test_a_change_of_a_schema_alone_is_noticed_after_a_while(server: Publishing) -> None:
    schemas = PublishedSchemas(max_age=0)
    await schemas.schema(server, DEPLOYMENT)
    server.publish("apis/apps/v1", "2", DEPLOYMENT, description="new")

    assert described(await schemas.schema(server, DEPLOYMENT)) == "new"


async def test_a_document_that_changed_since_the_list_was_read_is_read_at_its_new_address(
    server: Publishing,
) -> None:
    schemas = PublishedSchemas()
    await schemas.schema(server, CONFIG_MAP)
    server.publish("apis/apps/v1", "2", DEPLOYMENT, description="new")

    assert described(await schemas.schema(server, DEPLOYMENT)) == "new"
    assert server.asked[2:] == ["/apis/apps/v1?hash=1", "list", "/apis/apps/v1?hash=2"]


async def test_a_schema_that_was_missing_is_there_as_soon_as_it_is_published(server: Publishing) -> None:
    schemas = PublishedSchemas()
    assert await schemas.schema(server, WIDGET) is None
    server.publish("apis/ex.example.com/v1", "1")
    assert await schemas.schema(server, WIDGET) is None
    server.publish("apis/ex.example.com/v1", "2", WIDGET)

    assert await schemas.schema(server, WIDGET) is not None


async def test_a_document_without_a_hash_is_not_kept_longer_than_the_list(server: Publishing) -> None:
    schemas = PublishedSchemas()
    server.publish("apis/apps/v1", "", DEPLOYMENT, description="old")

    async def listed() -> Mapping[str, str]:
        return {"apis/apps/v1": "/apis/apps/v1"}

    server.openapi_documents = listed  # type: ignore[method-assign]  # an aggregated API
    assert described(await schemas.schema(server, DEPLOYMENT)) == "old"
    server.publish("apis/apps/v1", "", DEPLOYMENT, description="new")
    server.discover()

    assert described(await schemas.schema(server, DEPLOYMENT)) == "new"


async def test_no_more_schemas_are_kept_than_allowed(server: Publishing) -> None:
    schemas = PublishedSchemas(max_schemas=1)
    for kind in (DEPLOYMENT, CONFIG_MAP, CONFIG_MAP, DEPLOYMENT):
        assert await schemas.schema(server, kind) is not None

    assert server.asked == ["list", *("/apis/apps/v1?hash=1", "/api/v1?hash=1", "/apis/apps/v1?hash=1")]


async def test_each_server_has_schemas_of_its_own_and_takes_them_with_it(server: Publishing) -> None:
    schemas, other = PublishedSchemas(), Publishing()
    other.publish("apis/apps/v1", "1", DEPLOYMENT, description="of another")

    found = [described(await schemas.schema(one, DEPLOYMENT)) for one in (server, other)]

    assert found == ["old", "of another"]
    del other
    gc.collect()
    assert len(schemas._servers) == 1


async def test_an_error_of_the_server_leaves_the_query_open_and_is_not_kept(server: Publishing) -> None:
    schemas = PublishedSchemas()
    server.refuses = [Forbidden("not yours")]
    with pytest.raises(Forbidden):
        await schemas.schema(server, DEPLOYMENT)

    assert await schemas.schema(server, DEPLOYMENT) is not None
