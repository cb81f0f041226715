"""
Compiled resource graphs, as values.

A graph is compiled once per revision of a definition and shared by all instances of
it. What is compiled of its expressions is private to this package: `evaluate` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from lamina.errors import SpecError
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj

SCHEMA, EACH = "schema", "each"
"""The variables of expressions beside the ids: the instance, and an item of a collection."""


class GraphError(SpecError):
    """
    A definition does not compile.

    The message names the field; where an expression is at fault it shows its line with a
    caret, and its last line is what to write instead. `missing` is the apiVersion and kind
    of a template that the server does not serve: a definition without such a kind heals
    when the kind is installed.
    """

    missing: tuple[str, str] | None = None


class NodeKind(StrEnum):
    """What a node stands for: objects that the instance owns, or external ones that are only read."""

    OBJECT = "Object"
    COLLECTION = "Collection"
    EXTERNAL = "External"
    EXTERNAL_COLLECTION = "ExternalCollection"

    @property
    def is_external(self) -> bool:
        return self in (NodeKind.EXTERNAL, NodeKind.EXTERNAL_COLLECTION)

    @property
    def is_many(self) -> bool:
        """Whether expressions see a list."""
        return self in (NodeKind.COLLECTION, NodeKind.EXTERNAL_COLLECTION)


class KindSchema(Struct, frozen=True, dict=True):
    """
    A kind that the server serves, and its OpenAPI schema with all references resolved.

    `is_generated` says whether a definition generates it: children of such a kind are instances.
    A kind that is not served any more has a schema that accepts anything, so the types of what
    expressions read of it are not known.
    """

    kind: Kind
    schema: Obj
    is_generated: bool = False
    is_served: bool = True


class Node(Struct, frozen=True, kw_only=True):
    """
    An entry of `spec.resources`.

    `target` is the kind of its children, or of the external objects. `dependencies`
    are the ids of the nodes that its expressions name, without those of readyWhen.
    `wave` is its deletion wave: the node of the highest wave is deleted first.
    """

    id: str
    kind: NodeKind
    target: Kind
    position: int
    is_generated: bool = False
    """Whether its children are instances of another definition."""
    dependencies: tuple[str, ...] = ()
    wave: int = 0
    iterators: tuple[str, ...] = ()
    has_include_when: bool = False
    has_propagate_when: bool = False
    compiled: Any = None
    """The compiled expressions, private to this package."""


class Graph(Struct, frozen=True, kw_only=True):
    """
    The nodes of a definition in topological order, and the schemas of its instances.

    `spec_schema` is the schema of the instance's spec, and `status_schema` that of the
    author's status fields. With `hides_conditions` the author declares conditions, and
    the built-in ones are not written.
    """

    snapshot: Obj
    nodes: Mapping[str, Node]
    order: tuple[str, ...]
    spec_schema: Obj
    status_schema: Obj
    hides_conditions: bool = False
    compiled: Any = None
    """The compiled status expressions, private to this package."""

    @property
    def is_namespaced(self) -> bool:
        return str(self.snapshot["schema"].get("scope") or "Namespaced") != "Cluster"
