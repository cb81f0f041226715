"""`lamina run` and the Leases of the originals: it waits for them, unless that is switched off."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from lamina.cli.commands.run import run
from lamina.cli.options.upstream_flags import upstream_leases
from lamina.errors import SettingsError
from lamina.families.registry import chosen
from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_owners import GROUP, definition
from tests.cli.test_running_hooks import HOOKS
from tests.cli.test_up_and_down import api_of

LEASES = "/apis/coordination.k8s.io/v1/namespaces/metacontroller/leases"
TEXT = "/api/v1/namespaces/default/configmaps/a"


def leases(*arguments: str, families: str = "all") -> dict[str, list[str]]:
    """Return the Leases that `lamina run` holds with these arguments."""
    flags = dict(run.make_context("run", list(arguments)).params)
    return {
        family: [f"{one.namespace}/{one.name}" for one in found]
        for family, found in upstream_leases(flags, chosen(families)).items()
    }


def test_each_family_holds_the_lease_of_its_original_in_its_usual_namespace() -> None:
    hub = "open-cluster-management-hub"
    assert leases() == {
        "metacontroller": ["metacontroller/metacontroller"],
        "manifestwork": [
            f"{hub}/work-manager-lock",
            f"{hub}/placement-lock",
            f"{hub}/registration-controller-lock",
        ],
        "objectset": ["package-operator-system/8a4hp84a6s.package-operator-lock"],
        "resourcegraph": ["kro-system/controller.kro.run"],
    }
    assert leases("--no-upstream-lease") == {}


def test_namespaces_are_those_of_all_families_or_of_one() -> None:
    option = "--upstream-lease-namespace"

    stated = leases(option, "ops", option, "objectset=pko", families="objectset,resourcegraph")

    assert stated == {
        "objectset": ["pko/8a4hp84a6s.package-operator-lock"],
        "resourcegraph": ["ops/controller.kro.run"],
    }


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (["=ops"], 'expected NAME or FAMILY=NAME, got "=ops"'),
        (["kro="], 'expected NAME or FAMILY=NAME, got "kro="'),
        (["kro=ops"], "the family kro is not selected; selected are metacontroller, manifestwork"),
        (["a", "b"], "two namespaces for all families, a and b"),
    ],
)
def test_a_namespace_of_no_family_is_refused(values: list[str], complaint: str) -> None:
    with pytest.raises(click.BadParameter, match=complaint):
        leases(*(f"--upstream-lease-namespace={value}" for value in values))


def test_a_namespace_of_leases_that_are_not_held_is_refused() -> None:
    with pytest.raises(SettingsError, match="has no effect with --no-upstream-lease"):
        leases("--no-upstream-lease", "--upstream-lease-namespace", "ops")


def test_a_process_waits_while_the_original_leads_unless_it_is_told_not_to(
    lamina: Lamina, tmp_path: Path
) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("sets", "Set"))
    eventually_sync(lambda: api.get(f"{GROUP}/sets").code == 200)
    api.post(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metacontroller"}},
    )
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "metacontroller"}}
    spec = {"holderIdentity": "metacontroller-0_1", "leaseDurationSeconds": 3600}
    assert api.post(LEASES, {**lease, "spec": spec}).code == 201
    kind = {"apiVersion": "ctl.example.com/v1", "kind": "Set"}
    assert api.post(f"{GROUP}/sets", {**kind, "metadata": {"name": "a"}, "spec": {}}).code == 201
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    command = ("run", str(file), "--families", "metacontroller", "--log", "warning")

    process = lamina.start(*command)
    assert process.stderr is not None
    try:
        line = ""
        while "waiting for upstream lease" not in line:
            line = process.stderr.readline()
            assert line, "it has ended"
        assert "metacontroller-0_1 holds it, and works as Metacontroller" in line
        assert "metacontroller/metacontroller" in line
        assert api.get(TEXT).code == 404

        held = api.get(f"{LEASES}/metacontroller").json
        released = api.put(f"{LEASES}/metacontroller", {**held, "spec": {**spec, "holderIdentity": ""}})
        assert released.code == 200
        eventually_sync(lambda: api.get(TEXT).json.get("data") == {"text": "first"})
        held = api.get(f"{LEASES}/metacontroller").json
        assert held["spec"]["holderIdentity"] == "default/lamina (lamina)"
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()

    api.delete(TEXT)
    held = api.get(f"{LEASES}/metacontroller").json
    assert api.put(f"{LEASES}/metacontroller", {**held, "spec": spec}).code == 200
    process = lamina.start(*command, "--no-upstream-lease")
    assert process.stderr is not None
    try:
        eventually_sync(lambda: api.get(TEXT).json.get("data") == {"text": "first"})
        assert api.get(f"{LEASES}/metacontroller").json["spec"]["holderIdentity"] == "metacontroller-0_1"
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()


def test_a_namespace_that_does_not_exist_stops_the_start(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")

    refused = lamina("run", "--families", "resourcegraph", "--upstream-lease-namespace", "kro", code=1).stderr

    assert "--upstream-lease-namespace: the namespace kro does not exist" in refused
