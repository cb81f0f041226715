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


def no_page() -> NotFound:
    error = NotFound("404 page not found")
    error.is_page = True
    return error


def not_supported(kind: Kind, verb: str) -> MethodNotAllowed:
    """Say that what is served below a custom object does not take a verb."""
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{_resource(kind)}"', details=details(kind, "")
    )


def not_allowed() -> MethodNotAllowed:
    error = MethodNotAllowed("the server does not allow this method on the requested resource")
    error.shows_details = True
    return error


def already_exists(kind: Kind, name: str, *, ending: bool = False, generated: bool = False) -> AlreadyExists:
    said = f'{_resource(kind)} "{name}" already exists'
    if generated:
        said += ", the server was not able to generate a unique name for the object"
        return AlreadyExists(said, details=details(kind, name), retry_after=1)
    return AlreadyExists(f"object is being deleted: {said}" if ending else said, details=details(kind, name))


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


def invalid_resource(kind: Kind, name: str, field: str, message: str) -> Invalid:
    """Say what is wrong with a field where it is found so late that the resource is named and not the kind."""
    return Invalid(
        f'{_resource(kind)} "{name}" is invalid: {field}: {message}',
        details=details(kind, name),
        causes=[Cause("FieldValueInvalid", message, field)],
    )


def nameless(name: str) -> BadRequest:
    return BadRequest(
        f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )


def misnamed(given: str, name: str) -> BadRequest:
    return BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")


def misplaced() -> BadRequest:
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def too_large_version(wanted: int, current: int, opening: str = "") -> TimedOut:
    return TimedOut(
        f"{opening}Too large resource version: {wanted}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after=1,
    )


def unparsed_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def bad_version(text: str) -> BadRequest:
    return BadRequest(f"invalid resource version: {unparsed_version(text)}")


def expired(wanted: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {wanted} ({oldest})")


def too_deep() -> BadRequest:
    return BadRequest("the object is nested too deeply")


def definition_ends(kind: Kind, name: str) -> Forbidden:
    return forbidden(kind, name, "create not allowed while custom resource definition is terminating")
