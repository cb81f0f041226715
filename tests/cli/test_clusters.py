"""`lamina up --clusters`, `lamina clusters`, and what else knows of several clusters."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.bed.kubectl import kubectl_command
from tests.cli.conftest import Lamina


def listed(lamina: Lamina) -> list[str]:
    return [one["name"] for one in json.loads(lamina("clusters", "list", "-o", "json").stdout)]


def kubectl(lamina: Lamina, *arguments: str) -> str:
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    done = subprocess.run(
        [kubectl_command(), *arguments],
        env={**lamina.environ, "KUBECONFIG": running["kubeconfig"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_clusters_come_with_the_server_and_come_and_go_while_it_runs(lamina: Lamina) -> None:
    lamina(
        "up",
        "--detach",
        "--ephemeral",
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "2",
    )
    assert listed(lamina) == ["lamina", "cluster1", "cluster2"]
    assert "2 besides the first: cluster1, cluster2" in lamina("status").stdout

    said = lamina("clusters", "add", "east", "west").stderr
    assert "select it with --context east" in said
    assert listed(lamina) == ["lamina", "cluster1", "cluster2", "east", "west"]
    assert "/clusters/west\n" in lamina("clusters", "list").stdout

    assert lamina("clusters", "remove", "--yes", "west", "cluster1").stderr.endswith(
        "cluster cluster1 removed\n"
    )
    assert listed(lamina) == ["lamina", "cluster2", "east"]
    assert "2 besides the first: cluster2, east" in lamina("status").stdout


def test_which_server_is_meant_may_be_in_the_environment(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--simulate", "off")
    lamina.said["LAMINA_PORT"] = "1"

    assert "no server listens on port 1" in lamina("clusters", "list", code=1).stderr


def test_what_cannot_be_done_to_clusters_is_said(lamina: Lamina) -> None:
    lamina(
        "up",
        "--detach",
        "--ephemeral",
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "east",
    )

    assert '"East" is not a valid cluster name' in lamina("clusters", "add", "East", code=1).stderr
    assert "is the first cluster" in lamina("clusters", "add", "lamina", code=1).stderr
    assert "the first cluster stays" in lamina("clusters", "remove", "--yes", "lamina", code=1).stderr
    assert 'there is no cluster "west"' in lamina("clusters", "remove", "--yes", "west", code=1).stderr
    inside = "east/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    for odd in (inside, "..", "a b"):
        said = lamina("clusters", "remove", "--yes", odd, code=1).stderr
        assert f'"{odd}" is not a valid cluster name' in said
    assert '"a/b" is not a valid cluster name' in lamina("clusters", "add", "north", "a/b", code=1).stderr
    asked = lamina("clusters", "remove", "east", code=130)
    assert "Remove east with all objects?" in asked.stderr
    assert listed(lamina) == ["lamina", "east"]


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        ("East", '"East" is not a valid cluster name'),
        ("a,b_c", '"b_c" is not a valid cluster name'),
        ("1001", "expected 0 to 1000, got 1001"),
        ("-1", '"-1" is not a valid cluster name'),
    ],
)
def test_names_that_no_cluster_can_have_are_refused_at_the_start(
    lamina: Lamina, clusters: str, words: str
) -> None:
    assert words in lamina("up", "--ephemeral", "--port", "0", "--clusters", clusters, code=1).stderr


def test_kubectl_has_a_context_for_each_cluster_and_keeps_the_one_it_was_set_to(lamina: Lamina) -> None:
    lamina(
        "up",
        "--detach",
        "--ephemeral",
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "east,west",
    )

    kubectl(lamina, "--context", "east", "create", "namespace", "only-here")
    assert "only-here" in kubectl(lamina, "--context", "east", "get", "namespaces")
    assert "only-here" not in kubectl(lamina, "--context", "west", "get", "namespaces")
    assert "only-here" not in kubectl(lamina, "get", "namespaces")
    assert "FIELD: data" in kubectl(lamina, "--context", "east", "explain", "configmap.data")

    kubectl(lamina, "config", "use-context", "west")
    kubectl(lamina, "config", "set-context", "east", "--namespace", "only-here")
    kubectl(lamina, "config", "set-context", "elsewhere", "--cluster", "real")
    lamina("clusters", "add", "north")
    assert kubectl(lamina, "config", "current-context") == "west\n"
    assert "elsewhere" in kubectl(lamina, "config", "get-contexts", "-o", "name")
    assert "only-here" in kubectl(lamina, "--context", "east", "create", "configmap", "x", "-o", "yaml")
    lamina("clusters", "remove", "--yes", "west")
    assert kubectl(lamina, "config", "current-context") == "lamina\n"


def test_clusters_that_a_server_in_the_background_has_not_got_are_not_passed_over(lamina: Lamina) -> None:
    lamina(
        "up",
        "--detach",
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "east",
    )
    lamina(
        "up",
        "--detach",
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "east",
    )

    said = lamina("up", "--detach", "--port", "0", "--clusters", "east,north,west", code=1).stderr

    assert "already runs, without north, west" in said
    assert "lamina clusters add north west" in said


def test_clusters_are_found_again_and_are_part_of_a_backup(lamina: Lamina, tmp_path: Path) -> None:
    state, copy, other = (str(tmp_path / name) for name in ("state", "copy.db", "other"))
    lamina(
        "up",
        "--detach",
        "--data",
        state,
        "--port",
        "0",
        "--simulate",
        "controllers",
        "--families",
        "none",
        "--clusters",
        "east,west",
    )
    kubectl(lamina, "--context", "east", "create", "namespace", "kept")
    lamina("clusters", "remove", "--yes", "west")
    kubectl(lamina, "config", "use-context", "east")
    lamina("backup", copy)
    lamina("down")

    lamina("up", "--detach", "--data", state, "--port", "0", "--simulate", "off")
    assert listed(lamina) == ["lamina", "east"]
    assert "kept" in kubectl(lamina, "--context", "east", "get", "namespaces")
    lamina("down")

    lamina("restore", copy, "--data", other)
    lamina("up", "--detach", "--data", other, "--port", "0", "--simulate", "off")
    assert "kept" in kubectl(lamina, "--context", "east", "get", "namespaces")


def test_a_request_that_is_named_is_that_of_one_cluster(lamina: Lamina) -> None:
    said = lamina("clusters", "accept", "east", "west", "--request", "east-1", code=2).stderr

    assert "--request is for one cluster" in said
