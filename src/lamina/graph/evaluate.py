"""
Evaluates a graph for one instance: what is included, rendered, external, ready and gated.

The result is a value, or what it waits for, or why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from msgspec import Struct

from lamina.core.health.probe import ProbeResult, ProbeStatus, has_observed_its_spec
from lamina.errors import BadRequest
from lamina.graph.graph import EACH, Graph, Node, NodeKind
from lamina.graph.outcomes import (
    Failed,
    Pending,
    UnresolvedError,
    evaluated,
    holds,
)
from lamina.graph.pacing import Paced, items_of
from lamina.graph.problems import short
from lamina.graph.report import (
    ConditionsResult,
    author_conditions,
    status_fields,
)
from lamina.graph.reserved import RESERVED_PREFIXES, STEERING
from lamina.graph.scope import Scope, scope
from lamina.objects import meta
from lamina.objects.selectors import EVERYTHING, LabelSelector, from_object
from lamina.objects.types import Made, Obj

__all__ = [
    "MOST_ITEMS", "ConditionsResult", "ExternalSelector", "ExternalTarget", "Failed", "Paced", "Pending",
    "Readiness", "Scope", "author_conditions", "external", "included", "propagates", "ready", "render", "scope",
    "status_fields",
]  # fmt: skip

MOST_ITEMS = 1000
"""How many items a collection may have."""
_SELECTOR_FIELDS = ("matchLabels", "matchExpressions")


class ExternalTarget(Struct, frozen=True):
    """One external object; the namespace is empty for a cluster-scoped kind."""

    namespace: str
    name: str


class ExternalSelector(Struct, frozen=True):
    """The external objects with these labels, in one namespace, or in all where it is None."""

    namespace: str | None
    labels: LabelSelector


class Readiness(ProbeResult, frozen=True):
    """Whether objects are ready; `failed` says that a condition cannot be evaluated, whatever data arrive."""

    failed: bool = False


_READY = Readiness(ProbeStatus.TRUE)


def included(graph: Graph, node: Node, scope: Scope) -> bool | Pending | Failed:
    """
    Say whether all of includeWhen hold. Whether a dependency is included is for the caller to say first.

    A condition on other nodes waits until these are observed and ready. One on the instance alone
    is evaluated first, and fails where its data are missing: no other object will bring them.
    """
    conditions = sorted(
        node.compiled.include_when, key=lambda one: any(id_ in graph.nodes for id_ in one.variables)
    )
    for condition in conditions:
        others = [id_ for id_ in condition.variables if id_ in graph.nodes]
        for id_ in others:
            objects = scope.observed.get(id_)
            if objects is None:
                return Pending(node.id, f'node "{node.id}": includeWhen waits for node "{id_}"')
            found = ready(graph, graph.nodes[id_], scope, objects)
            if not found.is_healthy:
                because = f'node "{node.id}": includeWhen waits for node "{id_}": {found.because}'
                return Failed(node.id, because) if found.failed else Pending(node.id, because)
        try:
            if not holds(condition, scope.variables, "includeWhen"):
                return False
        except UnresolvedError as error:
            outcome = error.outcome(node.id)
            return outcome if others else Failed(node.id, outcome.because)
    return True


def render(
    graph: Graph, node: Node, scope: Scope, *, most_items: int = MOST_ITEMS
) -> tuple[Made, ...] | Pending | Failed:
    """
    Return the rendered object, or all items of a collection in order, outer loop first.

    They have the metadata of their template only, and the namespace of the instance
    where it states none.
    """
    try:
        made = tuple(
            _placed(node, node.compiled.render({**scope.variables, **bindings}), scope)
            for bindings in _iterations(node, scope, most_items)
        )
    except UnresolvedError as error:
        return error.outcome(node.id)
    seen: set[tuple[str, str]] = set()
    for one in made:
        identity = meta.namespace(one), meta.name(one)
        if identity in seen:
            shown = "/".join((node.target.api_version, node.target.kind, *identity))
            return Failed(node.id, f'node "{node.id}": identity collision: duplicate identity: {shown}')
        seen.add(identity)
    return made


def external(graph: Graph, node: Node, scope: Scope) -> ExternalTarget | ExternalSelector | Pending | Failed:
    """Return the external object or objects that a node refers to."""
    try:
        metadata = node.compiled.render(scope.variables)["metadata"]
        if node.kind is NodeKind.EXTERNAL:
            placed = _placed(node, {"metadata": metadata}, scope)
            return ExternalTarget(meta.namespace(placed), meta.name(placed))
        return ExternalSelector(_namespace(metadata) or None, _selector(metadata.get("selector")))
    except UnresolvedError as error:
        return error.outcome(node.id)


def ready(
    graph: Graph, node: Node, scope: Scope, objects: Sequence[Obj], *, desired: int | None = None
) -> Readiness:
    """
    Probe readyWhen on the live objects of a node; all items of a collection have to pass.

    Without conditions what exists is ready. `desired` is how many items a collection has.
    """
    if not node.kind.is_many and not objects:
        return Readiness(ProbeStatus.FALSE, "it does not exist yet")
    if desired is not None and len(objects) < desired:
        return Readiness(ProbeStatus.FALSE, f"{len(objects)} of {desired} items exist")
    if node.compiled.ready_when and not node.kind.is_external:
        # What a status says of an earlier spec is no answer: right after a write all would be ready.
        outdated = next((one for one in map(has_observed_its_spec, objects) if not one.is_healthy), None)
        if outdated is not None:
            return Readiness(outdated.answer, f"its controller {outdated.because}")
    for condition in node.compiled.ready_when:
        for variables, item in _ready_variables(node, condition.variables, objects):
            try:
                if not holds(condition, variables, f"{item}readyWhen"):
                    because = f'{item}readyWhen condition evaluated to false: "{short(condition.text)}"'
                    return Readiness(ProbeStatus.FALSE, because)
            except UnresolvedError as error:
                return Readiness(ProbeStatus.UNKNOWN, error.message, failed=not error.is_pending)
    return _READY


def propagates(
    graph: Graph,
    node: Node,
    scope: Scope,
    objects: Sequence[Paced],
    index: int = 0,
    *,
    most_items: int = MOST_ITEMS,
) -> bool | Pending | Failed:
    """
    Say whether the propagateWhen of a node lets the object at that index be created or changed.

    `objects` are the objects of the node in desired order: the live one, or the rendered one
    where there is none yet. One counts as updated if it has the change and is ready.
    """
    conditions = node.compiled.propagate_when
    if not conditions:
        return True
    try:
        items, iterations = _population(node, scope, objects, most_items)
        variables = {**scope.variables, **iterations[index]}
        variables[node.id] = items if node.kind.is_many else items[index]
        if node.kind.is_many:
            variables[EACH] = items[index]
        return all(holds(one, variables, "propagateWhen") for one in conditions)
    except UnresolvedError as error:
        return error.outcome(node.id)


def _population(
    node: Node, scope: Scope, objects: Sequence[Paced], most: int
) -> tuple[Sequence[Obj], Sequence[Mapping[str, Any]]]:
    """Return the items of a gate and the values of their iterators, computed once for all items of a scope."""
    known = scope.memo.get(node.id)
    if known is None or known[0] is not objects:
        items = items_of([Paced(one.obj, one.updated and one.ready, one.ready) for one in objects])
        known = scope.memo[node.id] = objects, items, _iterations(node, scope, most)
    return known[1], known[2]


def _iterations(node: Node, scope: Scope, most: int) -> Sequence[Mapping[str, Any]]:
    """Return the values of the iterators for each item; one without values for what is no collection."""
    lists: list[list[Any]] = []
    for name, expression in node.compiled.loops:
        found = evaluated(expression, scope.variables, f'forEach "{name}"')
        if not isinstance(found, list):
            raise UnresolvedError(f'forEach "{name}" did not return a list')
        lists.append(found)
    size = prod(map(len, lists))
    if size > most:
        raise UnresolvedError(f"collection size of {size} is over the maximum collection size of {most}")
    return [dict(zip(node.iterators, values, strict=True)) for values in product(*lists)]


def _placed(node: Node, made: Made, scope: Scope) -> Made:
    """Return a rendered object with its namespace; raises UnresolvedError where it has no identity."""
    metadata: Made = made["metadata"]
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise UnresolvedError('path "metadata.name" has no value')
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, Mapping):
            raise UnresolvedError(f'path "metadata.{field}" is no map')
        _check_reserved(metadata.get(field) or {}, field, node)
    if _namespace(metadata) or not node.target.namespaced:
        return made
    if not scope.namespace:
        raise UnresolvedError(
            'path "metadata.namespace" has no value: '
            "it is namespaced and must resolve metadata.namespace when the instance is cluster-scoped"
        )
    return {**made, "metadata": {**metadata, "namespace": scope.namespace}}


def _check_reserved(rendered: Mapping[str, Any], field: str, node: Node) -> None:
    """Raise UnresolvedError where an expression sets what only a controller may set."""
    allowed = STEERING if node.is_generated and field == "annotations" else ()
    for key in rendered:
        prefix = next((prefix for prefix in RESERVED_PREFIXES if key.startswith(prefix)), None)
        if prefix is not None and key not in allowed:
            raise UnresolvedError(
                f'path "metadata.{field}["{key}"]": {field} with prefix "{prefix}" are reserved for internal use'
            )


def _namespace(metadata: Obj) -> str:
    found = metadata.get("namespace") or ""
    if not isinstance(found, str):
        raise UnresolvedError('path "metadata.namespace" is no string')
    return found


def _selector(stated: Any) -> LabelSelector:
    if stated is None:
        return EVERYTHING
    unknown = (
        sorted(set(stated) - {*_SELECTOR_FIELDS}) if isinstance(stated, Mapping) else [type(stated).__name__]
    )
    if unknown:
        # One that is ignored could select everything.
        raise UnresolvedError(f'path "metadata.selector" is no label selector: unknown {", ".join(unknown)}')
    try:
        return from_object(stated)
    except (BadRequest, AttributeError, TypeError) as wrong:
        raise UnresolvedError(f'path "metadata.selector" is no label selector: {wrong}') from None


def _ready_variables(
    node: Node, used: Sequence[str], objects: Sequence[Obj]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the variables that a readyWhen is evaluated with, and the item they are about."""
    if not node.kind.is_many:
        yield {node.id: objects[0]}, ""
        return
    variables = {node.id: list(objects)}
    if EACH not in used:
        yield variables, ""
        return
    for index, one in enumerate(objects):
        yield {**variables, EACH: one}, f"item {index} ({meta.name(one)}): "
