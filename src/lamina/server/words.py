"""The sentences of refusal, word for word as Kubernetes says them; clients and people match on them."""

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
from lamina.server.kind import Kind

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def details(kind: Kind, name: str) -> dict[str, str]:
    shown = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in shown.items() if value}


def _resource(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{_resource(kind)} "{name}" not found', details=details(kind, name))


def no_namespace(name: str) -> NotFound:
    return NotFound(f'namespaces "{name}" not found', details={"name": name, "kind": "namespaces"})


def unknown_path() -> NotFound:
    error = NotFound("the server could not find the requested resource")
    error.shows_details = True
    return error


def not_allowed() -> MethodNotAllowed:
    error = MethodNotAllowed("the server does not allow this method on the requested resource")
    error.shows_details = True
    return error


def already_exists(kind: Kind, name: str, *, ending: bool = False) -> AlreadyExists:
    said = f'{_resource(kind)} "{name}" already exists'
    return AlreadyExists(
        f"object is being deleted: {said}" if ending else said, details=details(kind, name)
    )


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {_resource(kind)} "{name}": {why}', details=details(kind, name)
    )


def precondition(kind: Kind, name: str, why: str) -> Conflict:
    """Say that a deletion means another object; here, and only here, the kind is named and not the resource."""
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
    """Say that a query parameter or an option of a DeleteOptions body makes no sense."""
    return Invalid(
        f'{options}.meta.k8s.io "" is invalid: {field}: {message}',
        details={"group": "meta.k8s.io", "kind": options},
        causes=[Cause(reason, message, field)],
    )


def too_large_version(wanted: int, current: int) -> TimedOut:
    return TimedOut(
        f"Too large resource version: {wanted}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after=1,
    )


def bad_version(text: str) -> BadRequest:
    return BadRequest(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')


def expired(wanted: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {wanted} ({oldest})")


def too_deep() -> BadRequest:
    return BadRequest("the object is nested too deeply")


def definition_ends() -> MethodNotAllowed:
    return MethodNotAllowed("create not allowed while custom resource definition is terminating")
