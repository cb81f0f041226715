"""
A control plane for change on Kubernetes.

What a hooks file needs is here by name, and is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.hooks.asgi import asgi
    from lamina.hooks.sdk import Hook, Later, Objects, Related, Response, Update, decorate, sync
    from lamina.objects.types import Obj

__version__ = "0.1.0"
__all__ = [
    "Hook",
    "Later",
    "Obj",
    "Objects",
    "Related",
    "Response",
    "Update",
    "__version__",
    "asgi",
    "decorate",
    "sync",
]

_ELSEWHERE = {"asgi": "lamina.hooks.asgi", "Obj": "lamina.objects.types"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ELSEWHERE.get(name, "lamina.hooks.sdk")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
