"""
What every write goes through: decode, default, stamp, prepare, own, validate.

A write is a body that becomes an object, or a refusal that names the field.
Nothing is stored here; the verbs do that with what comes out.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from lamina.errors import BadRequest, Cause, Unexplained
from lamina.merge.apply import track_update
from lamina.merge.managed import Manager, differ_only_in_time
from lamina.merge.schema import Schema
from lamina.objects.digest import SAFE
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import metadata as meta
from lamina.server import words
from lamina.server.builtin.admit import ADMITTED, Refusal, fill_in
from lamina.server.declared import check_type
from lamina.server.empties import restate, retract
from lamina.server.fields import invalid_error
from lamina.server.kind import Excused, Findings, Kind
from lamina.server.misread import Misread, unrecognized
from lamina.server.options import WriteOptions
from lamina.server.plane import Plane, Target
from lamina.server.policies.board import POLICIES
from lamina.server.request import Request
from lamina.server.reviewing import review, say_types
from lamina.server.store import Key

NAMESPACES = "namespaces"


def read_body(request: Request, target: Target, options: WriteOptions) -> Made:
    """Return the object in a request's body, decoded as its kind, with complaints about fields dealt with."""
    findings = Findings()
    content = request.headers.get("content-type", "")
    kind = target.kind
    if kind.custom and bodies.media_type(content) == bodies.PROTOBUF:
        raise bodies.unsupported("application/json, application/yaml")
    try:
        parsed = bodies.parse(request.body, content, findings, (kind.api_version, kind.kind))
    except Misread as problem:
        # A message that names the kind has been worded already, by a decoder that knows what it reads.
        if problem.message != problem.why:
            raise
        raise unrecognized(kind.kind, request.body, problem.why) from None
    return decode(request, kind, parsed, findings, options)


def decode(request: Request, kind: Kind, parsed: Made, findings: Findings, options: WriteOptions) -> Made:
    """Return a parsed body as its kind stores it, without its type."""
    check_type(kind, parsed, request.body)
    parsed.pop("apiVersion", None)
    parsed.pop("kind", None)
    obj = decode_as(kind, parsed, findings)
    request.empties = findings.empties
    if len(findings.sentences) > 1 and not kind.custom:
        findings.sentences = bodies.in_order(request.body, findings.sentences)
    judge(request, kind, findings, options.validation)
    return obj


def decode_as(kind: Kind, parsed: Made, findings: Findings) -> Made:
    """Return an object without its type as its kind stores it; that it names no owners at all is not lost."""
    metadata = parsed.get("metadata")
    disowned = isinstance(metadata, dict) and metadata.get("managedFields") == []
    obj = kind.shape.decode(parsed, findings)
    if disowned:
        obj["metadata"]["managedFields"] = []
    return obj


def judge(request: Request, kind: Kind, findings: Findings, validation: str) -> None:
    """Turn what the decoder dropped into an error, into warnings, or into nothing."""
    if not findings.sentences or validation == "Ignore":
        return
    if validation == "Strict":
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(findings.sentences)}"
        )
    for sentence in findings.warnings:
        request.warn(sentence)


def place(target: Target, obj: Made) -> None:
    """Put an object where the request's path says, and refuse one that says otherwise."""
    metadata = obj.setdefault("metadata", {})
    named = metadata.get("namespace") or ""
    if not target.kind.namespaced:
        metadata.pop("namespace", None)
    elif named and named != target.namespace:
        raise words.misplaced()
    else:
        metadata["namespace"] = target.namespace


