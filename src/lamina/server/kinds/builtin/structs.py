"""
The Go structs of built-in kinds.

The data is `data/structs.txt`, one type per line (`tools/structs.py` generates it and
describes the format); a line is parsed on first use. Types are named by package and
name, `apps/v1.DeploymentSpec`; a name without a package is in the package of the struct
that uses it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from lamina.merge.schema import MISSING

OWN_FORM: Final = frozenset(
    {
        "meta/v1.Time", "meta/v1.MicroTime", "meta/v1.FieldsV1", "resource.Quantity", "runtime.RawExtension",
        "intstr.IntOrString", "apiextensions/v1.JSON", "apiextensions/v1.JSONSchemaPropsOrArray",
        "apiextensions/v1.JSONSchemaPropsOrBool", "apiextensions/v1.JSONSchemaPropsOrStringArray",
    }
)  # fmt: skip
"""Structs with their own JSON encoding."""


class Field(NamedTuple):
    """
    One field of a struct.

    `type` has full package names. `zero` is "" if a zero is encoded, "?" if it is
    omitted, "~" if a zero struct is omitted too. `through` are the embedded structs that
    it is promoted from.
    """

    name: str
    zero: str
    type: str
    default: Any = MISSING
    through: tuple[str, ...] = ()


def key_of(definition: str) -> str:
    """Return the key of a definition's struct: io.k8s.api.apps.v1.Scale is apps/v1.Scale."""
    *_, group, version, kind = definition.split(".")
    return f"{group}/{version}.{kind}"


@cache
def fields(key: str) -> tuple[Field, ...]:
    """Return the fields of a struct, including those of embedded structs."""
    package = key.rpartition(".")[0]
    _, body = _line(key)
    found: list[Field] = []
    for entry in body.split("; ") if body else ():
        called, written, *marker = entry.split(" ", 2)
        go_type = _qualified(written, package)
        if called[0] == "^":
            for field in fields(go_type):
                found.append(field._replace(through=(called[1:], *field.through)))
        else:
            name = called.rstrip("?~")
            default = orjson.loads(marker[0][1:]) if marker else MISSING
            found.append(Field(name, called[len(name) :], go_type, default))
    return tuple(found)


@cache
def meaning(go_type: str) -> str:
    """Return the underlying type of a named type, such as `string` of an enum; structs are themselves."""
    while "/" in go_type or "." in go_type:
        if not _NAME.fullmatch(go_type) or go_type in OWN_FORM:
            return go_type
        how, body = _line(go_type)
        if how == "struct":
            return go_type
        go_type = _qualified(body, go_type.rpartition(".")[0])
    return go_type


@cache
def is_struct(go_type: str) -> bool:
    """Return whether a type is a struct with fields, after names are resolved."""
    return bool(_NAME.fullmatch(go_type)) and "." in go_type and go_type not in OWN_FORM


def go_name(go_type: str) -> str:
    """Return a type as Go prints it: the last part of the package and the name."""
    return _PATH.sub("", go_type.removeprefix("*")).replace("[]byte", "[]uint8")


_NAME = re.compile(r"[\w/.]+")
_PATH = re.compile(r"\w+/(?=\w+\.)")
_WORD = re.compile(r"(?<![\w/.])([A-Z]\w*)(?![\w.])")


def _qualified(written: str, package: str) -> str:
    """Return a type with full package names."""
    return _WORD.sub(rf"{package}.\1", written)


def _line(key: str) -> tuple[str, str]:
    try:
        return _table()[key]
    except KeyError:
        raise LookupError(f"no struct {key} in the table of built-in types") from None


@cache
def _table() -> dict[str, tuple[str, str]]:
    table: dict[str, tuple[str, str]] = {}
    for line in (Path(__file__).parent / "data" / "structs.txt").read_text().splitlines():
        name, _, body = line.partition(" ")
        if name.endswith(":"):
            table[name[:-1]] = "struct", body
        else:
            table[name] = "name", body.removeprefix("= ")
    return table
