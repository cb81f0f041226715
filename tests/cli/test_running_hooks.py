"""`lamina run` and what it needs: hooks files, kinds, rights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.testing.waiting import eventually_sync
from tests.cli.conftest import Lamina
from tests.cli.test_owners import GROUP, definition
from tests.cli.test_up_and_down import api_of

HOOKS = """
import lamina

@lamina.sync("ctl.example.com/v1/sets", children={"v1/configmaps": "InPlace"}, generate_selector=True)
def maps(parent):
    metadata = {"name": parent["metadata"]["name"]}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "first"}}]
"""
LASTING = (
    HOOKS
    + """
@maps.finalize
def gone(parent):
    return True
"""
)
CONTROLLERS = "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers"


def said(lamina: Lamina, *arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(lamina(*arguments, "-o", "json").stdout)["items"])


def test_crds_prints_the_kinds(lamina: Lamina) -> None:
    made = said(lamina, "crds")

    assert [one["spec"]["names"]["kind"] for one in made] == [
        "CompositeController", "DecoratorController", "ControllerRevision", "ManagedCluster", "ManagedClusterSet",
        "ManagedClusterSetBinding", "AddOnPlacementScore", "Placement", "PlacementDecision", "ManifestWork",
        "ManifestWorkReplicaSet", "AppliedManifestWork", "ClusterClaim", "ObjectSlice", "ClusterObjectSlice",
        "ObjectSetPhase", "ClusterObjectSetPhase", "ObjectSet", "ClusterObjectSet", "ObjectDeployment",
        "ClusterObjectDeployment", "ResourceGraphDefinition", "ResourceGraphDefinitionRevision",
        "ResourceGraphInputRevision",
    ]  # fmt: skip
    assert said(lamina, "crds", "--families", "metacontroller") == made[:3]
    assert list(yaml.safe_load_all(lamina("crds").stdout)) == made
    assert "unknown family 'none such'" in lamina("crds", "--families", "none such", code=1).stderr


def test_rbac_prints_the_least_role_of_a_file(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    account, role, binding, *_ = said(lamina, "rbac", str(file), "--account", "ops/robot")

    allowed = {(rule["apiGroups"][0], resource): rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}  # fmt: skip
    assert allowed["", "configmaps"] == ["get", "list", "watch", "create", "patch", "delete"]
    assert allowed["ctl.example.com", "sets"] == ["get", "list", "watch", "patch"]
    assert allowed["ctl.example.com", "sets/status"] == ["patch"]
    assert ("", "secrets") not in allowed and ("", "pods") not in allowed
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "ops", "name": "robot"}]
    assert (account["kind"], account["metadata"]) == ("ServiceAccount", {"name": "robot", "namespace": "ops"})
    assert next(yaml.safe_load_all(lamina("rbac", str(file)).stdout))["kind"] == "ServiceAccount"


def test_rbac_limits_leases_to_their_names_in_their_namespace(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    made = said(
        lamina, "rbac", str(file), "--families", "metacontroller", "--shards", "2", "--lease-name", "mc"
    )

    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert [
        (one["kind"], one["metadata"].get("namespace"), rule)
        for one in made
        for rule in one.get("rules", ())
        if "leases" in rule["resources"]
    ] == [
        ("Role", "default", {**leases, "verbs": ["create"]}),
        ("Role", "default", {**leases, "verbs": ["get", "update"], "resourceNames": ["mc-0", "mc-1"]}),
    ]
    bound = [one for one in made if one["kind"] == "RoleBinding"]
    assert [one["subjects"] for one in bound] == [
        [{"kind": "ServiceAccount", "namespace": "default", "name": "lamina"}]
    ]


def test_rbac_has_the_leases_of_originals_where_their_namespace_exists(
    lamina: Lamina, tmp_path: Path
) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    api.post(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metacontroller"}},
    )
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    done = lamina("rbac", str(file), "--families", "metacontroller,resourcegraph", "-o", "json")

    made = json.loads(done.stdout)["items"]
    roles = {one["metadata"]["namespace"]: one["rules"] for one in made if one["kind"] == "Role"}
    assert roles.keys() == {"default", "metacontroller"}
    assert [rule.get("resourceNames") for rule in roles["metacontroller"]] == [None, ["metacontroller"]]
    assert (
        "not included: the Leases of originals in kro-system, because the namespace does not" in done.stderr
    )
    (cluster,) = [one["rules"] for one in made if one["kind"] == "ClusterRole"]
    named = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    assert {**named, "resourceNames": ["kro-system", "metacontroller"]} in cluster
    off = said(lamina, "rbac", str(file), "--families", "metacontroller", "--no-upstream-lease")
    assert [one["metadata"].get("namespace") for one in off if one["kind"] == "Role"] == ["default"]


def test_rbac_says_what_is_missing_where_there_is_no_cluster(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    done = lamina("rbac", str(file))

    assert "not included: the controllers on the cluster, because no cluster is configured" in done.stderr
    assert "no cluster is configured" in lamina("rbac", code=1).stderr


@pytest.mark.parametrize("account", ["robot", "/robot", "ops/", "ops/a/b"])
def test_rbac_refuses_what_is_no_service_account(lamina: Lamina, account: str) -> None:
    refused = lamina("rbac", "--service-account", account, code=1).stderr

    assert f"--service-account: expected NAMESPACE/NAME, got {account!r}" in refused


@pytest.mark.parametrize("flag", ["--aggregate-roles"])
def test_rbac_has_roles_that_aggregate_to_those_of_a_namespace(
    lamina: Lamina, tmp_path: Path, flag: str
) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    *_, view, edit = said(lamina, "rbac", str(file), "--families", "metacontroller", flag)

    resource = {"apiGroups": ["metacontroller.k8s.io"], "resources": ["controllerrevisions"]}
    assert view["rules"] == [{**resource, "verbs": ["get", "list", "watch"]}]
    assert edit["rules"] == [{**resource, "verbs": ["create", "update", "patch", "delete"]}]
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]


def test_rbac_lets_no_editor_of_a_namespace_bind_clusters_or_write_works(
    lamina: Lamina, tmp_path: Path
) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    *_, view, edit = said(lamina, "rbac", str(file), "--families", "manifestwork", "--aggregate-roles")

    def kinds(role: dict[str, Any]) -> set[str]:
        return {resource for rule in role["rules"] for resource in rule["resources"]}

    assert kinds(edit) == {"manifestworkreplicasets", "placements"}
    assert {"manifestworks", "managedclustersetbindings", "placementdecisions", *kinds(edit)} <= kinds(view)


def test_rbac_is_told_how_it_is_run(lamina: Lamina, tmp_path: Path) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    options = ["--families", "manifestwork", "--no-scheduler", "--webhook", "--lease-namespace", "ops"]
    options.append("--no-upstream-lease")
    _, role, _, at_home, binding = said(
        lamina, "rbac", str(file), *options, "--service-account", "default/robot"
    )

    resources = {resource.partition("/")[0] for rule in role["rules"] for resource in rule["resources"]}
    assert not resources & {
        "managedclusters",
        "managedclustersets",
        "managedclustersetbindings",
        "namespaces",
    }
    assert (at_home["kind"], at_home["metadata"]["namespace"]) == ("Role", "ops")
    assert binding["metadata"]["namespace"] == "ops"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]


@pytest.mark.parametrize(
    ("families", "names"), [("manifestwork", ["lamina-manifestwork"]), ("metacontroller", None)]
)
def test_rbac_lets_a_webhook_be_changed_only_where_a_family_registers_it(
    lamina: Lamina, tmp_path: Path, families: str, names: list[str] | None
) -> None:
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)

    _, role, *_ = said(lamina, "rbac", str(file), "--families", families, "--webhook")

    rules = [one for one in role["rules"] if "validatingwebhookconfigurations" in one["resources"]]
    assert [one["verbs"] for one in rules if "resourceNames" not in one] == ([["create"]] if names else [])
    assert [one["resourceNames"] for one in rules if "resourceNames" in one] == ([names] if names else [])


def test_rbac_reads_the_controllers_on_the_cluster(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    spec = {
        "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "sets"},
        "childResources": [{"apiVersion": "apps/v1", "resource": "deployments"}],
        "hooks": {
            "sync": {"webhook": {"url": "https://hook/sync"}},
            "customize": {"webhook": {"url": "https://hook/customize"}},
        },
        "endpointConfigs": [
            {"host": "hook", "authorization": {"secretRef": {"name": "token", "namespace": "default"}}}
        ],
    }
    kind = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController"}
    assert api.post(CONTROLLERS, {**kind, "metadata": {"name": "made-by-hand"}, "spec": spec}).code == 201

    done = lamina("rbac", "-o", "json")
    rules = json.loads(done.stdout)["items"][1]["rules"]

    assert any("deployments" in rule["resources"] and "create" in rule["verbs"] for rule in rules)
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"], "resourceNames": ["token"]} in rules  # fmt: skip
    assert "not included: the objects that customize hook https://hook/customize selects" in done.stderr
    related = json.loads(lamina("rbac", "--related", "v1/services", "-o", "json").stdout)["items"][1]["rules"]
    assert any("services" in rule["resources"] for rule in related)


def test_rbac_has_the_controllers_of_a_file_and_those_on_the_cluster(lamina: Lamina, tmp_path: Path) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    kind = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController"}
    hooks = {"sync": {"webhook": {"url": "https://hook/sync"}}}

    def on_the_cluster(name: str, child: str) -> None:
        spec = {
            "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "sets"},
            "childResources": [{"apiVersion": "apps/v1", "resource": child}],
            "hooks": hooks,
        }
        assert api.post(CONTROLLERS, {**kind, "metadata": {"name": name}, "spec": spec}).code == 201

    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    on_the_cluster("made-by-hand", "deployments")
    on_the_cluster("maps", "statefulsets")

    _, role, *_ = said(lamina, "rbac", str(file))

    written = {
        resource for rule in role["rules"] if "create" in rule["verbs"] for resource in rule["resources"]
    }
    assert {"configmaps", "deployments"} <= written
    assert "statefulsets" not in written, "the file replaces the controller of that name"


def test_run_applies_the_controllers_of_a_file_runs_their_hooks_and_follows_its_changes(
    lamina: Lamina, tmp_path: Path
) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), lamina.home)
    file = tmp_path / "hooks.py"
    file.write_text(HOOKS)
    process = lamina.start("run", str(file), "--families", "metacontroller", "--log", "error")
    assert process.stderr is not None
    try:
        assert "lamina runs metacontroller on https://" in process.stderr.readline()
        assert (
            api.get(f"{CONTROLLERS}/maps").json["spec"]["hooks"]["sync"]["webhook"]["url"] == "hook:maps/sync"
        )

        api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("sets", "Set"))
        eventually_sync(lambda: api.get(f"{GROUP}/sets").code == 200)
        kind = {"apiVersion": "ctl.example.com/v1", "kind": "Set"}
        assert api.post(f"{GROUP}/sets", {**kind, "metadata": {"name": "a"}, "spec": {}}).code == 201
        text = "/api/v1/namespaces/default/configmaps/a"
        eventually_sync(lambda: api.get(text).json.get("data") == {"text": "first"})

        file.write_text(HOOKS + "\n1 / 0\n")
        os.kill(process.pid, signal.SIGHUP)
        assert "cannot load hooks, the previous ones stay active" in process.stderr.readline()

        file.write_text(LASTING)
        held = ["metacontroller.io/compositecontroller-maps"]
        eventually_sync(lambda: api.get(f"{GROUP}/sets/a").json["metadata"].get("finalizers") == held)

        file.write_text(HOOKS.replace("first", "second").replace("def maps", "def others"))
        eventually_sync(lambda: api.get(text).json.get("data") == {"text": "second"})
        eventually_sync(lambda: api.get(f"{CONTROLLERS}/maps").code == 404)
        assert "finalizers" not in api.get(f"{GROUP}/sets/a").json["metadata"]
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()
    assert not _children(process), "the hooks end with it"


def _children(process: subprocess.Popen[str]) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [
        line for line in listed.splitlines() if "lamina.hooks.child" in line and str(process.args) in line
    ]


def test_a_hooks_file_that_does_not_load_stops_the_start_with_its_traceback(
    lamina: Lamina, tmp_path: Path
) -> None:
    file = tmp_path / "hooks.py"
    file.write_text("import lamina\n\nraise ValueError('not today')\n")

    said = lamina("up", "--ephemeral", "--port", "0", "--hooks", str(file), code=1).stderr

    assert "error: hooks.py does not load" in said
    assert "line 3" in said and "ValueError: not today" in said
    off = lamina("up", "--ephemeral", "--simulate", "off", "--hooks", str(file), code=1).stderr
    assert "--simulate off and --hooks cancel each other" in off
