"""
Whether a schema is structural.

Structure (types, properties, items) is in the trunk of a document; inside `allOf`, `anyOf`,
`oneOf` and `not`, values may only be restricted further. Pruning, defaulting and apply use
only the trunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.errors import Cause
from lamina.objects.go_regexp import InvalidRegexp, tester
from lamina.server.field_errors import forbidden, invalid, required
from lamina.server.kinds.custom.document import Document, item_schema, value_schema

_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_NOT_STRUCTURE: Final = frozenset({"example", "externalDocs"})
"""Keywords that a structural schema does not keep, and so does not compare."""

_MISSING_TYPE: Final = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INTEGER_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
_ONLY_IN_TRUNK: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def structural_error(document: Document) -> str | None:
    """Return why a document cannot be converted to a structural schema, None if it can."""
    for field, name in _UNSUPPORTED:
        if field in document and not (field == "$ref" and not document[field]):
            return f"OpenAPIV3Schema '{name}' is not supported"
    parts = [document["not"]] if "not" in document else []
    for junctor in ("allOf", "anyOf", "oneOf"):
        parts += document.get(junctor, ())
    for part in parts:
        if problem := structural_error(part):
            return problem
    if document.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(document.get("items"), list) and document["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for part in (item_schema(document), *document.get("properties", {}).values(), value_schema(document)):
        if part is not None and (problem := structural_error(part)):
            return problem
    return None


def validate_structure(document: Document, path: str) -> list[Cause]:
    """Return the errors of a document that is not structural, sorted as in kube-apiserver."""
    causes = [*_trunk(document, "root", path), *_counterparts(document, document, path, path)]
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def _trunk(node: Document, level: str, path: str) -> Iterator[Cause]:
    items, values = item_schema(node), value_schema(node)
    if node.get("type") == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if items is not None:
        yield from _trunk(items, "items", f"{path}.items")
    for name, part in node.get("properties", {}).items():
        yield from _trunk(part, "field", f"{path}.properties[{name}]")
    if "additionalProperties" in node and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if values is not None:
        yield from _trunk(values, "field", f"{path}.additionalProperties")
    if node.get("x-kubernetes-int-or-string"):
        for other in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if node.get(other):
                yield invalid(f"{path}.{other}", True, "must be false if x-kubernetes-int-or-string is true")
    yield from _narrowing(
        node, path, skip_any_of=_allows_both(node.get("anyOf")), skip_first=_allows_both_first(node)
    )
    yield from _typed(node, level, path)
    yield from _identity(node, level, path)


def _typed(node: Document, level: str, path: str) -> Iterator[Cause]:
    kind = node.get("type", "")
    embedded = node.get("x-kubernetes-embedded-resource")
    preserves = node.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not node.get("x-kubernetes-int-or-string") and not preserves:
        yield required(f"{path}.type", _MISSING_TYPE[level])
    if embedded and "additionalProperties" in node:
        yield forbidden(
            f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set"
        )
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    if embedded and not preserves and not node.get("properties"):
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields",
        )


def _identity(node: Document, level: str, path: str) -> Iterator[Cause]:
    """Yield errors of what a schema specifies for kind, apiVersion and metadata."""
    properties = node.get("properties", {})
    is_resource = level == "root" or bool(node.get("x-kubernetes-embedded-resource"))
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type") != "string":
            kind = properties[name].get("type", "")
            yield invalid(f"{path}.properties[{name}].type", kind, "must be string")
    if "metadata" not in properties:
        return
    metadata, where = properties["metadata"], f"{path}.properties[metadata]"
    if is_resource and metadata.get("type") != "object":
        yield invalid(f"{where}.type", metadata.get("type", ""), "must be object")
    if level == "root":
        others = set(metadata) - {"type", "default"} - _NOT_STRUCTURE
        if set(metadata.get("properties", {})) <= {"name", "generateName"}:
            others.discard("properties")
        if others:
            yield forbidden(
                where,
                "must not specify anything other than name and generateName, "
                "but metadata is implicitly specified",
            )


def _allows_both(parts: Any) -> bool:
    if not parts or len(parts) != 2:
        return False
    return tuple({k: v for k, v in part.items() if k not in _NOT_STRUCTURE} for part in parts) == (
        _INTEGER_OR_STRING
    )


def _allows_both_first(node: Document) -> bool:
    return bool(node.get("allOf")) and _allows_both(node["allOf"][0].get("anyOf"))


def allows_integer_or_string(node: Document) -> bool:
    """Return whether a node declares integer-or-string in one of the two allowed forms."""
    return _allows_both(node.get("anyOf")) or _allows_both_first(node)


def _narrowing(
    node: Document, path: str, *, skip_any_of: bool = False, skip_first: bool = False
) -> Iterator[Cause]:
    if not skip_any_of:
        for index, part in enumerate(node.get("anyOf", ())):
            yield from _branch(part, f"{path}.anyOf[{index}]")
    for index, part in enumerate(node.get("allOf", ())):
        yield from _branch(part, f"{path}.allOf[{index}]", skip_any_of=skip_first and index == 0)
    for index, part in enumerate(node.get("oneOf", ())):
        yield from _branch(part, f"{path}.oneOf[{index}]")
    if "not" in node:
        yield from _branch(node["not"], f"{path}.not")
    if "pattern" in node:
        try:
            tester(node["pattern"])
        except InvalidRegexp as problem:
            yield invalid(
                f"{path}.pattern",
                node["pattern"],
                f"must be a valid regular expression, but isn't: {problem}",
            )


def _branch(node: Document, path: str, *, skip_any_of: bool = False) -> Iterator[Cause]:
    yield from _narrowing(node, path, skip_any_of=skip_any_of)
    items = item_schema(node)
    if items is not None:
        yield from _branch(items, f"{path}.items")
    properties: Mapping[str, Document] = node.get("properties", {})
    for name, part in properties.items():
        yield from _branch(part, f"{path}.properties[{name}]")
    for field, detail in _ONLY_IN_TRUNK:
        if field in node and not (field == "additionalProperties" and node[field] is False):
            yield forbidden(f"{path}.{field}", detail)
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _counterparts(branch: Document, trunk: Document, path: str, branch_path: str) -> Iterator[Cause]:
    """Yield errors of properties in root branches that the trunk lacks; deeper branches are not checked."""
    if "not" in branch:
        yield from _counterpart(branch["not"], trunk, path, f"{branch_path}.not")
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(branch.get(junctor, ())):
            yield from _counterpart(part, trunk, path, f"{branch_path}.{junctor}[{index}]")


def _counterpart(branch: Document, trunk: Document | None, path: str, branch_path: str) -> Iterator[Cause]:
    if trunk is None:
        yield required(path, f"because it is defined in {branch_path}")
        return
    yield from _counterparts(branch, trunk, path, branch_path)
    items = item_schema(branch)
    if items is not None:
        yield from _counterpart(items, item_schema(trunk), f"{path}.items", f"{branch_path}.items")
    for name, part in branch.get("properties", {}).items():
        where, there = f"{path}.properties[{name}]", f"{branch_path}.properties[{name}]"
        yield from _counterpart(part, trunk.get("properties", {}).get(name), where, there)
