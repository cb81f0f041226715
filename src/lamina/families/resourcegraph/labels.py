"""The kinds, labels, annotations, finalizers and field managers of this family; most are those of upstream."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.graph import reserved
from lamina.objects.types import GroupKind

GROUP = reserved.GROUP
API_VERSION = f"{GROUP}/v1alpha1"
VERSION = "v0.9.4"
"""The release of upstream whose stamps objects get, so that a change of controllers writes nothing to them."""

DEFINITION = GroupKind(GROUP, "ResourceGraphDefinition")
DEFINITION_REVISION = GroupKind(GROUP, "ResourceGraphDefinitionRevision")
INPUT_REVISION = GroupKind(GROUP, "ResourceGraphInputRevision")

FINALIZER = f"{GROUP}/finalizer"
"""The finalizer of definitions, of their revisions and of instances."""

# Field managers

LABELLER = f"{GROUP}/labeller"
"""Applies the labels and the finalizer of an instance."""
APPLYSET = f"{GROUP}/applyset"
"""Applies children; it owns the fields of objects that upstream created."""
APPLYSET_PARENT = f"{GROUP}/applyset-parent"
"""Applies the inventory of an instance."""
MANAGER = f"{GROUP}/controller"
"""Writes definitions, revisions and statuses."""

# Labels

OWNED = f"{GROUP}/owned"
KRO_VERSION = f"{GROUP}/kro-version"
DEFINITION_ID = f"{GROUP}/resource-graph-definition-id"
DEFINITION_NAME = f"{GROUP}/resource-graph-definition-name"
"""On generated definitions and on instances."""
INSTANCE_ID = f"{GROUP}/instance-id"
INSTANCE_NAME = f"{GROUP}/instance-name"
"""On children a label and an annotation; on input revisions a label."""
INSTANCE_NAMESPACE = f"{GROUP}/instance-namespace"
INSTANCE_GROUP = f"{GROUP}/instance-group"
INSTANCE_VERSION = f"{GROUP}/instance-version"
INSTANCE_KIND = f"{GROUP}/instance-kind"
NODE_ID = f"{GROUP}/node-id"
COLLECTION_INDEX = f"{GROUP}/collection-index"
COLLECTION_SIZE = f"{GROUP}/collection-size"
MANAGED_BY, KRO = "app.kubernetes.io/managed-by", "kro"
PART_OF = "applyset.kubernetes.io/part-of"
APPLYSET_ID = "applyset.kubernetes.io/id"
RGD_NAME = f"{GROUP}/rgd-name"
REVISION_NUMBER = f"{GROUP}/revision-number"
"""On revisions of a definition."""
INPUT_REVISION_LABEL = f"{GROUP}/input-revision"
RGD_REVISION_LABEL = f"{GROUP}/rgd-revision"
"""On input revisions."""

# Annotations of instances

TOOLING = "applyset.kubernetes.io/tooling"
TOOLING_VALUE = f"{KRO}/{VERSION}"
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
ADDITIONAL_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
INVENTORY_HASH = "internal.kro.run/applyset-inventory-hash"
RECONCILE = reserved.RECONCILE
_SUSPENDED = ("suspended", "disabled")
PIN = reserved.PIN
UPDATE_POLICY = reserved.UPDATE_POLICY
ACCEPT_REVISION = f"{GROUP}/accept-rgd-revision"
ROLLBACK_INPUT = f"{GROUP}/rollback-to-input-revision"
ROLLBACK_SCOPE = f"{GROUP}/rollback-scope"
CONTROL_ANNOTATIONS = (RECONCILE, PIN, UPDATE_POLICY, ACCEPT_REVISION, ROLLBACK_INPUT, ROLLBACK_SCOPE)
"""What of an instance's metadata changes what is done about it, and does not change its generation."""

# Annotations of children

APPLY_ORDER = "internal.kro.run/apply-order"
"""The deletion wave: the highest is deleted first."""
RGD_REVISION = f"{GROUP}/rgd-revision"
INPUT_REVISION_STAMP = f"{GROUP}/input-revision"
RESOURCE_ID = f"{GROUP}/resource-id"
PARENT_RGD_REVISION = f"{GROUP}/parent-rgd-revision"
PARENT_INPUT_REVISION = f"{GROUP}/parent-input-revision"
"""On children of a generated kind, in place of the two stamps: there the first one is a pin."""

# Annotations of definitions and of their revisions

ALLOW_BREAKING = f"{GROUP}/allow-breaking-changes"
ROLLBACK = f"{GROUP}/rollback-to-revision"
ROLLBACK_MODE = f"{GROUP}/rollback-mode"
CREATE_REVISION = f"{GROUP}/create-revision"
CONTENT_FROM = f"{GROUP}/content-from-revision"
SOURCE_GENERATION = f"{GROUP}/source-generation"

CONTROLLER_NAMESPACE = "kro-system"
"""Where the input revisions of cluster-scoped instances are, unless options say otherwise."""


def is_suspended(annotations: Mapping[str, str]) -> bool:
    """Say whether the annotations of an instance suspend its reconciliation."""
    return (annotations.get(RECONCILE) or "").lower() in _SUSPENDED
