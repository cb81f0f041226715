"""
Field validation errors with Kubernetes' messages.

A path is written as users read it: `spec.containers[0].name`, `metadata.labels[a]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lamina.errors import Cause, Invalid
from lamina.objects.go_quote import quoted, shown

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


def invalid(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueInvalid", _detailed(f"Invalid value: {shown(value)}", detail), path)


def type_invalid(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueTypeInvalid", _detailed(f"Invalid value: {shown(value)}", detail), path)


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _detailed("Required value", detail), path)


def not_supported(path: str, value: Any, supported: Iterable[str] = ()) -> Cause:
    values = ", ".join(map(quoted, supported))
    message = f"supported values: {values}" if values else ""
    return Cause("FieldValueNotSupported", _detailed(f"Unsupported value: {shown(value)}", message), path)


def duplicate(path: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def forbidden(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueForbidden", _detailed("Forbidden", detail), path)


def not_found(path: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", path)


def too_long(path: str, limit: int) -> Cause:
    """More than `limit` bytes; the value is omitted from the message."""
    if limit < 0:
        return Cause("FieldValueTooLong", "Too long: value is too long", path)
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} byte{'s'[: limit != 1]}", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    """More than `limit` items; a negative count is unknown."""
    known = f"Too many: {count}" if count >= 0 else "Too many"
    message = f"must have at most {limit} item{'s'[: limit != 1]}" if limit >= 0 else "has too many items"
    return Cause("FieldValueTooMany", f"{known}: {message}", path)


def internal(path: str, detail: str) -> Cause:
    return Cause("InternalError", f"Internal error: {detail}", path)


def each(path: str, value: Any, complaints: Iterable[str]) -> list[Cause]:
    """Return one invalid-value error for each message."""
    return [invalid(path, value, complaint) for complaint in complaints]


def immutable(path: str, new: Any, old: Any) -> list[Cause]:
    """Return an error if the field has changed; absent and empty are equal."""
    return [] if is_same(new, old) else [invalid(path, new, IMMUTABLE)]


def is_same(new: Any, old: Any) -> bool:
    """Return whether two values are semantically equal: absent and empty are."""
    return bool(new == old or _settled(new) == _settled(old))


def _settled(value: Any) -> Any:
    match value:
        case dict():
            kept = {key: _settled(one) for key, one in value.items()}
            return {key: one for key, one in kept.items() if one is not None} or None
        case list() | tuple():
            return [_settled(one) for one in value] or None
        case _:
            return value


def not_negative(path: str, value: Any) -> list[Cause]:
    return [invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def invalid_named(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Invalid:
    """Return the Invalid error for an object, or for request options."""
    sentences = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    message = f"{kind}.{group} {quoted(name)} is invalid" if group else f"{kind} {quoted(name)} is invalid"
    if sentences:
        message += f": {sentences[0]}" if len(sentences) == 1 else f": [{', '.join(sentences)}]"
    details = {"name": name, "group": group, "kind": kind}
    return Invalid(message, details={key: value for key, value in details.items() if value}, causes=causes)


def _detailed(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message
