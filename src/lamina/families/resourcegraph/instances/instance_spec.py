"""The spec of an instance as a revision of its definition reads it."""

from __future__ import annotations

from lamina.core.texts import joined
from lamina.families.resourcegraph.hashes import input_hash
from lamina.graph.graph import Graph
from lamina.graph.schemas.projection import project, validate
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj


def projected(graph: Graph, spec: Obj) -> Made:
    """Return a spec without fields that the revision does not have, and with its defaults."""
    return project(spec, graph.spec_schema)


def what_is_invalid(graph: Graph, spec: Obj) -> str:
    """Return what is invalid about a projected spec; empty where nothing is."""
    return joined(validate(spec, graph.spec_schema))


def is_equal(graph: Graph, one: Obj | None, other: Obj) -> bool:
    """Say whether two stored specs are the same to a revision."""
    if one is None:
        return False
    return is_same(one, other) or is_same(projected(graph, one), projected(graph, other))


def digest_of(graph: Graph, spec: Obj, revision: int) -> str:
    """Return the hash of an input: a stored spec and a revision."""
    return input_hash(projected(graph, spec), revision)
