"""Validation of the defaults in a schema by the schema itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from lamina.errors import Cause
from lamina.server.field_errors import invalid
from lamina.server.kinds.custom.default import fresh
from lamina.server.kinds.custom.document import Document, has_rules, item_schema
from lamina.server.kinds.custom.embedded import Embedded, MetadataMismatch
from lamina.server.kinds.custom.go_values import same
from lamina.server.kinds.custom.prune import IDENTITY, root_pruner, value_pruner
from lamina.server.kinds.custom.schema_errors import shown_value
from lamina.server.kinds.custom.validator import Validator
from lamina.server.kinds.kind import Findings

_Surround = Callable[[Any], Any]
"""Builds the resource around a value inside its metadata."""

_RESOURCE: Final = "x-kubernetes-embedded-resource"


def validate_defaults(document: Document, path: str) -> list[Cause]:
    """Return the errors of defaults that would be pruned, that are invalid, or that make metadata invalid."""
    root = {**document, _RESOURCE: True}
    return list(_node(root, path, root, _resource, in_metadata=False))


def _resource(value: Any) -> Any:
    made = value if isinstance(value, dict) else {}
    return {"kind": "Validation", "apiVersion": "validation/v1", **made}


def _inside(surround: _Surround, name: str) -> _Surround:
    return lambda value: surround({name: value})


def _listed(surround: _Surround) -> _Surround:
    return lambda value: surround([value])


def _node(
    node: Document, path: str, root: Document, surround: _Surround, *, in_metadata: bool
) -> Iterator[Cause]:
    if node.get(_RESOURCE):
        in_metadata, root, surround = False, node, _resource
    if "default" in node:
        where = f"{path}.default"
        if in_metadata:
            yield from _of_metadata(node, where, root, surround)
        else:
            yield from _of_value(node, where)
    items = item_schema(node)
    if items is not None:
        yield from _node(items, f"{path}.items", root, _listed(surround), in_metadata=in_metadata)
    for name, part in node.get("properties", {}).items():
        yield from _node(
            part,
            f"{path}.properties[{name}]",
            root,
            _inside(surround, name),
            in_metadata=in_metadata or (bool(node.get(_RESOURCE)) and name in IDENTITY),
        )


def _of_metadata(node: Document, path: str, root: Document, surround: _Surround) -> Iterator[Cause]:
    default = node["default"]
    resource, validator = surround(fresh(default)), Embedded(root)
    try:
        validator.decode(resource, Findings())
    except MetadataMismatch as problem:
        yield invalid(path, shown_value(default), f"must result in valid metadata: {problem}")
        return
    sentences = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in validator.causes(resource)))
    if sentences:
        text = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
        yield invalid(path, shown_value(default), f"must result in valid metadata: {text}")
        return
    yield from _by_schema(node, default, path)


def _by_schema(node: Document, default: Any, path: str) -> list[Cause]:
    """Return the errors of a default by its schema; rules are evaluated if there are no other errors."""
    causes = Validator(node, as_default=True).causes(default, path)
    if causes or not has_rules(node):
        return causes
    # Loaded with the first rule, because CEL loads slower than the rest of the server.
    from lamina.server.kinds.custom.cel_rules.rules import Rules

    rules = Rules(node, resource=bool(node.get(_RESOURCE)))
    return rules.validate(default, default, path, ratchets=False).causes


def _of_value(node: Document, path: str) -> Iterator[Cause]:
    default = node["default"]
    pruned = fresh(default)
    (root_pruner if node.get(_RESOURCE) else value_pruner)(node)(pruned, "", [])
    if not same(pruned, default):
        yield invalid(path, shown_value(default), "must not have unknown fields")
    validator = Embedded(node)
    decoded = fresh(default)
    try:
        validator.decode(decoded, Findings(), path)
    except MetadataMismatch as problem:
        yield problem.cause
        return
    causes = list(validator.causes(decoded, path))
    yield from causes or _by_schema(node, default, path)
