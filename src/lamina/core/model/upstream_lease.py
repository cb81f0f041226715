"""The Lease by which an upstream elects its leader, for a family that does the upstream's work."""

from __future__ import annotations

from msgspec import Struct


class UpstreamLease(Struct, frozen=True, kw_only=True):
    """
    A Lease that exactly one process of an upstream holds while it works.

    Whatever works in place of that process holds the Lease, so that the two never
    write the same objects at the same time.
    """

    upstream: str
    """The program that holds it, for messages."""
    namespace: str
    """Where the upstream's installation puts it, unless it is told otherwise."""
    name: str
