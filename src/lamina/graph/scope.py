"""The values of the variables of an instance's expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lamina.graph.graph import SCHEMA, Graph
from lamina.objects import meta
from lamina.objects.types import Made, Obj


class Scope(Struct, frozen=True):
    """
    The variables of expressions, and the live objects they stand for.

    A node that is not observed has no variable: what refers to it waits. `namespace` is
    that of the instance, empty for a cluster-scoped one. `memo` has what is computed once for
    all items of a collection, by the id of its node.
    """

    variables: Mapping[str, Any]
    observed: Mapping[str, Sequence[Obj]]
    namespace: str
    memo: dict[str, Any] = field(default_factory=dict)


def scope(
    graph: Graph,
    instance: Obj,
    spec: Obj,
    observed: Mapping[str, Sequence[Obj]],
    namespaced: bool,
) -> Scope:
    """
    Return the scope of an instance with its projected spec.

    `observed` has the live objects of the nodes that are observed: one of an object, all of a
    collection in desired order.
    """
    metadata: Made = dict(meta.metadata(instance))
    if not namespaced:
        metadata.pop("namespace", None)
    schema = {
        "apiVersion": instance.get("apiVersion"),
        "kind": instance.get("kind"),
        "metadata": metadata,
        "spec": spec,
    }
    variables: dict[str, Any] = {SCHEMA: schema}
    for id_, objects in observed.items():
        if graph.nodes[id_].kind.is_many:
            variables[id_] = list(objects)
        elif objects:
            variables[id_] = objects[0]
    return Scope(variables, observed, meta.namespace(instance) if namespaced else "")
