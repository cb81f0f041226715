"""Errors with kube-apiserver's exact messages; clients match on them."""

from __future__ import annotations

from lamina.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TimedOut,
)
from lamina.server.kinds.kind import Kind

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def details(kind: Kind, name: str) -> dict[str, str]:
    shown = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in shown.items() if value}


def _resource(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{_resource(kind)} "{name}" not found', details=details(kind, name))


def namespace_not_found(name: str) -> NotFound:
    return NotFound(f'namespaces "{name}" not found', details={"name": name, "kind": "namespaces"})


def unknown_path() -> NotFound:
    error = NotFound("the server could not find the requested resource")
    error.shows_details = True
    return error


def page_not_found() -> NotFound:
    error = NotFound("404 page not found")
    error.is_page = True
    return error


def not_supported(kind: Kind, verb: str) -> MethodNotAllowed:
    """Return the error for a verb that a subresource of a custom object does not support."""
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{_resource(kind)}"', details=details(kind, "")
    )


def not_allowed() -> MethodNotAllowed:
    error = MethodNotAllowed("the server does not allow this method on the requested resource")
    error.shows_details = True
    return error


def already_exists(
    kind: Kind, name: str, *, terminating: bool = False, generated: bool = False
) -> AlreadyExists:
    message = f'{_resource(kind)} "{name}" already exists'
    if generated:
        message += ", the server was not able to generate a unique name for the object"
        return AlreadyExists(message, details=details(kind, name), retry_after=1)
    return AlreadyExists(
        f"object is being deleted: {message}" if terminating else message, details=details(kind, name)
    )


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {_resource(kind)} "{name}": {why}', details=details(kind, name)
    )


def precondition(kind: Kind, name: str, why: str) -> Conflict:
    """
    Return the error for a failed delete precondition; only here the kind is named instead of the resource.
    """
    shown = {"name": name, "group": kind.group, "kind": kind.kind}
    named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Conflict(
        f'Operation cannot be fulfilled on {named} "{name}": {why}',
        details={key: value for key, value in shown.items() if value},
    )


def forbidden(kind: Kind, name: str, why: str, causes: tuple[Cause, ...] = ()) -> Forbidden:
    shown = f'{_resource(kind)} "{name}"' if name else _resource(kind)
    return Forbidden(f"{shown} is forbidden: {why}", details=details(kind, name), causes=causes)


def invalid_options(options: str, field: str, reason: str, message: str) -> Invalid:
    """Return the error for an invalid query parameter or field of DeleteOptions."""
    return Invalid(
        f'{options}.meta.k8s.io "" is invalid: {field}: {message}',
        details={"group": "meta.k8s.io", "kind": options},
        causes=[Cause(reason, message, field)],
    )


def invalid_resource(kind: Kind, name: str, field: str, message: str) -> Invalid:
    """Return the error for an invalid field that names the resource instead of the kind."""
    return Invalid(
        f'{_resource(kind)} "{name}" is invalid: {field}: {message}',
        details=details(kind, name),
        causes=[Cause("FieldValueInvalid", message, field)],
    )


def missing_name(name: str) -> BadRequest:
    return BadRequest(
        f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )


def name_mismatch(given: str, name: str) -> BadRequest:
    return BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")


def namespace_mismatch() -> BadRequest:
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def too_large_version(requested: int, current: int, prefix: str = "") -> TimedOut:
    return TimedOut(
        f"{prefix}Too large resource version: {requested}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after=1,
    )


def unparsed_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def bad_version(text: str) -> BadRequest:
    return BadRequest(f"invalid resource version: {unparsed_version(text)}")


def expired(requested: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {requested} ({oldest})")


def too_deep() -> BadRequest:
    return BadRequest("the object is nested too deeply")


def crd_terminating(kind: Kind, name: str) -> Forbidden:
    return forbidden(kind, name, "create not allowed while custom resource definition is terminating")
