"""Which server is one of `lamina up`, as commands that depend on it recognise it."""

from pathlib import Path

import pytest

from lamina.cli.faults_client import FaultsClient
from lamina.cli.server_version import is_embedded, server_version
from lamina.client.client import Client
from lamina.errors import SettingsError
from tests.bed.fixtures import chosen_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_server_is_recognised_by_its_version_and_another_gets_no_faults_of_nodes(
    reached: tuple[Client, Path],
) -> None:
    client, is_ours = reached[0], chosen_server() == "embedded"
    assert is_embedded(await server_version(client)) is is_ours

    # On a server of ours it is only the node that is missing.
    problem = "there is no node 'nowhere'" if is_ours else "is not a server of `lamina up`"
    with pytest.raises(SettingsError, match=problem):
        await FaultsClient(client, "https://server").stop_node("nowhere")
