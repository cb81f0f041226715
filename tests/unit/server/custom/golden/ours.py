"""What this server's pieces answer, without the server around them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from lamina.errors import ApiError, Cause
from lamina.server.kinds import metadata
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.custom import kinds, names
from lamina.server.kinds.kind import Findings, Kind, invalid_error

Made = dict[str, Any]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CRD = next(kind for kind in builtin_kinds(lambda: NOW) if kind.kind == "CustomResourceDefinition")


def copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def refused(error: ApiError) -> Made:
    """Return what is compared of an error."""
    status = error.status()
    return {"code": status["code"], "message": status["message"], "causes": causes_of(status)}


def causes_of(status: Made) -> list[list[str]]:
    causes = (status.get("details") or {}).get("causes") or []
    return sorted([one.get("field", ""), one.get("reason", ""), one.get("message", "")] for one in causes)


def _refuse(kind: Kind, name: str, causes: Sequence[Cause]) -> None:
    if causes:
        raise invalid_error(kind, name, causes)


def create_definition(body: Made) -> tuple[Made, list[str]]:
    """Return a created definition, established if it can be, and the warnings about it; raises ApiError."""
    crd, findings = _read(CRD, body)
    CRD.shape.default(crd)
    CRD.shape.prepare_create(crd)
    name = crd.setdefault("metadata", {}).get("name", "")
    _refuse(CRD, name, [*metadata.validate_create(CRD, crd), *CRD.shape.validate_create(crd)])
    crd["status"] = names.definition_status(crd, [], NOW)
    return crd, [*findings.sentences, *CRD.shape.warn(crd, None)]


def update_definition(old: Made, body: Made) -> tuple[Made, list[str]]:
    """Return a changed definition; raises ApiError."""
    crd, findings = _read(CRD, body)
    CRD.shape.default(crd)
    crd["metadata"] = {**old["metadata"], **crd["metadata"]}
    CRD.shape.prepare_update(crd, old, "")
    causes = [*metadata.validate_update(CRD, crd, old), *CRD.shape.validate_update(crd, old, "")]
    _refuse(CRD, crd["metadata"]["name"], causes)
    crd["status"] = names.definition_status(crd, [], NOW)
    return crd, [*findings.sentences, *CRD.shape.warn(crd, old)]


def create_object(kind: Kind, body: Made) -> tuple[Made, list[str]]:
    """Return an object as it is shown after its creation, and the warnings about it; raises ApiError."""
    obj, findings = _read(kind, body)
    obj.setdefault("metadata", {})["namespace"] = "default"
    kind.shape.default(obj)
    kind.shape.prepare_create(obj)
    name = obj["metadata"].get("name", "")
    _refuse(kind, name, [*metadata.validate_create(kind, obj), *kind.shape.validate_create(obj)])
    return kind.shape.read(copied(kind.shape.store(obj))), findings.sentences


def update_object(kind: Kind, old: Made, body: Made, subresource: str = "") -> tuple[Made, list[str]]:
    """Return an object as it is shown after a change; raises ApiError."""
    before = kind.shape.read(copied(old))
    obj, findings = _read(kind, body)
    obj["metadata"]["namespace"] = "default"
    kind.shape.default(obj)
    obj["metadata"]["generation"] = before["metadata"].get("generation")
    kind.shape.prepare_update(obj, before, subresource)
    _refuse(kind, before["metadata"]["name"], kind.shape.validate_update(obj, before, subresource))
    return kind.shape.read(copied(kind.shape.store(obj))), findings.sentences


def _read(kind: Kind, body: Made) -> tuple[Made, Findings]:
    obj, findings = copied(body), Findings()
    obj.pop("kind", None), obj.pop("apiVersion", None)
    return kind.shape.decode(obj, findings), findings


def kinds_of(crd: Made) -> dict[str, Kind]:
    """Return the kinds of a definition by version."""
    return {kind.version: kind for kind in kinds.kinds_of(crd)}
