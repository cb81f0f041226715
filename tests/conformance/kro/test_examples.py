"""Our controllers make of kro's examples what kro makes of them, except for what differs on purpose."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from lamina.app import App
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.install import install
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.labels import CONTROLLER_NAMESPACE
from lamina.runtime.controller.manager import Manager
from lamina.settings import Settings
from tests.bed.fixtures import chosen_server
from tests.bed.real import real_server
from tests.conformance.kro.corpus import FIRST, ROUNDS, read_examples, read_recorded
from tests.conformance.kro.differences import KNOWN, all_differences, differences
from tests.conformance.kro.play import Round
from tests.conformance.kro.record import without_workloads

QUIET, MORE = 3.0, 0.3


@asynccontextmanager
async def reached() -> AsyncIterator[Client]:
    """A new server of the kind under test, without controllers of built-in kinds."""
    if chosen_server() == "real":
        with real_server() as server:
            without_workloads(server)
            client = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
            yield client
            await client.close()
        return
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        yield app.client()


@asynccontextmanager
async def controlled() -> AsyncIterator[Client]:
    """The same with our controllers."""
    async with reached() as client:
        ours = family()
        await install(client, [ours])
        where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}}
        await client.create(where)
        manager = Manager(client, ours.controllers, WallClock(), sources=ours.sources)
        running = asyncio.create_task(manager.run())
        await manager.ready()
        try:
            yield client
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@pytest.mark.parametrize("chosen", [FIRST, *ROUNDS])
async def test_the_examples_give_the_same_kinds_instances_and_children(chosen: str) -> None:
    recorded = read_recorded()[chosen]
    async with controlled() as client:
        played = Round(client, read_examples().of(chosen))
        await played.define()
        await played.instantiate()
        shown = await played.settled(quiet=QUIET, is_so=lambda shown: not differences(shown, recorded))
        # Nothing more is made when all is as recorded.
        await asyncio.sleep(MORE)
        shown = await played.sent()
    assert differences(shown, recorded) == []
    if chosen == FIRST:
        found = all_differences(shown, recorded)
        assert [known for known in KNOWN if not any(re.search(known, line) for line in found)] == []
