"""Which cluster a command is about, where several could be meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.cli.reaching import reach
from lamina.cli.running import Running, record


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
