"""Types with their own JSON encoding, which their protobuf fields do not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from lamina.objects.types import Obj

_EPOCH: Final = datetime(1970, 1, 1)
_NEVER: Final = datetime(1, 1, 1)
"""Go's zero time, which JSON writes as null."""


class Form(NamedTuple):
    """Converts a decoded message to its JSON value; and the value that counts as unset."""

    convert: Callable[[Obj], Any]
    zero: Any


def _time(fields: Obj) -> str | None:
    # Whole seconds: JSON has no fractions, so they are dropped from protobuf too.
    return _instant(_EPOCH + timedelta(seconds=fields.get("seconds", 0)), "seconds")


def _micro_time(fields: Obj) -> str | None:
    since = timedelta(seconds=fields.get("seconds", 0), microseconds=fields.get("nanos", 0) // 1000)
    return _instant(_EPOCH + since, "microseconds")


def _instant(moment: datetime, precision: str) -> str | None:
    return None if moment == _NEVER else f"{moment.isoformat(timespec=precision)}Z"


def _quantity(fields: Obj) -> str:
    return fields.get("string") or "0"


def _int_or_string(fields: Obj) -> int | str:
    value: int | str = fields.get("strVal", "") if fields.get("type") else fields.get("intVal", 0)
    return value


def _items(fields: Obj) -> list[str]:
    found: list[str] = fields.get("items", [])
    return found


def _schema_or_array(fields: Obj) -> Any:
    return fields.get("jSONSchemas") or fields.get("schema")


def _schema_or_bool(fields: Obj) -> Any:
    return fields["schema"] if "schema" in fields else fields.get("allows", False)


def _schema_or_strings(fields: Obj) -> Any:
    return fields.get("property") or fields.get("schema")


FORMS: Final[Mapping[str, Form]] = {
    "ExtraValue": Form(_items, None),
    "IntOrString": Form(_int_or_string, 0),
    "JSONSchemaPropsOrArray": Form(_schema_or_array, None),
    "JSONSchemaPropsOrBool": Form(_schema_or_bool, None),
    "JSONSchemaPropsOrStringArray": Form(_schema_or_strings, None),
    "MicroTime": Form(_micro_time, None),
    "Quantity": Form(_quantity, "0"),
    "Time": Form(_time, None),
}

TIMES: Final = (FORMS["MicroTime"], FORMS["Time"])
"""Forms for which an absent value is null, and a zero is the start of 1970."""

RAW: Final = frozenset(("FieldsV1", "JSON", "RawExtension"))
"""Messages whose single field holds JSON."""
