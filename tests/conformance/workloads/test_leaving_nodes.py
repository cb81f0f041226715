"""Eviction of pods from a node with a taint, and its events."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.server import Server
from tests.bed.wire import Api

NODE = "/api/v1/nodes/sim-0"
KEY = "example.com/leave"


@pytest.fixture
def api(server: Server) -> Api:
    return server.api()


@pytest.fixture
def pods(api: Api) -> Iterator[str]:
    """The pods of the test's namespace; nothing deletes them before the test has read them."""
    name = f"t-{uuid4().hex[:10]}"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    place = f"/api/v1/namespaces/{name}/pods"
    yield place
    api.patch(NODE, {"spec": {"taints": None}})
    for pod in api.get(place).json["items"]:
        api.patch(f"{place}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
    api.delete(f"/api/v1/namespaces/{name}")


def pod(name: str, *tolerations: dict[str, Any]) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
    return {"metadata": {"name": name, "finalizers": ["example.com/seen"]}, "spec": spec}


def test_pods_leave_once_they_bear_their_node_no_longer(api: Api, pods: str) -> None:
    bears = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
    given(api, pods, pod("stays", bears))
    given(api, pods, pod("leaves-later", {**bears, "tolerationSeconds": 2}))
    given(api, pods, pod("leaves"))

    taint = {"key": KEY, "value": "now", "effect": "NoExecute"}
    assert api.patch(NODE, {"spec": {"taints": [taint]}}).code == 200

    check_left(api, pods, "leaves")
    check_left(api, pods, "leaves-later")
    assert "deletionTimestamp" not in api.get(f"{pods}/stays").json["metadata"]


def given(api: Api, pods: str, made: dict[str, Any]) -> None:
    created = eventually_sync(lambda: api.post(pods, made), lambda answer: answer.code != 403)
    assert created.code == 201, created.text
    eventually_sync(
        lambda: api.get(f"{pods}/{made['metadata']['name']}").json["status"]["phase"] == "Running"
    )


def check_left(api: Api, pods: str, name: str) -> None:
    """Wait until a pod is evicted, and check its event."""
    left = eventually_sync(
        lambda: api.get(f"{pods}/{name}").json, lambda found: "deletionTimestamp" in found["metadata"]
    )
    said = {one["type"]: one for one in left["status"]["conditions"]}["DisruptionTarget"]
    assert (said["status"], said["reason"], said["message"]) == (
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    events = pods.removesuffix("/pods") + f"/events?fieldSelector=involvedObject.name={name}"
    told = eventually_sync(
        lambda: [one for one in api.get(events).json["items"] if one["reason"] == "TaintManagerEviction"]
    )
    message = f"Marking for deletion Pod {left['metadata']['namespace']}/{name}"
    assert (told[0]["type"], told[0]["message"]) == ("Normal", message)
    assert told[0]["source"]["component"] == "taint-eviction-controller"
