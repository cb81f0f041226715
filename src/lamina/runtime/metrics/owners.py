"""
The state of each owner, as metrics.

A change only notes the owner. What has changed since the last scrape is read at the
next one, and nothing else: a settled system computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lamina.core.model.state import State, worst
from lamina.objects.types import Ref
from lamina.runtime.metrics.recorder import Leads, OwnerState, ReadOwner

_MAX_OWNERS = 1000
"""How many owners of one controller have metrics of their own."""
_MAX_NOTED = 10_000
"""How many changed owners are noted between two scrapes."""
_LABELS = ("kind", "namespace", "name", "state")


class _Known(NamedTuple):
    """The state of an owner, since when, and when that was read."""

    state: State
    since: datetime
    read_at: datetime


class Owners:
    """The owners of one controller."""

    def __init__(self, read: ReadOwner, leads: Leads) -> None:
        self._read, self._leads = read, leads
        self._known: dict[Ref, _Known] = {}
        self._changed: dict[Ref, None] = {}

    def changed(self, ref: Ref) -> None:
        """Note that an owner has to be read at the next scrape, unless there are too many already."""
        if ref in self._known or len(self._changed) < _MAX_NOTED:
            self._changed[ref] = None

    def states(self) -> Iterator[tuple[Ref, _Known]]:
        """Yield the owners that this replica leads, after those that have changed were read."""
        self._read_changed()
        for ref, known in self._known.items():
            if self._leads(ref):
                yield ref, known

    def _read_changed(self) -> None:
        changed, self._changed = self._changed, {}
        for ref in changed:
            self._update(ref)

    def _update(self, ref: Ref) -> None:
        before = self._known.get(ref)
        if before is None and len(self._known) >= _MAX_OWNERS:
            return
        found = self._read(ref)
        if found is None:
            self._known.pop(ref, None)
        elif before is not None and before.state is found.state:
            self._known[ref] = before._replace(read_at=found.read_at)
        else:
            self._known[ref] = _Known(found.state, _since(found, before), found.read_at)


def _since(found: OwnerState, before: _Known | None) -> datetime:
    """
    Return since when an owner is in a state that it was not in before.

    A transition that its object records counts if it is newer than the last read: an
    older one was to another state. Of an owner that is read for the first time it is
    all there is.
    """
    # Times of objects have whole seconds.
    if found.since is not None and (before is None or found.since >= before.read_at.replace(microsecond=0)):
        return found.since
    return found.read_at


class OwnerStates(Collector):
    """Collects the states of the owners of all controllers."""

    def __init__(self) -> None:
        self._controllers: list[Owners] = []

    def add(self, owners: Owners) -> None:
        self._controllers.append(owners)

    def remove(self, owners: Owners) -> None:
        self._controllers.remove(owners)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return self._families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        state, since = self._families()
        found: dict[tuple[str, str, str], list[_Known]] = {}
        for owners in self._controllers:
            for ref, known in owners.states():
                found.setdefault((ref.kind, ref.namespace, ref.name), []).append(known)
        for owner, states in found.items():
            # An owner with several controllers has the worst of their states.
            present = worst(one.state for one in states)
            state.add_metric((*owner, present), 1)
            time = min(one.since for one in states if one.state is present)
            since.add_metric((*owner, present), time.timestamp())
        return state, since

    def _families(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                "lamina_owner_state", "The state of an owner: 1 for the present one.", labels=_LABELS
            ),
            GaugeMetricFamily(
                "lamina_owner_state_since_seconds",
                "The time since which an owner is in its state, in seconds since the epoch.",
                labels=_LABELS,
            ),
        )
