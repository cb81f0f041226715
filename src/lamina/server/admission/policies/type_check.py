"""
Type checking of a policy's expressions against the kinds it matches.

A policy compiles with untyped objects. If its constraints name kinds without
wildcards, each expression is checked again with their types, and problems become
warnings in the policy's status; they do not refuse the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from lamina.cel.check import check
from lamina.cel.declarations import Environment
from lamina.cel.errors import CompileError, ConstantError
from lamina.cel.parse import parse
from lamina.cel.schema import declare
from lamina.cel.types import DYN, Type
from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.admission_cel.environment import environment
from lamina.server.kinds.kind import Kind

_MOST_KINDS: Final = 10
_REF: Final = "#/components/schemas/"
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXT: Final = {"type": "string"}
_TYPE_FIELDS: Final = frozenset(
    {
        *("type", "format", "required", "enum", "nullable", "maxLength", "maxItems", "maxProperties"),
        *("x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
    }
)
"""The schema fields that determine types."""

Find = Callable[[str, str, str], Kind | None]
"""Finds a kind by its group, version and plural."""
Definitions = Callable[[str], Mapping[str, Any]]
"""Finds an OpenAPI definition by its name."""


def type_check(spec: Obj, find: Find, named: Callable[[str, str], Kind | None], look_up: Definitions) -> Made:
    """Return the `typeChecking` of a policy's status; `named` finds a kind by apiVersion and kind."""
    kinds = _kinds(spec, find)
    if not kinds:
        return {}
    params: Type | None = None
    if (written := spec.get("paramKind")) is not None:
        kind = named(written.get("apiVersion") or "", written.get("kind") or "")
        params = DYN if kind is None else _type(kind, look_up)
    warnings = []
    types = [(kind, _type(kind, look_up)) for kind in kinds]
    known = [(kind, _environment(spec, type_, params)) for kind, type_ in types if type_ is not None]
    for field, text in _expressions(spec):
        problems = [
            f"{kind.group}/{kind.version}, Kind={kind.kind}: {problem}\n"
            for kind, inside in known
            if (problem := _problem(text, inside))
        ]
        if problems:
            warnings.append({"fieldRef": field, "warning": "\n".join(problems)})
    return {"expressionWarnings": warnings} if warnings else {}


def _expressions(spec: Obj) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            if text := one.get(field):
                yield f"spec.validations[{index}].{field}", text


def _kinds(spec: Obj, find: Find) -> list[Kind]:
    found: dict[tuple[str, str, str], Kind] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in one for one in (*groups, *versions)):
            continue
        resources = [one for one in rule.get("resources") or () if "*" not in one and "/" not in one]
        for group in sorted(groups):
            for version in sorted(versions):
                for resource in sorted(resources):
                    kind = find(group, version, resource)
                    if kind is not None and len(found) < _MOST_KINDS:
                        found[kind.group, kind.version, kind.kind] = kind
    return [found[key] for key in sorted(found)]


def _environment(spec: Obj, about: Type, params: Type | None) -> Environment:
    types: dict[str, Type] = {}
    for one in spec.get("variables") or ():
        inside = environment(params=params, variables=types, about=about)
        types[one.get("name") or ""] = _result(one.get("expression") or "", inside)
    return environment(params=params, variables=types, about=about)


def _result(text: str, inside: Environment) -> Type:
    try:
        return check(parse(text, inside), inside).result
    except CompileError:
        return DYN


def _problem(text: str, inside: Environment) -> str:
    try:
        check(parse(text, inside), inside)
    except ConstantError:
        # Only checked, without evaluating constants.
        return ""
    except CompileError as error:
        return str(error)
    return ""


def _type(kind: Kind, look_up: Definitions) -> Type | None:
    """Return the type of a kind's objects; None if its schema is untyped."""
    if kind.definition:
        return _builtin(kind.definition, kind.kind, look_up)
    if kind.document is None:
        return None
    properties = {
        **(kind.document.get("properties") or {}),
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": _expanded(look_up(_METADATA), look_up, (_METADATA,)),
    }
    declared = declare({**kind.document, "properties": properties}, name=kind.kind, resource=True)
    return None if declared is None else declared.type


@lru_cache(maxsize=128)
def _builtin(name: str, kind: str, look_up: Definitions) -> Type | None:
    declared = declare(_expanded(look_up(name), look_up, (name,)), name=kind, resource=True)
    return None if declared is None else declared.type


def _expanded(schema: Mapping[str, Any], look_up: Definitions, inside: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema with its references resolved; a recursive reference becomes untyped."""
    made: dict[str, Any] = {}
    for part in (schema, *schema.get("allOf", ())):
        name = str(part.get("$ref", "")).removeprefix(_REF)
        if name and name not in inside:
            made |= _expanded(look_up(name), look_up, (*inside, name))
    made |= {field: part for field, part in schema.items() if field in _TYPE_FIELDS}
    if "properties" in schema:
        made["properties"] = {
            name: _expanded(part, look_up, inside) for name, part in schema["properties"].items()
        }
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), Mapping):
            made[field] = _expanded(schema[field], look_up, inside)
    return made
