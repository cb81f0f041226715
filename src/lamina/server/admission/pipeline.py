"""
Admission of a write: decode, default, set metadata, run kind hooks, track field managers, validate.

The result is an object to store, or an error that names the field. Nothing is
stored here; the verbs do that.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from lamina.errors import BadRequest, Cause, Unclassified
from lamina.merge.apply import track_update
from lamina.merge.managed import Manager, differ_only_in_time
from lamina.merge.schema import Schema
from lamina.objects.digest import SAFE
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.chain import review_write, set_type_checking
from lamina.server.admission.context import AdmissionContext
from lamina.server.admission.options import WriteOptions
from lamina.server.admission.plugins import PLUGIN_BUCKETS, Denied, mutate
from lamina.server.admission.policies.active import POLICIES
from lamina.server.codec import body as bodies
from lamina.server.codec.empties import remove_empties, restore_empties
from lamina.server.codec.typemeta import check_type
from lamina.server.decode_errors import DecodeError, unrecognized
from lamina.server.http.request import Request
from lamina.server.kinds import metadata as meta
from lamina.server.kinds.kind import Findings, Kind, RatchetedCause, invalid_error
from lamina.server.kinds.target import Target
from lamina.server.storage.store import Key

NAMESPACES = "namespaces"


def read_body(request: Request, target: Target, options: WriteOptions) -> Made:
    """Return the object in a request's body, decoded as its kind; unknown fields are reported as requested."""
    findings = Findings()
    content = request.headers.get("content-type", "")
    kind = target.kind
    if kind.custom and bodies.media_type(content) == bodies.PROTOBUF:
        raise bodies.unsupported("application/json, application/yaml")
    try:
        parsed = bodies.parse(request.body, content, findings, (kind.api_version, kind.kind))
    except DecodeError as problem:
        # The decoder's message names the kind already.
        if problem.message != problem.why:
            raise
        raise unrecognized(kind.kind, request.body, problem.why) from None
    return decode(request, kind, parsed, findings, options)


def decode(request: Request, kind: Kind, parsed: Made, findings: Findings, options: WriteOptions) -> Made:
    """Return a parsed body in the stored form of its kind, without apiVersion and kind."""
    check_type(kind, parsed, request.body)
    parsed.pop("apiVersion", None)
    parsed.pop("kind", None)
    obj = decode_as(kind, parsed, findings)
    request.empties = findings.empties
    if len(findings.sentences) > 1 and not kind.custom:
        findings.sentences = bodies.sort_findings(request.body, findings.sentences)
    report_findings(request, kind, findings, options.validation)
    return obj


def decode_as(kind: Kind, parsed: Made, findings: Findings) -> Made:
    """Return an object in the stored form of its kind; an empty list of ownerReferences is kept as such."""
    metadata = parsed.get("metadata")
    disowned = isinstance(metadata, dict) and metadata.get("managedFields") == []
    obj = kind.shape.decode(parsed, findings)
    if disowned:
        obj["metadata"]["managedFields"] = []
    return obj


def report_findings(request: Request, kind: Kind, findings: Findings, validation: str) -> None:
    """Report dropped fields as an error, as warnings, or not at all."""
    if not findings.sentences or validation == "Ignore":
        return
    if validation == "Strict":
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(findings.sentences)}"
        )
    for sentence in findings.warnings:
        request.warn(sentence)


def set_namespace(target: Target, obj: Made) -> None:
    """Set the namespace of the request's path; refuse an object that names another one."""
    metadata = obj.setdefault("metadata", {})
    named = metadata.get("namespace") or ""
    if not target.kind.namespaced:
        metadata.pop("namespace", None)
    elif named and named != target.namespace:
        raise status_errors.namespace_mismatch()
    else:
        metadata["namespace"] = target.namespace


def check_namespace(context: AdmissionContext, target: Target, name: str) -> None:
    """Refuse a create in a namespace that does not exist or is terminating."""
    if not target.kind.namespaced:
        return
    row = context.store.newest(Key(NAMESPACES, "", target.namespace))
    if row is None:
        raise status_errors.namespace_not_found(target.namespace)
    if b'"deletionTimestamp"' not in row.value:
        return
    if orjson.loads(row.value)["metadata"].get("deletionTimestamp"):
        message = (
            f"unable to create new content in namespace {target.namespace} because it is being terminated"
        )
        cause = Cause(
            "NamespaceTerminating", f"namespace {target.namespace} is being terminated", "metadata.namespace"
        )
        raise status_errors.forbidden(target.kind, name, message, (cause,))


async def admit_create(
    context: AdmissionContext,
    request: Request,
    target: Target,
    obj: Made,
    options: WriteOptions,
    *,
    owned: list[Made] | None = None,
) -> Made:
    """
    Return a decoded object in the form to store; raises the error that kube-apiserver would return.

    `obj` has a name by now, given or generated. `owned` is the managedFields that an
    apply has computed.
    """
    kind, shape, stamp = target.kind, target.kind.shape, context.stamp()
    metadata = obj["metadata"]
    if metadata.pop("resourceVersion", None):
        raise Unclassified("resourceVersion should not be set on objects to be created")
    for field in _SERVER_FIELDS:
        metadata.pop(field, None)
    if "ownerReferences" in metadata:
        _deduplicate_owners(request, metadata)
    metadata["uid"] = context.new_uid()
    metadata["creationTimestamp"] = stamp
    shape.default(obj)
    if owned is None:
        # Before the kind's hooks: the creator does not own values such as an allocated cluster IP.
        owned = _owned(context, target, None, obj, options)
    metadata.pop("managedFields", None)
    if kind.bucket in PLUGIN_BUCKETS:
        _mutate(context, kind, obj)
    shape.prepare_create(obj)
    if kind.bucket == POLICIES:
        set_type_checking(context, obj)
    # Empty lists and maps are present during validation, as the body had them, but not stored.
    restated = restore_empties(obj, request.empties) if request.empties else ()
    validate_new(request, kind, obj)
    remove_empties(restated)
    if context.is_reviewed:
        await review_write(context, request, target, obj, None, options)
    if owned:
        metadata["managedFields"] = owned
    return obj


