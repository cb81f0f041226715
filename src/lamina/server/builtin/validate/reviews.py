"""Questions put to the server as objects: access reviews and requests for tokens."""

from __future__ import annotations

from typing import Any

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import label_requirement
from lamina.server.builtin.validate.parts import count, items, part, text
from lamina.server.fields import forbidden, invalid, required


def _shown(attributes: Obj | None) -> Any:
    if attributes is None:
        return None
    return {"Path": text(attributes, "path"), "Verb": text(attributes, "verb")}


def _attributes(spec: Obj) -> list[Cause]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    said: list[Cause] = []
    if resource is not None and other is not None:
        told = "cannot be specified in combination with resourceAttributes"
        said.append(invalid("spec.nonResourceAttributes", _shown(other), told))
    if resource is None and other is None:
        told = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        said.append(invalid("spec.resourceAttributes", None, told))
    return said


def _selectors(spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    attributes = part(spec, "resourceAttributes")
    for field in ("fieldSelector", "labelSelector"):
        selector = attributes.get(field)
        if selector is None:
            continue
        here = f"spec.resourceAttributes.{field}"
        raw, wanted = text(selector, "rawSelector"), items(selector, "requirements")
        if raw and wanted:
            told = "may not specified at the same time as requirements"
            said.append(invalid(f"{here}.rawSelector", raw, told))
        if not raw and not wanted:
            told = f"when {here} is specified, requirements or rawSelector is required"
            said.append(required(f"{here}.requirements", told))
        for index, one in enumerate(wanted):
            where = f"{here}.requirements[{index}]"
            if field == "labelSelector":
                said += label_requirement(one, where, any_operator=True)
            else:
                said += _field_requirement(one, where)
    return said


def _field_requirement(one: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    if not text(one, "key"):
        said.append(required(f"{path}.key", "must be specified"))
    operator, values = text(one, "operator"), items(one, "values")
    if operator in {"In", "NotIn"} and not values:
        said.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in {"Exists", "DoesNotExist"} and values:
        told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        said.append(forbidden(f"{path}.values", told))
    return said


def _empty(obj: Obj, told: str, *allowed: str) -> list[Cause]:
    meta = {key: value for key, value in part(obj, "metadata").items() if key != "managedFields"}
    if set(meta) <= set(allowed):
        return []
    return [invalid("metadata", meta, told)]


def self_access(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    return _attributes(spec) + _selectors(spec) + _empty(obj, "must be empty")


def access(obj: Obj) -> list[Cause]:
    return _subject(part(obj, "spec")) + _empty(obj, "must be empty")


def _subject(spec: Obj) -> list[Cause]:
    said = _attributes(spec)
    if not text(spec, "user") and not items(spec, "groups"):
        said.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return said + _selectors(spec)


def local_access(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    said = _subject(spec) + _empty(obj, "must be empty except for namespace", "namespace")
    namespace = text(part(obj, "metadata"), "namespace")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and text(resource, "namespace") != namespace:
        where = "spec.resourceAttributes.namespace"
        said.append(invalid(where, text(resource, "namespace"), "must match metadata.namespace"))
    if other is not None:
        told = "disallowed on this kind of request"
        said.append(invalid("spec.nonResourceAttributes", _shown(other), told))
    return said


def token_request(obj: Obj) -> list[Cause]:
    seconds = count(part(obj, "spec"), "expirationSeconds")
    path = "spec.expirationSeconds"
    if seconds < 600:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > 1 << 32:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
