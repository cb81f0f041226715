"""What a decision needs beyond the view: where an answer is missing, the decision ends, and it is queried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from lamina.core.model.memo import Memo
from lamina.core.model.queries import Answer, Answers, Follow, Listed, Query, ReadAll
from lamina.families.resourcegraph.definitions.admission import is_gated
from lamina.families.resourcegraph.definitions.instance_facts import (
    InstanceFacts,
    affected,
    all_facts,
    counts,
    newest_recorded,
    referenced,
)
from lamina.families.resourcegraph.definitions.view import View
from lamina.families.resourcegraph.labels import CONTENT_FROM, ROLLBACK
from lamina.graph.graph import Graph, GraphError
from lamina.objects import meta
from lamina.objects.numbers import positive
from lamina.objects.types import Obj


class Unanswered(Exception):
    """A decision depends on these queries; the plan of the pass consists of them."""

    def __init__(self, queries: tuple[Query, ...]) -> None:
        super().__init__(f"{len(queries)} queries have no answer yet")
        self.queries = queries


def answer(answers: Answers, query: Query) -> Answer:
    """Return the answer to a query; raises Unanswered."""
    found = answers.get(query)
    if found is None:
        raise Unanswered((query,))
    return found


def require(answers: Answers, *queries: Query) -> None:
    """Raise Unanswered with all of these queries that have no answer, so that they are sent together."""
    if missing := tuple(one for one in queries if one not in answers):
        raise Unanswered(missing)


class Instances(Struct, frozen=True):
    """The instances of a definition, and the revisions that may not go because of them or for other reasons."""

    all: Sequence[InstanceFacts]
    needed: frozenset[int]
    counts: Mapping[int, int]
    """How many instances are on each revision; what was last reported, while the kind is not served."""


def instances_of(view: View, answers: Answers) -> Instances:
    """
    Return the instances of the generated kind, as they are cached; raises Unanswered.

    Their changes lead to a pass: any of them where propagateWhen may depend on it, else
    those of what is known of an instance.
    """
    if view.kind is None:
        return Instances((), needed_by(view, ()), _reported_counts(view))
    gated = view.current is not None and is_gated(view.definition, view.current.obj)
    there = answer(answers, Follow(kind=view.kind, affects=None if gated else affected))
    found = all_facts(view.memo, there.objects) if isinstance(there, Listed) else ()
    return Instances(found, needed_by(view, found), counts(found))


def _reported_counts(view: View) -> Mapping[int, int]:
    return {one.number: (one.obj.get("status") or {}).get("instanceCount") or 0 for one in view.revisions}


def live_needed(view: View, answers: Answers) -> frozenset[int] | None:
    """
    Return the revisions that may not go, by live lists of all instances and input revisions; raises Unanswered.

    None where the kind is not served. It is asked before something goes that does not come
    back, because a cache may lack an instance, and an instance may have recorded an input
    revision that its status does not name yet.
    """
    if view.kind is None:
        return None
    of_instances = ReadAll(view.kind, "", whole=True)
    of_inputs = ReadAll(view.input_kind, "") if view.input_kind is not None else None
    require(answers, *(one for one in (of_instances, of_inputs) if one is not None))
    there, inputs = answers.get(of_instances), answers.get(of_inputs) if of_inputs is not None else None
    if not isinstance(there, Listed):
        return None
    recorded = newest_recorded(inputs.objects, there.objects) if isinstance(inputs, Listed) else frozenset()
    return needed_by(view, all_facts(Memo(), there.objects)) | recorded


def needed_by(view: View, instances: Sequence[InstanceFacts]) -> frozenset[int]:
    """Return the revisions that may not go: the current ones, those of instances, and the target of a rollback."""
    annotations = meta.annotations(view.definition)
    targets = {positive(annotations.get(key) or "") for key in (ROLLBACK, CONTENT_FROM)}
    current = view.current.number if view.current is not None else 0
    return referenced(instances) | targets | {current, view.status.get("currentRevision") or 0}


def compiled(view: View, snapshot: Obj, answers: Answers) -> Graph | GraphError:
    """Return the graph of a snapshot, or why it does not compile; raises Unanswered."""
    found = view.graphs.find(snapshot, view.kinds, view.marks, answers)
    if isinstance(found, tuple):
        raise Unanswered(found)
    return found


def graphs_of(view: View, numbers: Collection[int], answers: Answers) -> Mapping[int, Graph | GraphError]:
    """Return the graphs of the revisions of these numbers that exist; raises Unanswered."""
    return {
        one.number: compiled(view, one.content, answers) for one in view.revisions if one.number in numbers
    }
