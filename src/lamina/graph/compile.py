"""
Compiles definitions.

CEL takes long to import, so what needs it is imported with the first definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamina.graph.graph import Graph, GraphError, KindSchema
from lamina.graph.naming import MOST_DIMENSIONS
from lamina.objects.types import Obj


def kinds_needed(snapshot: Obj) -> tuple[tuple[str, str], ...]:
    """Return the apiVersion and kind of all templates and external references, in order, without duplicates."""
    found: dict[tuple[str, str], None] = {}
    resources: Sequence[Obj] = snapshot.get("resources") or ()
    for resource in resources:
        stated = resource.get("template") or resource.get("externalRef")
        if isinstance(stated, Mapping):
            match stated.get("apiVersion"), stated.get("kind"):
                case (str() as api_version, str() as kind) if "${" not in api_version + kind:
                    found[api_version, kind] = None
    return tuple(found)


def compile_graph(
    snapshot: Obj,
    schemas: Mapping[tuple[str, str], KindSchema],
    *,
    omit: bool = False,
    most_dimensions: int = MOST_DIMENSIONS,
) -> Graph:
    """
    Return the graph of a snapshot; raises GraphError.

    `omit` says whether templates may use `omit()`, the feature gate CELOmitFunction.
    """
    from lamina.graph.build import build_graph

    try:
        return build_graph(snapshot, schemas, omit=omit, most_dimensions=most_dimensions)
    except RecursionError:
        raise GraphError("spec: the definition is nested too deeply") from None
