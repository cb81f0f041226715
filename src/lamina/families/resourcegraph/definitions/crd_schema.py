"""
The CRD that a definition generates, as it is to be.

It is of the current revision, with a schema that also keeps the fields of older revisions
that instances need. An edit may not break what is served now, unless that is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from lamina.core.model.queries import Answers
from lamina.families.resourcegraph.definitions.generated_crd import generated_crd
from lamina.families.resourcegraph.definitions.queried import compiled
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.labels import ALLOW_BREAKING
from lamina.graph.graph import Graph, GraphError
from lamina.graph.schemas.compatibility import breaking_crd_changes, refusal
from lamina.graph.schemas.union import union
from lamina.objects import meta
from lamina.objects.types import Made, Obj


class Schemas(Struct, frozen=True):
    """The schemas of the spec and of the author's status fields."""

    spec: Obj
    status: Obj


def schemas_of(graph: Graph) -> Schemas:
    return Schemas(graph.spec_schema, graph.status_schema)


def used_schemas(view: View, numbers: Collection[int], answers: Answers) -> Iterator[Schemas]:
    """
    Yield the schemas of revisions that instances need, newest first.

    One that does not compile any more has the schema that is served now: nothing is
    dropped that it may need.
    """
    for number in sorted(numbers, reverse=True):
        revision = view.numbered(number)
        if revision is None:
            continue
        graph = compiled(view, revision.content, answers)
        if not isinstance(graph, GraphError):
            yield schemas_of(graph)
        elif view.crd is not None:
            yield live_schemas(view.crd)


def live_schemas(crd: Obj) -> Schemas:
    version = crd["spec"]["versions"][0]
    served = ((version.get("schema") or {}).get("openAPIV3Schema") or {}).get("properties") or {}
    return Schemas(served.get("spec") or {}, served.get("status") or {})


def joined(current: Schemas, others: Sequence[Schemas], *, resolves: bool = False) -> Schemas:
    """Return the schemas that serve all of these revisions; raises SpecError unless it `resolves` conflicts of types."""
    return Schemas(
        union(current.spec, [one.spec for one in others], resolves=resolves),
        union(current.status, [one.status for one in others], "status", resolves=resolves),
    )


def desired(view: View, content: Obj, number: int, graph: Graph, others: Sequence[Schemas]) -> Made:
    """Return the CRD of a revision of that content and number, whose schema serves other revisions, too."""
    # A change of a type was allowed explicitly: the newest one is served.
    served = joined(schemas_of(graph), others, resolves=True)
    made = _generated(view, content, number, served)
    # What a server sets, so that the live object equals it.
    return {**made, "spec": {**made["spec"], "conversion": {"strategy": "None"}}}


def _generated(view: View, content: Obj, number: int, served: Schemas) -> Made:
    return generated_crd(view.definition, served.spec, served.status, number, schema=content["schema"])


def replacement(view: View, live: Obj, wanted: Obj) -> Made:
    """Return the live CRD as it is to be; labels and annotations that no revision stated stay."""
    fields: dict[str, Mapping[str, str]] = {}
    for field, found in (("labels", meta.labels(live)), ("annotations", meta.annotations(live))):
        stated = {key for one in view.revisions for key in _metadata(one).get(field) or ()}
        kept = {key: value for key, value in found.items() if key not in stated}
        fields[field] = {**kept, **(meta.metadata(wanted).get(field) or {})}
    return meta.with_metadata({**live, "spec": wanted["spec"]}, **fields)


def _metadata(revision: Revision) -> Obj:
    return revision.content["schema"].get("metadata") or {}


def incompatibility(view: View, graph: Graph, answers: Answers) -> str:
    """Return how the edited content breaks the kind that is served; empty where it does not. Raises Unanswered."""
    before = _published(view, answers)
    if before is None:
        return ""
    after = _generated(view, view.content, 0, schemas_of(graph))
    changes = breaking_crd_changes(before, after)
    remedy = f'annotate the definition with {ALLOW_BREAKING}="true" to allow them'
    return f"{refusal(view.crd_name, changes)}\n{remedy}" if changes else ""


def _published(view: View, answers: Answers) -> Obj | None:
    """Return the CRD of the current revision alone; the live one where that is not known."""
    current = view.current
    graph = compiled(view, current.content, answers) if current is not None else None
    if current is None or graph is None or isinstance(graph, GraphError):
        return view.crd
    return _generated(view, current.content, current.number, schemas_of(graph))
