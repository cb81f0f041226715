"""Pods that depend on other objects: service accounts that are created late, budgets that evictions share."""

import asyncio
from typing import Any

import orjson
import pytest

from lamina.app import App
from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN
from lamina.server.storage.memory_store import MemoryStore
from lamina.testing.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD = {
    "metadata": {"name": "p", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
PODS = "/api/v1/namespaces/n/pods"
BUDGETS = "/apis/policy/v1/namespaces/n/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Alone:
    """An API server without controllers."""

    def __init__(self, app: App) -> None:
        self._api = assemble(MemoryStore(), app.clock.now, Authenticator({}), {})

    async def ask(self, method: str, path: str, body: Any = None, query: str = "") -> tuple[int, Any]:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        sent = orjson.dumps(body) if body is not None else b""
        request = Request(method, path, query, {"content-type": content}, sent, ADMIN)
        answer = await self._api.handle(request)
        assert isinstance(answer.body, bytes)
        return answer.status, orjson.loads(answer.body)

    async def furnish(self) -> None:
        """Create a namespace and its service account."""
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        await self.ask("POST", "/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "default"}})

    async def run_pod(self, name: str, status: Any = READY) -> None:
        metadata = {"name": name, "labels": {"app": "a"}}
        assert (await self.ask("POST", PODS, {**POD, "metadata": metadata}))[0] == 201
        assert (await self.ask("PATCH", f"{PODS}/{name}/status", {"status": status}))[0] == 200

    async def allow(self, allowed: int) -> None:
        """Create a budget, with a status as the disruption controller writes it."""
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await self.ask("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        status = {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1 + allowed,
        }
        assert (await self.ask("PATCH", f"{BUDGETS}/b/status", {"status": status}))[0] == 200

    async def evict(self, name: str) -> int:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        return (await self.ask("POST", f"{PODS}/{name}/eviction", body))[0]


async def test_the_first_pod_of_a_namespace_waits_for_the_account_it_runs_as(app: App) -> None:
    server = Alone(app)
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})

    asked = asyncio.create_task(server.ask("POST", PODS, POD))
    await asyncio.sleep(0)
    await server.ask("POST", "/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "default"}})

    assert (await asked)[0] == 201


async def test_a_pod_whose_account_never_comes_is_refused(app: App) -> None:
    server = Alone(app)
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})

    code, said = await server.ask("POST", PODS, POD)

    assert code == 403
    assert said["message"] == (
        'pods "p" is forbidden: error looking up service account n/default: serviceaccount "default" not found'
    )


async def test_no_two_evictions_share_what_a_budget_allows(app: App) -> None:
    server = Alone(app)
    await server.furnish()
    for number in range(8):
        await server.run_pod(f"p-{number}")
    await server.allow(3)

    codes = await asyncio.gather(*(server.evict(f"p-{number}") for number in range(8)))

    assert sorted(codes) == [201] * 3 + [429] * 5
    _, budget = await server.ask("GET", f"{BUDGETS}/b")
    assert budget["status"]["disruptionsAllowed"] == 0
    assert len(budget["status"]["disruptedPods"]) == 3
    assert budget["status"]["conditions"][0]["reason"] == "InsufficientPods"
    _, left = await server.ask("GET", PODS)
    assert len(left["items"]) == 5


async def test_a_budget_whose_status_is_older_than_its_spec_allows_nothing_yet(app: App) -> None:
    server = Alone(app)
    await server.furnish()
    await server.run_pod("p")
    await server.allow(3)
    await server.ask("PATCH", f"{BUDGETS}/b", {"spec": {"minAvailable": 2}})

    body = {"metadata": {"name": "p"}}
    code, said = await server.ask("POST", f"{PODS}/p/eviction", body)

    assert code == 429
    assert said["details"]["retryAfterSeconds"] == 10
    assert (
        said["details"]["causes"][0]["message"]
        == "The disruption budget b is still being processed by the server."
    )


async def test_a_dry_run_of_an_eviction_takes_nothing(app: App) -> None:
    server = Alone(app)
    await server.furnish()
    await server.run_pod("p")
    await server.allow(1)

    body = {"metadata": {"name": "p"}}
    code, _ = await server.ask("POST", f"{PODS}/p/eviction", body, "dryRun=All")

    assert code == 201
    assert (await server.ask("GET", f"{PODS}/p"))[0] == 200
    _, budget = await server.ask("GET", f"{BUDGETS}/b")
    assert budget["status"]["disruptionsAllowed"] == 1


async def test_an_eviction_that_loses_against_another_writer_pays_once(app: App) -> None:
    alone = Alone(app)
    await alone.furnish()
    await alone.allow(1)
    await alone.run_pod("p")

    async def disturb() -> int:
        # For example the kubelet, which writes when the pod begins to terminate.
        await eventually(
            lambda: alone.ask("GET", f"{PODS}/p"),
            lambda found: any(one["type"] == "DisruptionTarget" for one in found[1]["status"]["conditions"]),
            interval=0,
        )
        return (await alone.ask("PATCH", f"{PODS}/p/status", {"status": {"message": "bye"}}))[0]

    evicted, disturbed = await asyncio.gather(
        alone.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}), disturb()
    )

    assert disturbed == 200
    assert evicted[0] == 201
    assert (await alone.ask("GET", f"{PODS}/p"))[0] == 404
    assert (await alone.ask("GET", f"{BUDGETS}/b"))[1]["status"]["disruptionsAllowed"] == 0


async def test_a_pod_that_was_made_again_meanwhile_is_paid_for_again(app: App) -> None:
    alone = Alone(app)
    await alone.furnish()
    await alone.allow(1)
    await alone.run_pod("p")

    # While the budget is updated, the pod is deleted and another one created with its name.
    evicted, *others = await asyncio.gather(
        alone.evict("p"),
        alone.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}),
        alone.ask("POST", PODS, {**POD, "metadata": {"name": "p", "labels": {"app": "a"}}}),
        alone.ask("PATCH", f"{PODS}/p/status", {"status": READY}),
    )

    assert [code for code, _ in others] == [200, 201, 200]
    assert evicted == 429
    pod = (await alone.ask("GET", f"{PODS}/p"))[1]
    assert pod["metadata"]["uid"] == others[1][1]["metadata"]["uid"]
    assert [one["type"] for one in pod["status"]["conditions"]] == ["Ready"]
