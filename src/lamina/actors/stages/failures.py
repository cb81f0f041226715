"""
Simulated failures of pods by their image, from a ConfigMap.

The ConfigMap `sim-failures` in `kube-system` has an entry for each failure: the
image, the share of its pods, and how they fail. A selected pod is treated as if
it had the annotations that cause the failure; which pods are selected depends on
their uid and the failure's name alone. Invalid entries are ignored.
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

FAILURES_REF = Ref("v1", "ConfigMap", "kube-system", "sim-failures")
ANNOTATIONS = (
    "sim/complete-after",
    "sim/crash-share",
    "sim/exit-code",
    "sim/fail-after",
    "sim/ready-after",
    "sim/ready-probability",
    "sim/unready-after",
)
"""The annotations of a pod that the default stages read."""


class FailureMode(StrEnum):
    """How pods fail."""

    CRASH = "crash"
    UNREADY = "unready"


_ANNOTATIONS_OF: Mapping[FailureMode, Mapping[str, str]] = {
    FailureMode.CRASH: {"sim/crash-share": "1"},
    FailureMode.UNREADY: {"sim/unready-after": "0s"},
}


class Failure(Struct, frozen=True, kw_only=True):
    """A failure of a share of the pods whose image matches; `image` may be a pattern with `*`."""

    name: str
    image: str
    share: float
    how: FailureMode

    def affects(self, pod: Obj) -> bool:
        """Say whether a pod fails."""
        containers = (pod.get("spec") or {}).get("containers") or ()
        return any(self._is_of(one.get("image") or "") for one in containers) and (
            self.share >= 1 or chance(pod, self.name) < self.share
        )

    def _is_of(self, image: str) -> bool:
        return fnmatchcase(image, self.image) or image.startswith((f"{self.image}:", f"{self.image}@"))


def failures_in(config_map: Obj | None) -> tuple[Failure, ...]:
    """Return the failures in a ConfigMap."""
    if config_map is None:
        return ()
    found = (_failure(name, text) for name, text in sorted((config_map.get("data") or {}).items()))
    return tuple(one for one in found if one is not None)


def _failure(name: str, text: str) -> Failure | None:
    try:
        annotations = json.loads(text)
        how, image = FailureMode(annotations.get("how") or FailureMode.CRASH), annotations["image"]
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
    if not isinstance(image, str) or not image:
        return None
    return Failure(name=name, image=image, share=share_of(annotations.get("share"), otherwise=1.0), how=how)


def with_failures(pod: Obj, failures: Sequence[Failure]) -> Obj:
    """Return a pod with the annotations of its failures; its own annotations take precedence."""
    annotations: dict[str, str] = {}
    for failure in failures:
        if failure.affects(pod):
            annotations |= _ANNOTATIONS_OF[failure.how]
    return (
        meta.with_metadata(pod, annotations={**annotations, **meta.annotations(pod)}) if annotations else pod
    )
