"""
Reads the failures to inject into a simulation.

    images:                      pods of these images fail
      - {image: "web:2*", share: 30%, fails: crash}      or: unready
    objects:                     these never become ready
      - {kind: Pod, name: "web-3"}
    hooks:                       these do not respond between two moments
      - {url: "*/sync", from: 5m, until: 10m}
    nodes:                       these stop responding, and come back or do not
      - {name: sim-0, from: 2m, until: 20m}
    clusters:                    their agents stop responding, or do not complete works
      - {name: "eu-*", share: 30%, fails: degraded}      or: silent, refused, stuck

On a hub, a share of an image is a share of the clusters: all of its pods fail there,
and the agents of these clusters report it. Names are patterns, and times count from
the start.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from lamina.errors import SettingsError
from lamina.objects.durations import parse_duration
from lamina.simulation.injected_faults import (
    ClusterFault,
    Failures,
    FaultWindow,
    Images,
    Objects,
    parse_share,
)

_POD_FAULTS = ("crash", "unready")
_CLUSTER_FAULTS = ("silent", "refused", "degraded", "stuck")
_FOREVER = timedelta.max


class Hooks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Hooks that do not respond between two moments."""

    url: str = "*"
    since: str = "0"
    until: str = ""


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Nodes that do not respond between two moments."""

    name: str
    since: str = "0"
    until: str = ""


class Clusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Managed clusters that match a name, all or a share, whose agents fail between two moments."""

    name: str = "*"
    share: float | str = 1.0
    fails: str = "silent"
    since: str = "0"
    until: str = ""


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    images: tuple[Images, ...] = ()
    objects: tuple[Objects, ...] = ()
    hooks: tuple[Hooks, ...] = ()
    nodes: tuple[Nodes, ...] = ()
    clusters: tuple[Clusters, ...] = ()


def read_failures(document: object, source: str) -> Failures:
    """Return the failures of a document; raises SettingsError with the place of a mistake."""
    if document is None:
        return Failures()
    try:
        read = msgspec.convert(document, _Document)
        for failing in read.images:
            if failing.fails not in _POD_FAULTS:
                raise ValueError(
                    f'images.fails: expected one of {", ".join(_POD_FAULTS)}, got "{failing.fails}"'
                )
            parse_share(failing.share)
        return Failures(
            images=read.images,
            objects=read.objects,
            hooks=tuple(_window(one.url, one.since, one.until) for one in read.hooks),
            nodes=tuple(_window(one.name, one.since, one.until) for one in read.nodes),
            clusters=tuple(map(_cluster_fault, read.clusters)),
        )
    except (msgspec.ValidationError, ValueError) as wrong:
        raise SettingsError(
            f"{source}: {wrong}", hint="docs/simulation.md shows what can be asked to fail, and how"
        ) from None


def _window(name: str, since: str, until: str) -> FaultWindow:
    begin, end = parse_duration(since), parse_duration(until) if until else _FOREVER
    if not timedelta(0) <= begin < end:
        raise ValueError(
            f'{name}: expected "from" before "until", got from {since} until {until or "the end"}'
        )
    return FaultWindow(name, begin, end)


def _cluster_fault(one: Clusters) -> ClusterFault:
    if one.fails not in _CLUSTER_FAULTS:
        raise ValueError(f'clusters.fails: expected one of {", ".join(_CLUSTER_FAULTS)}, got "{one.fails}"')
    return ClusterFault(
        _window(one.name, one.since, one.until), parse_share(one.share, "clusters"), one.fails
    )
