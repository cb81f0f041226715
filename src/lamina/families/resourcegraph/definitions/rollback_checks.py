"""What a rollback is refused for: content that does not compile, types that conflict, and specs that become invalid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lamina.core.model.queries import Answers
from lamina.errors import SpecError
from lamina.families.resourcegraph.definitions.crd_schema import joined, schemas_of, used_schemas
from lamina.families.resourcegraph.definitions.instance_facts import InstanceFacts
from lamina.families.resourcegraph.definitions.queried import Instances, compiled
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import ALLOW_BREAKING
from lamina.graph.graph import Graph, GraphError
from lamina.graph.schemas.projection import project, validate
from lamina.objects import meta

_SHOWN = 3


def uncompilable(view: View, target: Revision, answers: Answers) -> str:
    """Return why a revision does not compile, empty where it does; raises Unanswered."""
    graph = compiled(view, target.content, answers)
    return str(graph) if isinstance(graph, GraphError) else ""


def incompatible(view: View, target: Revision, instances: Instances, answers: Answers) -> str:
    """
    Return why instances cannot go to a revision that compiles; empty where they can. Raises Unanswered.

    A field that the revision lacks is no reason: as long as an instance needs it, it is served.
    """
    graph = compiled(view, target.content, answers)
    assert isinstance(graph, Graph), "whether it compiles is checked first"
    current = (view.current.number,) if view.current is not None else ()
    others = [one for one in {*instances.needed, *current} if one != target.number]
    try:
        joined(schemas_of(graph), tuple(used_schemas(view, others, answers)))
    except SpecError as conflict:
        return str(conflict)
    if meta.annotations(view.definition).get(ALLOW_BREAKING) == "true":
        return ""
    refused = list(_refused(graph, instances.all))
    if not refused:
        return ""
    more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    return f"the spec is invalid under revision {target.number} of {', '.join(refused[:_SHOWN])}{more}"


def _refused(graph: Graph, instances: Sequence[InstanceFacts]) -> Iterator[str]:
    """Yield the unpinned instances whose spec is invalid under a graph, with the first error of each."""
    for one in instances:
        if one.is_pinned or one.is_deleting:
            continue
        errors = validate(project(one.obj.get("spec") or {}, graph.spec_schema), graph.spec_schema)
        if errors:
            yield f"{one.key} ({errors[0]})"
