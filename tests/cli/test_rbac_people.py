"""`lamina rbac --people`: what users of the command line need in their namespace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lamina.cli.commands.rbac import rbac
from lamina.errors import SettingsError

HOOKS = """
import lamina

@lamina.sync("ctl.example.com/v1/sets", children={"v1/configmaps": "InPlace", "v1/secrets": "InPlace"})
def maps(parent):
    return []
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    (tmp_path / "hooks.py").write_text(HOOKS)
    return str(tmp_path / "hooks.py")


def printed(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(rbac, [*arguments, "-o", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return list(json.loads(done.stdout)["items"])


def allowed(role: dict[str, Any]) -> dict[str, set[str]]:
    return {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}


def test_users_get_roles_in_their_namespace_and_nothing_for_controllers(file: str) -> None:
    made = printed(file, "--people", "-n", "team", "--user", "alice", "--group", "devs")

    assert [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in made] == [
        ("Role", "team", "lamina-view"),
        ("RoleBinding", "team", "lamina-view"),
        ("Role", "team", "lamina-edit"),
        ("RoleBinding", "team", "lamina-edit"),
        ("ClusterRole", None, "lamina-view-cluster"),
        ("ClusterRoleBinding", None, "lamina-view-team"),
    ]
    group = "rbac.authorization.k8s.io"
    for binding in made[1::2]:
        assert binding["subjects"] == [
            {"apiGroup": group, "kind": "User", "name": "alice"},
            {"apiGroup": group, "kind": "Group", "name": "devs"},
        ]


def test_the_role_to_view_only_reads_and_the_role_to_edit_only_writes_owners(file: str) -> None:
    view, _, edit, _, cluster, _ = printed(file, "--people", "-n", "team", "--user", "alice")

    seen = allowed(view)
    assert set().union(*seen.values()) == {"get", "list", "watch"}
    kinds = {
        "sets",
        "configmaps",
        "events",
        "manifestworkreplicasets",
        "objectdeployments",
        "controllerrevisions",
    }
    assert kinds <= seen.keys()
    assert not seen.keys() & {
        "secrets",
        "leases",
        "namespaces",
        "customresourcedefinitions",
        "managedclusters",
    }
    assert allowed(edit) == {
        key: {"update", "patch"}
        for key in ("sets", "manifestworkreplicasets", "objectdeployments", "objectsets")
    }
    kept = {"compositecontrollers", "decoratorcontrollers"}
    kept |= {"resourcegraphdefinitions", "resourcegraphdefinitionrevisions"}
    assert allowed(cluster) == {key: {"get", "list", "watch"} for key in kept}


def test_without_users_nothing_is_bound_and_viewers_get_no_role_to_edit(file: str) -> None:
    made = printed(file, "--people", "-n", "team", "--view-only")

    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [
        ("Role", "lamina-view"),
        ("ClusterRole", "lamina-view-cluster"),
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--people"], "--people needs the namespace of the users"),
        (["-n", "team"], "--namespace has no effect without --people"),
        (["--user", "alice"], "--user has no effect without --people"),
        (["--view-only"], "--view-only has no effect without --people"),
    ],
)
def test_options_of_users_go_together(file: str, arguments: list[str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        printed(file, *arguments)
