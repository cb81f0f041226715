"""
Records of the servers of `lamina up` that run on this machine, as pid files.

A server writes a record with its address, data folder and kubeconfig, named for
its process, and removes it when it stops. A record whose process is gone is
stale, and is removed when the records are next read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lamina.errors import SettingsError
from lamina.settings import data_home


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The record of one running server."""

    pid: int
    url: str
    kubeconfig: str
    data: str
    started: str
    clusters: tuple[str, ...] = ()

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def storage(self) -> str:
        return self.data or "in memory"


def _folder() -> Path:
    return data_home() / "run"


def write_record(server: ServerRecord) -> Path:
    """Write the record of a server atomically, and return its path."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{server.pid}.json"
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(server)))
    fresh.replace(file)
    return file


def running_servers() -> list[ServerRecord]:
    """Return the records of the servers that run, oldest first; remove stale records."""
    found = []
    for file in sorted(_folder().glob("*.json"), key=lambda one: one.stat().st_mtime):
        try:
            known = json.loads(file.read_text())
            server = ServerRecord(**{**known, "clusters": tuple(known.get("clusters", ()))})
        except (ValueError, TypeError, OSError):
            continue
        if is_alive(server.pid):
            found.append(server)
        else:
            file.unlink(missing_ok=True)
    # Not by file time: a record is rewritten when the clusters of its server change.
    return sorted(found, key=lambda server: server.started)


def is_alive(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True


def find_server(
    data: Path | None = None,
    port: int = 0,
    *,
    by_kubeconfig: bool = True,
    hint: str = "select one with --port N",
) -> ServerRecord:
    """
    Return the server with this data folder or port, or the only one that runs.

    LAMINA_DATA and LAMINA_PORT are the defaults. Of several servers, KUBECONFIG selects
    one by its kubeconfig, unless `by_kubeconfig` is off. `hint` is the hint of the error
    if several remain.
    """
    running = running_servers()
    if data is None and not port:
        data, port = _environment()
    if data is not None:
        wanted = str(data.expanduser().absolute())
        running = [one for one in running if one.data == wanted]
        if not running:
            raise SettingsError(
                f"no running server has the data folder {wanted}", hint="list servers with `lamina status`"
            )
    if port:
        running = [one for one in running if one.port == port]
        if not running:
            raise SettingsError(f"no server listens on port {port}", hint="list servers with `lamina status`")
    if not running:
        raise SettingsError("no server is running", hint="start one with `lamina up`")
    if len(running) > 1:
        if by_kubeconfig and (selected := _by_kubeconfig(running)) is not None:
            return selected
        listed = ", ".join(f"{one.url} ({one.storage})" for one in running)
        raise SettingsError(f"{len(running)} servers are running: {listed}", hint=hint)
    return running[0]


def find_server_by_environment() -> ServerRecord:
    """Return the server that LAMINA_DATA, LAMINA_PORT or KUBECONFIG selects, or the only one."""
    return find_server(hint="select one with LAMINA_PORT=N, or with KUBECONFIG set to its kubeconfig")


def _environment() -> tuple[Path | None, int]:
    data, port = os.environ.get("LAMINA_DATA"), os.environ.get("LAMINA_PORT") or "0"
    if not port.isdecimal():
        raise SettingsError(f"LAMINA_PORT: {port!r} is not a port number")
    return Path(data) if data else None, int(port)


def _by_kubeconfig(running: Sequence[ServerRecord]) -> ServerRecord | None:
    """Return the server whose kubeconfig comes first in KUBECONFIG."""
    known = {Path(one.kubeconfig).resolve(): one for one in running}
    files = [Path(file).resolve() for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    return next((known[file] for file in files if file in known), None)
