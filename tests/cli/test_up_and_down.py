"""`lamina up`, and everything that finds the server it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lamina.client.kubeconfig.read import read_kubeconfig
from tests.bed.kubectl import kubectl_command
from tests.bed.wire import Api
from tests.cli.conftest import Lamina


def api_of(kubeconfig: Path, folder: Path) -> Api:
    access = read_kubeconfig(kubeconfig)
    authority = folder / "ca.crt"
    authority.write_bytes(access.authority)
    return Api(access.server, str(authority), access.token)


def test_a_server_in_the_background_is_found_used_and_stopped(lamina: Lamina) -> None:
    said = lamina("up", "--detach", "--port", "0").stderr
    assert "is ready at https://127.0.0.1:" in said
    assert "kubectl get namespaces" in said and "stop" in said

    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    assert running["url"] in said
    assert stat.S_IMODE(Path(running["kubeconfig"]).stat().st_mode) == 0o600
    assert running["url"] in lamina("status").stdout

    assert lamina("up", "--detach", "--port", "0").stderr == said
    lamina("down")
    assert "no server is running" in lamina("status").stderr


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """kubectl on the PATH, wherever it comes from."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl_command())
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.usefixtures("kubectl")
def test_kubectl_is_pointed_at_the_server(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0")

    assert lamina("kubectl", "get", "namespaces", "default", "-o", "name").stdout == "namespace/default\n"


@pytest.mark.usefixtures("kubectl")
def test_of_two_servers_the_one_meant_is_used_and_stopped(lamina: Lamina) -> None:
    lamina("up", "--detach", "--port", "0")
    said = lamina("up", "--detach", "--ephemeral", "--port", "0").stderr
    kept, ephemeral = json.loads(lamina("status", "-o", "json").stdout)
    port = ephemeral["url"].rpartition(":")[2]

    unclear = lamina("down", code=1).stderr
    lost = lamina("kubectl", "get", "namespaces", code=1).stderr
    assert kept["url"] in unclear and ephemeral["url"] in unclear and "--port" in unclear
    assert "LAMINA_PORT" in lost
    assert f"LAMINA_PORT={port}" in said and f"down --port {port}" in said

    lamina.said["KUBECONFIG"] = kept["kubeconfig"]
    assert kept["url"] in lamina("kubectl", "cluster-info").stdout
    assert kept["url"] in lamina("clusters", "list").stdout
    assert "--port" in lamina("down", code=1).stderr, "to talk to a server is not to end it"
    lamina.said["LAMINA_PORT"] = port
    assert ephemeral["url"] in lamina("kubectl", "cluster-info").stdout
    lamina("down")
    lamina.said.clear()
    assert [one["url"] for one in json.loads(lamina("status", "-o", "json").stdout)] == [kept["url"]]
    assert f"no server listens on port {port}" in lamina("down", "--port", port, code=1).stderr


def test_state_is_found_again(lamina: Lamina, tmp_path: Path) -> None:
    data, kubeconfig = tmp_path / "state", tmp_path / "kubeconfig"
    lamina("up", "--detach", "--port", "0", "--data", str(data), "--kubeconfig", str(kubeconfig))
    first = api_of(kubeconfig, tmp_path)
    made = first.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
    token = read_kubeconfig(kubeconfig).token
    lamina("down")

    lamina("up", "--detach", "--port", "0", "--data", str(data), "--kubeconfig", str(kubeconfig))

    found = api_of(kubeconfig, tmp_path).get("/api/v1/namespaces/default/configmaps/kept")
    assert found.json == made.json
    assert read_kubeconfig(kubeconfig).token == token, "a kubeconfig saved yesterday works today"


def test_a_backup_becomes_a_server_with_the_same_objects(lamina: Lamina, tmp_path: Path) -> None:
    lamina("up", "--detach", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    api = api_of(Path(running["kubeconfig"]), tmp_path)
    api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "saved"}, "data": {"a": "b"}})
    copy, other = tmp_path / "copy", tmp_path / "other"

    lamina("backup", str(copy))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    lamina("down")
    lamina("restore", str(copy), "--data", str(other))
    assert "already contains a log" in lamina("restore", str(copy), "--data", str(other), code=1).stderr

    lamina("up", "--detach", "--port", "0", "--data", str(other))
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    found = api_of(Path(running["kubeconfig"]), tmp_path).get("/api/v1/namespaces/default/configmaps/saved")
    assert found.json["data"] == {"a": "b"}


