"""
Descriptions of kinds and fields, kept apart from the schemas that they are put into.

A description is found by the end of a field's path: `taints.key` is used for
`spec.taints.key`, and `key` where no longer end is known. So a structure that occurs
in many places is described once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lamina.objects.types import Made, Obj

_METADATA = "metadata"

COMMON: Mapping[str, str] = {
    "apiVersion": "The version of the schema of this object.",
    "kind": "The kind of this object, in CamelCase.",
    "spec": "The desired state.",
    "status": "The observed state, written by controllers.",
    "conditions": "The latest observations of the object, one of each type.",
    "conditions.type": "The type of the condition.",
    "conditions.status": "Whether the condition holds: True, False or Unknown.",
    "conditions.reason": "Why the condition has this status, as one word in CamelCase.",
    "conditions.message": "Why the condition has this status, as a sentence.",
    "conditions.lastTransitionTime": "When the status of the condition last changed.",
    "conditions.observedGeneration": "The metadata.generation of the object that the condition is about.",
    "matchLabels": "Labels that have to be present with these values.",
    "matchExpressions": "Requirements that all have to be met.",
    "matchExpressions.key": "The key that the requirement is about.",
    "matchExpressions.operator": "How the values are compared: In, NotIn, Exists or DoesNotExist.",
    "matchExpressions.values": "The values for In and NotIn; empty for Exists and DoesNotExist.",
    "labelSelector": "Selects objects by their labels.",
}
"""What every family describes in the same way."""


def described(schema: Obj, descriptions: Mapping[str, str], kind: str = "") -> Made:
    """
    Return the schema of a kind with its description and that of each of its fields; KeyError names a field that has none.

    `kind` says what the kind itself is for, which `kubectl explain` prints first. The API server
    describes metadata itself, and refuses a schema that does.
    """
    made = _described(schema, {**COMMON, **descriptions}, ())
    return {"description": kind, **made} if kind else made


def undescribed(schema: Obj) -> Iterator[str]:
    """Yield the paths of the fields of the schema of a kind that have no description; that of the kind is empty."""
    if not str(schema.get("description") or "").strip():
        yield ""
    yield from (path for path in _undescribed(schema, "") if path != _METADATA)


def _described(schema: Obj, descriptions: Mapping[str, str], path: tuple[str, ...]) -> Made:
    made: Made = dict(schema)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), Mapping):
            made[inner] = _described(schema[inner], descriptions, path)
    if "properties" in schema:
        made["properties"] = {
            name: _field(field, descriptions, (*path, name)) for name, field in schema["properties"].items()
        }
    return made


def _field(field: Obj, descriptions: Mapping[str, str], path: tuple[str, ...]) -> Made:
    made = _described(field, descriptions, path)
    return made if path == (_METADATA,) else {**made, "description": _find(descriptions, path)}


def _find(descriptions: Mapping[str, str], path: tuple[str, ...]) -> str:
    ends = (".".join(path[start:]) for start in range(len(path)))
    found = next((descriptions[end] for end in ends if end in descriptions), None)
    if found is None:
        raise KeyError(".".join(path))
    return found


def _undescribed(schema: Obj, path: str) -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        if not str(field.get("description") or "").strip():
            yield path + name
        yield from _undescribed(field, f"{path}{name}.")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), Mapping):
            yield from _undescribed(schema[inner], path)
