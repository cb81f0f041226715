"""Preview: whether an edited definition would be published, and in which waves its instances would move."""

from __future__ import annotations

from msgspec.structs import replace

from lamina.core.model.queries import Answers, Query
from lamina.core.rollout.preview import Preview
from lamina.errors import LaminaError, SpecError
from lamina.families.resourcegraph.definitions.approval import approval
from lamina.families.resourcegraph.definitions.crd_step import problem
from lamina.families.resourcegraph.definitions.queried import Unanswered, compiled, instances_of
from lamina.families.resourcegraph.definitions.revision_object import last_issued
from lamina.families.resourcegraph.definitions.view import Revision, View
from lamina.families.resourcegraph.definitions.waves import waves
from lamina.graph.graph import GraphError


def preview_definition(view: View, answers: Answers) -> Preview | tuple[Query, ...]:
    """Return what an edited definition would do to its instances, or what has to be asked before that is known."""
    try:
        return _preview(view, answers)
    except Unanswered as missing:
        return missing.queries


def _preview(view: View, answers: Answers) -> Preview:
    if view.spec is None:
        return _refused(view, SpecError(view.error))
    graph = compiled(view, view.content, answers)
    if isinstance(graph, GraphError):
        return _refused(view, graph)
    current = view.current
    if current is not None and view.is_published:
        because = f"revision {current.number} has this content"
        return Preview(owner=view.definition, goal=current.number, changes=(), because=because)
    number = last_issued(view) + 1
    instances, approved = instances_of(view, answers), approval(view)
    checks = approved.checks_compatibility
    if wrong := problem(view, graph, number, instances.needed, answers, checks_compatibility=checks):
        return _refused(view, SpecError(wrong))
    because = f"a new revision, {view.name_of(number)}, would be created"
    if approved.awaited is not None:
        because = f"{because} once it is approved"
    made = Preview(owner=view.definition, goal=number, changes=(), because=because)
    published = Revision(obj={}, number=number, hash=view.hash)
    try:
        return replace(made, changes=tuple(waves(view, published, instances.all)))
    except LaminaError as wrong:
        return replace(made, failure=wrong)


def _refused(view: View, wrong: LaminaError) -> Preview:
    current = view.current.number if view.current is not None else 0
    return Preview(owner=view.definition, goal=current, changes=(), failure=wrong)
