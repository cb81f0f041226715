"""
The dependencies of nodes: the other nodes that their expressions refer to.

Templates, external references, forEach, includeWhen and propagateWhen make dependencies.
readyWhen does not: it is about the node itself. Variables of loops within an expression
are no references.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from lamina.graph.drafts import Draft
from lamina.graph.expressions import (
    Written,
    check_does_not_omit,
    check_paced,
    check_references,
)
from lamina.graph.graph import EACH, SCHEMA, NodeKind
from lamina.graph.order import cycle_in
from lamina.graph.problems import problem

_NAME, _NAMESPACE = ("metadata", "name"), ("metadata", "namespace")


def dependencies_of(
    drafts: Mapping[str, Draft], *, namespaced: bool, omit: bool
) -> dict[str, tuple[str, ...]]:
    """
    Return the dependencies of each node, in the order of the list; raises GraphError.

    `omit` says whether templates may use `omit()`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for id_, draft in drafts.items():
        named = [*_from_template(draft, drafts, namespaced=namespaced, omit=omit)]
        _check_identity(draft)
        for written in _others(draft, drafts):
            named += _nodes(draft, written, drafts)
        for written in draft.propagate_when:
            own = (id_, EACH) if draft.kind.is_many else (id_,)
            check_paced(written, (SCHEMA, *drafts, *draft.iterators, *own))
            named += [name for name in written.variables if name in drafts and name != id_]
        _check_ready(draft)
        found[id_] = tuple(dict.fromkeys(named))
    _check_cycles(found, drafts)
    return found


def _from_template(draft: Draft, drafts: Collection[str], *, namespaced: bool, omit: bool) -> Iterator[str]:
    for field in draft.fields:
        for written in field.expressions:
            if written.omits:
                _check_omit(draft, written, field.path, namespaced=namespaced, omit=omit)
            yield from _nodes(draft, written, drafts, draft.iterators)


def _check_omit(
    draft: Draft, written: Written, path: Sequence[str | int], *, namespaced: bool, omit: bool
) -> None:
    if not omit:
        message = "omit() requires the CELOmitFunction feature gate to be enabled"
        raise written.problem(message, "omit", "start with --feature-gates=CELOmitFunction=true")
    needs_namespace = (
        draft.is_namespaced and not namespaced and draft.kind is not NodeKind.EXTERNAL_COLLECTION
    )
    if path == _NAME or (path == _NAMESPACE and needs_namespace):
        message = (
            f'resource "{draft.id}": omit() cannot be used at path "{".".join(map(str, path))}": '
            "the field is required and must resolve to a concrete value"
        )
        raise written.problem(message, "omit")


def _others(draft: Draft, drafts: Collection[str]) -> Iterator[Written]:
    for name, written in draft.loops:
        check_does_not_omit(written)
        others = [one for one in written.variables if one in draft.iterators]
        if others:
            message = (
                f'node "{draft.id}": forEach iterator "{name}" cannot reference other iterators '
                f"[{', '.join(others)}]: forEach iterators are independent (cartesian product)"
            )
            raise written.problem(message, others[0])
        yield written
    for written in draft.include_when:
        check_does_not_omit(written)
        yield written


def _nodes(
    draft: Draft, written: Written, drafts: Collection[str], iterators: Collection[str] = ()
) -> Iterator[str]:
    """Yield the nodes that an expression refers to; raises GraphError for anything else that is no variable."""
    if "runtime" in written.variables:
        raise written.problem("runtime is only available in status.conditions expressions", "runtime")
    check_references(written, (SCHEMA, *drafts, *iterators))
    for name in written.variables:
        if name == draft.id:
            raise written.problem(f'node "{draft.id}": self references are not allowed', name)
        if name in drafts:
            yield name


def _check_ready(draft: Draft) -> None:
    allowed: tuple[str, ...]
    match draft.kind:
        case NodeKind.COLLECTION:
            allowed = (EACH,)
        case NodeKind.EXTERNAL_COLLECTION:
            allowed = (draft.id, EACH)
        case _:
            allowed = (draft.id,)
    for written in draft.ready_when:
        check_does_not_omit(written)
        check_references(written, allowed, f'resource "{draft.id}" readyWhen: ')


def _check_identity(draft: Draft) -> None:
    """Raise GraphError where items of a collection may have the same name."""
    used = {
        name
        for field in draft.fields
        if field.path in (_NAME, _NAMESPACE)
        for written in field.expressions
        for name in written.variables
    }
    missing = [name for name in draft.iterators if name not in used]
    if missing:
        message = (
            f'node "{draft.id}": all forEach dimensions must be used to produce a unique resource identity, '
            f"missing: [{', '.join(missing)}]"
        )
        remedy = f"use {' and '.join(missing)} in metadata.name"
        raise problem(f"{draft.where}.metadata.name", message, remedy)


def _check_cycles(dependencies: Mapping[str, Sequence[str]], drafts: Mapping[str, Draft]) -> None:
    cycle = cycle_in(dependencies)
    if cycle:
        remedy = f"remove one of the references; {cycle[0]} cannot wait for itself"
        reference = next(one for one in drafts[cycle[0]].expressions if cycle[1] in one.variables)
        raise reference.problem(f"graph contains a cycle: {' -> '.join(cycle)}", cycle[1], remedy)
