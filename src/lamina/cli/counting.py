"""What a process counts and says of itself, where it is asked to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

import click

from lamina.client.transport import Transport
from lamina.runtime.meter import CallMeter, Meter

Command = TypeVar("Command", bound=Callable[..., Any])
_OFF = ("", "0")


def probe_options(command: Command) -> Command:
    """Add where a process may be asked how it does."""
    metrics = click.option(
        "--metrics-address",
        metavar="ADDRESS",
        default="0",
        show_default=True,
        help="Where /metrics is served: HOST:PORT, :PORT on every interface, or 0 for nowhere.",
    )
    health = click.option(
        "--health-probe-bind-address",
        metavar="ADDRESS",
        default="0",
        show_default=True,
        help="Where /healthz and /readyz are served; 0 for nowhere.",
    )
    return metrics(health(command))


class Counting:
    """The counts of this process, if anybody may ask for them, and whether it is ready."""

    def __init__(self, metrics_address: str, health_address: str, server: str) -> None:
        self._addresses = metrics_address, health_address
        self.is_ready = False
        self._metrics = None
        if metrics_address not in _OFF:
            from lamina.runtime.metrics import Metrics

            self._metrics = Metrics(host=server.partition("://")[2] or server)

    @property
    def calls(self) -> CallMeter | None:
        return self._metrics.calls if self._metrics is not None else None

    @property
    def meters(self) -> Callable[[str], Meter]:
        return self._metrics.of if self._metrics is not None else lambda name: Meter()

    def counted(self, transport: Transport) -> Transport:
        return self._metrics.metered(transport) if self._metrics is not None else transport

    def listening(self) -> AbstractAsyncContextManager[tuple[str, ...]]:
        """Serve what may be asked for, until the end of the block."""
        if all(address in _OFF for address in self._addresses):
            return nullcontext(())
        from lamina.runtime.probes import listening

        metrics = self._metrics
        return listening(
            (self._addresses[0], {"/metrics": metrics.text} if metrics is not None else {}),
            (self._addresses[1], {"/healthz": lambda: b"ok", "/readyz": lambda: b"ok" if self.is_ready else None}),
        )  # fmt: skip
