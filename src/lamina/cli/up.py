"""`lamina up`: run a control plane here."""

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
from lamina.cli.running import Running, is_alive, record, servers
from lamina.errors import SettingsError
from lamina.settings import Settings, home, load

if TYPE_CHECKING:
    from lamina.app import App

_PATIENCE = 30.0


@click.command()
@click.option("--data", metavar="DIR", help="Folder that keeps the server's state; found again next time.")
@click.option("--ephemeral", is_flag=True, default=None, help="Keep no state.")
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1, this machine only."
)
@click.option("--port", metavar="N", help="Port to listen on; 0 takes any free one. Default: 7443.")
@click.option("--kubeconfig", metavar="FILE", help="Where to write the kubeconfig, once the server is ready.")
@click.option("--history", metavar="TIME", help="How long old versions are kept (20s, 5m). Default: 5m.")
@click.option(
    "--simulate",
    metavar="WHAT",
    help="off: an API server alone. controllers: workloads make pods. pods: and pods run. Default: pods.",
)
@click.option("--stages", metavar="FILE", help="Stages that simulated pods go through, instead of the usual.")
@click.option("--nodes", metavar="N", help="How many simulated nodes there are. Default: 1.")
@click.option(
    "--speed", metavar="N", help="How fast time passes for objects: 60 is a minute a second. Default: 1."
)
@click.option(
    "--families",
    metavar="NAMES",
    help="Which families run: metacontroller, manifestwork, all, none. Default: all.",
)
@click.option(
    "--scheduler/--no-scheduler",
    default=None,
    help="Choose clusters for Placements; without, another scheduler writes the decisions.",
)
@click.option(
    "--manifest-limit",
    "--manifestLimit",
    "manifest_limit",
    metavar="BYTES",
    help="How much all manifests of a ManifestWork may be together. Default: 512000.",
)
@click.option(
    "--feature-gates",
    metavar="NAME=BOOL,...",
    help="What is left out or not: ManifestWorkReplicaSet, CleanUpCompletedManifestWork. Default: nothing is.",
)
@click.option(
    "--hooks",
    metavar="FILE",
    multiple=True,
    help="Python file whose hooks run beside it; may be given again.",
)
@click.option(
    "--clusters",
    metavar="N|NAMES",
    help="Clusters beside the first: how many (cluster1, ...), or names, comma-separated.",
)
@click.option(
    "--metrics-address",
    metavar="ADDRESS",
    help="Where what the families do is counted, at /metrics: HOST:PORT. Default: nowhere.",
)
@click.option("--log", metavar="LEVEL", help="Least level of log lines: debug, info, warning or error.")
@click.option("--log-format", metavar="FORMAT", help="How log lines look: text or json.")
@click.option(
    "--detach", is_flag=True, help="Go to the background once it is ready; stop it with `lamina down`."
)
def up(detach: bool, **flags: Any) -> None:
    """
    Run a control plane on the embedded API server.

    Stays in the foreground until Ctrl-C or SIGTERM, unless --detach is given.
    """
    settings = load({**flags, "hooks": flags["hooks"] or None})
    if settings.hooks and (settings.simulate == "off" or settings.families == "none"):
        raise SettingsError(
            "there is no family to call the hooks of --hooks",
            hint="leave out --simulate off and --families none",
        )
    if settings.ephemeral and settings.data is not None:
        raise SettingsError(
            "--ephemeral keeps no state, and --data says where to keep it", hint="give one of the two"
        )
    if detach:
        _detach(flags, settings)
    else:
        _run(settings)


def _run(settings: Settings) -> None:
    import asyncio
    import gc
    import signal

    # Nothing that is made before the server stands is garbage: to look for some is a sixth of the time it takes.
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
        left: list[Path] = []

        def served() -> None:
            gc.enable()
            loop.add_signal_handler(signal.SIGHUP, app.reload_hooks)
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            left.append(record(_running(app, started)))
            app.changed = partial(_renew, app, started)
            click.echo(_greeting(app.url, app.data, app.kubeconfig, detached=False), err=True)

        def leave() -> None:
            for file in left:
                file.unlink(missing_ok=True)

        app.served = served
        try:
            async with app:
                await stop.wait()
                click.echo("stopping", err=True)
                leave()
        finally:
            leave()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def _allow_many_files() -> None:
    """Allow as many open files as the system lets us: every client is one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _renew(app: App, started: str) -> None:
    record(_running(app, started))


def _running(app: App, started: str) -> Running:
    return Running(
        pid=os.getpid(),
        url=app.url,
        kubeconfig=str(app.kubeconfig),
        data=str(app.data or ""),
        started=started,
        clusters=tuple(app.clusters.tokens),
    )


def _command() -> str:
    """Return how this program is called from here."""
    if shutil.which("lamina"):
        return "lamina"
    program = Path(sys.executable).with_name("lamina")
    return os.path.relpath(program) if program.is_relative_to(Path.cwd()) else str(program)


def _greeting(url: str, data: Path | None, kubeconfig: Path, *, detached: bool) -> str:
    lamina = _command()
    # Where it is the only one, nobody has to say which.
    port = urlsplit(url).port if any(server.url != url for server in servers()) else None
    chosen, named = (f"LAMINA_PORT={port} ", f" --port {port}") if port else ("", "")
    down = f"{lamina} down{named}"
    stop = down if detached else f"Ctrl-C, or `{down}` from elsewhere"
    return (
        f"lamina {__version__} is ready at {url}\n"
        f"  kubectl   {chosen}{lamina} kubectl get namespaces\n"
        f"            or: export KUBECONFIG={kubeconfig}\n"
        f"  state     {data or 'none is kept'}\n"
        f"  stop      {stop}"
    )


def _detach(flags: dict[str, Any], settings: Settings) -> None:
    """Start the same command in a session of its own, and wait until it has left its record."""
    import time

    wanted = "" if settings.ephemeral else str(settings.data or home() / "default")
    for server in servers():
        if wanted and server.data == wanted:
            if missing := [name for name in settings.clusters if name not in server.clusters]:
                raise SettingsError(
                    f"the server of {wanted} runs already, without {', '.join(missing)}",
                    hint=f"add what is missing with `lamina clusters add {' '.join(missing)}`",
                )
            click.echo(
                _greeting(server.url, Path(server.data), Path(server.kubeconfig), detached=True), err=True
            )
            return
    log = (
        (settings.data or home() / "default") / "lamina.log"
        if not settings.ephemeral
        else home() / "run" / "up.log"
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
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for server in servers():
            if server.pid == process.pid:
                data = Path(server.data) if server.data else None
                click.echo(_greeting(server.url, data, Path(server.kubeconfig), detached=True), err=True)
                return
        if process.poll() is not None or not is_alive(process.pid):
            break
        time.sleep(0.02)
    tail = log.read_text(errors="replace").strip().splitlines()[-5:]
    raise SettingsError(
        "the server did not start: " + ("\n  ".join(tail) or "it said nothing"), hint=f"see {log}"
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
