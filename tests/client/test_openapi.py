"""OpenAPI documents, for every way to reach a server."""

import pytest

from lamina.client.client import Client
from lamina.errors import ApiError, NotFound

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_each_group_version_has_a_document_whose_url_contains_its_hash(client: Client) -> None:
    urls = await client.openapi_documents()

    assert {"api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"} <= urls.keys()
    assert urls["apis/apps/v1"].startswith("/openapi/v3/apis/apps/v1?hash=")


async def test_a_document_has_the_schemas_of_its_kinds(client: Client) -> None:
    urls = await client.openapi_documents()

    document = await client.openapi(urls["apis/apps/v1"])

    deployment = document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    named = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert deployment["x-kubernetes-group-version-kind"] == [named]
    assert deployment["properties"]["spec"]


async def test_a_document_with_another_hash_is_refused(client: Client) -> None:
    with pytest.raises(ApiError):
        await client.openapi("/openapi/v3/apis/apps/v1?hash=0000")
    with pytest.raises(NotFound):
        await client.openapi("/openapi/v3/apis/none.example.com/v1?hash=0000")
