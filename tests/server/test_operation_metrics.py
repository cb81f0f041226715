"""The server's metrics."""

import asyncio

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.app import App
from tests.server.raw_http import CONFIG_MAPS, TIMEOUT, Wire, reach

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def measured(wire: Wire) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All metrics, by name and labels."""
    answer = await wire.send_request("GET", "/metrics")
    assert answer.status == 200
    assert answer.one("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def total(metrics: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return sum(
        value
        for (key, held), value in metrics.items()
        if key == name and labels.items() <= dict(held).items()
    )


async def test_requests_are_counted_by_verb_kind_and_code(app: App) -> None:
    path = "/api/v1/namespaces/kube-public/configmaps"
    async with await reach(app) as wire:
        before = await measured(wire)
        for number in range(3):
            body = orjson.dumps({"metadata": {"name": f"counted-{number}"}})
            assert (await wire.send_request("POST", path, body=body)).status == 201
        for name in ("counted-0", "counted-1", "none"):
            await wire.send_request("GET", f"{path}/{name}")
        await wire.send_request("GET", path)
        await wire.send_request("GET", "/apis/apps/v1/deployments")
        after = await measured(wire)

    def grew(**labels: str) -> float:
        return total(after, "apiserver_request_total", **labels) - total(
            before, "apiserver_request_total", **labels
        )

    core = {"group": "", "version": "v1", "resource": "configmaps"}
    assert grew(verb="POST", code="201", scope="resource", **core) == 3
    assert grew(verb="GET", code="200", scope="resource", **core) == 2
    assert grew(verb="GET", code="404") == 1
    assert grew(verb="LIST", code="200", scope="namespace", **core) == 1
    assert grew(verb="LIST", group="apps", version="v1", resource="deployments", scope="cluster") == 1


async def test_how_long_requests_took_adds_up(app: App) -> None:
    async with await reach(app) as wire:
        for _ in range(5):
            await wire.send_request("GET", f"{CONFIG_MAPS}/kube-root-ca.crt")
        metrics = await measured(wire)

    labels = {"verb": "GET", "resource": "configmaps", "scope": "resource"}
    counted = total(metrics, "apiserver_request_total", **labels)
    name = "apiserver_request_duration_seconds"
    assert counted >= 5
    assert total(metrics, f"{name}_count", **labels) == counted
    assert total(metrics, f"{name}_bucket", le="+Inf", **labels) == counted
    assert total(metrics, f"{name}_sum", **labels) > 0


async def test_streams_are_counted_while_they_are_open(app: App) -> None:
    async def open_streams() -> float:
        return total(await measured(looking), "apiserver_longrunning_requests")

    async with await reach(app) as looking:
        # The actors have watches too, without HTTP; they have begun by now.
        before = await open_streams()
        wires = [await reach(app) for _ in range(3)]
        for wire in wires:
            await wire.send(wire.request_bytes("GET", f"{CONFIG_MAPS}?watch=1"))
            await wire.read_head()
        during = await open_streams()
        await wires[0].close()
        wires[1].abort()
        wires[2].abort()
        short = await looking.send_request("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
        async with asyncio.timeout(TIMEOUT):
            while await open_streams() != before:
                pass

    assert before > 0
    assert during == before + 3
    assert short.status == 200


async def test_what_is_stored_is_counted(app: App) -> None:
    path = "/api/v1/namespaces/kube-node-lease/secrets"
    async with await reach(app) as wire:
        before = await measured(wire)
        await wire.send_request("POST", path, body=orjson.dumps({"metadata": {"name": "one"}}))
        await wire.send_request("POST", path, body=orjson.dumps({"metadata": {"name": "two"}}))
        await wire.send_request("DELETE", f"{path}/two")
        after = await measured(wire)

    def stored(metrics: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> float:
        return total(metrics, "apiserver_storage_objects", resource="secrets")

    assert stored(after) == stored(before) + 1
    assert total(after, "process_resident_memory_bytes") > 0


async def test_paths_made_up_by_clients_do_not_grow_the_page(app: App) -> None:
    async with await reach(app) as wire:
        for number in range(50):
            await wire.send_request("GET", f"/apis/made.up{number}/v1/things")
            await wire.send_request("GET", f"/made/up/{number}")
            await wire.send_request("GET", f"{CONFIG_MAPS}/x/made-up-{number}")
        metrics = await measured(wire)

    assert not [key for key, labels in metrics if any("made" in value for _, value in labels)]


async def test_unread_streams_in_process_are_counted_until_they_are_closed(app: App) -> None:
    async with await reach(app) as looking:
        before = total(await measured(looking), "apiserver_longrunning_requests")
        answer = await app.request("GET", CONFIG_MAPS, "watch=1")
        during = total(await measured(looking), "apiserver_longrunning_requests")
        for _ in range(2):
            await answer.body.aclose()  # type: ignore[union-attr]  # a stream has it, bytes have not
        after = total(await measured(looking), "apiserver_longrunning_requests")

    assert (during, after) == (before + 1, before)
