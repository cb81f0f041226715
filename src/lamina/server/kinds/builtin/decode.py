"""
Decode bodies of built-in kinds as Go decodes them into structs.

kube-apiserver decodes a body into typed structs and encodes those again. So unknown
fields are dropped and reported, names are case-sensitive, null is absent, an empty
value of an omitempty field is absent too, and a field that encodes its zero is present
even if it was not sent: `status: {}`, `resources: {}`, `rules: null`. Values with a
canonical form are converted to it. A value of the wrong type is refused with Go's
message, which has the innermost struct and the path without indices: `cannot unmarshal
string into Go struct field DeploymentSpec.spec.replicas of type int32`.

Decoders are built per struct on first use and cached. They modify the given dict, which
the caller owns. A path is a chain of pairs (parent, label), so that each level costs
one small tuple; its end holds the findings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from lamina.objects.types import Made
from lamina.server.kinds.builtin.aliases import ALIASES
from lamina.server.kinds.builtin.decode_scalars import (
    BOUNDS,
    Path,
    Step,
    TypeMismatch,
    decode_amount,
    decode_bytes,
    decode_float,
    decode_quantity,
    int_or_string,
    integer,
    json_type,
    scalar,
    time,
    unchanged,
)
from lamina.server.kinds.builtin.structs import fields, go_name, is_struct, meaning
from lamina.server.kinds.builtin.values import canonical_micro_time, canonical_time
from lamina.server.kinds.kind import Findings

ABSENT: Final = object()
"""Returned by a decoder for a field that is then omitted."""

Zero: TypeAlias = Callable[[], Any]


def decode(key: str, body: Made, findings: Findings) -> Made:
    """Return a parsed body as Go would encode it again; raises TypeMismatch."""
    made: Made = _struct(key)(body, (None, findings), "")
    return made


def decode_metadata(metadata: Made, findings: Findings, path: str = "metadata") -> Made:
    """Return decoded metadata, also of custom resources; raises TypeMismatch."""
    try:
        made: Made = _struct("meta/v1.ObjectMeta")(metadata, (None, findings), path)
    except TypeMismatch as error:
        error.inside("ObjectMeta", (path,))
        raise
    return made


def zero(key: str) -> Made:
    """Return the JSON of a struct without any field set."""
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
                steps[field.name] = _recording_empty(steps[field.name])
            elif (key, field.name) in _KEPT_EMPTY:
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
            raise TypeMismatch(json_type(value), go_name(key))
        if not ready:
            prepare()
        gone: list[str] | None = None
        item_path: Path | None = None
        name = ""
        try:
            for name, given in value.items():
                # Most values are strings that do not change.
                if given and plain.get(name) is type(given):
                    continue
                if item_path is None:
                    item_path = (path, label)
                step = steps.get(name)
                if step is None:
                    _report(item_path, name)
                    made = ABSENT
                elif given is None:
                    made = nulls[name]() if name in nulls else ABSENT
                else:
                    made = step(given, item_path, name)
                if made is given:
                    continue
                if made is ABSENT:
                    gone = [name] if gone is None else [*gone, name]
                else:
                    value[name] = made
        except TypeMismatch as error:
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
    """Return the decoder of a field, which returns ABSENT if the field is omitted."""
    if go_type.startswith("*"):
        return _value(go_type[1:])
    known = meaning(go_type)
    if known in _EMPTY:
        return _omit_empty(_value(go_type), _EMPTY[known]) if omit else _value(go_type)
    if known.startswith(("[]", "map[")):
        return _collection(_value(go_type), ABSENT if omit else None)
    if omit == "~":
        return _omit_empty(_value(go_type), None)
    return _value(go_type)


@cache
def _value(go_type: str) -> Step:
    """Return the decoder of a non-null value."""
    known = meaning(go_type)
    shown = go_name(go_type)
    if known in _OWN:
        return _OWN[known]
    if is_struct(known):
        return _struct(known)
    if known == "[]byte":
        return decode_bytes
    if known in _SCALARS:
        return scalar(_SCALARS[known], shown)
    if known in BOUNDS:
        return integer(*BOUNDS[known], shown)
    if known == "float64":
        return decode_float
    if known.startswith("[]"):
        return _list(known[2:], shown)
    inner = known.partition("]")[2]
    if go_type == "core/v1.ResourceList":
        return _map(inner, shown, decode_amount)
    return _map(inner, shown)


def _omit_empty(step: Step, empty: Any) -> Step:
    def omit_empty(value: Any, path: Path, label: str | int) -> Any:
        made = step(value, path, label)
        return ABSENT if made == empty else made

    return omit_empty


def _collection(step: Step, nothing: Any) -> Step:
    # An empty list does not survive kube-apiserver's storage: where the field is encoded at all, it
    # is null.
    def collection(value: Any, path: Path, label: str | int) -> Any:
        return step(value, path, label) or nothing

    return collection


def _recording_empty(step: Step) -> Step:
    def recording_empty(value: Any, path: Path, label: str | int) -> Any:
        made = step(value, path, label)
        if not value:
            _record_empty(path, label, value)
        return made

    return recording_empty


def _list(inner: str, shown: str) -> Step:
    step, empty, strings = _value(inner), _zero_of(inner), meaning(inner) == "string"

    def decode_list(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not list:
            raise TypeMismatch(json_type(value), shown)
        item_path = (path, label)
        for index, given in enumerate(value):
            if strings and type(given) is str:
                continue
            made = empty() if given is None else step(given, item_path, index)
            if made is not given:
                value[index] = made
        return value

    return decode_list


def _map(inner: str, shown: str, step: Step | None = None) -> Step:
    step, strings = step or _value(inner), meaning(inner) == "string"
    # An empty []byte as a map value is an empty string after kube-apiserver's storage.
    absent: Zero = str if inner == "[]byte" else _zero_of(inner)

    def decode_map(value: Any, path: Path, label: str | int) -> Any:
        if type(value) is not dict:
            raise TypeMismatch(json_type(value), shown)
        item_path = (path, label)
        for name, given in value.items():
            if strings and type(given) is str:
                continue
            made = absent() if given is None else step(given, item_path, name)
            if made is not given:
                value[name] = made
        return value

    return decode_map


def _schema_or(others: type) -> Step:
    """Return the decoder of a schema that may also be a list or a boolean."""

    def schema_or(value: Any, path: Path, label: str | int) -> Any:
        # These types decode themselves and drop unknown fields silently.
        silent: Path = (None, Findings())
        if type(value) is dict:
            return _struct("apiextensions/v1.JSONSchemaProps")(value, silent, "")
        if type(value) is list and others is not bool:
            inner = "string" if others is str else "apiextensions/v1.JSONSchemaProps"
            return _list(inner, go_name(f"[]{inner}"))(value, silent, "") or None
        if type(value) is bool and others is bool:
            return value
        if others is bool:
            raise TypeMismatch("", "", "boolean or JSON schema expected")
        return None

    return schema_or


# Validation quotes these as they were sent.
_QUOTED: Final = {
    ("apiextensions/v1.CustomResourceDefinitionSpec", "versions"),
    ("core/v1.PersistentVolumeSpec", "capacity"),
    ("meta/v1.ObjectMeta", "labels"),
    ("networking/v1.IngressSpec", "rules"),
}
# If these are sent empty they are not defaulted, and refused.
_KEPT_EMPTY: Final = {("autoscaling/v2.HPAScalingRules", "policies")}
_SCALARS: Final = {"string": str, "bool": bool}
_EMPTY: Final = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}
_ZEROS: Final = {**_EMPTY, "resource.Quantity": "0", "intstr.IntOrString": 0}
_OWN: Final[Mapping[str, Step]] = {
    "meta/v1.Time": time(canonical_time),
    "meta/v1.MicroTime": time(canonical_micro_time),
    "meta/v1.FieldsV1": unchanged,
    "resource.Quantity": decode_quantity,
    "runtime.RawExtension": unchanged,
    "intstr.IntOrString": int_or_string,
    "apiextensions/v1.JSON": unchanged,
    "apiextensions/v1.JSONSchemaPropsOrArray": _schema_or(dict),
    "apiextensions/v1.JSONSchemaPropsOrBool": _schema_or(bool),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": _schema_or(str),
}


def _always(go_type: str, omit: str) -> bool:
    """Return whether a field is encoded even if it was not sent; an empty struct is never omitted."""
    if omit == "":
        return True
    known = meaning(go_type)
    return omit == "?" and (is_struct(known) or known in _OWN)


@cache
def _zero_of(go_type: str) -> Zero:
    """Return the function that makes the zero of a type; a list or map in a field is null."""
    known = meaning(go_type)
    if is_struct(known):
        parts = [
            (field.name, _zero_of(field.type)) for field in fields(known) if _always(field.type, field.zero)
        ]
        return lambda: {name: make() for name, make in parts}
    nothing = _ZEROS.get(known)
    return lambda: nothing


def _record_empty(path: Path, label: str | int, empty: Any) -> None:
    """Record an empty value in the findings at the end of a path."""
    findings, labels = _unwind(path, label)
    findings.empties.append((tuple(one for one in labels if one != ""), empty))


def _unwind(path: Path, last: str | int) -> tuple[Findings, list[str | int]]:
    """Return the findings at the end of a path, and its labels."""
    labels = [last]
    while path[0] is not None:
        labels.append(path[1])
        path = path[0]
    return path[1], labels[::-1]


def _report(path: Path, name: str) -> None:
    """Record an unknown field in the findings at the end of a path."""
    findings, labels = _unwind(path, name)
    shown = ""
    for label in labels:
        if type(label) is int:
            shown += f"[{label}]"
        elif label:
            shown += f".{label}" if shown else str(label)
    findings.unknown(shown)
