"""
What is to go wrong in a simulation, as data.

    images:                      pods of these images fail
      - {image: "web:2*", share: 30%, fails: crash}      or: unready
    objects:                     these never become ready
      - {kind: Pod, name: "web-3"}
    hooks:                       these do not answer between two moments
      - {url: "*/sync", from: 5m, until: 10m}
    nodes:                       these fall silent, and come back or do not
      - {name: sim-0, from: 2m, until: 20m}
    clusters:                    their agents fall silent, or do not get works done
      - {name: "eu-*", share: 30%, fails: degraded}      or: silent, refused, stuck

Of a share of an image, that share of clusters is meant, where clusters are: there all
of its pods fail, and their agents say of it what agents say of such pods.

Names are patterns, moments count from the beginning, and which pods are among a
share depends on who they are: the same simulation ends the same every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import msgspec

from lamina.errors import SettingsError
from lamina.objects import conditions, meta
from lamina.objects.digest import sha256
from lamina.objects.durations import parse_duration
from lamina.objects.types import Made, Obj, Ref

_CRASHES, _READY = "sim/crash-share", "sim/ready-probability"
_WAYS = ("crash", "unready")
_ILLS = ("silent", "refused", "degraded", "stuck")
_FOREVER = timedelta.max

Part = TypeVar("Part")


class Images(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pods of an image that fail, all of them or a share."""

    image: str
    share: float | str = 1.0
    fails: str = "crash"


class Objects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Objects that never become ready."""

    kind: str
    name: str = "*"
    namespace: str = "*"


class Hooks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Hooks that do not answer between two moments."""

    url: str = "*"
    since: str = "0"
    until: str = ""


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Nodes that fall silent between two moments."""

    name: str
    since: str = "0"
    until: str = ""


class Clusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """Managed clusters, all that are named so or a share, whose agents fail between two moments."""

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


@dataclass(frozen=True)
class Spell:
    """From when until when something is out of order, counted from the beginning."""

    name: str
    since: timedelta
    until: timedelta

    def covers(self, passed: timedelta) -> bool:
        return self.since <= passed < self.until


@dataclass(frozen=True)
class Ill:
    """Which clusters are ill, how, and from when until when."""

    spell: Spell
    share: float
    fails: str

    def strikes(self, cluster: str) -> bool:
        """Say whether a cluster is among those: which of a share it is depends on its name alone."""
        return fnmatchcase(cluster, self.spell.name) and _lot(self.spell.name, cluster) < self.share


@dataclass(frozen=True)
class Failures:
    """What is to go wrong."""

    images: tuple[Images, ...] = ()
    objects: tuple[Objects, ...] = ()
    hooks: tuple[Spell, ...] = ()
    nodes: tuple[Spell, ...] = ()
    clusters: tuple[Ill, ...] = ()

    def fate(self, obj: Made, old: Obj | None = None) -> Made:
        """Return an object with its fate written on it: a pod whose image fails says so."""
        if obj.get("kind") != "Pod" or not self.images:
            return obj
        called = [one.get("image") or "" for one in (obj.get("spec") or {}).get("containers") or ()]
        marks: dict[str, str] = {}
        for failing in self.images:
            if any(fnmatchcase(image, failing.image) for image in called):
                marks |= _mark(failing)
        # An image may have been another when we marked it; what the manifest itself asks for stands.
        written = [_mark(failing) for failing in self.images]
        said = meta.annotations(obj)
        ours = {name: value for name, value in said.items() if {name: value} in written}
        if ours == marks:
            return obj
        others = {name: value for name, value in said.items() if name not in ours}
        return meta.with_metadata(obj, annotations={**others, **marks})

    def holds(self, ref: Ref) -> bool:
        """Say whether an object never becomes ready."""
        return any(
            fnmatchcase(ref.kind, one.kind)
            and fnmatchcase(ref.name, one.name)
            and fnmatchcase(ref.namespace, one.namespace)
            for one in self.objects
        )

    def ails(self, cluster: str, passed: timedelta) -> str:
        """Return what is wrong with a cluster at a moment; nothing if it is well."""
        for ill in self.clusters:
            if ill.spell.covers(passed) and ill.strikes(cluster):
                return ill.fails
        return ""

    def striking(self, cluster: str) -> tuple[Images, ...]:
        """Return the images whose pods fail on a cluster, which all do where one of a share is meant."""
        return tuple(
            msgspec.structs.replace(one, share=1.0)
            for one in self.images
            if _lot(one.image, cluster) < _share(one.share)
        )

    def silences(self, url: str, passed: timedelta) -> bool:
        """Say whether a hook does not answer at a moment."""
        return any(fnmatchcase(url, one.name) and one.covers(passed) for one in self.hooks)


def read_failures(document: object, source: str) -> Failures:
    """Return the failures in a document; raises SettingsError, which says what is wrong and where."""
    if document is None:
        return Failures()
    try:
        read = msgspec.convert(document, _Document)
        for failing in read.images:
            if failing.fails not in _WAYS:
                raise ValueError(f'images.fails: expected one of {", ".join(_WAYS)}, got "{failing.fails}"')
            _share(failing.share)
        return Failures(
            images=read.images,
            objects=read.objects,
            hooks=tuple(_spell(one.url, one.since, one.until) for one in read.hooks),
            nodes=tuple(_spell(one.name, one.since, one.until) for one in read.nodes),
            clusters=tuple(map(_ill, read.clusters)),
        )
    except (msgspec.ValidationError, ValueError) as wrong:
        raise SettingsError(
            f"{source}: {wrong}", hint="docs/simulation.md shows what can be asked to fail, and how"
        ) from None


def _mark(failing: Images) -> dict[str, str]:
    """Return the annotation of a pod that has it fail so."""
    share = _share(failing.share)
    return {_CRASHES: f"{share}"} if failing.fails == "crash" else {_READY: f"{1 - share}"}


def _spell(name: str, since: str, until: str) -> Spell:
    begin, end = parse_duration(since), parse_duration(until) if until else _FOREVER
    if not timedelta(0) <= begin < end:
        raise ValueError(
            f'{name}: expected "from" before "until", got from {since} until {until or "the end"}'
        )
    return Spell(name, begin, end)


def _ill(one: Clusters) -> Ill:
    if one.fails not in _ILLS:
        raise ValueError(f'clusters.fails: expected one of {", ".join(_ILLS)}, got "{one.fails}"')
    return Ill(_spell(one.name, one.since, one.until), _share(one.share, "clusters"), one.fails)


def _lot(pattern: str, name: str) -> float:
    """Return a number from 0 to 1 that a name draws, the same every time."""
    return int(sha256(f"{pattern} {name}".encode())[:8], 16) / 2**32


def _share(given: float | str, of: str = "images") -> float:
    """Return a share as a number from 0 to 1: 0.3 and "30%" are the same."""
    text = str(given)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f'{of}.share: expected a share such as 0.3 or "30%", got "{given}"')
    return share


def silent(node: Obj, on: bool, now: datetime) -> Mapping[str, Any]:
    """Return the patch that has a node fall silent, or speak again, whoever looks after it."""
    said = (node.get("status") or {}).get("conditions") or ()
    status, reason = ("Unknown", "NodeStatusUnknown") if on else ("True", "KubeletReady")
    made = conditions.with_condition(said, "Ready", status, now=now, reason=reason)
    annotations = {"sim/not-ready": "true" if on else None}
    return {"metadata": {"annotations": annotations}, "status": {"conditions": made}}
