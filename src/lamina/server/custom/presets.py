"""Whether the defaults in a schema are values that the schema itself accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from lamina.errors import Cause
from lamina.server.custom.default import fresh
from lamina.server.custom.document import Document, has_rules, item_schema
from lamina.server.custom.embedded import Embedded, Misfit
from lamina.server.custom.golang import same
from lamina.server.custom.problems import shown_value
from lamina.server.custom.prune import IDENTITY, root_pruner, value_pruner
from lamina.server.custom.walker import Walker
from lamina.server.fields import invalid
from lamina.server.kind import Findings

_Surround = Callable[[Any], Any]
"""Builds the resource around a value that stands somewhere in its metadata."""

_RESOURCE: Final = "x-kubernetes-embedded-resource"


def validate_defaults(document: Document, path: str) -> list[Cause]:
    """Return the defaults that would be pruned, refused, or make metadata that is none."""
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
    resource, judge = surround(fresh(default)), Embedded(root)
    try:
        judge.decode(resource, Findings())
    except Misfit as problem:
        yield invalid(path, shown_value(default), f"must result in valid metadata: {problem}")
        return
    sentences = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in judge.causes(resource)))
    if sentences:
        said = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
        yield invalid(path, shown_value(default), f"must result in valid metadata: {said}")
        return
    yield from _by_schema(node, default, path)


def _by_schema(node: Document, default: Any, path: str) -> list[Cause]:
    """Return what the schema has against its default; rules are asked of one that is otherwise in order."""
    causes = Walker(node, as_default=True).causes(default, path)
    if causes or not has_rules(node):
        return causes
    # Loaded with the first rule: expressions take longer to load than the rest of the server to start.
    from lamina.server.rules.judged import Rules

    rules = Rules(node, resource=bool(node.get(_RESOURCE)))
    return rules.judge(default, default, path, ratchets=False).causes


def _of_value(node: Document, path: str) -> Iterator[Cause]:
    default = node["default"]
    pruned = fresh(default)
    (root_pruner if node.get(_RESOURCE) else value_pruner)(node)(pruned, "", [])
    if not same(pruned, default):
        yield invalid(path, shown_value(default), "must not have unknown fields")
    judge = Embedded(node)
    decoded = fresh(default)
    try:
        judge.decode(decoded, Findings(), path)
    except Misfit as problem:
        yield problem.cause
        return
    causes = list(judge.causes(decoded, path))
    yield from causes or _by_schema(node, default, path)
