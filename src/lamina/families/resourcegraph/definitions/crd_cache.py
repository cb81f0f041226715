"""
What is cached of CustomResourceDefinitions: generated ones whole, of others their names and a mark of their schemas.

A mark changes when a graph that was compiled with the schema has to be compiled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.crd.kinds import names_only
from lamina.core.model.world import World, derived, whole
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.labels import DEFINITION_NAME, KRO, MANAGED_BY, NODE_ID, OWNED
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, Ref

CRD_VERSION = "apiextensions.k8s.io/v1"
_BUILT_IN = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "metrics",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)
"""The groups with a dot in which no CRD defines a kind; without a dot no CRD's group is valid."""


def crd_ref(name: str) -> Ref:
    """Return the reference of the CRD of that name."""
    return Ref(CRD_VERSION, CRD.kind, "", name)


def crd_name(kind: Kind) -> str:
    """Return the name of the CRD of a kind, if one defines it."""
    return f"{kind.plural}.{kind.group}"


def is_generated(crd: Obj) -> bool:
    """Say whether a controller of this family, or upstream's, owns a CRD."""
    labels = meta.labels(crd)
    return labels.get(OWNED) == "true" or labels.get(MANAGED_BY) == KRO


def conflict(crd: Obj, definition: str) -> str:
    """Return why a CRD does not belong to the definition of that name; empty where it does, whatever its uid."""
    if not is_generated(crd):
        return f"failed to update CRD {meta.name(crd)}: CRD already exists and is not owned by KRO"
    owner = meta.labels(crd).get(DEFINITION_NAME, "")
    if owner != label_value(definition):
        return (
            f"failed to update CRD {meta.name(crd)}: CRD is owned by another ResourceGraphDefinition {owner}"
        )
    return ""


def reduced(crd: Obj) -> Obj:
    """Keep a generated CRD whole, and one that is a child; of any other its names and labels."""
    if is_generated(crd) or NODE_ID in meta.labels(crd):
        return whole_or_child(crd)
    return meta.with_metadata(names_only(crd), labels=dict(meta.labels(crd)))


def whole_or_child(obj: Obj) -> Obj:
    """
    Keep an object whole, and of a child of an instance everything.

    With its managed fields it is known whether a child is applied. A controller has one cache of a
    kind, so what is watched for another reason may be a child as well.
    """
    return obj if NODE_ID in meta.labels(obj) else whole(obj)


def schema_mark(crd: Obj) -> str:
    """Return the hash of what compiling depends on: the names, the scope and the schemas."""
    spec = crd.get("spec") or {}
    schemas = [(one.get("name"), one.get("served"), one.get("schema")) for one in spec.get("versions") or ()]
    return digest([spec.get("names"), spec.get("scope"), schemas])[:16]


def has_lost_crd(world: World, kind: GroupKind) -> bool:
    """Say whether a kind that is not served had a CRD that is gone, and its objects with it."""
    if "." not in kind.group or kind.group in _BUILT_IN:
        return False
    return not world.by_index(CRD, by_kind, f"{kind.group}/{kind.kind}")


def by_kind(crd: Obj) -> tuple[str, ...]:
    """Index CRDs by the kind that they define, as `group/kind`."""
    spec = crd.get("spec") or {}
    return (f"{spec.get('group')}/{(spec.get('names') or {}).get('kind')}",)


def marks_of(world: World, kinds: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return the marks of the CRDs of these kinds by name; a kind without a CRD has none."""
    served = (world.kinds.find(*one) for one in kinds)
    names = {crd_name(kind) for kind in served if kind is not None}
    found = {name: world.get(crd_ref(name)) for name in names}
    return {name: derived(schema_mark, crd) for name, crd in found.items() if crd is not None}
