"""Reading a part of an object into the type it is meant to be, once, at the edge."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from lamina.errors import SpecError

Read = TypeVar("Read")


def read(value: Any, kind: type[Read], where: str = "spec") -> Read:
    """Return a value as what it is meant to be; SpecError, with the field, where it is not that."""
    try:
        return msgspec.convert(without_nulls(value if value is not None else {}), kind)
    except msgspec.ValidationError as wrong:
        what, _, path = str(wrong).partition(" - at `$")
        raise SpecError(f"{where}{path.rstrip('`')}: {what[:1].lower()}{what[1:]}") from None


def without_nulls(value: Any) -> Any:
    """A field that is null is a field that is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value
