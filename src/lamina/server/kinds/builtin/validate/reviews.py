"""Access reviews and token requests."""

from __future__ import annotations

from typing import Any

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.field_errors import forbidden, invalid, required
from lamina.server.kinds.builtin.validate.labels import label_requirement
from lamina.server.kinds.builtin.validate.parts import count, items, part, text


def _printed(attributes: Obj | None) -> Any:
    if attributes is None:
        return None
    return {"Path": text(attributes, "path"), "Verb": text(attributes, "verb")}


def _attributes(spec: Obj) -> list[Cause]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[Cause] = []
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid("spec.nonResourceAttributes", _printed(other), detail))
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid("spec.resourceAttributes", None, detail))
    return causes


def _selectors(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    attributes = part(spec, "resourceAttributes")
    for field in ("fieldSelector", "labelSelector"):
        selector = attributes.get(field)
        if selector is None:
            continue
        item_path = f"spec.resourceAttributes.{field}"
        raw, wanted = text(selector, "rawSelector"), items(selector, "requirements")
        if raw and wanted:
            detail = "may not specified at the same time as requirements"
            causes.append(invalid(f"{item_path}.rawSelector", raw, detail))
        if not raw and not wanted:
            detail = f"when {item_path} is specified, requirements or rawSelector is required"
            causes.append(required(f"{item_path}.requirements", detail))
        for index, one in enumerate(wanted):
            where = f"{item_path}.requirements[{index}]"
            if field == "labelSelector":
                causes += label_requirement(one, where, any_operator=True)
            else:
                causes += _field_requirement(one, where)
    return causes


def _field_requirement(one: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not text(one, "key"):
        causes.append(required(f"{path}.key", "must be specified"))
    operator, values = text(one, "operator"), items(one, "values")
    if operator in {"In", "NotIn"} and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in {"Exists", "DoesNotExist"} and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(forbidden(f"{path}.values", detail))
    return causes


def _empty(obj: Obj, detail: str, *allowed: str) -> list[Cause]:
    meta = {key: value for key, value in part(obj, "metadata").items() if key != "managedFields"}
    if set(meta) <= set(allowed):
        return []
    return [invalid("metadata", meta, detail)]


def self_access(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    return _attributes(spec) + _selectors(spec) + _empty(obj, "must be empty")


def access(obj: Obj) -> list[Cause]:
    return _subject(part(obj, "spec")) + _empty(obj, "must be empty")


def _subject(spec: Obj) -> list[Cause]:
    causes = _attributes(spec)
    if not text(spec, "user") and not items(spec, "groups"):
        causes.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return causes + _selectors(spec)


def local_access(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    causes = _subject(spec) + _empty(obj, "must be empty except for namespace", "namespace")
    namespace = text(part(obj, "metadata"), "namespace")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and text(resource, "namespace") != namespace:
        where = "spec.resourceAttributes.namespace"
        causes.append(invalid(where, text(resource, "namespace"), "must match metadata.namespace"))
    if other is not None:
        detail = "disallowed on this kind of request"
        causes.append(invalid("spec.nonResourceAttributes", _printed(other), detail))
    return causes


def token_request(obj: Obj) -> list[Cause]:
    seconds = count(part(obj, "spec"), "expirationSeconds")
    path = "spec.expirationSeconds"
    if seconds < 600:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > 1 << 32:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