def _mutate(context: AdmissionContext, kind: Kind, obj: Made) -> None:
    """Run the mutating plugins on a new object; raises Forbidden."""
    suffix = "".join(context.choose(SAFE) for _ in range(5)) if kind.bucket == "pods" else ""
    try:
        mutate(kind.bucket, obj, context.lister, suffix)
    except Denied as refusal:
        raise status_errors.forbidden(kind, meta.requested_name(obj), str(refusal)) from None


def _deduplicate_owners(request: Request, metadata: Made) -> None:
    """Drop duplicate owner references, with a warning."""
    kept, twice = [], []
    for owner in metadata["ownerReferences"] or ():
        if owner not in kept:
            kept.append(owner)
        elif owner.get("uid", "") not in twice:
            twice.append(owner.get("uid", ""))
    if twice:
        metadata["ownerReferences"] = kept
        request.warn(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(twice)
        )


_SERVER_FIELDS = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_new(request: Request, kind: Kind, obj: Obj) -> None:
    """Refuse a new object that breaks a validation rule, with all causes; add warnings to one that passes."""
    causes = [*meta.validate_create(kind, obj), *kind.shape.validate_create(obj)]
    if causes:
        raise invalid_error(kind, obj["metadata"].get("name", ""), causes)
    for sentence in (*meta.warn(obj, None), *kind.shape.warn(obj, None)):
        request.warn(sentence)


async def admit_update(
    context: AdmissionContext,
    request: Request,
    target: Target,
    new: Made,
    old: Obj,
    options: WriteOptions,
    *,
    owned: list[Made] | None = None,
) -> Made:
    """
    Return an updated object in the form to store, or one equal to `old` if nothing changes.

    `owned` is the managedFields that an apply has computed.
    """
    kind, shape = target.kind, target.kind.shape
    metadata = new.setdefault("metadata", {})
    given = metadata.pop("managedFields", None)
    meta.restore(metadata, old["metadata"])
    if "ownerReferences" in metadata:
        _deduplicate_owners(request, metadata)
    shape.default(new)
    if owned is None and given == [] and not target.subresource:
        owned = []
    if owned is None:
        if given is not None:
            metadata["managedFields"] = given
        owned = _owned(context, target, old, new, options)
        metadata.pop("managedFields", None)
    shape.prepare_update(new, old, target.subresource, context.stamp())
    if kind.bucket == POLICIES and not target.subresource:
        set_type_checking(context, new)
    restated = restore_empties(new, request.empties) if request.empties else ()
    causes = [*meta.validate_update(kind, new, old), *shape.validate_update(new, old, target.subresource)]
    if causes and (causes := _enforced(request, causes)):
        raise invalid_error(kind, target.name, causes)
    remove_empties(restated)
    if owned:
        metadata["managedFields"] = owned
    if context.is_reviewed:
        await review_write(context, request, target, new, old, options)
    for sentence in (*meta.warn(new, old), *shape.warn(new, old)):
        request.warn(sentence)
    return new


def _enforced(request: Request, causes: list[Cause]) -> list[Cause]:
    """Return the causes that refuse a write; those that are tolerated become warnings."""
    for cause in causes:
        if isinstance(cause, RatchetedCause):
            request.warn(f"{cause.field}: {cause.message}")
    return [cause for cause in causes if not isinstance(cause, RatchetedCause)]


def _owned(
    context: AdmissionContext, target: Target, old: Obj | None, new: Obj, options: WriteOptions
) -> list[Made]:
    """Return the managedFields after a create or update."""
    kind, below = target.kind, target.subresource
    return track_update(
        old,
        new,
        kind.schema,
        manager=Manager(options.manager, "Update", kind.api_version, below),
        # Writes to the scale subresource have no time in managedFields, as in kube-apiserver.
        now="" if below == "scale" else context.stamp(),
        reset_fields=kind.shape.reset_fields(below),
        versions=versions_of(context, kind) if kind.custom or kind.converts else None,
    )


def versions_of(
    context: AdmissionContext, kind: Kind
) -> Callable[[str], tuple[Schema, Callable[[Obj], Obj]] | None]:
    """Return how to convert an object to another version, for managedFields entries of that version."""

    def version(api_version: str) -> tuple[Schema, Callable[[Obj], Obj]] | None:
        for other in context.registry.versions(kind):
            if other.api_version == api_version:
                return other.schema, _converter(kind, other)
        return None

    return version


def _converter(kind: Kind, other: Kind) -> Callable[[Obj], Obj]:
    if other is kind:
        return lambda obj: obj
    return lambda obj: other.shape.read(kind.shape.store(orjson.loads(orjson.dumps(obj))))


def is_unchanged(new: Obj, old: Obj) -> bool:
    """Return whether a write changes nothing but times in managedFields."""
    new_metadata, old_metadata = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if (
        new_metadata != old_metadata
        and new_metadata
        and old_metadata
        and differ_only_in_time(new_metadata, old_metadata)
    ):
        new = {**new, "metadata": {**new["metadata"], "managedFields": old_metadata}}
    return _is_equal(new, old)


def _is_equal(new: Obj, old: Obj) -> bool:
    """Return whether two objects are equal as JSON: Python treats 1, 1.0 and True as equal."""
    return new == old and orjson.dumps(new, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        old, option=orjson.OPT_SORT_KEYS
    )
