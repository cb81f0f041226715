"""Dry runs and access reviews on a real server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.model.queries import Absent, DryRun, Found, Read, Refused
from lamina.errors import CacheNotSynced, Forbidden, InternalError
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.live_queries import LiveQueries
from lamina.settings import Settings

REF = Ref("v1", "ConfigMap", "default", "cm")


def config_map(**data: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm", "namespace": "default"},
        "data": data,
    }


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster(Settings(simulate="off", families="none")) as cluster:
        yield cluster.client()


async def test_a_dry_run_of_a_replace_returns_the_object_and_does_not_write_it(client: Client) -> None:
    made = await client.create(config_map(a="1"))
    asked = DryRun(obj={**made, "data": {"b": "2"}}, manager="m", key="k", replaces=True)
    answer = (await LiveQueries(client).ask([asked]))[asked]

    assert isinstance(answer, Found) and answer.obj["data"] == {"b": "2"}
    assert (await client.get(REF))["data"] == {"a": "1"}


async def test_a_dry_run_of_a_stale_object_waits_for_the_cache(client: Client) -> None:
    made = await client.create(config_map(a="1"))
    await client.patch(REF, {"data": {"a": "2"}})
    asked = DryRun(obj={**made, "data": {"b": "2"}}, manager="m", key="k", replaces=True)
    with pytest.raises(CacheNotSynced):
        await LiveQueries(client).ask([asked])


async def test_without_force_a_field_that_another_states_is_a_reason_to_refuse(client: Client) -> None:
    await client.apply(config_map(a="theirs"), manager="somebody")
    gentle = DryRun(obj=config_map(a="ours"), manager="m", key="k", force=False)
    forced = DryRun(obj=config_map(a="ours"), manager="m", key="k")
    answers = await LiveQueries(client).ask([gentle, forced])

    refused = answers[gentle]
    assert isinstance(refused, Refused) and refused.code == 409 and "somebody" in refused.because
    assert isinstance(answers[forced], Found)


class Broken:
    """A client whose server cannot reach a webhook."""

    async def update(self, obj: Any, **options: Any) -> Made:
        raise InternalError("failed calling webhook")

    apply = update


async def test_server_errors_are_an_answer_to_a_dry_run_that_may_be_refused() -> None:
    asker = LiveQueries(Broken())  # type: ignore[arg-type]  # nothing else is asked of it
    for asked in (
        DryRun(obj=config_map(), manager="m", key="k", replaces=True),
        DryRun(obj=config_map(), manager="m", key="k", force=False),
    ):
        assert (await asker.ask([asked]))[asked] == Refused(500, "failed calling webhook")
    with pytest.raises(InternalError):
        await asker.ask([DryRun(obj=config_map(), manager="m", key="k")])


class Blind:
    """A client without permission to read."""

    async def get(self, ref: Ref, **options: Any) -> Made:
        raise Forbidden("configmaps is forbidden")


async def test_a_forbidden_read_is_an_answer_to_a_refusable_query(client: Client) -> None:
    asker = LiveQueries(Blind())  # type: ignore[arg-type]  # nothing else is asked of it
    with pytest.raises(Forbidden):
        await asker.ask([Read(REF)])
    asked = Read(REF, refusable=True)
    assert (await asker.ask([asked]))[asked] == Refused(403, "configmaps is forbidden")
    assert (await LiveQueries(client).ask([asked]))[asked] == Absent()
