"""Compiles a definition that is in a file, and generates from it: the CRD, an instance, a diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.core.crd.kinds import DEFINITION as CRD
from lamina.core.model.queries import Answers, Listed, Query, ReadAll
from lamina.families.resourcegraph.api import content, read_definition
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.generated_crd import generated_crd
from lamina.graph.graph import Graph, GraphError, Node, NodeKind
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj

_SHAPES = {
    NodeKind.OBJECT: ("[", "]"),
    NodeKind.COLLECTION: ("[[", "]]"),
    NodeKind.EXTERNAL: ("([", "])"),
    NodeKind.EXTERNAL_COLLECTION: ("([", "])"),
}


def snapshot(definition: Obj) -> Made:
    """Return the content of a definition, with the defaults that the server adds."""
    stated = content(definition.get("spec") or {})
    return {**stated, "schema": {"group": "kro.run", "scope": "Namespaced", **stated["schema"]}}


def compiled(definition: Obj, kinds: Kinds, answers: Answers) -> Graph | tuple[Query, ...]:
    """Return the graph of a definition, or the queries for the schemas it needs; raises SpecError."""
    read_definition(definition)
    crds = kinds.preferred(CRD)
    asked = ReadAll(crds, "") if crds is not None else None
    if asked is not None and asked not in answers:
        return (asked,)
    found = answers.get(asked) if asked is not None else None
    # Within one command no schema changes, so all marks are equal.
    marks = {meta.name(one): "" for one in found.objects} if isinstance(found, Listed) else {}
    graph = Graphs().find(snapshot(definition), kinds, marks, answers)
    if isinstance(graph, GraphError):
        raise graph
    return graph


def crd(definition: Obj, kinds: Kinds, answers: Answers) -> Made | tuple[Query, ...]:
    """Return the CRD that a definition generates."""
    graph = compiled(definition, kinds, answers)
    if isinstance(graph, tuple):
        return graph
    stated = {**definition, "spec": {**definition["spec"], **snapshot(definition)}}
    revision = (definition.get("status") or {}).get("currentRevision") or 1
    return generated_crd(stated, graph.spec_schema, graph.status_schema, revision)


def instance(definition: Obj, kinds: Kinds, answers: Answers) -> Made | tuple[Query, ...]:
    """Return an example of an instance: each field has its default, or the plainest value of its type."""
    graph = compiled(definition, kinds, answers)
    if isinstance(graph, tuple):
        return graph
    stated = read_definition(definition).schema
    metadata = {"name": f"my-{stated.kind.lower()}"}
    if stated.is_namespaced:
        metadata["namespace"] = "default"
    return {
        "apiVersion": stated.group_version,
        "kind": stated.kind,
        "metadata": metadata,
        "spec": example("spec", graph.spec_schema),
    }


def example(name: str, schema: Obj) -> Any:
    """Return an example of a field."""
    properties = schema.get("properties")
    if properties:
        return {key: example(key, inner) for key, inner in properties.items()}
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "array":
            return [example(name, schema.get("items") or {})]
        case "object":
            values = schema.get("additionalProperties")
            return {"key": example("value", values)} if isinstance(values, dict) else {}
        case "integer" | "number":
            least = schema.get("minimum")
            return least if least is not None else min(0, schema.get("maximum") or 0)
        case "boolean":
            return False
        case _:
            return name.ljust(schema.get("minLength") or 0, "x")[: schema.get("maxLength")]


def diagram(definition: Obj, kinds: Kinds, answers: Answers) -> str | tuple[Query, ...]:
    """Return the graph as a Mermaid flowchart; an arrow leads from a resource to what depends on it."""
    graph = compiled(definition, kinds, answers)
    return graph if isinstance(graph, tuple) else "\n".join(flowchart(meta.name(definition), graph))


def flowchart(name: str, graph: Graph) -> Iterator[str]:
    """Yield the lines of a flowchart. Resources are numbered in the order they are created."""
    yield from ("---", f'title: "Resource Graph: {name}"', "---", "flowchart TD")
    places = {node: place for place, node in enumerate(graph.order, 1)}
    for node, place in places.items():
        yield f"  n{place}{_box(graph.nodes[node], place)}"
    for node, place in places.items():
        for dependency in graph.nodes[node].dependencies:
            yield f"  n{places[dependency]} --> n{place}"


def _box(node: Node, place: int) -> str:
    start, end = _SHAPES[node.kind]
    return f'{start}"{node.id} ({place})<br/>{node.target.kind}"{end}'
