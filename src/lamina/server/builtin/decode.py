"""
Bodies of built-in kinds, read as Go reads them into its structs.

A server of Kubernetes decodes a body into typed structs and prints those again.
So unknown fields fall away and are reported, names are case-sensitive, null is
absent, an empty value of a field that leaves out zeros is absent too, and a
field that prints its zero is there although nobody wrote it: `status: {}`,
`resources: {}`, `rules: null`. Values with a form of their own are written in
it. A value of the wrong type is refused in Go's words, which name the innermost
struct and the whole path without indices: `cannot unmarshal string into Go
struct field DeploymentSpec.spec.replicas of type int32`.

Decoders are made per struct when first needed and kept. They change the dict
they are given, which the caller owns. A path is a chain of pairs, (parent,
label), so that going down costs one small tuple; its end holds the findings.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from lamina.objects.types import Made
from lamina.server.builtin.aliases import ALIASES
from lamina.server.builtin.structs import fields, go_name, is_struct, meaning
from lamina.server.builtin.values import (
    canonical_bytes,
    canonical_micro_time,
    canonical_quantity,
    canonical_time,
    milli_quantity,
)
from lamina.server.kind import Findings

ABSENT: Final = object()
"""What a decoder returns for a field that is then left out."""

Path: TypeAlias = tuple[Any, Any]
Step: TypeAlias = Callable[[Any, Path, str | int], Any]
Zero: TypeAlias = Callable[[], Any]


class Undecodable(ValueError):
    """
    A body does not fit its kind; the message is Go's.

    `fields` and `struct` are filled in on the way out, from the innermost
    struct to the body; a value that reads itself has a message of its own.
    """

    def __init__(self, given: str, wanted: str = "", message: str = "") -> None:
        super().__init__(given, wanted, message)
        self.given = given
        self.wanted = wanted
        self.message = message
        self.struct = ""
        self.fields: list[str] = []

    def inside(self, struct: str, names: tuple[str, ...]) -> None:
        """Note that this happened in a field of a struct."""
        self.struct = self.struct or struct
        self.fields[:0] = names

    def __str__(self) -> str:
        if self.message:
            return self.message
        if not self.struct:
            return f"json: cannot unmarshal {self.given} into Go value of type {self.wanted}"
        where = f"{self.struct}.{'.'.join(self.fields)}"
        return f"json: cannot unmarshal {self.given} into Go struct field {where} of type {self.wanted}"


def decode(key: str, body: Made, findings: Findings) -> Made:
    """Return a parsed body as the struct prints it; raises Undecodable."""
    made: Made = _struct(key)(body, (None, findings), "")
    return made


def decode_metadata(metadata: Made, findings: Findings, path: str = "metadata") -> Made:
    """Return the metadata of any object, custom resources' too; raises Undecodable."""
    try:
        made: Made = _struct("meta/v1.ObjectMeta")(metadata, (None, findings), path)
    except Undecodable as error:
        error.inside("ObjectMeta", (path,))
        raise
    return made


def zero(key: str) -> Made:
    """Return what a struct prints when nothing is set in it."""
    made: Made = _zero_of(key)()
    return made


