"""
The calls by which controllers and the hook client report what is to be counted.

The classes here count nothing; `metrics.prometheus` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from lamina.core.model.effects import Written
from lamina.core.model.plan import Action, Gauge
from lamina.core.model.queries import Call
from lamina.core.model.state import State
from lamina.errors import ApiError
from lamina.objects.types import Ref


class OwnerState(NamedTuple):
    """The state of an owner, since when as far as its object tells, and the time at which this was read."""

    state: State
    since: datetime | None
    read_at: datetime


ReadOwner: TypeAlias = Callable[[Ref], OwnerState | None]
Leads: TypeAlias = Callable[[Ref], bool]


class Recorder:
    """Called with what one controller does."""

    def begin(self, *, depth: Callable[[], int], oldest: Callable[[], list[float]], workers: int) -> None:
        """A controller starts: `depth` is its queue's, `oldest` since when each key in progress has been."""

    def end(self) -> None:
        """The controller has stopped."""

    def added(self) -> None:
        """A key became ready."""

    def taken(self, waited: float) -> None:
        """A reconcile began, after the key had been ready for so many seconds."""

    def worked(self, result: str, seconds: float) -> None:
        """
        A reconcile ended: success, requeue_after, requeue or error.

        An error that is not retried before something changes is `terminal`, and a
        defect is a `panic`.
        """

    def retried(self) -> None:
        """A key is requeued with backoff."""

    def wrote(self, action: Action, written: Sequence[Written] = ()) -> None:
        """The server accepted an action, which made these versions."""

    def refused(self, action: Action, error: ApiError) -> None:
        """The server refused an action."""

    def progress(self, ref: Ref, counts: Mapping[str, int]) -> None:
        """The number of an owner's targets by state; empty once the owner is gone."""

    def gauges(self, ref: Ref, gauges: Sequence[Gauge]) -> None:
        """The values of an owner that are metrics of their own; none once the owner is gone."""

    def track_owners(self, read: ReadOwner, leads: Leads) -> None:
        """The keys of the controller are owners: `read` returns the state of one, `leads` whether it is led here."""

    def changed(self, ref: Ref) -> None:
        """Something has changed that the state of an owner depends on."""

    def forget_cluster(self, cluster: str) -> None:
        """A cluster was unbound: its owners are no longer counted."""


class HookRecorder:
    """Called with what happens to calls of webhooks."""

    def began(self, call: Call) -> None:
        """A call begins."""

    def found(self, call: Call, event: str, seconds: float) -> None:
        """An event of its connection, so many seconds after the call began: dns_start, dns_done, tls_handshake_done."""

    def ended(self, call: Call, outcome: str, seconds: float) -> None:
        """A call ended with that status code, or with `error`."""
