"""Plays a case to our own pieces, with what the real server chose (uid, times, addresses) taken over."""

from __future__ import annotations

import copy
import json
from datetime import datetime
from functools import cache
from typing import Any

from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.server.kinds.builtin.codec import BuiltinCodec
from lamina.server.kinds.builtin.csr import sign_request
from lamina.server.kinds.builtin.services import allocate
from lamina.server.kinds.kind import Findings
from tests.unit.server.builtin.golden.cases import Case
from tests.unit.server.builtin.golden.record import ANSWERS

_GIVEN = ("namespace", "uid", "creationTimestamp")


@cache
def answers() -> dict[str, Any]:
    """Return what was recorded, by case."""
    return {answer["case"]: answer for answer in map(json.loads, ANSWERS.read_text().splitlines())}


def created(case: Case, real: dict[str, Any]) -> dict[str, Any]:
    """Return what we make of a case's body."""
    writing = _writing(case, real["metadata"]["creationTimestamp"])
    obj = writing.decode(copy.deepcopy(case.body), Findings())
    for name in _GIVEN:
        obj["metadata"].pop(name, None)
        if name in real["metadata"]:
            obj["metadata"][name] = real["metadata"][name]
    writing.default(obj)
    writing.prepare_create(obj)
    if case.path.endswith("/services"):
        _allocate(obj, None, real)
    return _finished(writing, obj, real)


def updated(case: Case, endpoint: str, body: dict[str, Any], before: Any, real: Any) -> dict[str, Any]:
    """Return what we make of a change to an object that was `before`."""
    writing = _writing(case, _moment(real))
    old = {name: part for name, part in before.items() if name not in ("kind", "apiVersion")}
    kept = copy.deepcopy(old)
    obj = writing.decode(copy.deepcopy(body), Findings())
    for name in _GIVEN:
        if name in old["metadata"]:
            obj["metadata"][name] = old["metadata"][name]
    writing.default(obj)
    writing.prepare_update(obj, old, endpoint)
    if case.path.endswith("/services"):
        _allocate(obj, old, real)
    assert old == kept, "the old object was changed"
    return _finished(writing, obj, real)


def _writing(case: Case, stamp: str) -> BuiltinCodec:
    resource = next(one for one in CATALOGUE if one.definition == case.definition)
    return BuiltinCodec(resource, lambda: datetime.fromisoformat(stamp))


def _allocate(obj: Any, old: Any, real: Any) -> None:
    """Give a Service what the real server gave it, where we would give it something at all."""
    allocate(obj, old, set(), choose=lambda size: 0)
    spec, theirs = obj["spec"], real["spec"]
    for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if name in spec and name in theirs:
            spec[name] = theirs[name]
    for ours, port in zip(spec.get("ports") or (), theirs.get("ports") or (), strict=False):
        if "nodePort" in ours and "nodePort" in port:
            ours["nodePort"] = port["nodePort"]


def _finished(writing: BuiltinCodec, obj: Any, real: Any) -> dict[str, Any]:
    if writing.converts:
        obj = writing.read(writing.store(obj))
    if real["kind"] == "CertificateSigningRequest":
        spec = real["spec"]
        sign_request(obj, spec["username"], spec.get("uid", ""), spec["groups"], spec.get("extra", {}))
    shown: dict[str, Any] = {name: real[name] for name in ("kind", "apiVersion")} | obj
    return shown


def _moment(real: Any) -> str:
    """Return the time a write was stamped with, wherever the real answer shows one; any will do where it does not."""
    status = real.get("status") or {}
    times = [condition.get("lastUpdateTime") for condition in status.get("conditions") or ()]
    times.append(status.get("lastPhaseTransitionTime"))
    return next(filter(None, times), "2026-01-01T00:00:00Z")
