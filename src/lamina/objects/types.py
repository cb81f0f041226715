"""The types of objects, references, conditions and watch events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypeAlias, TypedDict

Obj: TypeAlias = Mapping[str, Any]
"""Any Kubernetes object. A dict at run time; the type checker refuses assignments into it."""

Made: TypeAlias = dict[str, Any]
"""An object under construction, owned by one function."""


class GroupKind(NamedTuple):
    """A kind without its version: a Deployment read as apps/v1 and owned as apps/v1beta1 is the same Deployment."""

    group: str
    kind: str


class Ref(NamedTuple):
    """
    A reference to one object: its API version and kind, its namespace (empty for cluster scope) and name.

    `cluster` names one of the clusters a controller knows; empty means its own.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    cluster: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        there = f" on {self.cluster}" if self.cluster else ""
        return f"{self.kind.lower()} {where}{there}"


class Condition(TypedDict):
    type: str
    status: str
    reason: NotRequired[str]
    message: NotRequired[str]
    lastTransitionTime: NotRequired[str]
    observedGeneration: NotRequired[int]


class OwnerRef(TypedDict):
    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: NotRequired[bool]
    blockOwnerDeletion: NotRequired[bool]


class WatchEvent(TypedDict):
    type: str
    object: dict[str, Any]
