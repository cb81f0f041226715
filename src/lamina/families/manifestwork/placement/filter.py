"""
The clusters that a placement may select: members of its sets that are bound to its namespace.

Where a step leaves no cluster, the result says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lamina.errors import BadRequest
from lamina.families.manifestwork.labels import SET_LABEL
from lamina.objects import meta, selectors
from lamina.objects.types import Obj


class Eligible(Struct, frozen=True, kw_only=True):
    """The eligible clusters; `reason` and `message` say why there are none."""

    clusters: tuple[Obj, ...] = ()
    reason: str = ""
    message: str = ""


def eligible(
    wanted_sets: Sequence[str], bindings: Iterable[Obj], sets: Mapping[str, Obj], clusters: Iterable[Obj]
) -> Eligible:
    """Return the clusters that a placement may select, given the bindings of its namespace."""
    bound = sorted({name for one in bindings if (name := _bound_set(one)) in sets})
    if not bound:
        return Eligible(
            reason="NoManagedClusterSetBindings",
            message="No valid ManagedClusterSetBindings found in placement namespace",
        )
    chosen = [name for name in bound if name in wanted_sets] if wanted_sets else bound
    if not chosen:
        return Eligible(
            reason="NoIntersection",
            message=f"None of ManagedClusterSets [{','.join(wanted_sets)}] is bound to placement namespace",
        )
    tests = [test for name in chosen if (test := _membership(sets[name])) is not None]
    found = tuple(
        sorted(
            (one for one in clusters if not meta.is_deleting(one) and any(test(one) for test in tests)),
            key=meta.name,
        )
    )
    if not found:
        return Eligible(
            reason="AllManagedClusterSetsEmpty",
            message=f"All ManagedClusterSets [{','.join(chosen)}] have no member ManagedCluster",
        )
    return Eligible(clusters=found)


def _bound_set(binding: Obj) -> str:
    """Return the set that a binding binds; it has to have the name of the set."""
    name = (binding.get("spec") or {}).get("clusterSet") or ""
    return name if name == meta.name(binding) and not meta.is_deleting(binding) else ""


class _Member:
    """Says which clusters are members of a set."""

    def __init__(self, labels: selectors.LabelSelector) -> None:
        self._labels = labels

    def __call__(self, cluster: Obj) -> bool:
        return self._labels.matches(meta.labels(cluster))


def _membership(cluster_set: Obj) -> _Member | None:
    chosen = (cluster_set.get("spec") or {}).get("clusterSelector") or {}
    if chosen.get("selectorType") != "LabelSelector":
        return _Member(selectors.from_labels({SET_LABEL: meta.name(cluster_set)}))
    try:
        return _Member(selectors.from_object(chosen.get("labelSelector") or {}))
    except BadRequest:
        # A set whose selector is invalid has no members.
        return None


def members(cluster_set: Obj, clusters: Iterable[Obj]) -> list[Obj]:
    """Return the clusters in a set."""
    test = _membership(cluster_set)
    return [one for one in clusters if test is not None and test(one)]
