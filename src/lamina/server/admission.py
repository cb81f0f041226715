"""
What every write goes through: decode, default, stamp, prepare, own, validate.

A write is a body that becomes an object, or a refusal that names the field.
Nothing is stored here; the verbs do that with what comes out.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from lamina.errors import BadRequest, Cause, InternalError, Invalid
from lamina.merge.apply import track_update
from lamina.merge.managed import Manager, differ_only_in_time
from lamina.merge.schema import Schema
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import metadata as meta
from lamina.server import words
from lamina.server.fields import invalid_error
from lamina.server.kind import Findings, Kind
from lamina.server.options import WriteOptions
from lamina.server.plane import Plane, Target
from lamina.server.request import Request
from lamina.server.store import Key

NAMESPACES = "namespaces"


def read_body(request: Request, target: Target, options: WriteOptions) -> Made:
    """Return the object in a request's body, decoded as its kind, with complaints about fields dealt with."""
    findings = Findings()
    content = request.headers.get("content-type", "")
    if not request.body:
        # An empty body is no object; the real server says so in the words of its decoder.
        raise BadRequest(f"the object provided is unrecognized (must be of type {target.kind.kind}): couldn't get version/kind; json parse error: unexpected end of JSON input ()")  # fmt: skip
    parsed = bodies.parse(request.body, content, findings, (target.kind.api_version, target.kind.kind))
    if target.kind.custom and bodies.media_type(content) == bodies.PROTOBUF:
        raise bodies.unsupported("application/json, application/yaml")
    return decode(request, target.kind, parsed, findings, options)


def decode(request: Request, kind: Kind, parsed: Made, findings: Findings, options: WriteOptions) -> Made:
    """Return a parsed body as its kind stores it, without its type."""
    check_type(kind, parsed)
    parsed.pop("apiVersion", None)
    parsed.pop("kind", None)
    obj = kind.shape.decode(parsed, findings)
    if len(findings.sentences) > 1:
        findings.sentences = bodies.in_order(request.body, findings.sentences)
    judge(request, kind, findings, options.validation)
    return obj


def check_type(kind: Kind, parsed: Obj) -> None:
    """Refuse a body that says it is something else; built-in kinds may leave it out."""
    api_version, named = parsed.get("apiVersion"), parsed.get("kind")
    if kind.custom:
        if not named or not api_version:
            missing = "Kind" if not named else "apiVersion"
            text = orjson.dumps(parsed).decode()
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {kind.kind}): "
                f"Object '{missing}' is missing in '{text}' ({_hex(text)})"
            )
        if named != kind.kind or api_version != kind.api_version:
            raise BadRequest(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({kind.api_version})"
                if api_version != kind.api_version
                else f'{named} in version "{kind.version}" cannot be handled as a {kind.kind}'
            )
        return
    if (named and named != kind.kind) or (api_version and api_version != kind.api_version):
        shown_version = str(api_version or kind.api_version).rpartition("/")[2]
        if named and named != kind.kind:
            raise BadRequest(
                f'{named} in version "{shown_version}" cannot be handled as a {kind.kind}: '
                f"converting ({named}) to ({kind.kind}): unknown conversion"
            )
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({kind.api_version})"
        )


def _hex(text: str) -> str:
    shown = text.encode()[:40].hex()
    return f"{shown} ..." if len(text) > 40 else shown


def judge(request: Request, kind: Kind, findings: Findings, validation: str) -> None:
    """Turn what the decoder dropped into an error, into warnings, or into nothing."""
    if not findings.sentences or validation == "Ignore":
        return
    if validation == "Strict":
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(findings.sentences)}"
        )
    for sentence in findings.sentences:
        request.warn(sentence)


def place(target: Target, obj: Made) -> None:
    """Put an object where the request's path says, and refuse one that says otherwise."""
    metadata = obj.setdefault("metadata", {})
    named = metadata.get("namespace") or ""
    if not target.kind.namespaced:
        metadata.pop("namespace", None)
    elif named and named != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
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


def admit_create(
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
        raise InternalError("resourceVersion should not be set on objects to be created")
    for field in _SAID_BY_SERVER:
        metadata.pop(field, None)
    metadata["uid"] = plane.new_uid()
    metadata["creationTimestamp"] = stamp
    shape.default(obj)
    if owned is None:
        # Before what the kind itself sets: a creator does not own the address a Service is given.
        owned = _owned(plane, target, None, obj, options)
    metadata.pop("managedFields", None)
    shape.prepare_create(obj)
    validate_new(request, kind, obj)
    if owned:
        metadata["managedFields"] = owned
    return obj


_SAID_BY_SERVER = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def validate_new(request: Request, kind: Kind, obj: Obj) -> None:
    """Refuse a new object that breaks a rule, with every rule it breaks; say what is odd about one that passes."""
    causes = [*meta.validate_create(kind, obj), *kind.shape.validate_create(obj)]
    if causes:
        raise invalid_error(kind, obj["metadata"].get("name", ""), causes)
    for sentence in (*meta.warn(obj, None), *kind.shape.warn(obj, None)):
        request.warn(sentence)


def admit_update(
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
    shape.default(new)
    if owned is None:
        if given is not None:
            metadata["managedFields"] = given
        owned = _owned(plane, target, old, new, options)
        metadata.pop("managedFields", None)
    shape.prepare_update(new, old, target.subresource)
    causes = [*meta.validate_update(kind, new, old), *shape.validate_update(new, old, target.subresource)]
    if causes:
        raise invalid_error(kind, target.name, causes)
    if owned:
        metadata["managedFields"] = owned
    for sentence in (*meta.warn(new, old), *shape.warn(new, old)):
        request.warn(sentence)
    return new


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


def check_version(target: Target, wanted: str, current: str) -> None:
    """Refuse a write that was decided on another version of the object than the stored one."""
    if wanted and wanted != current:
        if not wanted.isdigit():
            raise Invalid(
                f'{target.kind.qualified} "{target.name}" is invalid: metadata.resourceVersion: '
                f'Invalid value: "{wanted}": must be specified for an update',
                details={**words.details(target.kind, target.name), "kind": target.kind.kind},
            )
        raise words.conflict(target.kind, target.name)
