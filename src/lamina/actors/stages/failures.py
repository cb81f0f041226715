"""
Pods of an image that fail, because an object says so.

The ConfigMap `sim-failures` in `kube-system` has an entry for each failure: which
image, what share of its pods, and how. A pod among them is taken for one that
asks for its failure itself, by annotations; which pods are among a share depends
on their uid and on the failure alone. What makes no sense is nobody's failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from lamina.actors.stages.stage import chance, share_of
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

PLACE = Ref("v1", "ConfigMap", "kube-system", "sim-failures")
MARKS = (
    "sim/complete-after",
    "sim/crash-share",
    "sim/exit-code",
    "sim/fail-after",
    "sim/ready-after",
    "sim/ready-probability",
    "sim/unready-after",
)
"""The annotations of a pod that the usual stages heed."""


class How(StrEnum):
    """How pods fail."""

    CRASH = "crash"
    UNREADY = "unready"


_SAID: Mapping[How, Mapping[str, str]] = {
    How.CRASH: {"sim/crash-share": "1"},
    How.UNREADY: {"sim/unready-after": "0s"},
}


class Failure(Struct, frozen=True, kw_only=True):
    """Pods of an image, or of any that a pattern with `*` fits, of which a share fails."""

    name: str
    image: str
    share: float
    how: How

    def hits(self, pod: Obj) -> bool:
        """Say whether a pod is among those that fail."""
        containers = (pod.get("spec") or {}).get("containers") or ()
        return any(self._is_of(one.get("image") or "") for one in containers) and (
            self.share >= 1 or chance(pod, self.name) < self.share
        )

    def _is_of(self, image: str) -> bool:
        return fnmatchcase(image, self.image) or image.startswith((f"{self.image}:", f"{self.image}@"))


def failures_in(config_map: Obj | None) -> tuple[Failure, ...]:
    """Return the failures that an object asks for."""
    if config_map is None:
        return ()
    found = (_failure(name, text) for name, text in sorted((config_map.get("data") or {}).items()))
    return tuple(one for one in found if one is not None)


def _failure(name: str, text: str) -> Failure | None:
    try:
        said = json.loads(text)
        how, image = How(said.get("how") or How.CRASH), said["image"]
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
    if not isinstance(image, str) or not image:
        return None
    return Failure(name=name, image=image, share=share_of(said.get("share"), otherwise=1.0), how=how)


def afflicted(pod: Obj, failures: Sequence[Failure]) -> Obj:
    """Return a pod as one that asks for what is to befall it; what it asks for itself stands."""
    said: dict[str, str] = {}
    for failure in failures:
        if failure.hits(pod):
            said |= _SAID[failure.how]
    return meta.with_metadata(pod, annotations={**said, **meta.annotations(pod)}) if said else pod
