"""Builds a graph from a definition, step by step; each step needs what the ones before it found."""

from __future__ import annotations

from lamina.errors import SpecError
from lamina.graph.dependencies import dependencies_of
from lamina.graph.drafts import Draft, Schemas, drafts_of
from lamina.graph.graph import Graph, GraphError, Node
from lamina.graph.language.simple_schema import build_schema
from lamina.graph.nodes import compile_nodes, types_of
from lamina.graph.order import deletion_waves, topological_order
from lamina.graph.status import compile_status
from lamina.objects.types import Made, Obj


def build_graph(snapshot: Obj, schemas: Schemas, *, omit: bool, most_dimensions: int) -> Graph:
    """Return the graph of a snapshot; raises GraphError."""
    stated: Obj = snapshot["schema"]
    namespaced = stated.get("scope") != "Cluster"
    # An error of the schema is reported before a missing kind, which may be served later.
    spec_schema = _spec_schema(stated)
    drafts = drafts_of(snapshot, schemas, namespaced=namespaced, most_dimensions=most_dimensions)
    dependencies = dependencies_of(drafts, namespaced=namespaced, omit=omit)
    variables = types_of(drafts, spec_schema, namespaced=namespaced)
    waves = deletion_waves(dependencies)
    # The types of conditions and lists may depend on a kind that is not served any more.
    is_whole = all(one.schema.is_served for one in drafts.values())
    compiled = compile_nodes(drafts, variables, may_be_dyn=not is_whole)
    nodes = {id_: _node(one, dependencies[id_], waves[id_], compiled[id_]) for id_, one in drafts.items()}
    status = compile_status(stated.get("status") or {}, variables)
    order = topological_order(dependencies)
    return Graph(
        snapshot=snapshot,
        nodes={id_: nodes[id_] for id_ in order},
        order=order,
        spec_schema=spec_schema,
        status_schema=status.schema,
        hides_conditions=bool(status.conditions),
        compiled=status,
    )


def _spec_schema(stated: Obj) -> Made:
    try:
        return build_schema(stated)
    except SpecError as wrong:
        raise GraphError(f"{wrong} (failed to build OpenAPI schema for instance)", wrong.hint) from None


def _node(draft: Draft, dependencies: tuple[str, ...], wave: int, compiled: object) -> Node:
    return Node(
        id=draft.id,
        kind=draft.kind,
        target=draft.schema.kind,
        position=draft.index,
        is_generated=draft.schema.is_generated,
        dependencies=dependencies,
        wave=wave,
        iterators=draft.iterators,
        has_include_when=bool(draft.include_when),
        has_propagate_when=bool(draft.propagate_when),
        compiled=compiled,
    )
