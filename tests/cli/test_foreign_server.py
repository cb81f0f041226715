"""`lamina simulate` and `lamina chaos` on a server that is not one of `lamina up`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.actors.stages import Stage
from lamina.actors.stages.failures import FAILURES_REF, FailureMode
from lamina.cli.commands.simulate import Outside, simulate_cluster, stages_of
from lamina.cli.faults_client import FaultsClient
from lamina.client.client import Client
from lamina.client.transport.base import Response
from lamina.errors import NotFound, SettingsError
from lamina.families.registry import chosen
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj
from lamina.simulation.scenario import Simulation
from lamina.testing import Cluster
from lamina.testing.builders import deployment
from tests.cli.conftest import Lamina
from tests.cli.test_owners import definition
from tests.cli.test_simulate import NOTHING, WEB
from tests.scenarios.story import free_port

KUBERNETES = b'{"gitVersion": "v1.35.4"}'
BROKEN_NAMES = ("web:bad", "crash-reporter:1")


class _Version:
    """The response of Kubernetes itself."""

    status, headers = 200, {"content-type": "application/json"}

    async def read(self) -> bytes:
        return KUBERNETES

    async def stream(self) -> AsyncIterator[bytes]:
        yield KUBERNETES

    async def close(self) -> None:
        pass


class Foreign:
    """A transport to the embedded server that reports the version of Kubernetes itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._inner = cluster.embedded.client()._transport
        self.writes: list[str] = []

    async def request(self, method: str, path: str, *, headers: Mapping[str, str], **more: Any) -> Response:
        if method != "GET":
            self.writes.append(f"{method} {path}")
        answer = await self._inner.request(method, path, headers=headers, **more)
        return _Version() if path == "/version" else answer

    async def close(self) -> None:
        await self._inner.close()


async def simulated(client: Client, stages: Sequence[Stage], manifest: Obj) -> list[bool]:
    """Return whether what a manifest leads to is healthy."""

    def run(kinds: Kinds, objects: Iterable[Obj], outside: Outside) -> list[bool]:
        simulation = Simulation(
            families=chosen("all"), kinds=kinds, objects=objects, stages=stages, call=outside.call,
            fetch=outside.fetch,
        )  # fmt: skip
        simulation.apply(manifest)
        simulation.run(timedelta(hours=1))
        return [one.healthy for one in simulation.final_states()]

    return await simulate_cluster(client, (), run)


@pytest.mark.parametrize("image", BROKEN_NAMES)
async def test_a_name_makes_an_image_fail_only_where_the_server_has_that_rule(
    cluster: Cluster, image: str
) -> None:
    ours, foreign = cluster.embedded.client(), Client(Foreign(cluster))
    manifest = deployment("web", image=image)

    assert await simulated(ours, await stages_of(ours), manifest) == [False]
    assert await simulated(foreign, await stages_of(foreign), manifest) == [True]


@pytest.mark.parametrize("image", BROKEN_NAMES)
def test_objects_of_a_file_fail_where_that_is_asked_for(lamina: Lamina, tmp_path: Path, image: str) -> None:
    (tmp_path / "web.yaml").write_text(WEB.replace("web:2", image))
    (tmp_path / "state.yaml").write_text(NOTHING)
    (tmp_path / "failures.yaml").write_text(f'images: [{{image: "{image}", fails: crash}}]')
    asked = "simulate", str(tmp_path / "web.yaml"), "--state", str(tmp_path / "state.yaml")

    assert "ok  deployment default/web is Healthy" in lamina(*asked).stdout
    assert "FAILED" in lamina(*asked, "--failures", str(tmp_path / "failures.yaml"), code=2).stdout


async def test_faults_in_objects_are_refused_and_nothing_is_written(cluster: Cluster) -> None:
    foreign = Foreign(cluster)
    faults = FaultsClient(Client(foreign), "https://prod.example.com")

    with pytest.raises(SettingsError) as pods:
        await faults.fail_pods("web", 1.0, FailureMode.CRASH)
    with pytest.raises(SettingsError) as node:
        await faults.stop_node("sim-0")

    seen = "https://prod.example.com is not a server of `lamina up` (it reports version v1.35.4, without +lamina)"
    assert str(pods.value) == f"{seen}, so its pods do not fail on request: nothing was written"
    assert str(node.value) == f"{seen}, so its nodes do not fail on request: nothing was written"
    assert pods.value.hint == "simulate it on a copy of the cluster: `lamina simulate --failures FILE`"
    assert foreign.writes == []
    with pytest.raises(NotFound):
        await cluster.embedded.client().get(FAILURES_REF)


def controller(url: str) -> Made:
    kind = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController"}
    spec = {
        "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "sets"},
        "hooks": {"sync": {"webhook": {"url": url}}},
        "generateSelector": True,
    }
    return {**kind, "metadata": {"name": "sets"}, "spec": spec}


@pytest.mark.parametrize("url", ["http://127.0.0.1:PORT/sync", "hook:sets/sync"])
def test_an_owner_whose_hook_cannot_be_called_is_not_said_to_be_unhealthy(
    lamina: Lamina, tmp_path: Path, url: str
) -> None:
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    declared = controller(url.replace("PORT", str(free_port())))
    state = {"apiVersion": "v1", "kind": "List", "items": [declared]}
    (tmp_path / "state.yaml").write_text(json.dumps(state))
    parent = {"apiVersion": "ctl.example.com/v1", "kind": "Set", "metadata": {"name": "a"}, "spec": {}}
    items = [{**kind, **definition("sets", "Set")}, parent]
    (tmp_path / "a.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asked = "simulate", str(tmp_path / "a.yaml"), "--state", str(tmp_path / "state.yaml"), "--for", "1m"

    said = lamina(*asked, code=3).stdout
    results = json.loads(lamina(*asked, "-o", "json", code=3).stdout)["results"]

    (line,) = [line for line in said.splitlines() if line.startswith("NOT SIMULATED  set default/a: ")]
    assert line.endswith(
        "name the file with this hook with --hooks, or simulate where the hook can be called"
    )
    assert "FAILED" not in said
    (result,) = [one for one in results if one["object"] == "set default/a"]
    assert (result["simulated"], result["healthy"], result["state"]) == (False, False, "Unknown")
