"""The types that write themselves as JSON in a form their protobuf fields do not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from lamina.objects.types import Obj

_EPOCH: Final = datetime(1970, 1, 1)
_NEVER: Final = datetime(1, 1, 1)
"""Go's zero time, which JSON writes as null."""


class Form(NamedTuple):
    """How a message that was read becomes a value, and the value that means nothing was said."""

    convert: Callable[[Obj], Any]
    zero: Any


def _time(said: Obj) -> str | None:
    # Whole seconds: JSON never carried more, so protobuf may not either.
    return _instant(_EPOCH + timedelta(seconds=said.get("seconds", 0)), "seconds")


def _micro_time(said: Obj) -> str | None:
    since = timedelta(seconds=said.get("seconds", 0), microseconds=said.get("nanos", 0) // 1000)
    return _instant(_EPOCH + since, "microseconds")


def _instant(moment: datetime, precision: str) -> str | None:
    return None if moment == _NEVER else f"{moment.isoformat(timespec=precision)}Z"


def _quantity(said: Obj) -> str:
    return said.get("string") or "0"


def _int_or_string(said: Obj) -> int | str:
    value: int | str = said.get("strVal", "") if said.get("type") else said.get("intVal", 0)
    return value


def _items(said: Obj) -> list[str]:
    found: list[str] = said.get("items", [])
    return found


def _schema_or_array(said: Obj) -> Any:
    return said.get("jSONSchemas") or said.get("schema")


def _schema_or_bool(said: Obj) -> Any:
    return said["schema"] if "schema" in said else said.get("allows", False)


def _schema_or_strings(said: Obj) -> Any:
    return said.get("property") or said.get("schema")


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
"""Forms for which no bytes at all mean null, and a zero is the start of 1970."""

RAW: Final = frozenset(("FieldsV1", "JSON", "RawExtension"))
"""Messages whose one field holds JSON text."""
