"""Waiting for a rollout: its exit codes, and what is said when it ends otherwise, or not in time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.cli.owner_state import wait_until_healthy
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.core.model.state import State
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import LaminaError
from lamina.families.registry import chosen
from lamina.objects.types import Ref
from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Api
from tests.cli.conftest import Lamina
from tests.cli.test_owners import definition
from tests.cli.test_up_and_down import api_of

NOW = "2026-01-01T00:00:00Z"
KINDS = {
    "mwrs": ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet"),
    "od": ("package-operator.run/v1alpha1", "ObjectDeployment"),
    "set": ("ctl.example.com/v1", "Set"),
}
SPECS: dict[str, dict[str, Any]] = {
    "mwrs": {"placementRefs": [{"name": "all"}], "manifestWorkTemplate": {"workload": {"manifests": []}}},
    "od": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {}},
    },
    "set": {"selector": {"matchLabels": {"app": "x"}}},
}
PLURALS = {"mwrs": "manifestworkreplicasets", "od": "objectdeployments", "set": "sets"}
CONTROLLER = {
    "apiVersion": "metacontroller.k8s.io/v1alpha1",
    "kind": "CompositeController",
    "metadata": {"name": "rolls"},
    "spec": {
        "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "sets"},
        "childResources": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "RollingInPlace"}}
        ],
        "hooks": {"sync": {"webhook": {"url": "http://127.0.0.1:1/sync"}}},
    },
}


@pytest.fixture(scope="module")
def lamina(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """A server with the kinds of the families and without their controllers: each test writes what they would report."""
    command = Lamina(tmp_path_factory.mktemp("home"))
    command("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    server = api(command)
    definitions = [*yaml.safe_load_all(command("crds").stdout), definition("sets", "Set")]
    for one in definitions:
        made = server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
        assert made.code in (201, 409), made.json
    for short, (version, _) in KINDS.items():
        eventually_sync(partial(is_served, server, f"/apis/{version}/{PLURALS[short]}"))
    controllers = "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers"
    eventually_sync(partial(is_served, server, controllers))
    assert server.post(controllers, CONTROLLER).code == 201
    yield command
    command("down")


def is_served(server: Api, path: str) -> bool:
    return server.get(path).code == 200


def api(lamina: Lamina) -> Api:
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    return api_of(Path(running["kubeconfig"]), lamina.home)


def path_of(short: str, name: str = "") -> str:
    path = f"/apis/{KINDS[short][0]}/namespaces/default/{PLURALS[short]}"
    return f"{path}/{name}" if name else path


def given_owner(lamina: Lamina, short: str, name: str, *found: tuple[str, str, str, str]) -> None:
    """Have an owner that reports these conditions: type, status, reason and message."""
    version, kind = KINDS[short]
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": SPECS[short]}
    made = api(lamina).post(path_of(short), body)
    assert made.code == 201, made.json
    report(lamina, short, name, *found)


def report(lamina: Lamina, short: str, name: str, *found: tuple[str, str, str, str]) -> None:
    """Write these conditions as the controller of an owner does."""
    conditions = [
        {
            "type": type,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": 1,
            "lastTransitionTime": NOW,
        }
        for type, status, reason, message in found
    ]
    status: dict[str, Any] = {"conditions": conditions}
    if short == "set":
        status["observedGeneration"] = 1
    patched = api(lamina).patch(f"{path_of(short, name)}/status", {"status": status})
    assert patched.code == 200, patched.json


ABORTED = ("Progressing", "False", "RolloutAborted", "rollout of web-2 aborted, all clusters are on web-1")
OVERDUE = ("Progressing", "False", "ProgressDeadlineExceeded", "1 of 2 clusters not healthy")
STALLED = ("Updated", "False", "RolloutStalled", "1 failed, 0 tolerated: a-0 (not ready)")
INVALID = ("Progressing", "False", "InvalidTemplate", "phase a is there twice")


@pytest.mark.parametrize(
    ("short", "condition", "state"),
    [
        ("mwrs", ABORTED, "Aborting"),
        ("mwrs", OVERDUE, "Degraded"),
        ("od", OVERDUE, "Degraded"),
        ("od", INVALID, "Degraded"),
        ("set", STALLED, "Degraded"),
    ],
    ids=["aborted", "overdue", "deployment-overdue", "deployment-invalid", "parent-stalled"],
)
def test_a_rollout_that_has_ended_is_not_waited_for(
    lamina: Lamina,
    request: pytest.FixtureRequest,
    short: str,
    condition: tuple[str, str, str, str],
    state: str,
) -> None:
    name = request.node.callspec.id
    given_owner(lamina, short, name, condition)

    watched = lamina("watch", f"{short}/{name}", "--until", "healthy", code=1)
    told = lamina("status", f"{short}/{name}", code=1)
    waited = lamina("status", f"{short}/{name}", "--wait", "-o", "json", code=1)

    kind = KINDS[short][1].lower()
    assert f"{kind}/{name}" in watched.stdout
    (because,) = watched.stderr.splitlines()
    assert because.startswith(f"error: the rollout has ended: {kind} default/{name} is {state}")
    assert condition[3] in because
    assert told.stdout.count("\n") == 1
    assert told.stdout.startswith(f"{kind} default/{name} is {state}")
    assert condition[3] in told.stdout
    assert (json.loads(waited.stdout)["state"], json.loads(waited.stdout)["ended"]) == (state, True)


LATE = (
    ("Progressing", "True", "FoundNewRevision", "1 of 2 not healthy: c1 (degraded)"),
    ("PlacementRolledOut", "False", "RolloutDegraded", "1 of 2 not healthy: c1 (degraded)"),
)


def test_a_late_target_does_not_end_a_rollout_and_the_time_is_up_with_124(lamina: Lamina) -> None:
    given_owner(lamina, "mwrs", "late", *LATE)

    watched = lamina("watch", "mwrs/late", "--until", "healthy", "--timeout", "1s", code=124)
    waited = lamina("status", "mwrs/late", "--wait", "--timeout", "500ms", code=124)
    told = lamina("status", "mwrs/late", code=124)

    seen = "manifestworkreplicaset default/late is Degraded, 0/0 updated, 0/0 available: 1 of 2 not healthy"
    assert f"error: timed out after 1s: {seen}" in watched.stderr
    assert f"error: timed out after 500ms: {seen}" in waited.stderr
    assert waited.stdout.startswith(seen)
    assert (told.stdout.startswith(seen), told.stderr) == (True, "")


def test_a_wait_ends_once_the_owner_is_healthy(lamina: Lamina) -> None:
    given_owner(lamina, "mwrs", "healing", *LATE)
    waiting = subprocess.Popen(
        [sys.executable, "-m", "lamina", "watch", "mwrs/healing", "--until", "healthy", "--timeout", "10m"],
        env=lamina.environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline().split()[:2] == ["NAMESPACE", "NAME"]
    assert "Degraded" in waiting.stdout.readline()

    report(
        lamina,
        "mwrs",
        "healing",
        ("Progressing", "False", "NewManifestWorkAvailable", "done"),
        ("PlacementRolledOut", "True", "Complete", ""),
    )

    assert "Healthy" in waiting.communicate(timeout=120)[0]
    assert waiting.returncode == 0
    assert lamina("status", "mwrs/healing", "--wait").stdout.startswith(
        "manifestworkreplicaset default/healing is Healthy"
    )


CONTROLLERS: dict[str, dict[str, Any]] = {
    "decoratorcontrollers": {
        "kind": "DecoratorController",
        "spec": {
            "resources": [{"apiVersion": KINDS["od"][0], "resource": PLURALS["od"]}],
            "attachments": [{"apiVersion": "v1", "resource": "secrets"}],
        },
    },
    "compositecontrollers": {
        "kind": "CompositeController",
        "spec": {
            "parentResource": {"apiVersion": KINDS["set"][0], "resource": PLURALS["set"]},
            "generateSelector": True,
            "childResources": [{"apiVersion": KINDS["od"][0], "resource": PLURALS["od"]}],
        },
    },
}


@pytest.mark.parametrize("plural", CONTROLLERS)
def test_a_wait_is_about_the_family_that_rolls_the_owner_out(lamina: Lamina, plural: str) -> None:
    """A DecoratorController has a status of what it decorates; a CompositeController watches what it creates."""
    name = f"of-{plural}"
    given_owner(lamina, "od", name, ("Progressing", "True", "RollingOut", "1 of 2 phases"))
    path = "/apis/metacontroller.k8s.io/v1alpha1"
    stated = CONTROLLERS[plural]
    body = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": stated["kind"],
        "metadata": {"name": "other"},
        "spec": {**stated["spec"], "hooks": {"sync": {"webhook": {"url": "http://127.0.0.1:1/sync"}}}},
    }
    made = api(lamina).post(f"{path}/{plural}", body)
    assert made.code == 201, made.json
    try:
        told = lamina("status", f"od/{name}", "--wait", "--timeout", "3s", code=124)
        watched = lamina("watch", f"od/{name}", "--until", "healthy", "--timeout", "3s", code=124)
    finally:
        api(lamina).delete(f"{path}/{plural}/other")

    seen = f"objectdeployment default/{name} is Progressing: 1 of 2 phases"
    assert told.stdout.startswith(seen)
    assert f"timed out after 3s: {seen}" in watched.stderr
    (row,) = watched.stdout.splitlines()[1:]
    assert "Progressing" in row


async def test_a_wait_ends_where_the_owner_is_deleted_before_it_was_observed(lamina: Lamina) -> None:
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    client = Client(HttpTransport(read_kubeconfig(Path(running["kubeconfig"]))))
    version, kind = KINDS["od"]
    owner = Ref(version, kind, "default", "gone")
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "gone", "namespace": "default"}}
    seen = [OwnerStatus(owner=made, history=History(), goal=1, state=State.PROGRESSING)]
    (family,) = chosen("objectset")
    try:
        with pytest.raises(LaminaError, match="default/gone was deleted before it was Healthy"):
            await wait_until_healthy(client, owner, family, seen, 30)
    finally:
        await client.close()


def test_a_wait_needs_no_right_to_get_the_owner(lamina: Lamina) -> None:
    given_owner(lamina, "mwrs", "unread", *LATE)
    lamina("chaos", "refuse", "403", "--verbs", "get", "--resources", PLURALS["mwrs"])
    try:
        waited = lamina("status", "mwrs/unread", "--wait", "--timeout", "3s", code=124)
        watched = lamina("watch", "mwrs/unread", "--until", "healthy", "--timeout", "3s", code=124)
    finally:
        lamina("chaos", "stop")

    for one in (waited, watched):
        assert "timed out after 3s: manifestworkreplicaset default/unread is Degraded" in one.stderr


def test_status_without_an_owner_lists_the_servers_and_refuses_what_is_about_one(lamina: Lamina) -> None:
    assert "process" in lamina("status").stdout
    assert "name it: `lamina status KIND/NAME`" in lamina("status", "--wait", code=1).stderr
    assert "--timeout limits --wait" in lamina("status", "mwrs/late", "--timeout", "1s", code=1).stderr
    assert (
        "does not exist, or no family rolls it out" in lamina("status", "mwrs/none", "--wait", code=1).stderr
    )
    assert "expected a duration" in lamina("watch", "mwrs/late", "--timeout", "soon", code=1).stderr
    for command in ("watch", "status"):
        assert "124" in lamina(command, "--help").stdout
