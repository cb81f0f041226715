"""The state that the verbs of one server share: its admission context, its watch encoders and its open watches."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from lamina.server.admission.context import AdmissionContext
from lamina.server.fault_matching import FaultTarget
from lamina.server.kinds.registry import Registry
from lamina.server.storage.store import Store

if TYPE_CHECKING:
    from lamina.server.codec.watch_encoder import WatchEncoder
    from lamina.server.storage.stale_store import CompactedStore, StaleStore


class OpenWatch(Protocol):
    """A watch that the server can end."""

    def end(self) -> None: ...


class ServerContext(AdmissionContext):
    """One server: what a write depends on, and its watches."""

    def __init__(self, store: Store, registry: Registry, now: Callable[[], datetime]) -> None:
        super().__init__(store, registry, now)
        self.encoders: WeakValueDictionary[tuple[object, ...], WatchEncoder] = WeakValueDictionary()
        """Encoders in use, by kind, place, form and selectors: identical watches share one."""
        self.watches: WeakKeyDictionary[OpenWatch, FaultTarget | None] = WeakKeyDictionary()
        """Open watches with the request attributes that faults match; None for exempt ones."""

    def reading(self, store: StaleStore | CompactedStore) -> ServerContext:
        """Return this context with its reads served from another view of the store."""
        other = copy(self)
        # The view delegates to the store whatever it does not override.
        other.store = cast(Store, store)
        return other
