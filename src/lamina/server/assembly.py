"""A server out of a store: its kinds, pages, verbs and metrics, put together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lamina.server.api import Api
from lamina.server.backup import copy_of
from lamina.server.builtin.kinds import builtin_kinds
from lamina.server.custom.kinds import kinds_of
from lamina.server.identity import Authenticator
from lamina.server.metrics import Metrics
from lamina.server.pages import Checks, Pages
from lamina.server.plane import Plane
from lamina.server.registry import Registry
from lamina.server.reviews import Reviews
from lamina.server.store import Store
from lamina.server.view import View


def assemble(store: Store, now: Callable[[], datetime], authenticator: Authenticator, checks: Checks) -> Api:
    """Return a server for what is in the store, ready to answer."""
    registry = Registry(store, builtin_kinds(), kinds_of)
    metrics = Metrics(store)
    # A copy is of everything in the log, and not for who has a part of it.
    backup = None if isinstance(store, View) else lambda: copy_of(store)
    pages = Pages(registry, metrics, checks, backup)
    return Api(Plane(store, registry, now), pages, Reviews(authenticator), metrics)