def test_two_servers_never_share_a_folder(lamina: Lamina, tmp_path: Path) -> None:
    data = tmp_path / "state"
    lamina("up", "--detach", "--port", "0", "--data", str(data))
    (running,) = json.loads(lamina("status", "-o", "json").stdout)

    refused = lamina("up", "--port", "0", "--data", str(data), code=1).stderr

    assert str(running["pid"]) in refused and "hint:" in refused


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_a_signal_stops_it_and_ends_its_watches(
    lamina: Lamina, tmp_path: Path, number: signal.Signals
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    process = lamina.start("up", "--ephemeral", "--port", "0", "--kubeconfig", str(kubeconfig))
    assert process.stderr is not None
    assert "is ready" in process.stderr.readline()
    api = api_of(kubeconfig, tmp_path)
    events = api.lines("/api/v1/configmaps?watch=true&allowWatchBookmarks=true")
    assert next(events)["type"] == "ADDED"

    process.send_signal(number)

    assert {event["type"] for event in events} <= {"ADDED", "BOOKMARK"}, "the stream ends, without an error"
    assert process.wait(timeout=120) == 0
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--port", "http"], "invalid port: 'http'"),
        (["up", "--ephemeral", "--data", "x"], "--ephemeral and --data exclude each other"),
        (["up", "--history", "soon"], "invalid history: 'soon'"),
        (["up", "--simulate", "off", "--families", "all"], "--simulate off and --families cancel each other"),
        (["up", "--simulate", "off", "--clusters", "2"], "--simulate off and --clusters cancel each other"),
        (["up", "--simulate", "off", "--hooks", "x.py"], "--simulate off and --hooks cancel each other"),
        (["up", "--families", "none", "--hooks", "x.py"], "--families none and --hooks cancel each other"),
        (["kubectl", "--as", "jane", "get", "pods"], "--as is not served"),
        (["kubectl", "get", "pods", "--as-group=admins"], "--as-group is not served"),
        (["down"], "no server is running"),
        (["backup", "x"], "no server is running"),
        (["restore", "/nonexistent"], "does not exist"),
        (["upp"], "unknown command 'upp'"),
    ],
)
def test_invalid_arguments_are_refused_with_one_sentence(
    lamina: Lamina, arguments: list[str], said: str
) -> None:
    done = lamina(*arguments, code=2 if "exist" in said or "command" in said else 1)

    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_help_of_kubectl_needs_no_server(lamina: Lamina) -> None:
    assert "kubectl controls the Kubernetes cluster manager" in lamina("kubectl", "--help").stdout
    assert "no server is running" in lamina("kubectl", "get", "pods", code=1).stderr


def test_a_server_that_runs_is_not_moved_to_another_port(lamina: Lamina) -> None:
    lamina("up", "--detach", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    port = running["url"].rpartition(":")[2]
    other = str(int(port) - 1)

    refused = lamina("up", "--detach", "--port", other, code=1).stderr

    assert f"--data {running['data']} and --port {other} cancel each other" in refused
    assert f"already listens on port {port}" in refused
    assert lamina("up", "--detach", "--port", port).stderr


def test_a_port_that_is_taken_is_named(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    port = running["url"].rpartition(":")[2]

    refused = lamina("up", "--ephemeral", "--port", port, code=1).stderr

    assert f"cannot listen on 127.0.0.1 port {port}" in refused
    assert "--port 0" in refused


def test_anonymous_requests_see_health_and_version_and_nothing_else(lamina: Lamina, tmp_path: Path) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0")
    (running,) = json.loads(lamina("status", "-o", "json").stdout)
    authority = read_kubeconfig(Path(running["kubeconfig"])).authority.decode()
    context = ssl.create_default_context(cadata=authority)

    for path in ("/healthz", "/livez", "/readyz", "/version"):
        with urllib.request.urlopen(running["url"] + path, context=context) as answer:
            assert answer.status == 200
    for path, token, code in (("/api", "", 403), ("/metrics", "", 403), ("/api/v1/secrets", "wrong", 401)):
        request = urllib.request.Request(running["url"] + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, context=context)
        assert refused.value.code == code
        assert json.load(refused.value)["kind"] == "Status"
        refused.value.close()
