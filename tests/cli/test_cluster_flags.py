"""Selection of a cluster by options and environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.cli.options.cluster_flags import load_access, with_client
from lamina.cli.server_records import ServerRecord, find_server, find_server_by_environment, write_record
from lamina.errors import SettingsError, Unreachable


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / server
    cluster = f"{{name: a, cluster: {{server: 'https://{server}'}}}}"
    file.write_text(
        f"{{clusters: [{cluster}], contexts: [{{name: a, context: {{cluster: a}}}}], current-context: a}}"
    )
    return file


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """One server runs, and KUBECONFIG names another cluster."""
    for name in ("LAMINA_PORT", "LAMINA_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, "elsewhere")))
    mine = kubeconfig(tmp_path, "mine")
    write_record(
        ServerRecord(os.getpid(), "https://127.0.0.1:7001", str(mine), str(tmp_path / "state"), "now")
    )
    return monkeypatch


def test_a_missing_kubeconfig_is_reported_with_the_source_of_its_path(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="there is no kubeconfig: .*/nope") as refused:
        load_access(tmp_path / "nope", "")
    assert "name another file with --kubeconfig FILE" in str(refused.value.hint)

    environ.setenv("KUBECONFIG", str(tmp_path / "nope"))
    with pytest.raises(SettingsError) as refused:
        load_access(None, "")
    assert "the path comes from $KUBECONFIG" in str(refused.value.hint)


def test_an_unreachable_server_is_reported_with_its_address(tmp_path: Path) -> None:
    access = load_access(kubeconfig(tmp_path, "127.0.0.1:1"), "")

    with pytest.raises(Unreachable) as silent:
        with_client(access, lambda client: client.discover())

    assert "check that https://127.0.0.1:1 is running" in str(silent.value.hint)


def test_a_server_that_the_environment_names_goes_before_its_kubeconfig(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As for `lamina kubectl`: one cluster, whichever command is typed."""
    assert load_access(None, "").server == "https://elsewhere"
    environ.setenv("LAMINA_PORT", "0")
    assert load_access(None, "").server == "https://elsewhere", "any port is no server in particular"

    environ.setenv("LAMINA_PORT", "7001")
    assert load_access(None, "").server == "https://mine"
    environ.delenv("LAMINA_PORT")
    environ.setenv("LAMINA_DATA", str(tmp_path / "state"))
    assert load_access(None, "").server == "https://mine"
    assert load_access(tmp_path / "elsewhere", "").server == "https://elsewhere"


def also_running(folder: Path, name: str, pid: int) -> ServerRecord:
    """Leave the record of another server that runs; its process is one that is there."""
    other = ServerRecord(
        pid, f"https://127.0.0.1:{pid}", str(kubeconfig(folder, name)), str(folder / name), "now"
    )
    write_record(other)
    return other


def test_kubeconfig_selects_one_of_several_servers(environ: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = also_running(tmp_path, "other", os.getppid())
    with pytest.raises(SettingsError, match="2 servers are running") as unclear:
        find_server_by_environment()
    assert "KUBECONFIG" in str(unclear.value.hint)

    (tmp_path / "link").symlink_to(other.kubeconfig)
    for said in (other.kubeconfig, str(tmp_path / "link"), f"{tmp_path / 'elsewhere'}:{other.kubeconfig}"):
        environ.setenv("KUBECONFIG", said)
        assert find_server_by_environment() == find_server() == other

    with pytest.raises(SettingsError, match="2 servers are running"):
        find_server(by_kubeconfig=False)
    environ.setenv("LAMINA_PORT", "7001")
    assert find_server_by_environment().port == 7001, "LAMINA_PORT takes precedence"


def test_options_take_precedence_over_the_environment(environ: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ.setenv("LAMINA_PORT", "1")
    assert find_server(tmp_path / "state").port == find_server(None, 7001).port == 7001

    environ.setenv("LAMINA_PORT", "many")
    with pytest.raises(SettingsError, match="LAMINA_PORT: 'many' is not a port number"):
        find_server()