@cache
def _struct(key: str) -> Step:
    """Return the decoder of a struct."""
    steps: dict[str, Step] = {}
    plain: dict[str, type] = {}
    nulls: dict[str, Zero] = {}
    always: list[tuple[str, Zero]] = []
    inside: dict[str, tuple[str, ...]] = {}
    alias = ALIASES.get(key)
    struct = key.rpartition(".")[2]
    ready = False

    def prepare() -> None:
        nonlocal ready
        for field in fields(key):
            steps[field.name] = _field(field.type, field.zero)
            if (key, field.name) in _QUOTED:
                steps[field.name] = _noting(steps[field.name])
            elif (key, field.name) in _MEANT:
                steps[field.name] = _value(field.type)
            inside[field.name] = (*field.through, field.name)
            if (known := _SCALARS.get(meaning(field.type.removeprefix("*")))) is not None:
                plain[field.name] = known
            if _always(field.type, field.zero):
                always.append((field.name, _zero_of(field.type)))
                nulls[field.name] = _zero_of(field.type)
        ready = True

    def decode_struct(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not dict:
            raise Undecodable(word(value), go_name(key))
        if not ready:
            prepare()
        gone: list[str] | None = None
        here: Path | None = None
        name = ""
        try:
            for name, given in value.items():
                # Most values are strings that stay as they are.
                if given and plain.get(name) is type(given):
                    continue
                if here is None:
                    here = (path, label)
                step = steps.get(name)
                if step is None:
                    _report(here, name)
                    made = ABSENT
                elif given is None:
                    made = nulls[name]() if name in nulls else ABSENT
                else:
                    made = step(given, here, name)
                if made is given:
                    continue
                if made is ABSENT:
                    gone = [name] if gone is None else [*gone, name]
                else:
                    value[name] = made
        except Undecodable as error:
            error.inside(struct, inside[name])
            raise
        if gone is not None:
            for name in gone:
                del value[name]
        for name, make in always:
            if name not in value:
                value[name] = make()
        if alias is not None:
            alias(value)
        return value

    return decode_struct


@cache
def _field(go_type: str, omit: str) -> Step:
    """Return the decoder of a field, which says ABSENT where the field is left out."""
    if go_type.startswith("*"):
        return _value(go_type[1:])
    known = meaning(go_type)
    if known in _EMPTY:
        return _omitting(_value(go_type), _EMPTY[known]) if omit else _value(go_type)
    if known.startswith(("[]", "map[")):
        return _collection(_value(go_type), ABSENT if omit else None)
    if omit == "~":
        return _omitting(_value(go_type), None)
    return _value(go_type)


@cache
def _value(go_type: str) -> Step:
    """Return the decoder of a value that is not null."""
    known = meaning(go_type)
    shown = go_name(go_type)
    if known in _OWN:
        return _OWN[known]
    if is_struct(known):
        return _struct(known)
    if known == "[]byte":
        return _bytes
    if known in _SCALARS:
        return _scalar(_SCALARS[known], shown)
    if known in _BOUNDS:
        return _integer(*_BOUNDS[known], shown)
    if known == "float64":
        return _float
    if known.startswith("[]"):
        return _list(known[2:], shown)
    inner = known.partition("]")[2]
    if go_type == "core/v1.ResourceList":
        return _map(inner, shown, _amount)
    return _map(inner, shown)


def _omitting(step: Step, empty: Any) -> Step:
    def omitting(value: Any, path: Path, label: str | int) -> Any:
        made = step(value, path, label)
        return ABSENT if made == empty else made

    return omitting


def _collection(step: Step, nothing: Any) -> Step:
    # An empty list does not survive the way through the store of a real
    # server: where the field is printed all the same, it is printed as null.
    def collection(value: Any, path: Path, label: str | int) -> Any:
        return step(value, path, label) or nothing

    return collection


def _noting(step: Step) -> Step:
    def noting(value: Any, path: Path, label: str | int) -> Any:
        made = step(value, path, label)
        if not value:
            _note(path, label, value)
        return made

    return noting


def _scalar(wanted: type, shown: str) -> Step:
    def scalar(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is wanted:
            return value
        raise Undecodable(word(value), shown)

    return scalar


def _integer(least: int, most: int, shown: str) -> Step:
    def integer(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is int and least <= value <= most:
            return value
        raise Undecodable(f"number {value!r}" if type(value) in (int, float) else word(value), shown)

    return integer


def _float(value: Any, path: Path, label: str | int) -> Any:
    if type(value) is float:
        # Go prints a whole number without a point.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if type(value) is int:
        return value
    raise Undecodable(word(value), "float64")


def _bytes(value: Any, path: Path, label: str | int) -> Any:
    if type(value) is str:
        try:
            return canonical_bytes(value)
        except ValueError as error:
            raise Undecodable("", "", str(error)) from None
    if type(value) is list:
        # Bytes are a list of small numbers, too; hardly anybody writes them so.
        return base64.b64encode(bytes(_byte(one or 0, path, label) for one in value)).decode()
    raise Undecodable(word(value), "[]uint8")


def _list(inner: str, shown: str) -> Step:
    step, empty, strings = _value(inner), _zero_of(inner), meaning(inner) == "string"

    def decode_list(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not list:
            raise Undecodable(word(value), shown)
        here = (path, label)
        for index, given in enumerate(value):
            if strings and type(given) is str:
                continue
            made = empty() if given is None else step(given, here, index)
            if made is not given:
                value[index] = made
        return value

    return decode_list


def _map(inner: str, shown: str, step: Step | None = None) -> Step:
    step, strings = step or _value(inner), meaning(inner) == "string"
    # No bytes, as a value of a map, come back from a real server's store as an empty string.
    absent: Zero = str if inner == "[]byte" else _zero_of(inner)

    def decode_map(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not dict:
            raise Undecodable(word(value), shown)
        here = (path, label)
        for name, given in value.items():
            if strings and type(given) is str:
                continue
            made = absent() if given is None else step(given, here, name)
            if made is not given:
                value[name] = made
        return value

    return decode_map


def _amount(value: Any, path: Path, label: str | int) -> Any:
    """Decode an amount of a resource, which is rounded up to thousandths."""
    try:
        return milli_quantity(value if type(value) is str else canonical_quantity(value))
    except ValueError as error:
        raise Undecodable("", "", str(error)) from None


def _quantity(value: Any, path: Path, label: str | int) -> Any:
    try:
        return canonical_quantity(value)
    except ValueError as error:
        raise Undecodable("", "", str(error)) from None


def _time(read: Callable[[str], str | None]) -> Step:
    def time(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not str:
            raise Undecodable(word(value), "string")
        try:
            return read(value)
        except ValueError as error:
            raise Undecodable("", "", str(error)) from None

    return time


def _int_or_string(value: Any, path: Path, label: str | int) -> Any:
    return value if type(value) is str else _int32(value, path, label)


def _as_it_is(value: Any, path: Path, label: str | int) -> Any:
    return value


def _schema_or(others: type) -> Step:
    """Return the decoder of a schema that may also be a list or a boolean."""

    def schema_or(value: Any, path: Path, label: str | int) -> Any:
        # These read themselves, and drop what they do not know without a word.
        silent: Path = (None, Findings())
        if type(value) is dict:
            return _struct("apiextensions/v1.JSONSchemaProps")(value, silent, "")
        if type(value) is list and others is not bool:
            inner = "string" if others is str else "apiextensions/v1.JSONSchemaProps"
            return _list(inner, go_name(f"[]{inner}"))(value, silent, "") or None
        if type(value) is bool and others is bool:
            return value
        if others is bool:
            raise Undecodable("", "", "boolean or JSON schema expected")
        return None

    return schema_or


# Validation quotes these, as they were stated.
_QUOTED: Final = {
    ("apiextensions/v1.CustomResourceDefinitionSpec", "versions"),
    ("core/v1.PersistentVolumeSpec", "capacity"),
    ("meta/v1.ObjectMeta", "labels"),
    ("networking/v1.IngressSpec", "rules"),
}
# Where these are stated as empty no default takes their place, and they are refused.
_MEANT: Final = {("autoscaling/v2.HPAScalingRules", "policies")}
_SCALARS: Final = {"string": str, "bool": bool}
_BOUNDS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_EMPTY: Final = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}
_ZEROS: Final = {**_EMPTY, "resource.Quantity": "0", "intstr.IntOrString": 0}
_byte: Final = _integer(0, 255, "uint8")
_int32: Final = _integer(*_BOUNDS["int32"], "int32")
_OWN: Final[Mapping[str, Step]] = {
    "meta/v1.Time": _time(canonical_time),
    "meta/v1.MicroTime": _time(canonical_micro_time),
    "meta/v1.FieldsV1": _as_it_is,
    "resource.Quantity": _quantity,
    "runtime.RawExtension": _as_it_is,
    "intstr.IntOrString": _int_or_string,
    "apiextensions/v1.JSON": _as_it_is,
    "apiextensions/v1.JSONSchemaPropsOrArray": _schema_or(dict),
    "apiextensions/v1.JSONSchemaPropsOrBool": _schema_or(bool),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": _schema_or(str),
}


def _always(go_type: str, omit: str) -> bool:
    """Return whether a field is printed even when it was not given; no struct is left out for being empty."""
    if omit == "":
        return True
    known = meaning(go_type)
    return omit == "?" and (is_struct(known) or known in _OWN)


@cache
def _zero_of(go_type: str) -> Zero:
    """Return what makes the zero of a type; that of a list or map in a field is null."""
    known = meaning(go_type)
    if is_struct(known):
        parts = [
            (field.name, _zero_of(field.type)) for field in fields(known) if _always(field.type, field.zero)
        ]
        return lambda: {name: make() for name, make in parts}
    nothing = _ZEROS.get(known)
    return lambda: nothing


_WORDS: Final = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}


def word(value: Any) -> str:
    """Return what Go calls a JSON value."""
    return _WORDS.get(type(value), "null")


def _note(path: Path, label: str | int, empty: Any) -> None:
    """Tell the findings at the end of a path about something empty."""
    findings, labels = _way(path, label)
    findings.empties.append((tuple(one for one in labels if one != ""), empty))


def _way(path: Path, last: str | int) -> tuple[Findings, list[str | int]]:
    """Return the findings at the end of a path, and the labels from there."""
    labels = [last]
    while path[0] is not None:
        labels.append(path[1])
        path = path[0]
    return path[1], labels[::-1]


def _report(path: Path, name: str) -> None:
    """Tell the findings at the end of a path about an unknown field."""
    findings, labels = _way(path, name)
    shown = ""
    for label in labels:
        if type(label) is int:
            shown += f"[{label}]"
        elif label:
            shown += f".{label}" if shown else str(label)
    findings.unknown(shown)
