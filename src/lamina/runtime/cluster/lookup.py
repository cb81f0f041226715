"""Resolves a cluster's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from lamina.errors import UnknownCluster

Bound = TypeVar("Bound")


def resolve(cluster: str, primary: Bound, others: Mapping[str, Bound]) -> Bound:
    """Return the value of a cluster: the primary one where the name is empty, or one of the others."""
    if not cluster:
        return primary
    found = others.get(cluster)
    if found is None:
        raise UnknownCluster(cluster, others)
    return found
