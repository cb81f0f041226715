"""One of the two servers, by name."""

from tests.bed.embedded import embedded_server
from tests.bed.real import real_server
from tests.bed.server import Server, Which


def start_server(which: Which, *, history: str | None = None, pods: bool = False) -> Server:
    """Start the server named, keeping old versions for about `history`; with `pods`, pods run on it."""
    if which == "real":
        return real_server(compaction=history, pods=pods) if history else real_server(pods=pods)
    return embedded_server(history=history, pods=pods)
