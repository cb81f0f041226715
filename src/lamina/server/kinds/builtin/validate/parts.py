"""
Checks that many validators share.

Objects are decoded: a field is absent or has the right type, and absent is mostly the
same as empty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.names import NameRule
from lamina.objects.types import Obj
from lamina.server.field_errors import each, invalid, not_supported, required

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_NOTHING: Mapping[str, Any] = {}


def part(obj: Obj, name: str) -> Obj:
    """Return a nested struct, an empty one if it is absent."""
    return obj.get(name) or _NOTHING


def items(obj: Obj, name: str) -> Sequence[Any]:
    return obj.get(name) or ()


def text(obj: Obj, name: str) -> str:
    return obj.get(name) or ""


def count(obj: Obj, name: str) -> int:
    return obj.get(name) or 0


def supported(path: str, value: Any, values: Collection[str]) -> list[Cause]:
    """Refuse a value that is not one of a few; an absent one is valid."""
    return [not_supported(path, value, values)] if value is not None and value not in values else []


def chosen(path: str, value: Any, values: Collection[str]) -> list[Cause]:
    """Refuse a value that is not one of a few, or absent."""
    if not value:
        return [required(path)]
    return [not_supported(path, value, values)] if value not in values else []


def present(path: str, obj: Obj, *fields: str) -> list[Cause]:
    """Require every one of these fields."""
    return [required(f"{path}.{field}" if path else field) for field in fields if not obj.get(field)]


def ruled(path: str, value: str, rule: NameRule) -> list[Cause]:
    """Check a value against a name rule."""
    return each(path, value, complaints) if (complaints := rule(value)) else []


def named(path: str, value: str, rule: NameRule) -> list[Cause]:
    """Require a name, and check it against its rule."""
    return ruled(path, value, rule) if value else [required(path)]


def positive(path: str, value: int) -> list[Cause]:
    return [invalid(path, value, "must be greater than zero")] if value <= 0 else []


def port(path: str, number: int) -> list[Cause]:
    return ruled_number(path, number, names.port_number(number))


def ruled_number(path: str, number: int, complaints: Sequence[str]) -> list[Cause]:
    return each(path, number, complaints)


def port_number_or_name(path: str, value: int | str | None) -> list[Cause]:
    """Check a port number or the name of a container port."""
    if isinstance(value, str):
        return each(path, value, names.port_name(value))
    return port(path, value or 0)


def int_or_percent(path: str, value: int | str | None) -> list[Cause]:
    """Check a count or a percentage; percentages above 100 % are checked elsewhere."""
    if isinstance(value, str):
        return each(path, value, names.percent(value))
    return [invalid(path, value, "must be greater than or equal to 0")] if (value or 0) < 0 else []


def percentage(value: int | str | None) -> int | None:
    """Return the number before the percent sign, None if there is no such sign."""
    if isinstance(value, str) and not names.percent(value):
        return _whole(value[:-1])
    return None


def int_or_percentage(value: int | str | None) -> int:
    """Return the number of a count or a percentage; 0 for an invalid value."""
    share = percentage(value)
    if share is not None:
        return share
    if isinstance(value, str):
        return _whole(value) if value.isascii() and value.isdigit() else 0
    return value or 0


def _whole(digits: str) -> int:
    # No more digits than a 64-bit number has.
    return int(digits.lstrip("0")[:19] or "0")


def at_most_all(path: str, value: int | str | None) -> list[Cause]:
    share = percentage(value)
    return (
        [invalid(path, value, "must not be greater than 100%")] if share is not None and share > 100 else []
    )


def relative_path(path: str, value: str) -> list[Cause]:
    """Check that a path stays below its root."""
    causes = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return causes + no_backsteps(path, value)


def no_backsteps(path: str, value: str) -> list[Cause]:
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def file_path(path: str, value: str) -> list[Cause]:
    """Check a relative file path; names that start with two dots are reserved for the kubelet."""
    causes = relative_path(path, value)
    if value.startswith("..") and not value.startswith("../"):
        causes.append(invalid(path, value, "must not start with '..'"))
    return causes


def file_mode(path: str, mode: int | None) -> list[Cause]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]


def domain_path(path: str, value: str) -> list[Cause]:
    """Check a domain-prefixed path, as `acme.io/foo`."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    causes = ruled(path, host, names.subdomain)
    if not all(letter.isascii() and (letter.isalnum() or letter in "/-._~%!$&'()*+,;=:") for letter in rest):
        pattern = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
        causes.append(invalid(path, rest, names.regex_error("Invalid path", pattern)))
    return causes


def signer(path: str, name: str) -> list[Cause]:
    """Check the name of a certificate signer, as `example.com/signer-name`."""
    if not name:
        return [required(path)]
    parts = name.split("/")
    if len(parts) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    causes: list[Cause] = []
    for whole, rule in zip(parts, (names.label, names.subdomain), strict=True):
        pieces = whole.split(".")
        problem = next((piece for piece in pieces if rule(piece)), None)
        if problem is not None:
            causes += each(
                path, whole, [f'validating label "{problem}": {message}' for message in rule(problem)]
            )
        if rule is names.label and len(pieces) < 2:
            domain = "should be a domain with at least two segments separated by dots"
            causes.append(invalid(path, whole, domain))
    return causes


def in_order(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a map sorted by key, as kube-apiserver prints it; None if it is absent."""
    return None if found is None else dict(sorted(found.items()))


def omitted(path: str, detail: str) -> Cause:
    """Return the error of a value that is too long to be printed."""
    return Cause("FieldValueInvalid", f"Invalid value: {detail}", path)
