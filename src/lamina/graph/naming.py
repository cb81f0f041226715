"""
The names of a definition: its kind, the ids of its resources, and their iterators.

Ids and iterators are variables of expressions, so they are identifiers, and words that
expressions or manifests use already are reserved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from lamina.graph.problems import problem
from lamina.objects.types import Obj

_ID = re.compile(r"[a-z][a-zA-Z0-9]*")
_KIND = re.compile(r"[A-Z][a-zA-Z0-9]*")
_VIOLATION = "naming convention violation"
_LANGUAGE = (
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while"
)
_OURS = (
    "apiVersion context dependency dependencies each externalRef externalReference externalRefs "
    "externalReferences graph instance item items kind kro metadata namespace object resource "
    "resourcegraphdefinition resourceGraphDefinition resources root runtime schema self serviceAccountName spec "
    "status this variables vars version"
)
RESERVED = frozenset((*_LANGUAGE.split(), *_OURS.split()))
MOST_DIMENSIONS = 10
"""How many iterators a collection may have."""


def check_names(snapshot: Obj, most_dimensions: int = MOST_DIMENSIONS) -> None:
    """Raise GraphError where a name of the definition is invalid, reserved, or used twice."""
    kind = str(snapshot["schema"].get("kind") or "")
    if not _KIND.fullmatch(kind):
        message = f"{_VIOLATION}: kind '{kind}' is not a valid KRO kind name: must be UpperCamelCase"
        raise problem("spec.schema.kind", message)
    resources: Sequence[Obj] = snapshot.get("resources") or ()
    ids: list[str] = []
    for index, resource in enumerate(resources):
        id_ = str(resource.get("id") or "")
        if fault := _id_fault(id_, ids):
            raise problem(f"spec.resources[{index}].id", f"{_VIOLATION}: {fault}")
        ids.append(id_)
    for index, resource in enumerate(resources):
        _check_iterators(f"spec.resources[{index}].forEach", resource, ids, most_dimensions)


def _id_fault(id_: str, before: Collection[str]) -> str:
    if id_ in RESERVED:
        return f"id {id_} is a reserved keyword in KRO"
    if not _ID.fullmatch(id_):
        return f"id {id_} is not a valid KRO resource id: must be lower camelCase"
    return f"found duplicate resource IDs {id_}" if id_ in before else ""


def _check_iterators(field: str, resource: Obj, ids: Collection[str], most: int) -> None:
    dimensions: Sequence[Obj] = resource.get("forEach") or ()
    prefix = f'resource "{resource["id"]}": forEach'
    if len(dimensions) > most:
        raise problem(field, f"{prefix} cannot have more than {most} dimensions, got {len(dimensions)}")
    before: list[str] = []
    for index, dimension in enumerate(dimensions):
        if len(dimension) != 1:
            message = f"{prefix} has one iterator in each entry, got {len(dimension)}"
            raise problem(f"{field}[{index}]", message)
        (name,) = dimension
        if fault := _iterator_fault(name, ids, before):
            raise problem(f"{field}[{index}]", f"{_VIOLATION}: {prefix} iterator name {fault}")
        before.append(name)


def _iterator_fault(name: str, ids: Collection[str], before: Collection[str]) -> str:
    if not _ID.fullmatch(name):
        return f'"{name}" is not valid: must be lowerCamelCase'
    if name in RESERVED:
        return f'"{name}" is a reserved keyword'
    if name in ids:
        return f'"{name}" conflicts with resource ID'
    return f'"{name}" is there twice: duplicate forEach iterator name' if name in before else ""
