"""
The arguments of a hook function, and the encoding of its result.

A function gets the values that its parameter names select. Request and response
are the JSON of a webhook, whether a process, a web server or a test calls it.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

if TYPE_CHECKING:
    from lamina.hooks.sdk import Hook

# Parameter names by the fields of a request that they select; decorators use other field names for some.
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "parent": ("parent", "object"),
    "object": ("object", "parent"),
    "children": ("children", "attachments"),
    "attachments": ("attachments", "children"),
    "related": ("related",),
    "finalizing": ("finalizing",),
    "controller": ("controller",),
}
_CUSTOMIZE = ("parent", "object", "controller")


def check(function: Callable[..., Any], purpose: str) -> None:
    """Raise TypeError for a parameter that this hook's request does not have."""
    if not callable(function):
        raise TypeError(f"expected a function, got {function!r}")
    allowed = _CUSTOMIZE if purpose == "customize" else tuple(_PARAMETERS)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__}: name the parameters instead of using *")
        if parameter.name not in allowed and parameter.default is parameter.empty:
            raise TypeError(
                f"{function.__name__} has a parameter {parameter.name!r}; "
                f"a {purpose} hook can have {', '.join(allowed)}"
            )


def arguments(function: Callable[..., Any], body: bytes) -> dict[str, Any]:
    """Return a function's arguments, from the body of a request."""
    request = orjson.loads(body)
    given: dict[str, Any] = {}
    for name, type_ in _parameters(function):
        for key in _PARAMETERS[name]:
            if key in request:
                given[name] = request[key] if type_ is None else msgspec.convert(request[key], type_)
                break
        else:
            raise TypeError(f"{function.__name__} has a parameter {name!r}, which this request does not have")
    return given


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """Return the parameters, each with the class that its value is converted to, if any."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        # The annotations name types that exist only for type checkers: objects stay dicts.
        hints = {}
    return tuple(
        (name, _made_of(hints.get(name)))
        for name in inspect.signature(function).parameters
        if name in _PARAMETERS
    )


def _made_of(hint: Any) -> Any:
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, msgspec.Struct)):
        return hint
    return None


def reply(hook: Hook, purpose: str, result: Any) -> bytes:
    """Return the body that encodes a function's result; TypeError for an invalid result."""
    body = _customize_response(result) if purpose == "customize" else _sync_response(hook, purpose, result)
    return orjson.dumps(body, default=_plain)


def _customize_response(result: Any) -> Any:
    if isinstance(result, Mapping):
        return result
    if result is None or isinstance(result, str) or not isinstance(result, Iterable):
        raise TypeError(f"expected a list of rules, or a dict, and customize returned {_described(result)}")
    return {"relatedResources": [one.as_json() if hasattr(one, "as_json") else one for one in result]}


def _sync_response(hook: Hook, purpose: str, result: Any) -> Any:
    from lamina.hooks.sdk import Response

    if isinstance(result, Mapping):
        return result
    if isinstance(result, bool) and purpose == "finalize":
        result = Response(finalized=result)
    elif not isinstance(result, Response):
        if result is None or isinstance(result, str) or not isinstance(result, Iterable):
            raise TypeError(
                f"expected a list of objects, a Response or a dict, and it returned {_described(result)}"
            )
        result = Response(children=list(result))
    decorates = hook.kind == "DecoratorController"
    body: dict[str, Any] = {"attachments" if decorates else "children": result.children}
    for key, value in (
        ("status", result.status),
        ("resyncAfterSeconds", result.resync_after),
        ("labels", result.labels),
        ("annotations", result.annotations),
    ):
        if value is not None:
            body[key] = value
    return {**body, "finalized": True} if result.finalized else body


def _described(result: Any) -> str:
    return "nothing" if result is None else f"{type(result).__name__} {result!r:.60}"


def _plain(value: Any) -> Any:
    """Convert a value that JSON cannot encode."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{_described(value)} cannot be encoded as JSON")
