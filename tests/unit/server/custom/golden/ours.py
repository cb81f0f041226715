"""What this server's pieces answer, without the server around them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from lamina.errors import ApiError, BadRequest, Cause
from lamina.server import metadata
from lamina.server.builtin.decode import Undecodable, decode
from lamina.server.builtin.defaults import default
from lamina.server.custom import definition, kinds, names
from lamina.server.fields import invalid_error
from lamina.server.kind import Findings, Kind
from lamina.server.builtin import strategy

Made = dict[str, Any]

_KEY = "apiextensions/v1.CustomResourceDefinition"
_STRATEGY = strategy.strategy_of(_KEY)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05Z"


def copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def refused(error: ApiError) -> Made:
    """Return what is compared of an error."""
    status = error.status()
    return {"code": status["code"], "message": status["message"], "causes": causes_of(status)}


def causes_of(status: Made) -> list[list[str]]:
    causes = (status.get("details") or {}).get("causes") or []
    return sorted([one.get("field", ""), one.get("reason", ""), one.get("message", "")] for one in causes)


class _Named:
    """As much of a kind as an error needs to name it."""

    def __init__(self, kind: str, group: str) -> None:
        self.kind, self.group, self.custom, self.plural = kind, group, False, ""
        self.qualified = f"{kind}.{group}"


def _refuse(kind: Any, name: str, causes: Sequence[Cause]) -> None:
    if causes:
        raise invalid_error(kind, name, causes)


def create_definition(body: Made) -> tuple[Made, list[str]]:
    """Return a created definition, established if it can be, and the warnings about it; raises ApiError."""
    crd, findings = copied(body), Findings()
    crd.pop("kind"), crd.pop("apiVersion")
    try:
        crd = decode(_KEY, crd, findings)
    except Undecodable as problem:
        raise BadRequest(f'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: {problem}') from None  # fmt: skip
    default(_KEY, crd)
    strategy.prepare_create(_STRATEGY, crd, STAMP)
    meta = crd.setdefault("metadata", {})
    causes = [
        *metadata.object_meta(meta, "metadata", namespaced=False, rule=lambda name: (), strict=False),
        *definition.validate_create(crd),
    ]
    _refuse(_Named("CustomResourceDefinition", "apiextensions.k8s.io"), meta.get("name", ""), causes)
    crd["status"] = names.status_of(crd, [], NOW)
    return crd, [*findings.sentences, *definition.warn(crd, None)]


def update_definition(old: Made, body: Made) -> tuple[Made, list[str]]:
    """Return a changed definition; raises ApiError."""
    crd, findings = copied(body), Findings()
    crd.pop("kind", None), crd.pop("apiVersion", None)
    crd = decode(_KEY, crd, findings)
    default(_KEY, crd)
    crd["metadata"]["uid"] = old["metadata"].get("uid", "")
    strategy.prepare_update(_STRATEGY, crd, old, "", STAMP)
    _refuse(
        _Named("CustomResourceDefinition", "apiextensions.k8s.io"),
        crd["metadata"]["name"],
        definition.validate_update(crd, old, ""),
    )
    crd["status"] = names.status_of(crd, [], NOW)
    return crd, [*findings.sentences, *definition.warn(crd, old)]


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
