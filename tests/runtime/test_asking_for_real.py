"""Asking a real server to pretend, and to say who is not let."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.core.questions import Absent, Found, Read, Refused, Rehearse
from lamina.embedded import EmbeddedCluster
from lamina.errors import Forbidden, InternalError, NotSeenYet
from lamina.objects.types import Made, Ref
from lamina.runtime.asker import Asker
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


async def test_what_would_take_the_place_of_an_object_is_told_and_not_done(client: Client) -> None:
    made = await client.create(config_map(a="1"))
    asked = Rehearse(obj={**made, "data": {"b": "2"}}, manager="m", key="k", replaces=True)
    answer = (await Asker(client).ask([asked]))[asked]

    assert isinstance(answer, Found) and answer.obj["data"] == {"b": "2"}
    assert (await client.get(REF))["data"] == {"a": "1"}


async def test_one_that_has_moved_on_is_to_be_looked_at_again(client: Client) -> None:
    made = await client.create(config_map(a="1"))
    await client.patch(REF, {"data": {"a": "2"}})
    asked = Rehearse(obj={**made, "data": {"b": "2"}}, manager="m", key="k", replaces=True)
    with pytest.raises(NotSeenYet):
        await Asker(client).ask([asked])


async def test_without_force_a_field_that_another_states_is_a_reason_to_refuse(client: Client) -> None:
    await client.apply(config_map(a="theirs"), manager="somebody")
    gentle = Rehearse(obj=config_map(a="ours"), manager="m", key="k", force=False)
    forced = Rehearse(obj=config_map(a="ours"), manager="m", key="k")
    answers = await Asker(client).ask([gentle, forced])

    refused = answers[gentle]
    assert isinstance(refused, Refused) and refused.code == 409 and "somebody" in refused.because
    assert isinstance(answers[forced], Found)


class Broken:
    """A client whose server cannot reach a webhook."""

    async def update(self, obj: Any, **options: Any) -> Made:
        raise InternalError("failed calling webhook")

    apply = update


async def test_troubles_of_the_server_are_an_answer_to_who_only_wants_to_know() -> None:
    asker = Asker(Broken())  # type: ignore[arg-type]  # nothing else is asked of it
    for asked in (
        Rehearse(obj=config_map(), manager="m", key="k", replaces=True),
        Rehearse(obj=config_map(), manager="m", key="k", force=False),
    ):
        assert (await asker.ask([asked]))[asked] == Refused(500, "failed calling webhook")
    with pytest.raises(InternalError):
        await asker.ask([Rehearse(obj=config_map(), manager="m", key="k")])


class Blind:
    """A client that may not look."""

    async def get(self, ref: Ref, **options: Any) -> Made:
        raise Forbidden("configmaps is forbidden")


async def test_that_one_may_not_look_is_an_answer_where_somebody_wants_to_know(client: Client) -> None:
    asker = Asker(Blind())  # type: ignore[arg-type]  # nothing else is asked of it
    with pytest.raises(Forbidden):
        await asker.ask([Read(REF)])
    asked = Read(REF, refusable=True)
    assert (await asker.ask([asked]))[asked] == Refused(403, "configmaps is forbidden")
    assert (await Asker(client).ask([asked]))[asked] == Absent()
