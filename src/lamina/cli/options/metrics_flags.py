"""Options for metrics, health probes and profiles, and the endpoints that serve them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamina.client.transport.base import Transport
from lamina.errors import SettingsError
from lamina.ratelimit import TokenBucket
from lamina.runtime.metrics.reachability import Reachability
from lamina.runtime.metrics.recorder import HookRecorder, Recorder

if TYPE_CHECKING:
    from lamina.admission.webhook_server import ReviewMeter
    from lamina.client.client import Client
    from lamina.runtime.controller.leader_election import LeaderElection
    from lamina.runtime.metrics.healthz import NotReady, Protection

Command = TypeVar("Command", bound=Callable[..., Any])
_OFF = ("", "0")


def probe_options(command: Command) -> Command:
    """Add the addresses of the metrics, health and profiling endpoints."""
    for add in reversed(_SECURE_OPTIONS):
        command = add(command)
    for option, text in (
        ("--pprof-address", "Address of profiles, below /debug/pprof; 0 disables them."),
        ("--health-probe-bind-address", "Address of /healthz and /readyz; 0 disables them."),
        ("--metrics-address", "Address of /metrics: HOST:PORT, :PORT for all interfaces, or 0 to disable it."),
    ):  # fmt: skip
        add = click.option(
            option, metavar="ADDRESS", default="0", show_default=True, help=text, callback=_checked
        )
        command = add(command)
    return command


_SECURE_OPTIONS = (
    click.option(
        "--metrics-secure", is_flag=True,
        help="Serve /metrics over HTTPS, to bearer tokens whose user may get the non-resource URL /metrics.",
    ),
    click.option(
        "--metrics-cert-path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
        help="Folder with the certificate of --metrics-secure. Default: a self-signed certificate.",
    ),
    click.option(
        "--metrics-cert-name", metavar="FILE", default="tls.crt", show_default=True,
        help="Certificate in --metrics-cert-path.",
    ),
    click.option(
        "--metrics-cert-key", metavar="FILE", default="tls.key", show_default=True,
        help="Key in --metrics-cert-path.",
    ),
)  # fmt: skip


def check_secure(flags: Mapping[str, Any]) -> None:
    """Raise SettingsError for options of metrics that cancel each other."""
    if flags["metrics_cert_path"] is not None and not flags["metrics_secure"]:
        raise SettingsError(
            "--metrics-cert-path has no effect without --metrics-secure", hint="add --metrics-secure"
        )
    if not flags["metrics_secure"]:
        return
    if flags["metrics_address"] in _OFF:
        raise SettingsError("--metrics-secure needs --metrics-address", hint="give the address of /metrics")
    if flags["metrics_address"] == flags["health_probe_bind_address"]:
        raise SettingsError(
            "--metrics-secure and --health-probe-bind-address have the same address",
            hint="kubelets send probes without a token: give them an address of their own",
        )


def _checked(context: click.Context, option: click.Parameter, text: str) -> str:
    """Return a valid address; BadParameter otherwise."""
    if text not in _OFF:
        from lamina.runtime.metrics.healthz import address

        try:
            address(text)
        except SettingsError as error:
            raise click.BadParameter(str(error), context, option) from None
    return text


class ProcessMetrics:
    """The metrics of this process, recorded only if an address serves them, and its readiness."""

    def __init__(self, flags: Mapping[str, Any], server: str, now: Callable[[], float] = monotonic) -> None:
        self._flags, self._now = flags, now
        self.is_ready = False
        self._server = server
        self._servers: dict[str, Reachability] = {}
        self._metrics = None
        if flags["metrics_address"] not in _OFF:
            from lamina.runtime.metrics.prometheus import Metrics

            self._metrics = Metrics(host=server.partition("://")[2] or server)

    @property
    def hook_recorder(self) -> HookRecorder | None:
        return self._metrics.calls if self._metrics is not None else None

    @property
    def meters(self) -> Callable[[str], Recorder]:
        return self._metrics.of if self._metrics is not None else lambda name: Recorder()

    def watch_leases(self, leases: LeaderElection) -> None:
        """Export which Leases this process holds."""
        if self._metrics is not None:
            for number, name in enumerate(leases.names):
                self._metrics.leads(name, partial(_holds, leases, number))

    @property
    def reviews(self) -> ReviewMeter | None:
        return self._metrics.reviews if self._metrics is not None else None

    def metered(self, transport: Transport) -> Transport:
        """Return a transport to the API server whose requests are counted and tell whether it answers."""
        tracked = self.tracked(transport, self._server)
        return self._metrics.traffic.metered(tracked) if self._metrics is not None else tracked

    def tracked(self, transport: Transport, server: str) -> Transport:
        """Return a transport whose requests tell whether a server answers; the process is not ready if it does not."""
        if self._flags["health_probe_bind_address"] in _OFF:
            return transport
        if server not in self._servers:
            self._servers[server] = Reachability(server, self._now)
        return self._servers[server].tracked(transport)

    def _readiness(self) -> bytes | NotReady:
        from lamina.runtime.metrics.healthz import NotReady

        problems = [one.problem for one in self._servers.values() if one.problem]
        if problems:
            return NotReady("; ".join(problems))
        return b"ok" if self.is_ready else NotReady("the caches have not synced yet")

    def client(self, transport: Transport) -> Client:
        """Return a client that counts its retries."""
        from lamina.client.client import Client

        return (
            Client(transport, retried=self._metrics.traffic.retried) if self._metrics else Client(transport)
        )

    def rate_limited(self, transport: Transport, bucket: TokenBucket | None) -> Transport:
        """Return a transport with a rate limit, if there is one, that records the time requests wait for it."""
        if bucket is None:
            return transport
        from lamina.client.transport.ratelimited import RateLimitedTransport

        if self._metrics is None:
            return RateLimitedTransport(transport, bucket)
        return RateLimitedTransport(transport, bucket, self._metrics.traffic.waited)

    @asynccontextmanager
    async def serving(self, client: Client) -> AsyncIterator[None]:
        """Serve the configured endpoints until the end of the block; the client reviews tokens where that is asked for."""
        metrics, flags = self._metrics, self._flags
        async with AsyncExitStack() as stack:
            text = {"/metrics": metrics.text} if metrics is not None else {}
            if flags["metrics_secure"]:
                from lamina.runtime.metrics.healthz import listening

                protection = self._protection(client, stack)
                await stack.enter_async_context(
                    listening((flags["metrics_address"], text), protection=protection)
                )
                flags = {**flags, "metrics_address": "0"}
            if any(flags[one] not in _OFF for one in ("metrics_address", "health_probe_bind_address")):
                from lamina.runtime.metrics.healthz import listening

                pages = listening(
                    (flags["metrics_address"], text),
                    (
                        flags["health_probe_bind_address"],
                        {"/healthz": lambda: b"ok", "/readyz": self._readiness},
                    ),
                )
                await stack.enter_async_context(pages)
            if flags["pprof_address"] not in _OFF:
                from lamina.runtime.metrics.pprof import profiled

                await stack.enter_async_context(profiled(flags["pprof_address"]))
            yield

    def _protection(self, client: Client, stack: AsyncExitStack) -> Protection:
        from lamina.logs import log
        from lamina.runtime.metrics.access import MetricsAccess
        from lamina.runtime.metrics.healthz import Protection
        from lamina.runtime.metrics.serving_tls import certificate_context, self_signed_context

        folder = self._flags["metrics_cert_path"]
        if folder is not None:
            context = certificate_context(
                folder / self._flags["metrics_cert_name"], folder / self._flags["metrics_cert_key"]
            )
        else:
            made = Path(stack.enter_context(TemporaryDirectory(prefix="lamina-metrics-")))
            context = self_signed_context(made, ["localhost", "127.0.0.1", gethostname()])
        return Protection(context, MetricsAccess(client, "/metrics", log, self._now).review)


def _holds(leases: LeaderElection, number: int) -> bool:
    return number in leases.held
