"""
The failures that are injected into a simulation: what fails, how, and when.

Which pods or clusters are among a share depends on their names, so the same
simulation has the same result every time. `scenario.failures` reads them from a
document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from lamina.objects import conditions, meta
from lamina.objects.digest import sha256
from lamina.objects.types import Made, Obj, Ref

_CRASHES, _READY = "sim/crash-share", "sim/ready-probability"


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


@dataclass(frozen=True)
class FaultWindow:
    """A pattern of names, and the time in which they fail, counted from the start."""

    name: str
    since: timedelta
    until: timedelta

    def covers(self, passed: timedelta) -> bool:
        return self.since <= passed < self.until


@dataclass(frozen=True)
class ClusterFault:
    """The clusters whose agents fail, how, and when."""

    window: FaultWindow
    share: float
    fails: str

    def affects(self, cluster: str) -> bool:
        """Say whether a cluster is affected; the clusters of a share are chosen by a hash of their names."""
        return fnmatchcase(cluster, self.window.name) and _hashed(self.window.name, cluster) < self.share


@dataclass(frozen=True)
class Failures:
    """The failures of one simulation."""

    images: tuple[Images, ...] = ()
    objects: tuple[Objects, ...] = ()
    hooks: tuple[FaultWindow, ...] = ()
    nodes: tuple[FaultWindow, ...] = ()
    clusters: tuple[ClusterFault, ...] = ()

    def mutate(self, obj: Made, old: Obj | None = None) -> Made:
        """Return an object with the annotations of its failure: those of a pod whose image fails."""
        if obj.get("kind") != "Pod" or not self.images:
            return obj
        images = [one.get("image") or "" for one in (obj.get("spec") or {}).get("containers") or ()]
        added: dict[str, str] = {}
        for failing in self.images:
            if any(fnmatchcase(image, failing.image) for image in images):
                added |= _annotations(failing)
        # The image may have changed since the pod was annotated; annotations of the manifest itself stay.
        possible = [_annotations(failing) for failing in self.images]
        present = meta.annotations(obj)
        ours = {name: value for name, value in present.items() if {name: value} in possible}
        if ours == added:
            return obj
        others = {name: value for name, value in present.items() if name not in ours}
        return meta.with_metadata(obj, annotations={**others, **added})

    def never_ready(self, ref: Ref) -> bool:
        """Say whether an object never becomes ready."""
        return any(
            fnmatchcase(ref.kind, one.kind)
            and fnmatchcase(ref.name, one.name)
            and fnmatchcase(ref.namespace, one.namespace)
            for one in self.objects
        )

    def fault_of(self, cluster: str, passed: timedelta) -> str:
        """Return the failure of a cluster at a moment, or an empty string."""
        for fault in self.clusters:
            if fault.window.covers(passed) and fault.affects(cluster):
                return fault.fails
        return ""

    def images_failing_on(self, cluster: str) -> tuple[Images, ...]:
        """Return the images whose pods fail on a cluster: all of them, where a share includes the cluster."""
        return tuple(
            msgspec.structs.replace(one, share=1.0)
            for one in self.images
            if _hashed(one.image, cluster) < parse_share(one.share)
        )

    def fails_hook(self, url: str, passed: timedelta) -> bool:
        """Say whether a hook does not respond at a moment."""
        return any(fnmatchcase(url, one.name) and one.covers(passed) for one in self.hooks)


def parse_share(given: float | str, of: str = "images") -> float:
    """Return a share as a number from 0 to 1: 0.3 and "30%" are the same."""
    text = str(given)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f'{of}.share: expected a share such as 0.3 or "30%", got "{given}"')
    return share


def readiness_patch(node: Obj, is_ready: bool, now: datetime) -> Mapping[str, Any]:
    """Return the patch that makes a node ready, or not ready as one that stops responding."""
    present = (node.get("status") or {}).get("conditions") or ()
    status, reason = ("True", "KubeletReady") if is_ready else ("Unknown", "NodeStatusUnknown")
    made = conditions.with_condition(present, "Ready", status, now=now, reason=reason)
    annotations = {"sim/not-ready": None if is_ready else "true"}
    return {"metadata": {"annotations": annotations}, "status": {"conditions": made}}


def _annotations(failing: Images) -> dict[str, str]:
    """Return the annotations that make a pod fail."""
    share = parse_share(failing.share)
    return {_CRASHES: f"{share}"} if failing.fails == "crash" else {_READY: f"{1 - share}"}


def _hashed(pattern: str, name: str) -> float:
    """Return a number from 0 to 1 from a hash of a name."""
    return int(sha256(f"{pattern} {name}".encode())[:8], 16) / 2**32
