"""Which cluster a name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from lamina.errors import UnknownCluster

Bound = TypeVar("Bound")


def bound(cluster: str, home: Bound, others: Mapping[str, Bound]) -> Bound:
    """Return what stands for a cluster: the one at home where it has no name, or one of the others."""
    if not cluster:
        return home
    there = others.get(cluster)
    if there is None:
        raise UnknownCluster(cluster, others)
    return there
