"""
Migration from kubectl's client-side apply to server-side apply.

Client-side apply records the applied configuration in an annotation. While an
object has it, kubectl may change the recorded fields that still have their
recorded values, whichever manager owns them; and each server-side apply by
kubectl updates the annotation, so that client-side apply keeps working.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lamina.merge.compare import compare, fields_of
from lamina.merge.fieldset import FieldSet, difference
from lamina.merge.go_format import html_escaped
from lamina.merge.schema_node import Node
from lamina.merge.typed_check import problems
from lamina.objects.types import Obj

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ANNOTATIONS = 256 * 1024


def fields_still_applied(live: Obj, node: Node, version: str) -> FieldSet:
    """Return the fields that the annotation has with their live values; none where it cannot be decoded."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return {}
    try:
        last = json.loads(text)
    except ValueError:
        return {}
    if (
        not isinstance(last, dict)
        or last.get("apiVersion") != version
        or problems(last, node)
        or problems(live, node)
    ):
        return {}
    changed, removed = compare(last, live, node)
    return difference(difference(fields_of(last, node), changed), removed)


def with_annotation_updated(
    obj: Mapping[str, Any], applied: Obj, version: str, kind: str
) -> Mapping[str, Any]:
    """Return an object whose annotation, if it has one, records this apply."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    configuration = {"apiVersion": version, "kind": kind, **applied}
    metadata = dict(configuration.get("metadata") or {})
    if metadata.get("annotations"):
        metadata["annotations"] = {
            key: text for key, text in metadata["annotations"].items() if key != ANNOTATION
        }
    configuration["metadata"] = metadata
    text = (
        html_escaped(json.dumps(configuration, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
        + "\n"
    )
    if text == annotations[ANNOTATION]:
        return obj
    annotations = {**annotations, ANNOTATION: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MOST_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": annotations}}


def _annotations(obj: Obj) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}
