"""One of the two servers, by name."""

from tests.bed.embedded import embedded_server
from tests.bed.real import real_server
from tests.bed.server import Server, Which


def start_server(which: Which, *, history: str | None = None) -> Server:
    """Start the server named, keeping old versions for about `history`."""
    if which == "real":
        return real_server(compaction=history) if history else real_server()
    return embedded_server(history=history)
