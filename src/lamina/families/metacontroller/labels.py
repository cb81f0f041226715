"""The labels, annotations, finalizers and field managers of Metacontroller, the same as upstream's."""

from __future__ import annotations

from lamina.objects.types import GroupKind

GROUP = "metacontroller.k8s.io"
API_VERSION = f"{GROUP}/v1alpha1"

COMPOSITE = GroupKind(GROUP, "CompositeController")
DECORATOR = GroupKind(GROUP, "DecoratorController")
REVISION = GroupKind(GROUP, "ControllerRevision")

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
DECORATED_BY = "metacontroller.k8s.io/decorator-controller"
API_GROUP = "metacontroller.k8s.io/apiGroup"
RESOURCE = "metacontroller.k8s.io/resource"
NUMBER = "metacontroller.k8s.io/revision-number"
MOVED_AT = "metacontroller.k8s.io/moved-at"
ON_DELETE = "metacontroller.k8s.io/on-delete"
"""On a controller: `release` removes its finalizer from its parents before it is deleted."""
RELEASE = "metacontroller.io/release-parents"
"""The finalizer that such a controller has until then."""
CONTROLLER_UID = "controller-uid"

MANAGER = "metacontroller"
"""The source of its events, and its field manager."""


def finalizer(kind: GroupKind, controller: str) -> str:
    """Return the finalizer that a controller of that name puts on its parents."""
    return f"metacontroller.io/{kind.kind.lower()}-{controller}"
