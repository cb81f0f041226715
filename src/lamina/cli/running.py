"""
Which servers of this user run now.

A server leaves a record while it runs, named for its process: where it is,
what it keeps where. A record whose process is gone is nobody's, and is removed
by whoever finds it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lamina.errors import SettingsError
from lamina.settings import home


@dataclass(frozen=True, slots=True)
class Running:
    """One server that runs."""

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
    def place(self) -> str:
        return self.data or "nowhere: it keeps no state"


def _folder() -> Path:
    return home() / "run"


def record(server: Running) -> Path:
    """Leave the record of a server, and return where; the server removes it at its end."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{server.pid}.json"
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(server)))
    fresh.replace(file)
    return file


def servers() -> list[Running]:
    """Return the servers that run, oldest first."""
    found = []
    for file in sorted(_folder().glob("*.json"), key=lambda one: one.stat().st_mtime):
        try:
            known = json.loads(file.read_text())
            server = Running(**{**known, "clusters": tuple(known.get("clusters", ()))})
        except (ValueError, TypeError, OSError):
            continue
        if is_alive(server.pid):
            found.append(server)
        else:
            file.unlink(missing_ok=True)
    # A record is renewed when there is more to say of its server.
    return sorted(found, key=lambda server: server.started)


def is_alive(pid: int) -> bool:
    """Say whether a process is there and is no corpse that its parent has yet to bury."""
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


def choose(
    data: Path | None = None,
    port: int = 0,
    *,
    by_kubeconfig: bool = True,
    hint: str = "say which with --port N",
) -> Running:
    """
    Return the server meant: the one that keeps its state there or listens there, or the only one.

    Where neither is said, LAMINA_DATA and LAMINA_PORT may say it. Of several, the one
    is meant whose kubeconfig KUBECONFIG names, unless `by_kubeconfig` is off. `hint` is
    how to say it, where that does not help either.
    """
    running = servers()
    if data is None and not port:
        data, port = _environment()
    if data is not None:
        wanted = str(data.expanduser().absolute())
        running = [one for one in running if one.data == wanted]
        if not running:
            raise SettingsError(
                f"no server keeps its state in {wanted}", hint="see what runs with `lamina status`"
            )
    if port:
        running = [one for one in running if one.port == port]
        if not running:
            raise SettingsError(
                f"no server listens on port {port}", hint="see what runs with `lamina status`"
            )
    if not running:
        raise SettingsError("no server is running", hint="start one with `lamina up`")
    if len(running) > 1:
        if by_kubeconfig and (said := _by_kubeconfig(running)) is not None:
            return said
        listed = ", ".join(f"{one.url} ({one.data or 'keeps no state'})" for one in running)
        raise SettingsError(f"{len(running)} servers are running: {listed}", hint=hint)
    return running[0]


def choose_by_environment() -> Running:
    """Return the server that LAMINA_DATA, LAMINA_PORT or KUBECONFIG names, or the only one."""
    return choose(hint="say which with LAMINA_PORT=N, or with KUBECONFIG=FILE of one of them")


def _environment() -> tuple[Path | None, int]:
    data, port = os.environ.get("LAMINA_DATA"), os.environ.get("LAMINA_PORT") or "0"
    if not port.isdecimal():
        raise SettingsError(f"LAMINA_PORT: {port!r} is no port")
    return Path(data) if data else None, int(port)


def _by_kubeconfig(running: Sequence[Running]) -> Running | None:
    """Return the server whose kubeconfig KUBECONFIG names, the first of them if it names several."""
    leads = {Path(one.kubeconfig).resolve(): one for one in running}
    files = [Path(file).resolve() for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    return next((leads[file] for file in files if file in leads), None)
