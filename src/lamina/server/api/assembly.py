"""Builds the API of a cluster on its store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lamina.server.api.access_reviews import AccessReviews
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.api.nonresource import Checks, NonResourceApi
from lamina.server.context import ServerContext
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.custom.kinds import kinds_of
from lamina.server.kinds.registry import Registry
from lamina.server.metrics import Metrics
from lamina.server.storage.backup import stream_backup
from lamina.server.storage.cluster_store import ClusterStore
from lamina.server.storage.store import Store


def assemble(store: Store, now: Callable[[], datetime], authenticator: Authenticator, checks: Checks) -> Api:
    """Return the API of the cluster in a store."""
    registry = Registry(store, builtin_kinds(), kinds_of)
    metrics = Metrics(store)
    # A backup holds the whole log, so only the store of the log itself offers one.
    backup = None if isinstance(store, ClusterStore) else lambda: stream_backup(store)
    pages = NonResourceApi(registry, metrics, checks, backup)
    return Api(ServerContext(store, registry, now), pages, AccessReviews(authenticator), metrics)
