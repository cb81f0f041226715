"""`lamina agent`: a cluster and its hub, as processes of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_up_and_down import api_of

HUB = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/east/manifestworks"
RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
TEXT = "/api/v1/namespaces/default/configmaps/text"


class Servers:
    """Several servers in the background."""

    def __init__(self, lamina: Lamina) -> None:
        self._lamina = lamina
        self._count = 0

    def __call__(self, *arguments: str) -> Path:
        """Start one, and return the kubeconfig that leads to it."""
        self._count += 1
        file = self._lamina.home / f"{self._count}.kubeconfig"
        self._lamina("up", "--detach", "--ephemeral", "--port", "0", "--kubeconfig", str(file), *arguments)
        return file

    def stop(self) -> None:
        for one in json.loads(self._lamina("status", "-o", "json").stdout):
            self._lamina("down", "--port", one["url"].rpartition(":")[2])


@pytest.fixture
def up(lamina: Lamina) -> Iterator[Servers]:
    servers = Servers(lamina)
    yield servers
    servers.stop()


def work(name: str, **data: str) -> dict[str, Any]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name},
        "spec": {"workload": {"manifests": [{**manifest, "data": data}]}},
    }


def test_what_keeps_an_agent_from_starting_is_said_in_a_sentence(lamina: Lamina, tmp_path: Path) -> None:
    absent = tmp_path / "none-such"
    said = lamina("agent", "--cluster", "east", "--hub-kubeconfig", str(absent), code=1).stderr
    assert f"{absent}" in said and "Traceback" not in said
    assert "hint: name the hub's with --hub-kubeconfig FILE" in said

    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    said = lamina("agent", "--cluster", "east", "--hub-kubeconfig", str(broken), code=1).stderr
    assert "error: " in said and str(broken) in said and "Traceback" not in said

    assert "Missing option '--hub-kubeconfig'" in lamina("agent", "--cluster", "east", code=2).stderr
    assert "Missing option '--cluster'" in lamina("agent", "--hub-kubeconfig", str(broken), code=2).stderr


def test_a_hub_that_is_none_or_does_not_know_the_cluster_is_named(lamina: Lamina, up: Servers) -> None:
    plain = str(up("--simulate", "off"))
    said = lamina("agent", "--cluster", "east", "--hub-kubeconfig", plain, "--kubeconfig", plain, code=1)
    assert "is no hub: it serves no ManagedCluster" in said.stderr
    assert "hint: make it one with `lamina run --families manifestwork`" in said.stderr

    hub = str(up("--simulate", "controllers", "--families", "manifestwork"))
    said = lamina("agent", "--cluster", "east", "--hub-kubeconfig", hub, "--kubeconfig", plain, code=1)
    assert "cluster 'east' is not registered with the hub" in said.stderr
    assert "hint: register and accept it with --join" in said.stderr

    said = lamina(
        "agent", "--cluster", "east", "--hub-kubeconfig", hub, "--hub-context", "moon", code=1
    )  # fmt: skip
    assert "moon" in said.stderr and "Traceback" not in said.stderr


def test_an_agent_joins_a_hub_and_applies_what_it_has_for_the_cluster(
    lamina: Lamina, up: Servers, tmp_path: Path
) -> None:
    spoke_file = up("--families", "none")
    hub_file = up("--families", "manifestwork", "--simulate", "controllers")
    folders = [tmp_path / "spoke", tmp_path / "hub"]
    for folder in folders:
        folder.mkdir()
    spoke, hub = api_of(spoke_file, folders[0]), api_of(hub_file, folders[1])
    process = lamina.start(
        "agent", "--join", "--cluster", "east", "--agent-id", "first-of-east",
        "--hub-kubeconfig", str(hub_file), "--kubeconfig", str(spoke_file),
    )  # fmt: skip
    assert process.stderr is not None
    try:
        # It may have said before what it did.
        assert any("lamina is the agent of east on https://" in line for line in process.stderr)
        conditions = eventually_sync(
            lambda: _conditions(hub.get(f"{HUB}/east").json), lambda said: len(said) == 3
        )
        assert set(conditions.values()) == {"True"}
        assert hub.get(f"{HUB}/east").json["status"]["version"]["kubernetes"].startswith("v1.")

        eventually_sync(lambda: hub.post(WORKS, work("text", colour="red")).code == 201)
        eventually_sync(lambda: spoke.get(TEXT).json.get("data") == {"colour": "red"})
        eventually_sync(lambda: _conditions(hub.get(f"{WORKS}/text").json).get("Available") == "True")
        (record,) = spoke.get(RECORDS).json["items"]
        assert record["spec"]["agentID"] == "first-of-east"

        hub.delete(f"{WORKS}/text")
        eventually_sync(lambda: spoke.get(TEXT).code == 404)
        eventually_sync(lambda: hub.get(f"{WORKS}/text").code == 404)
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()


def test_a_cluster_joins_with_a_bootstrap_kubeconfig_once_the_hub_accepts_it_and_is_detached(
    lamina: Lamina, up: Servers, tmp_path: Path
) -> None:
    spoke_file = up("--families", "none")
    hub_file = up("--families", "manifestwork", "--simulate", "controllers")
    folders = [tmp_path / "spoke", tmp_path / "hub"]
    for folder in folders:
        folder.mkdir()
    spoke, hub = api_of(spoke_file, folders[0]), api_of(hub_file, folders[1])
    own = tmp_path / "own" / "hub.kubeconfig"
    start = (
        "agent", "--cluster", "east", "--bootstrap-kubeconfig", str(hub_file),
        "--hub-kubeconfig", str(own), "--kubeconfig", str(spoke_file),
    )  # fmt: skip
    on_hub = ("--kubeconfig", str(hub_file))

    said = lamina("clusters", "accept", "east", *on_hub, code=1).stderr
    assert "cluster 'east' has not asked to join" in said and "--bootstrap-kubeconfig" in said
    assert "issues no tokens" in lamina("clusters", "token", *on_hub, code=1).stderr
    assert "instead of --join" in lamina(*start, "--join", code=2).stderr

    process = lamina.start(*start)
    assert process.stderr is not None
    try:
        assert any("run `lamina clusters accept east`" in line for line in process.stderr)
        assert hub.get(f"{HUB}/east").json["spec"]["hubAcceptsClient"] is False
        assert "approved east-" in lamina("clusters", "accept", "east", *on_hub).stderr
        assert any("lamina is the agent of east on https://" in line for line in process.stderr)
        assert own.exists() and "token" not in own.read_text()

        eventually_sync(lambda: hub.post(WORKS, work("text", colour="red")).code == 201)
        eventually_sync(lambda: spoke.get(TEXT).json.get("data") == {"colour": "red"})
        lamina("clusters", "detach", "--yes", "east", *on_hub)
        assert spoke.get(TEXT).code == 404
        assert hub.get(f"{HUB}/east").code == 404
        assert (
            "is not registered with the hub"
            in lamina("clusters", "detach", "--yes", "east", *on_hub, code=1).stderr
        )
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()


def _conditions(obj: dict[str, Any]) -> dict[str, str]:
    said = (obj.get("status") or {}).get("conditions") or ()
    return {one["type"]: one["status"] for one in said}


@pytest.mark.parametrize("families", ["all", "none"])
def test_clusters_beside_a_hub_have_agents_and_leave_it_when_they_are_removed(
    lamina: Lamina, up: Servers, tmp_path: Path, families: str
) -> None:
    hub = api_of(up("--clusters", "east,west", "--families", families), tmp_path)
    if families == "none":
        assert hub.get(HUB).code == 404
        return

    def known() -> list[str]:
        return [one["metadata"]["name"] for one in hub.get(HUB).json["items"]]

    assert known() == ["east", "west"]
    eventually_sync(lambda: hub.post(WORKS, work("text", colour="red")).code == 201)
    eventually_sync(lambda: _conditions(hub.get(f"{WORKS}/text").json).get("Applied") == "True")

    lamina("clusters", "add", "north")
    eventually_sync(lambda: len(_conditions(hub.get(f"{HUB}/north").json)) == 3)
    lamina("clusters", "remove", "--yes", "east")
    assert known() == ["north", "west"]
    eventually_sync(lambda: hub.get("/api/v1/namespaces/east").code == 404)
    assert json.loads(lamina("clusters", "list", "-o", "json").stdout)[1]["name"] == "west"
