"""`lamina up`: runs a control plane on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from lamina import __version__
from lamina.cli.server_records import ServerRecord, is_alive, running_servers, write_record
from lamina.errors import SettingsError
from lamina.settings import Settings, data_home, load

if TYPE_CHECKING:
    from lamina.app import App

_START_SECONDS = 30.0


@click.command()
@click.option("--data", metavar="DIR", help="Data folder: the server's state, kept across restarts.")
@click.option("--ephemeral", is_flag=True, default=None, help="Keep the state in memory only.")
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1, this machine only."
)
@click.option("--port", metavar="N", help="Port to listen on; 0 selects a free one. Default: 7443.")
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig to write when the server is ready.")
@click.option(
    "--history", metavar="TIME",
    help="Retention of old versions for watches and paged lists (20s, 5m). Default: 5m.",
)  # fmt: skip
@click.option(
    "--simulate",
    metavar="LEVEL",
    help="off: API server only. controllers: workload controllers create pods. pods: pods run on simulated nodes. "
    "Default: pods.",
)
@click.option("--stages", metavar="FILE", help="Stages of simulated pods, as YAML. Default: built-in stages.")
@click.option("--nodes", metavar="N", help="Number of simulated nodes. Default: 1.")
@click.option(
    "--speed", metavar="N", help="Speed of the clock: 60 is a minute per second, 0 stops it. Default: 1."
)
@click.option(
    "--families",
    metavar="NAMES",
    help="Families to run: metacontroller, manifestwork, objectset, resourcegraph, all, none. Default: all.",
)
@click.option(
    "--scheduler/--no-scheduler",
    default=None,
    help="Schedule Placements; disable it if another scheduler writes PlacementDecisions.",
)
@click.option(
    "--manifest-limit",
    "--manifestLimit",
    "manifest_limit",
    metavar="BYTES",
    help="Maximum total size of the manifests of a ManifestWork. Default: 512000.",
)
@click.option(
    "--feature-gates",
    metavar="NAME=BOOL,...",
    help="Feature gates: ManifestWorkReplicaSet, CleanUpCompletedManifestWork, both on by default; "
    "CELOmitFunction, off by default.",
)
@click.option(
    "--hooks",
    metavar="FILE",
    multiple=True,
    help="Python file with hooks to run; repeatable.",
)
@click.option(
    "--clusters",
    metavar="N|NAMES",
    help="Clusters besides the first: a number (cluster1, ...), or names, comma-separated.",
)
@click.option(
    "--metrics-address",
    metavar="ADDRESS",
    help="Address of /metrics for the families: HOST:PORT. Default: disabled.",
)
@click.option(
    "--log", metavar="LEVEL", help="Minimum log level: debug, info, warning or error. Default: warning."
)
@click.option("--log-format", metavar="FORMAT", help="Log format: text or json. Default: text.")
@click.option("--detach", is_flag=True, help="Run in the background; return when the server is ready.")
def up(detach: bool, **flags: Any) -> None:
    """
    Run a control plane on the embedded API server.

    Runs in the foreground until Ctrl-C or SIGTERM. With --detach, it runs in the
    background until `lamina down`.
    """
    settings = load({**flags, "hooks": flags["hooks"] or None})
    if settings.hooks and settings.families == "none":
        raise SettingsError(
            "--families none and --hooks cancel each other: no family runs that calls the hooks",
            hint="omit one of the two",
        )
    _check_simulation(flags, settings)
    if settings.ephemeral and settings.data is not None:
        raise SettingsError("--ephemeral and --data exclude each other", hint="give one of the two")
    if detach:
        _detach(flags, settings)
    else:
        _run(settings)


def _check_simulation(flags: dict[str, Any], settings: Settings) -> None:
    """Raise an error for settings that have no effect without simulation, which runs the API server only."""
    if settings.simulate != "off":
        return
    given = {
        "--families": flags.get("families") not in (None, "none"),
        "--clusters": bool(settings.clusters),
        "--hooks": bool(settings.hooks),
    }
    for name in (name for name, is_given in given.items() if is_given):
        raise SettingsError(
            f"--simulate off and {name} cancel each other: with off, nothing but the API server runs",
            hint=f"omit one of the two; `--simulate controllers` runs what {name} is for, without pods",
        )


def _run(settings: Settings) -> None:
    import asyncio
    import gc
    import signal

    # A start allocates nothing that is garbage, and collections take a sixth of its time.
    gc.disable()

    import uvloop

    from lamina.app import App
    from lamina.logs import log

    log.configure(settings.log, settings.log_format)
    _allow_many_files()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        app = App(settings)
        records: list[Path] = []

        def served() -> None:
            gc.enable()
            loop.add_signal_handler(signal.SIGHUP, app.reload_hooks)
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            records.append(write_record(_server_record(app, started)))
            app.changed = partial(_rewrite_record, app, started)
            log.announce(
                _summary(app.url, app.data, app.kubeconfig, detached=False),
                "started",
                server=app.url,
                kubeconfig=str(app.kubeconfig),
                data=str(app.data or ""),
                version=__version__,
            )

        def remove_record() -> None:
            for file in records:
                file.unlink(missing_ok=True)

        app.served = served
        try:
            async with app:
                await stop.wait()
                log.announce("lamina stops, waiting for requests and writes in progress", "stopping")
                remove_record()
        finally:
            remove_record()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def _allow_many_files() -> None:
    """Raise the limit of open files to the hard limit: every client connection is one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _rewrite_record(app: App, started: str) -> None:
    write_record(_server_record(app, started))


