"""
Nodes as they are stated: the form of each resource is checked, and its expressions are parsed.

Types and dependencies come later, because they need all nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.errors import BadRequest
from lamina.graph.expressions import Written, parsed
from lamina.graph.fields import (
    WrittenField,
    fields_of,
    fields_without_schema,
    standalone,
)
from lamina.graph.graph import GraphError, KindSchema, NodeKind
from lamina.graph.naming import check_names
from lamina.graph.object_meta import REFERENCE_SCHEMA, with_object_meta
from lamina.graph.problems import problem
from lamina.graph.reserved import GROUP, RESERVED_PREFIXES, STEERING
from lamina.objects import names, selectors
from lamina.objects.types import GroupKind, Obj

Schemas = Mapping[tuple[str, str], KindSchema]
_DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_SELECTOR_FORM = "selector must be a Kubernetes LabelSelector object or a CEL expression that resolves to one"


class Draft(Struct, frozen=True, kw_only=True):
    """
    A node before types: `stated` is its template, or its externalRef, in the field `where`.

    `loops` are the iterators of a collection, outermost first.
    """

    index: int
    id: str
    kind: NodeKind
    schema: KindSchema
    stated: Obj
    where: str
    fields: tuple[WrittenField, ...]
    loops: tuple[tuple[str, Written], ...] = ()
    include_when: tuple[Written, ...] = ()
    ready_when: tuple[Written, ...] = ()
    propagate_when: tuple[Written, ...] = ()

    @property
    def iterators(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.loops)

    @property
    def expressions(self) -> Iterator[Written]:
        """Yield the expressions that make dependencies, in the order of these fields."""
        yield from (written for field in self.fields for written in field.expressions)
        yield from (written for _, written in self.loops)
        yield from (*self.include_when, *self.propagate_when)

    @property
    def is_namespaced(self) -> bool:
        return self.schema.kind.namespaced


def drafts_of(snapshot: Obj, schemas: Schemas, *, namespaced: bool, most_dimensions: int) -> dict[str, Draft]:
    """Return the drafts of all resources by id, in the order of the list; raises GraphError."""
    check_names(snapshot, most_dimensions)
    stated: Obj = snapshot["schema"]
    own = GroupKind(str(stated.get("group") or GROUP), str(stated["kind"]))
    resources: Sequence[Obj] = snapshot.get("resources") or ()
    found = [
        _draft(index, resource, schemas, own, namespaced=namespaced)
        for index, resource in enumerate(resources)
    ]
    return {one.id: one for one in found}


def _draft(index: int, resource: Obj, schemas: Schemas, own: GroupKind, *, namespaced: bool) -> Draft:
    field, id_ = f"spec.resources[{index}]", str(resource["id"])
    template: Any = resource.get("template")
    reference: Any = resource.get("externalRef")
    if not template and not reference:
        raise problem(field, f'resource "{id_}": exactly one of template or externalRef must be provided')
    if template and reference:
        message = f'resource "{id_}": cannot use externalRef with template'
        raise problem(field, f"{message}: exactly one of template or externalRef must be provided")
    if reference and resource.get("forEach"):
        raise problem(f"{field}.forEach", f'resource "{id_}": cannot use externalRef with forEach')
    stated: Any = template or reference
    where = f"{field}.template" if template else f"{field}.externalRef"
    _check_object(stated, where, id_)
    if template:
        _check_other_kind(template, own, where, id_)
    schema = _schema(stated, where, id_, schemas)
    kind = _node_kind(resource, where)
    _check_metadata(stated, schema, kind, where, id_, namespaced=namespaced)
    return Draft(
        index=index,
        id=id_,
        kind=kind,
        schema=schema,
        stated=stated,
        where=where,
        fields=tuple(_fields(stated, schema, kind, where, id_)),
        loops=tuple(_loops(resource, field)),
        include_when=_conditions(resource, field, "includeWhen"),
        ready_when=_conditions(resource, field, "readyWhen"),
        propagate_when=conditions_of_gate(resource.get("propagateWhen"), f"{field}.propagateWhen"),
    )


def conditions_of_gate(stated: Any, field: str) -> tuple[Written, ...]:
    """Return the parsed expressions of a propagateWhen, where `${}` may be left out."""
    return tuple(
        parsed(standalone(text, f"{field}[{index}]") if "${" in str(text) else str(text), f"{field}[{index}]")
        for index, text in enumerate(stated or ())
    )


def _check_object(stated: Any, where: str, id_: str) -> None:
    fault = "" if isinstance(stated, Mapping) else "it is not a map"
    for name, form, shown in (
        ("apiVersion", str, "a string"),
        ("kind", str, "a string"),
        ("metadata", Mapping, "a map"),
    ):
        if fault:
            break
        if name not in stated:
            fault = f"{name} field not found"
        elif not isinstance(stated[name], form):
            fault = f"{name} field is not {shown}"
    if fault:
        raise problem(where, f"resource {id_} is not a valid Kubernetes object: {fault}")


def _check_other_kind(template: Obj, own: GroupKind, where: str, id_: str) -> None:
    """Refuse a template of the generated kind: each instance would make another one."""
    if GroupKind(template["apiVersion"].rpartition("/")[0], template["kind"]) == own:
        message = (
            f"a definition cannot be a resource of itself: each {own.kind} would make another {own.kind}"
        )
        remedy = "use a template of another kind, or an externalRef to read an instance that exists"
        raise problem(f"{where}.kind", f'resource "{id_}": {message}', remedy)


def _schema(stated: Obj, where: str, id_: str, schemas: Schemas) -> KindSchema:
    api_version, kind = stated["apiVersion"], stated["kind"]
    if "${" in api_version or "${" in kind:
        field = "apiVersion" if "${" in api_version else "kind"
        raise problem(f"{where}.{field}", f"resource {id_}: {field} must be a literal, not an expression")
    if not re.fullmatch(r"[^/]+(/[^/]+)?", api_version):
        message = f'invalid apiVersion format "{api_version}"'
        raise problem(f"{where}.apiVersion", f"failed to extract GVK from resource {id_}: {message}")
    if errors := names.label_1035(kind.lower()):
        message = f'invalid kind "{kind}": {"; ".join(errors)}'
        raise problem(f"{where}.kind", f"failed to extract GVK from resource {id_}: {message}")
    found = schemas.get((api_version, kind))
    if found is None:
        message = f"failed to get schema for resource {id_}: schema not found for {api_version}, Kind={kind}"
        wrong = problem(where, message, "it is compiled again when the server serves that kind")
        wrong.missing = (api_version, kind)
        raise wrong
    return found


def _node_kind(resource: Obj, where: str) -> NodeKind:
    if "externalRef" not in where:
        return NodeKind.COLLECTION if resource.get("forEach") else NodeKind.OBJECT
    metadata = resource["externalRef"]["metadata"]
    if bool(metadata.get("name")) is (metadata.get("selector") is not None):
        raise problem(f"{where}.metadata", "exactly one of name or selector must be provided")
    return NodeKind.EXTERNAL if metadata.get("name") else NodeKind.EXTERNAL_COLLECTION


def _check_metadata(
    stated: Obj, schema: KindSchema, kind: NodeKind, where: str, id_: str, *, namespaced: bool
) -> None:
    metadata: Obj = stated["metadata"]
    field = f"{where}.metadata.namespace"
    if not schema.kind.namespaced:
        if "namespace" in metadata:
            message = f'resource "{id_}" is cluster-scoped and must not set metadata.namespace'
            raise problem(field, message)
    elif not namespaced and kind is not NodeKind.EXTERNAL_COLLECTION:
        namespace = metadata.get("namespace")
        if not isinstance(namespace, str) or not namespace.strip():
            message = "is namespaced and must set metadata.namespace when the instance CRD is cluster-scoped"
            raise problem(field, f'resource "{id_}" {message}')
    for name in ("labels", "annotations"):
        allowed = STEERING if schema.is_generated and name == "annotations" else ()
        _check_reserved(metadata.get(name), f"{where}.metadata.{name}", name.removesuffix("s"), id_, allowed)


def _check_reserved(stated: Any, field: str, what: str, id_: str, allowed: Sequence[str]) -> None:
    for key in stated if isinstance(stated, Mapping) else ():
        prefix = next((prefix for prefix in RESERVED_PREFIXES if key.startswith(prefix)), None)
        if prefix is not None and key not in allowed:
            message = f'invalid {what} for resource "{id_}". {what}s with prefix "{prefix}" are reserved for internal use'
            raise problem(f'{field}["{key}"]', message)


def _fields(stated: Obj, schema: KindSchema, kind: NodeKind, where: str, id_: str) -> Sequence[WrittenField]:
    if kind.is_external:
        return _reference_fields(stated, where)
    if (schema.kind.api_version, schema.kind.kind) == _DEFINITION:
        found, _ = fields_without_schema(stated, where)
        for one in found:
            if one.path[:1] != ("metadata",):
                message = (
                    "CEL expressions in CRDs are only supported for metadata fields, "
                    f'found in path "{one.shown}", resource {id_}'
                )
                raise problem(f"{where}.{one.shown}", message)
        return found
    return fields_of(stated, with_object_meta(schema.schema), where)


def _reference_fields(stated: Obj, where: str) -> Sequence[WrittenField]:
    metadata: Obj = stated["metadata"]
    selector = metadata.get("selector")
    field = f"{where}.metadata.selector"
    if selector is not None and not isinstance(selector, str | Mapping):
        raise problem(field, _SELECTOR_FORM)
    if isinstance(selector, str):
        try:
            standalone(selector, field)
        except GraphError:
            raise problem(field, _SELECTOR_FORM) from None
    found = fields_of(stated, REFERENCE_SCHEMA, where)
    if isinstance(selector, Mapping) and not any(one.path[:2] == ("metadata", "selector") for one in found):
        try:
            selectors.from_object(selector)
        except BadRequest as wrong:
            raise problem(field, f"invalid label selector: {wrong}") from None
    return found


def _loops(resource: Obj, field: str) -> Sequence[tuple[str, Written]]:
    found: list[tuple[str, Written]] = []
    for index, dimension in enumerate(resource.get("forEach") or ()):
        for name, text in dimension.items():
            where = f"{field}.forEach[{index}].{name}"
            found.append((name, parsed(standalone(text, where), where)))
    return found


def _conditions(resource: Obj, field: str, name: str) -> tuple[Written, ...]:
    found: list[Written] = []
    for index, text in enumerate(resource.get(name) or ()):
        where = f"{field}.{name}[{index}]"
        found.append(parsed(standalone(text, where), where))
    return tuple(found)
