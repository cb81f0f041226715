"""
What a hook function is handed, and what its answer says on the wire.

A function asks for things by the names of its parameters and gets nothing
else. The words are those of a webhook: the same JSON goes in, the same comes
out, whether a process, a web server or a test does the calling.
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

# What a parameter may be called, and where in a request it is found: a decorator calls some things by other names.
_ASKED: Mapping[str, tuple[str, ...]] = {
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
    """Raise TypeError for a function that asks for something no hook is told."""
    if not callable(function):
        raise TypeError(f"expected a function, got {function!r}")
    offered = _CUSTOMIZE if purpose == "customize" else tuple(_ASKED)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__}: a hook asks for what it needs by name, not with *")
        if parameter.name not in offered and parameter.default is parameter.empty:
            raise TypeError(
                f"{function.__name__} asks for {parameter.name!r}; "
                f"a {purpose} hook is told {', '.join(offered)}"
            )


def arguments(function: Callable[..., Any], body: bytes) -> dict[str, Any]:
    """Return what a function asks for, out of the body of a request."""
    request = orjson.loads(body)
    given: dict[str, Any] = {}
    for name, wanted in _parameters(function):
        for key in _ASKED[name]:
            if key in request:
                given[name] = request[key] if wanted is None else msgspec.convert(request[key], wanted)
                break
        else:
            raise TypeError(f"{function.__name__} asks for {name!r}, which this request does not say")
    return given


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """Return the parameters to be filled, each with the class it is to be made into, if any."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        # Names that only a type checker can see: then objects stay as they are.
        hints = {}
    return tuple(
        (name, _made_of(hints.get(name))) for name in inspect.signature(function).parameters if name in _ASKED
    )


def _made_of(hint: Any) -> Any:
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, msgspec.Struct)):
        return hint
    return None


def reply(hook: Hook, purpose: str, result: Any) -> bytes:
    """Return the body that says what a function returned; TypeError for what means nothing."""
    said = _customized(result) if purpose == "customize" else _wanted(hook, purpose, result)
    return orjson.dumps(said, default=_plain)


def _customized(result: Any) -> Any:
    if isinstance(result, Mapping):
        return result
    if result is None or isinstance(result, str) or not isinstance(result, Iterable):
        raise TypeError(
            f"expected a list of what is to be seen, or a dict, and customize returned {_a(result)}"
        )
    return {"relatedResources": [one.as_json() if hasattr(one, "as_json") else one for one in result]}


def _wanted(hook: Hook, purpose: str, result: Any) -> Any:
    from lamina.hooks.sdk import Response

    if isinstance(result, Mapping):
        return result
    if isinstance(result, bool) and purpose == "finalize":
        result = Response(finalized=result)
    elif not isinstance(result, Response):
        if result is None or isinstance(result, str) or not isinstance(result, Iterable):
            raise TypeError(f"expected a list of objects, a Response or a dict, and it returned {_a(result)}")
        result = Response(children=list(result))
    decorates = hook.kind == "DecoratorController"
    said: dict[str, Any] = {"attachments" if decorates else "children": result.children}
    for key, value in (
        ("status", result.status),
        ("resyncAfterSeconds", result.resync_after),
        ("labels", result.labels),
        ("annotations", result.annotations),
    ):
        if value is not None:
            said[key] = value
    return {**said, "finalized": True} if result.finalized else said


def _a(result: Any) -> str:
    return "nothing" if result is None else f"{type(result).__name__} {result!r:.60}"


def _plain(value: Any) -> Any:
    """Turn what JSON has no word for into something it has."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{_a(value)} cannot be said in JSON")