def admit_namespace(plane: Plane, target: Target, name: str) -> None:
    """Refuse new content in a namespace that does not exist or is on its way out."""
    if not target.kind.namespaced:
        return
    row = plane.store.newest(Key(NAMESPACES, "", target.namespace))
    if row is None:
        raise words.no_namespace(target.namespace)
    if b'"deletionTimestamp"' not in row.value:
        return
    if orjson.loads(row.value)["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
        cause = Cause(
            "NamespaceTerminating", f"namespace {target.namespace} is being terminated", "metadata.namespace"
        )
        raise words.forbidden(target.kind, name, why, (cause,))


async def admit_create(
    plane: Plane,
    request: Request,
    target: Target,
    obj: Made,
    options: WriteOptions,
    *,
    owned: list[Made] | None = None,
) -> Made:
    """
    Return a decoded object as it is to be stored for the first time; raises what a real server would.

    `obj` has a name by now, given or generated. `owned` is the managedFields
    an apply has already worked out.
    """
    kind, shape, stamp = target.kind, target.kind.shape, plane.stamp()
    metadata = obj["metadata"]
    if metadata.pop("resourceVersion", None):
        raise Unexplained("resourceVersion should not be set on objects to be created")
    for field in _SAID_BY_SERVER:
        metadata.pop(field, None)
    if "ownerReferences" in metadata:
        _name_owners_once(request, metadata)
    metadata["uid"] = plane.new_uid()
    metadata["creationTimestamp"] = stamp
    shape.default(obj)
    if owned is None:
        # Before what the kind itself sets: a creator does not own the address a Service is given.
        owned = _owned(plane, target, None, obj, options)
    metadata.pop("managedFields", None)
    if kind.bucket in ADMITTED:
        _ask_others(plane, kind, obj)
    shape.prepare_create(obj)
    if kind.bucket == POLICIES:
        say_types(plane, obj)
    # Held while it is judged, as a body states it; nothing empty is stored.
    restated = restate(obj, request.empties) if request.empties else ()
    validate_new(request, kind, obj)
    retract(restated)
    if plane.is_reviewed:
        await review(plane, request, target, obj, None, options)
    if owned:
        metadata["managedFields"] = owned
    return obj


def _ask_others(plane: Plane, kind: Kind, obj: Made) -> None:
    """Give a new object what others have to give it, or refuse it in their words."""
    suffix = "".join(plane.choose(SAFE) for _ in range(5)) if kind.bucket == "pods" else ""
    try:
        fill_in(kind.bucket, obj, plane.records, suffix)
    except Refusal as refusal:
        raise words.forbidden(kind, meta.asked_name(obj), str(refusal)) from None


def _name_owners_once(request: Request, metadata: Made) -> None:
    """Drop owners that are named twice in the same words, and say so."""
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


_SAID_BY_SERVER = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_new(request: Request, kind: Kind, obj: Obj) -> None:
    """Refuse a new object that breaks a rule, with every rule it breaks; say what is odd about one that passes."""
    causes = [*meta.validate_create(kind, obj), *kind.shape.validate_create(obj)]
    if causes:
        raise invalid_error(kind, obj["metadata"].get("name", ""), causes)
    for sentence in (*meta.warn(obj, None), *kind.shape.warn(obj, None)):
        request.warn(sentence)


async def admit_update(
    plane: Plane,
    request: Request,
    target: Target,
    new: Made,
    old: Obj,
    options: WriteOptions,
    *,
    owned: list[Made] | None = None,
) -> Made:
    """
    Return a changed object as it is to be stored, or one equal to `old` when nothing changes.

    `owned` is the managedFields an apply has already worked out.
    """
    kind, shape = target.kind, target.kind.shape
    metadata = new.setdefault("metadata", {})
    given = metadata.pop("managedFields", None)
    meta.restore(metadata, old["metadata"])
    if "ownerReferences" in metadata:
        _name_owners_once(request, metadata)
    shape.default(new)
    if owned is None and given == [] and not target.subresource:
        owned = []
    if owned is None:
        if given is not None:
            metadata["managedFields"] = given
        owned = _owned(plane, target, old, new, options)
        metadata.pop("managedFields", None)
    shape.prepare_update(new, old, target.subresource, plane.stamp())
    if kind.bucket == POLICIES and not target.subresource:
        say_types(plane, new)
    restated = restate(new, request.empties) if request.empties else ()
    causes = [*meta.validate_update(kind, new, old), *shape.validate_update(new, old, target.subresource)]
    if causes and (causes := _held(request, causes)):
        raise invalid_error(kind, target.name, causes)
    retract(restated)
    if owned:
        metadata["managedFields"] = owned
    if plane.is_reviewed:
        await review(plane, request, target, new, old, options)
    for sentence in (*meta.warn(new, old), *shape.warn(new, old)):
        request.warn(sentence)
    return new


def _held(request: Request, causes: list[Cause]) -> list[Cause]:
    """Return what is wrong and not excused; what is becomes a warning."""
    for cause in causes:
        if isinstance(cause, Excused):
            request.warn(f"{cause.field}: {cause.message}")
    return [cause for cause in causes if not isinstance(cause, Excused)]


def _owned(plane: Plane, target: Target, old: Obj | None, new: Obj, options: WriteOptions) -> list[Made]:
    """Return who owns what after a plain write."""
    kind, below = target.kind, target.subresource
    return track_update(
        old,
        new,
        kind.schema,
        manager=Manager(options.manager, "Update", kind.api_version, below),
        # A scale's write leaves no time, in the real server either.
        now="" if below == "scale" else plane.stamp(),
        untracked=kind.shape.untracked(below),
        versions=versions_of(plane, kind) if kind.custom or kind.converts else None,
    )


def versions_of(plane: Plane, kind: Kind) -> Callable[[str], tuple[Schema, Callable[[Obj], Obj]] | None]:
    """Return how to see an object in another version of its kind, for owners who wrote in that one."""

    def version(api_version: str) -> tuple[Schema, Callable[[Obj], Obj]] | None:
        for other in plane.registry.versions(kind):
            if other.api_version == api_version:
                return other.schema, _converter(kind, other)
        return None

    return version


def _converter(kind: Kind, other: Kind) -> Callable[[Obj], Obj]:
    if other is kind:
        return lambda obj: obj
    return lambda obj: other.shape.read(kind.shape.store(orjson.loads(orjson.dumps(obj))))


def is_same(new: Obj, old: Obj) -> bool:
    """Say whether a write changes nothing but the times of who owns what."""
    mine, theirs = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if mine != theirs and mine and theirs and differ_only_in_time(mine, theirs):
        new = {**new, "metadata": {**new["metadata"], "managedFields": theirs}}
    return _is_equal(new, old)


def _is_equal(new: Obj, old: Obj) -> bool:
    """Say whether two objects are the same JSON. Python finds 1, 1.0 and True equal; JSON does not."""
    return new == old and orjson.dumps(new, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        old, option=orjson.OPT_SORT_KEYS
    )
