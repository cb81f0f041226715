"""`lamina uninstall` and the Leases of agents and of originals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.objects.times import micro_stamp
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_agent import HUB, Servers
from tests.cli.test_up_and_down import api_of

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


@pytest.fixture
def up(lamina: Lamina) -> Iterator[Servers]:
    servers = Servers(lamina)
    yield servers
    servers.stop()


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_which_leases_forbid_it_and_which_it_deletes(lamina: Lamina, up: Servers, tmp_path: Path) -> None:
    file = up("--families", "manifestwork", "--simulate", "controllers")
    api, words = (
        api_of(file, tmp_path),
        ("uninstall", "--kubeconfig", str(file), "--families", "manifestwork"),
    )
    cluster = {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": "east"},
        "spec": {"hubAcceptsClient": True, "leaseDurationSeconds": 3600},
    }
    assert api.post(HUB, cluster).code == 201
    of_the_cluster = f"{LEASES.format('east')}/managed-cluster-lease"
    eventually_sync(lambda: api.get(of_the_cluster).code == 200)

    assert "the agent of east renews" in lamina(*words, code=1).stderr
    lamina(*words, "--keep-finalizers")
    assert api.get(of_the_cluster).code == 200

    renewed = micro_stamp(datetime.now(UTC) + timedelta(hours=1))
    spec = {"holderIdentity": "manager-1", "leaseDurationSeconds": 15, "renewTime": renewed}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "placement-lock"},
        "spec": spec,
    }
    assert api.post("/api/v1/namespaces", namespace("ops")).code == 201
    assert api.post(LEASES.format("ops"), lease).code == 201
    held = "lease ops/placement-lock is held by manager-1"
    assert held not in lamina(*words, code=1).stderr
    assert held in lamina(*words, "--upstream-lease-namespace", "ops", code=1).stderr.lower()
