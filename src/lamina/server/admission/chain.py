"""
Admission policies and webhooks, for one write.

Policies are evaluated synchronously. Webhooks are called over the network, and the
object may change meanwhile: then the write is processed again.
"""

from __future__ import annotations

import orjson

from lamina.objects.types import Made, Obj
from lamina.server.admission.context import AdmissionContext
from lamina.server.admission.options import WriteOptions
from lamina.server.admission.policies.attributes import Attributes
from lamina.server.http.request import Request
from lamina.server.identity import LOOPBACK
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.custom.scale import paths_of, scale_of
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.target import Target


async def review_write(
    context: AdmissionContext,
    request: Request,
    target: Target,
    new: Obj,
    old: Obj | None,
    options: WriteOptions,
) -> None:
    """Review a create or update; raises the error of the first policy or webhook that denies it."""
    given_options = _options(
        request, "CreateOptions" if old is None else "UpdateOptions", dry_run=options.dry_run
    )
    body = None
    version = "" if old is None else old["metadata"]["resourceVersion"]
    if target.below is not None and target.subresource == "scale":
        body = (target.below.group, target.below.version, target.below.kind)
        paths = paths_of(target.kind)
        new, old = scale_of(new, paths), None if old is None else scale_of(old, paths)
    await _review_attributes(
        context, request, target, _attributes(request, target, new, old, given_options, body), version
    )


async def review_delete(
    context: AdmissionContext, request: Request, target: Target, old: Obj, *, dry_run: bool
) -> None:
    """Review a delete."""
    given_options = _options(request, "DeleteOptions", dry_run=dry_run)
    attributes = _attributes(request, target, None, old, given_options)
    await _review_attributes(context, request, target, attributes, old["metadata"]["resourceVersion"])


async def review_subresource(
    context: AdmissionContext, request: Request, target: Target, obj: Obj, options: WriteOptions
) -> None:
    """Review a create on a subresource of an object: an eviction, a binding."""
    below = target.below
    assert below is not None
    metadata = {**(obj.get("metadata") or {}), "namespace": target.namespace}
    version = f"{below.group}/{below.version}" if below.group else below.version
    new = {**obj, "apiVersion": version, "kind": below.kind, "metadata": metadata}
    given_options = _options(request, "CreateOptions", dry_run=options.dry_run)
    body = (below.group, below.version, below.kind)
    await _review_attributes(
        context, request, target, _attributes(request, target, new, None, given_options, body), ""
    )


def _options(request: Request, kind: str, *, dry_run: bool) -> Made:
    """Return the options object of a request."""
    given_options: Made = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if dry_run:
        given_options["dryRun"] = ["All"]
    for name in ("fieldManager", "fieldValidation"):
        if kind != "DeleteOptions" and (given := request.parameter(name)):
            given_options[name] = given
    return given_options


def _attributes(
    request: Request,
    target: Target,
    new: Obj | None,
    old: Obj | None,
    options: Made,
    body: tuple[str, str, str] | None = None,
) -> Attributes:
    kind = target.kind
    return Attributes(
        operation="DELETE" if new is None else "CREATE" if old is None else "UPDATE",
        kind=kind,
        # For admission, a Namespace object is in itself.
        namespace=target.name if kind.bucket == "namespaces" else target.namespace,
        name=target.name,
        subresource=target.subresource,
        new=new,
        old=old,
        user=request.user,
        dry_run="dryRun" in options,
        options=options,
        convert=lambda obj, other: other.shape.read(kind.shape.store(orjson.loads(orjson.dumps(obj)))),
        body=body,
    )


class ObjectChanged(Exception):
    """The object was changed by another write while webhooks were called."""


async def _review_attributes(
    context: AdmissionContext, request: Request, target: Target, attributes: Attributes, version: str
) -> None:
    if request.user is LOOPBACK:
        # A policy, or a webhook whose server is gone, must not prevent the control plane from starting.
        return
    for sentence in context.policies.review(attributes):
        request.warn(sentence)
    matched = context.webhooks.matching(attributes)
    if not matched:
        return
    for sentence in await context.dispatcher.call(attributes, matched, [context.new_uid() for _ in matched]):
        request.warn(sentence)
    if version and target.name:
        row = context.store.newest(target.key)
        if row is None or str(row.version) != version:
            raise ObjectChanged


def set_type_checking(context: AdmissionContext, policy: Made) -> None:
    """Set `status.typeChecking` of a policy: its expressions are checked against the kinds it matches."""
    # Loaded with the first policy: CEL loads slower than the rest of the server.
    from lamina.server.admission.policies.type_check import type_check

    registry = context.registry

    def named(version: str, name: str) -> Kind | None:
        return next((one for one in registry.kinds() if (one.api_version, one.kind) == (version, name)), None)

    policy["status"] = {
        **(policy.get("status") or {}),
        "observedGeneration": policy["metadata"].get("generation", 1),
        "typeChecking": type_check(policy.get("spec") or {}, registry.find, named, definition),
    }
