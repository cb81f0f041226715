"""Compiles the expressions of nodes with their types, and checks these against the fields they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from lamina.cel.declarations import Environment
from lamina.cel.schema import Declared
from lamina.cel.types import DYN, Kind
from lamina.graph.drafts import Draft
from lamina.graph.expressions import (
    LANGUAGE,
    PACED,
    Expression,
    Written,
    check_is_bool,
    compiled,
    declaring,
)
from lamina.graph.graph import EACH, SCHEMA
from lamina.graph.rendering import Field, Render, compiled_field, renderer
from lamina.graph.types import (
    REFERENCE,
    SELECTOR,
    counted,
    type_at,
    type_of_instance,
    type_of_kind,
    type_of_node,
)
from lamina.objects.types import Obj


class CompiledNode(Struct, frozen=True):
    """What is compiled of a node; `loops` are its iterators, outermost first."""

    render: Render
    loops: tuple[tuple[str, Expression], ...]
    include_when: tuple[Expression, ...]
    ready_when: tuple[Expression, ...]
    propagate_when: tuple[Expression, ...]


def types_of(drafts: Mapping[str, Draft], spec_schema: Obj, *, namespaced: bool) -> dict[str, Declared]:
    """Return the types of the variables of all expressions: the instance and all nodes."""
    nodes = {id_: type_of_node(draft.kind, type_of_kind(draft.schema)) for id_, draft in drafts.items()}
    return {SCHEMA: type_of_instance(spec_schema, namespaced=namespaced), **nodes}


def compile_nodes(
    drafts: Mapping[str, Draft], variables: Mapping[str, Declared], *, may_be_dyn: bool = False
) -> dict[str, CompiledNode]:
    """
    Return the compiled nodes, given the types of the instance and of all nodes; raises GraphError.

    With `may_be_dyn`, a condition or a list whose type is not known is checked when it is evaluated.
    """
    environment = declaring(LANGUAGE, variables)
    return {id_: _compiled(draft, environment, variables, may_be_dyn) for id_, draft in drafts.items()}


def _compiled(
    draft: Draft, environment: Environment, variables: Mapping[str, Declared], may_be_dyn: bool
) -> CompiledNode:
    loops = tuple(
        (name, _loop(draft, name, one, environment, variables, may_be_dyn)) for name, one in draft.loops
    )
    iterators = {name: Declared(DYN if one.type.is_dyn else one.type.params[0]) for name, one in loops}
    within = {**variables, **iterators}
    fields = _fields(draft, declaring(environment, iterators) if iterators else environment, within)
    each = {EACH: type_of_kind(draft.schema)} if draft.kind.is_many else {}
    ready = declaring(environment, each) if each and draft.ready_when else environment
    checked = partial(conditions, id_=draft.id, may_be_dyn=may_be_dyn)
    return CompiledNode(
        renderer(draft.stated, {field.path: field for field in fields}),
        loops,
        checked(draft.include_when, "includeWhen", environment, variables),
        checked(draft.ready_when, "readyWhen", ready, {**variables, **each}),
        _gate(draft, within, may_be_dyn),
    )


def _gate(draft: Draft, variables: Mapping[str, Declared], may_be_dyn: bool) -> tuple[Expression, ...]:
    if not draft.propagate_when:
        return ()
    own = {draft.id: variables[draft.id]}
    if draft.kind.is_many:
        own[draft.id], own[EACH] = counted(variables[draft.id])
    variables = {**variables, **own}
    paced = declaring(PACED, variables)
    return conditions(
        draft.propagate_when, "propagateWhen", paced, variables, draft.id, may_be_dyn=may_be_dyn
    )


def conditions(
    stated: Iterable[Written],
    where: str,
    environment: Environment,
    variables: Mapping[str, Declared],
    id_: str = "",
    *,
    may_be_dyn: bool = False,
) -> tuple[Expression, ...]:
    """Return compiled conditions; raises GraphError where one does not return a bool."""
    found: list[Expression] = []
    for written in stated:
        expression = compiled(written, environment, variables)
        if not (may_be_dyn and expression.type.is_dyn):
            check_is_bool(written, expression, f'{where} of resource "{id_}"' if id_ else where)
        found.append(expression)
    return tuple(found)


def _loop(
    draft: Draft,
    name: str,
    written: Written,
    environment: Environment,
    variables: Mapping[str, Declared],
    may_be_dyn: bool,
) -> Expression:
    found = compiled(written, environment, variables)
    if found.type.kind is not Kind.LIST and not (may_be_dyn and found.type.is_dyn):
        message = f'node "{draft.id}": forEach iterator "{name}" must return a list, got "{found.type}"'
        raise written.problem(message, "", "iterate over a list, as in ${schema.spec.names}")
    return found


def _fields(draft: Draft, environment: Environment, variables: Mapping[str, Declared]) -> Iterator[Field]:
    root = REFERENCE if draft.kind.is_external else type_of_kind(draft.schema).type
    for field in draft.fields:
        expected = type_at(root, field.path)
        if draft.kind.is_external and field.path == ("metadata", "selector"):
            expected = SELECTOR
        where = f'resource "{draft.id}" at path "{field.shown}"'
        yield compiled_field(field, environment, variables, expected, where)
