"""Definitions for the tests of this folder, the schemas of their kinds, and instances of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lamina.graph.compile import compile_graph, kinds_needed
from lamina.graph.evaluate import Scope, render, scope
from lamina.graph.graph import Graph, KindSchema
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.simulation.cluster.published_schema import published_schema

TEXT: Obj = {"type": "string"}
BUCKET = Kind("aws.example.com/v1", "Bucket", "buckets", True)
BUCKET_SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "name": TEXT,
                "size": {"type": "integer"},
                "ratio": {"type": "number"},
                "public": {"type": "boolean"},
                "zones": {"type": "array", "items": TEXT},
                "tags": {"type": "object", "additionalProperties": TEXT},
                "rules": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"from": TEXT, "port": {"type": "integer"}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "mixed": {
                    "type": "object",
                    "properties": {"a": TEXT},
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "limit": {"x-kubernetes-int-or-string": True},
                "keep-alive": TEXT,
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "ready": {"type": "boolean"},
                "arn": TEXT,
                "created": {"type": "string", "format": "date-time"},
                "age": {"type": "string", "format": "duration"},
                "key": {"type": "string", "format": "byte"},
                "ratio": {"type": "number"},
                "zones": {"type": "array", "items": TEXT},
                "endpoints": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"host": TEXT, "namespace": TEXT}},
                },
            },
        },
    },
}
APP = Kind("kro.run/v1alpha1", "Database", "databases", True)
CUSTOM = {
    ("aws.example.com/v1", "Bucket"): KindSchema(BUCKET, BUCKET_SCHEMA),
    ("kro.run/v1alpha1", "Database"): KindSchema(APP, BUCKET_SCHEMA, is_generated=True),
}


@cache
def kind_schema(api_version: str, kind: str) -> KindSchema | None:
    """Return the schema of a built-in kind, or of one of the kinds above; None for any other."""
    custom = CUSTOM.get((api_version, kind))
    if custom is not None:
        return custom
    for one in CATALOGUE:
        if (one.api_version, one.kind) == (api_version, kind):
            served = Kind(api_version, kind, one.plural, one.namespaced)
            schema = published_schema(served, tuple)
            return None if schema is None else KindSchema(served, schema)
    return None


def schemas(snapshot: Obj) -> dict[tuple[str, str], KindSchema]:
    found = {pair: kind_schema(*pair) for pair in kinds_needed(snapshot)}
    return {pair: one for pair, one in found.items() if one is not None}


def definition(
    *resources: Obj,
    spec: Obj | None = None,
    status: Obj | None = None,
    types: Obj | None = None,
    kind: str = "App",
    scope: str = "Namespaced",
) -> Made:
    """Return the snapshot of a definition."""
    schema: Made = {"kind": kind, "apiVersion": "v1alpha1", "group": "kro.run", "scope": scope}
    schema["spec"] = {"name": "string", "replicas": "integer | default=1"} if spec is None else spec
    if status is not None:
        schema["status"] = status
    if types is not None:
        schema["types"] = types
    return {"schema": schema, "resources": list(resources)}


def config(id_: str, name: str = "x", /, data: Any = None, **more: Any) -> Made:
    """Return a resource that is a ConfigMap."""
    template: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    if data is not None:
        template["data"] = data
    return {"id": id_, "template": template, **more}


def resource(id_: str, api_version: str, kind: str, /, *, metadata: Obj | None = None, **more: Any) -> Made:
    """Return a resource: conditions and loops belong to it, everything else to its template."""
    own: Made = {
        key: more.pop(key) for key in ("includeWhen", "readyWhen", "forEach", "propagateWhen") if key in more
    }
    template = {"apiVersion": api_version, "kind": kind, "metadata": metadata or {"name": "x"}, **more}
    return {"id": id_, "template": template, **own}


def bucket(id_: str, /, **more: Any) -> Made:
    return resource(id_, "aws.example.com/v1", "Bucket", **more)


def reference(id_: str, /, *, kind: str = "ConfigMap", api_version: str = "v1", **more: Any) -> Made:
    """Return a resource that is an external reference."""
    metadata = {key: more.pop(key) for key in ("name", "namespace", "selector") if key in more}
    return {"id": id_, "externalRef": {"apiVersion": api_version, "kind": kind, "metadata": metadata}, **more}


def compiled(*resources: Obj, omit: bool = False, most_dimensions: int = 10, **stated: Any) -> Graph:
    snapshot = definition(*resources, **stated)
    return compile_graph(snapshot, schemas(snapshot), omit=omit, most_dimensions=most_dimensions)


def scoped(
    graph: Graph,
    spec: Obj | None = None,
    observed: Mapping[str, Sequence[Obj]] | None = None,
    *,
    namespaced: bool = True,
) -> Scope:
    """Return the scope of the instance ns1/a1 of a graph."""
    metadata: Made = {"name": "a1", "uid": "u1", "labels": {"team": "red"}}
    if namespaced:
        metadata["namespace"] = "ns1"
    instance = {
        "apiVersion": "kro.run/v1alpha1",
        "kind": "App",
        "metadata": metadata,
        "status": {"state": "x"},
    }
    return scope(
        graph, instance, {"name": "web", "replicas": 3} if spec is None else spec, observed or {}, namespaced
    )


def rendered(
    graph: Graph, id_: str, spec: Obj | None = None, observed: Mapping[str, Sequence[Obj]] | None = None
) -> Made:
    """Return the only object that a node renders."""
    made = render(graph, graph.nodes[id_], scoped(graph, spec, observed))
    assert isinstance(made, tuple), made
    (one,) = made
    return one
