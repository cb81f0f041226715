"""What `lamina up` simulates, and what it is told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Api
from tests.cli.conftest import Lamina
from tests.cli.test_up_and_down import api_of

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
STAGE = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: greet}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions: [{key: .status.message, operator: DoesNotExist}]
  next:
    statusTemplate: {phase: Running, message: {$text: 'hello {.metadata.name}'}}
"""


def started(lamina: Lamina, *flags: str) -> Api:
    lamina("up", "--detach", "--port", "0", "--ephemeral", *flags)
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    return api_of(Path(running["kubeconfig"]), lamina.home)


def status(api: Api) -> dict[str, Any]:
    return dict(api.get(f"{PODS}/p").json.get("status", {}))


def has_account(api: Api) -> bool:
    return api.get("/api/v1/namespaces/default/serviceaccounts/default").code == 200


def test_pods_run_on_as_many_nodes_as_were_asked_for(lamina: Lamina) -> None:
    api = started(lamina, "--nodes", "2")
    eventually_sync(lambda: has_account(api))

    assert api.post(PODS, POD).code == 201

    assert eventually_sync(lambda: status(api), lambda found: found["phase"] == "Running")["podIP"]
    nodes = eventually_sync(lambda: api.get("/api/v1/nodes").json["items"], lambda found: len(found) == 2)
    assert [node["metadata"]["name"] for node in nodes] == ["sim-0", "sim-1"]


def test_stages_of_ones_own_take_the_place_of_the_usual(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "stages.yaml"
    file.write_text(STAGE)
    api = started(lamina, "--stages", str(file))
    eventually_sync(lambda: has_account(api))

    assert api.post(PODS, POD).code == 201

    found = eventually_sync(lambda: status(api), lambda found: found["phase"] == "Running")
    assert found["message"] == "hello p"
    assert "containerStatuses" not in found


def test_nothing_is_simulated_where_that_is_asked_for(lamina: Lamina) -> None:
    api = started(lamina, "--simulate", "off")

    assert api.get("/api/v1/nodes").json["items"] == []


def test_stages_that_make_no_sense_are_refused_before_anything_starts(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "stages.yaml"
    file.write_text(STAGE.replace("next:", "then:"))

    said = lamina("up", "--port", "0", "--ephemeral", "--stages", str(file), code=1).stderr

    assert f"error: {file}: stage greet: spec: there is no field then; fields are " in said
