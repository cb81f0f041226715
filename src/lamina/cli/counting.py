"""What a process counts and says of itself, where it is asked to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lamina.client.transport import Transport
from lamina.errors import SettingsError
from lamina.rates import Bucket
from lamina.runtime.meter import CallMeter, Meter

if TYPE_CHECKING:
    from lamina.admission.serving import ReviewMeter
    from lamina.client.client import Client
    from lamina.runtime.leases import Leases

Command = TypeVar("Command", bound=Callable[..., Any])
_OFF = ("", "0")


def probe_options(command: Command) -> Command:
    """Add where a process may be asked how it does."""
    for option, said in (
        ("--pprof-address", "Where profiles are served, below /debug/pprof; 0 for nowhere."),
        ("--health-probe-bind-address", "Where /healthz and /readyz are served; 0 for nowhere."),
        ("--metrics-address", "Where /metrics is served: HOST:PORT, :PORT on every interface, or 0 for nowhere."),
    ):  # fmt: skip
        add = click.option(
            option, metavar="ADDRESS", default="0", show_default=True, help=said, callback=_checked
        )
        command = add(command)
    return command


def _checked(context: click.Context, option: click.Parameter, text: str) -> str:
    """Return an address that somebody can listen at, or none."""
    if text not in _OFF:
        from lamina.runtime.probes import address

        try:
            address(text)
        except SettingsError as wrong:
            raise click.BadParameter(str(wrong), context, option) from None
    return text


class Counting:
    """The counts of this process, if anybody may ask for them, and whether it is ready."""

    def __init__(self, flags: Mapping[str, Any], server: str) -> None:
        self._flags = flags
        self.is_ready = False
        self._metrics = None
        if flags["metrics_address"] not in _OFF:
            from lamina.runtime.metrics import Metrics

            self._metrics = Metrics(host=server.partition("://")[2] or server)

    @property
    def calls(self) -> CallMeter | None:
        return self._metrics.calls if self._metrics is not None else None

    @property
    def meters(self) -> Callable[[str], Meter]:
        return self._metrics.of if self._metrics is not None else lambda name: Meter()

    def leads(self, leases: Leases) -> None:
        """Have it told which Leases this process holds."""
        if self._metrics is not None:
            for number, name in enumerate(leases.names):
                self._metrics.leads(name, partial(_holds, leases, number))

    @property
    def reviews(self) -> ReviewMeter | None:
        return self._metrics.reviews if self._metrics is not None else None

    def counted(self, transport: Transport) -> Transport:
        return self._metrics.traffic.metered(transport) if self._metrics is not None else transport

    def client(self, transport: Transport) -> Client:
        """Return a client of which it is counted how often it has to ask again."""
        from lamina.client.client import Client

        return (
            Client(transport, retried=self._metrics.traffic.retried) if self._metrics else Client(transport)
        )

    def limited(self, transport: Transport, bucket: Bucket | None) -> Transport:
        """Return a transport that keeps to a limit, where there is one; what it costs is counted."""
        if bucket is None:
            return transport
        from lamina.client.limited import LimitedTransport

        if self._metrics is None:
            return LimitedTransport(transport, bucket)
        return LimitedTransport(transport, bucket, self._metrics.traffic.waited)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Serve what may be asked for, until the end of the block."""
        metrics, flags = self._metrics, self._flags
        async with AsyncExitStack() as served:
            if any(flags[one] not in _OFF for one in ("metrics_address", "health_probe_bind_address")):
                from lamina.runtime.probes import listening

                pages = listening(
                    (flags["metrics_address"], {"/metrics": metrics.text} if metrics is not None else {}),
                    (
                        flags["health_probe_bind_address"],
                        {"/healthz": lambda: b"ok", "/readyz": lambda: b"ok" if self.is_ready else None},
                    ),
                )
                await served.enter_async_context(pages)
            if flags["pprof_address"] not in _OFF:
                from lamina.runtime.profiling import profiled

                await served.enter_async_context(profiled(flags["pprof_address"]))
            yield


def _holds(leases: Leases, number: int) -> bool:
    return number in leases.held
