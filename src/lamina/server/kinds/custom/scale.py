"""
The Scale of an object: desired replicas, current replicas and selector.

All scalable kinds share one body. A CRD names the three paths, a built-in kind has fixed
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from lamina.errors import BadRequest, Cause, InternalError
from lamina.objects.go_quote import quoted
from lamina.objects.selectors import from_labels, from_object
from lamina.objects.types import Made, Obj
from lamina.server.decode_errors import unhandled
from lamina.server.field_errors import invalid
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.custom.default import fresh
from lamina.server.kinds.custom.go_values import is_integer, plain
from lamina.server.kinds.kind import Findings, Kind

_INT32: Final = 2**31
_UNSET: Final = -_INT32
_COPIED_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScalePaths(Struct, frozen=True, kw_only=True):
    """
    The paths of the values of a Scale, as in a CRD: `.spec.replicas`.

    `selector` is empty if there is none. The selector of a `builtin` kind is an object
    or, in ReplicationControllers, a plain map; that of a custom kind is a string.
    """

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""
    builtin: bool = False


_BUILTIN: Final = ScalePaths(selector=".spec.selector", builtin=True)


def paths_of(kind: Kind) -> ScalePaths:
    """Return the scale paths of a kind."""
    paths: ScalePaths | None = getattr(kind.shape, "scale", None)
    return paths or _BUILTIN


def scale_of(obj: Obj, paths: ScalePaths, *, whole: bool = False) -> Made:
    """
    Return the Scale of an object.

    Raises InternalError if a value has the wrong type and, if it has to be `whole`,
    if the object has no replicas. Otherwise such a Scale has a placeholder that
    `with_scale` recognizes.
    """
    wanted = _number(obj, paths.spec)
    if wanted is None and not paths.builtin:
        if whole:
            text = f"the spec replicas field {quoted(paths.spec)} does not exist"
            raise InternalError(f"Internal error occurred: {text}", causes=[Cause("", text, "")])
        wanted = _UNSET
    status: Made = {"replicas": _number(obj, paths.status) or 0}
    if selector := _selector(obj, paths):
        status["selector"] = selector
    metadata = obj.get("metadata") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in _COPIED_METADATA if metadata.get(field)},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def with_scale(obj: Obj, scale: Obj, paths: ScalePaths) -> tuple[Made, list[Cause]]:
    """
    Return an object with the replicas of a Scale, and the errors of the Scale.

    Errors of a custom kind are reported when the object is validated. Raises BadRequest
    if the body is no Scale.
    """
    body = {key: fresh(part) for key, part in scale.items() if key not in ("kind", "apiVersion")}
    try:
        replicas = decode("autoscaling/v1.Scale", body, Findings())["spec"].get("replicas", 0)
    except TypeMismatch as problem:
        raise unhandled("Scale", "v1", "Scale", str(problem)) from None
    if replicas == _UNSET and not paths.builtin:
        raise BadRequest(f"the spec replicas field {quoted(paths.spec)} cannot be empty")
    causes = []
    if paths.builtin and replicas < 0:
        causes.append(invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    made: Made = {key: fresh(part) for key, part in obj.items()}
    *parents, last = _steps(paths.spec)
    holder = made
    for step in parents:
        below = holder.setdefault(step, {})
        if not isinstance(below, dict):
            text = f"value cannot be set because {paths.spec} is not a map[string]interface{{}}"
            raise BadRequest(text)
        holder = below
    holder[last] = replicas
    return made, causes


def validate_replicas(obj: Obj, path: str) -> list[Cause]:
    """Return the errors of a number of replicas in a custom object."""
    try:
        found = _number(obj, path) or 0
    except InternalError as problem:
        return [invalid(path, 0, problem.message)]
    if found < 0:
        return [invalid(path, found, "should be a non-negative integer")]
    if found >= _INT32:
        return [invalid(path, found, f"should be less than or equal to {_INT32 - 1}")]
    return []


def validate_selector(obj: Obj, path: str) -> list[Cause]:
    """Return the errors of the selector of a custom object, which has to be a string."""
    try:
        found = _at(obj, path)
    except InternalError as problem:
        return [invalid(path, "", problem.message)]
    if found is _ABSENT or isinstance(found, str):
        return []
    return [invalid(path, "", _mistyped(path, found, "string"))]


_ABSENT: Final = object()
_GO_TYPES: Final = {str: "string", bool: "bool", float: "float64", type(None): "<nil>"}


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _at(obj: Obj, path: str) -> Any:
    value: Any = obj
    steps = _steps(path)
    for index, step in enumerate(steps):
        if type(value) is not dict:
            if value is None:
                return _ABSENT
            shown = ".".join(steps[: index + 1])
            raise InternalError(_mistyped(shown, value, "map[string]interface{}"))
        value = value.get(step, _ABSENT)
        if value is _ABSENT:
            break
    return value


def _number(obj: Obj, path: str) -> int | None:
    value = _at(obj, path)
    if value is _ABSENT:
        return None
    if not is_integer(value):
        raise InternalError(_mistyped(path, value, "int64"))
    number: int = value
    return number


def _mistyped(path: str, value: Any, wanted: str) -> str:
    return f".{path.removeprefix('.')} accessor error: {_go_value(value)} is of the type {_go_type(value)}, expected {wanted}"  # fmt: skip


def _go_value(value: Any) -> str:
    """Return a value in Go's %v format."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_value, value)) + "]"
    return value if isinstance(value, str) else plain(value)


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "int64" if is_integer(value) else _GO_TYPES.get(type(value), "float64")


def _selector(obj: Obj, paths: ScalePaths) -> str:
    if not paths.selector:
        return ""
    found = _at(obj, paths.selector)
    if not paths.builtin:
        return found if isinstance(found, str) else ""
    if not isinstance(found, Mapping):
        return ""
    is_object = not found or any(key in found for key in ("matchLabels", "matchExpressions"))
    return str(from_object(found) if is_object else from_labels(found))