def _server_record(app: App, started: str) -> ServerRecord:
    return ServerRecord(
        pid=os.getpid(),
        url=app.url,
        kubeconfig=str(app.kubeconfig),
        data=str(app.data or ""),
        started=started,
        clusters=tuple(app.clusters.tokens),
    )


def _command() -> str:
    """Return the command that runs this program from the current folder."""
    if shutil.which("lamina"):
        return "lamina"
    program = Path(sys.executable).with_name("lamina")
    return os.path.relpath(program) if program.is_relative_to(Path.cwd()) else str(program)


def _summary(url: str, data: Path | None, kubeconfig: Path, *, detached: bool) -> str:
    lamina = _command()
    # Only if several servers run do the commands have to select one.
    port = urlsplit(url).port if any(server.url != url for server in running_servers()) else None
    variable, option = (f"LAMINA_PORT={port} ", f" --port {port}") if port else ("", "")
    down = f"{lamina} down{option}"
    stop = down if detached else f"Ctrl-C, or `{down}` in another terminal"
    return (
        f"lamina {__version__} is ready at {url}\n"
        f"  kubectl   {variable}{lamina} kubectl get namespaces\n"
        f"            or: export KUBECONFIG={kubeconfig}\n"
        f"  state     {data or 'in memory'}\n"
        f"  stop      {stop}"
    )


def _detach(flags: dict[str, Any], settings: Settings) -> None:
    """Start the same command in a new session, and wait until it has written its record."""
    import time

    wanted = "" if settings.ephemeral else str(settings.data or data_home() / "default")
    for server in running_servers():
        if wanted and server.data == wanted:
            _check_port(flags, server, wanted)
            if missing := [name for name in settings.clusters if name not in server.clusters]:
                raise SettingsError(
                    f"the server of {wanted} already runs, without {', '.join(missing)}",
                    hint=f"add the missing clusters with `lamina clusters add {' '.join(missing)}`",
                )
            click.echo(
                _summary(server.url, Path(server.data), Path(server.kubeconfig), detached=True), err=True
            )
            return
    log = (
        (settings.data or data_home() / "default") / "lamina.log"
        if not settings.ephemeral
        else data_home() / "run" / "up.log"
    )
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "lamina", "up", *_arguments(flags)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for server in running_servers():
            if server.pid == process.pid:
                data = Path(server.data) if server.data else None
                click.echo(_summary(server.url, data, Path(server.kubeconfig), detached=True), err=True)
                return
        if process.poll() is not None or not is_alive(process.pid):
            break
        time.sleep(0.02)
    tail = log.read_text(errors="replace").strip().splitlines()[-5:]
    raise SettingsError(
        "the server did not start: " + ("\n  ".join(tail) or "its log is empty"), hint=f"see {log}"
    )


def _check_port(flags: dict[str, Any], server: ServerRecord, data: str) -> None:
    """Raise an error if a server that already runs was to listen on another port."""
    port = load({"port": flags.get("port")}).port if flags.get("port") is not None else 0
    if port not in (0, server.port):
        raise SettingsError(
            f"--data {data} and --port {port} cancel each other: the server of that folder already listens "
            f"on port {server.port}",
            hint=f"omit --port, or stop that server first: `lamina down --port {server.port}`",
        )


def _arguments(flags: dict[str, Any]) -> list[str]:
    arguments = []
    for name, value in flags.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            arguments.append(option if value else f"--no-{name.replace('_', '-')}")
        elif isinstance(value, tuple):
            arguments += [part for one in value for part in (option, str(one))]
        elif value is not None:
            arguments += [option, str(value)]
    return arguments
