"""
Going over from kubectl's own apply to that of the server.

kubectl used to remember what it applied in an annotation. While an object still
has one, what it says was applied, and still holds, is kubectl's to change,
whoever is written down as its owner; and each apply by kubectl brings the
annotation up to date, so that one may go back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lamina.merge.check import problems
from lamina.merge.compare import compare, fields_of
from lamina.merge.fieldset import FieldSet, difference
from lamina.merge.node import Node
from lamina.merge.wording import html_escaped
from lamina.objects.types import Obj

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ANNOTATIONS = 256 * 1024


def fields_still_applied(live: Obj, node: Node, version: str) -> FieldSet:
    """Return the fields that the annotation states with the value they have; none where it cannot be understood."""
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


def renewed(obj: Mapping[str, Any], applied: Obj, version: str, kind: str) -> Mapping[str, Any]:
    """Return an object whose annotation, if it has one, says what was applied just now."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    stated = {"apiVersion": version, "kind": kind, **applied}
    metadata = dict(stated.get("metadata") or {})
    if metadata.get("annotations"):
        metadata["annotations"] = {
            key: text for key, text in metadata["annotations"].items() if key != ANNOTATION
        }
    stated["metadata"] = metadata
    text = html_escaped(json.dumps(stated, ensure_ascii=False, sort_keys=True, separators=(",", ":"))) + "\n"
    if text == annotations[ANNOTATION]:
        return obj
    annotations = {**annotations, ANNOTATION: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MOST_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": annotations}}


def _annotations(obj: Obj) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}
