"""Which cluster a command is about, where several could be meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.cli.reaching import reach, with_client
from lamina.cli.running import Running, choose, choose_by_environment, record
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
    record(Running(os.getpid(), "https://127.0.0.1:7001", str(mine), str(tmp_path / "state"), "now"))
    return monkeypatch


def test_a_kubeconfig_that_is_not_there_is_said_with_whoever_names_it(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="there is no kubeconfig: .*/nope") as refused:
        reach(tmp_path / "nope", "")
    assert "name another with --kubeconfig FILE" in str(refused.value.hint)

    environ.setenv("KUBECONFIG", str(tmp_path / "nope"))
    with pytest.raises(SettingsError) as refused:
        reach(None, "")
    assert "$KUBECONFIG says so" in str(refused.value.hint)


def test_a_server_that_does_not_answer_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    access = reach(kubeconfig(tmp_path, "127.0.0.1:1"), "")

    with pytest.raises(Unreachable) as silent:
        with_client(access, lambda client: client.discover())

    assert "is https://127.0.0.1:1 running" in str(silent.value.hint)


def test_a_server_that_the_environment_names_goes_before_its_kubeconfig(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As for `lamina kubectl`: one cluster, whichever command is typed."""
    assert reach(None, "").server == "https://elsewhere"
    environ.setenv("LAMINA_PORT", "0")
    assert reach(None, "").server == "https://elsewhere", "any port is no server in particular"

    environ.setenv("LAMINA_PORT", "7001")
    assert reach(None, "").server == "https://mine"
    environ.delenv("LAMINA_PORT")
    environ.setenv("LAMINA_DATA", str(tmp_path / "state"))
    assert reach(None, "").server == "https://mine"
    assert reach(tmp_path / "elsewhere", "").server == "https://elsewhere"


def also_running(folder: Path, name: str, pid: int) -> Running:
    """Leave the record of another server that runs; its process is one that is there."""
    other = Running(pid, f"https://127.0.0.1:{pid}", str(kubeconfig(folder, name)), str(folder / name), "now")
    record(other)
    return other


def test_of_several_servers_the_one_is_meant_whose_kubeconfig_is_in_the_environment(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = also_running(tmp_path, "other", os.getppid())
    with pytest.raises(SettingsError, match="2 servers are running") as unclear:
        choose_by_environment()
    assert "KUBECONFIG" in str(unclear.value.hint)

    (tmp_path / "link").symlink_to(other.kubeconfig)
    for said in (other.kubeconfig, str(tmp_path / "link"), f"{tmp_path / 'elsewhere'}:{other.kubeconfig}"):
        environ.setenv("KUBECONFIG", said)
        assert choose_by_environment() == choose() == other

    with pytest.raises(SettingsError, match="2 servers are running"):
        choose(by_kubeconfig=False)
    environ.setenv("LAMINA_PORT", "7001")
    assert choose_by_environment().port == 7001, "who names a server means it"


def test_what_is_said_on_the_command_line_goes_before_the_environment(
    environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environ.setenv("LAMINA_PORT", "1")
    assert choose(tmp_path / "state").port == choose(None, 7001).port == 7001

    environ.setenv("LAMINA_PORT", "many")
    with pytest.raises(SettingsError, match="LAMINA_PORT: 'many' is no port"):
        choose()
