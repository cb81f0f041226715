"""The spec of a Placement, parsed."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lamina.core.parse import read
from lamina.objects.types import Obj

Effect: TypeAlias = Literal["NoSelect", "PreferNoSelect", "NoSelectIfNew"]


class _Part(Struct, frozen=True, rename="camel", kw_only=True):
    """A part of a spec."""


class ClusterClaimSelector(_Part, frozen=True, kw_only=True):
    match_expressions: tuple[dict[str, Any], ...] = ()


class Expressions(_Part, frozen=True, kw_only=True):
    cel_expressions: tuple[str, ...] = ()


class ClusterSelector(_Part, frozen=True, kw_only=True):
    """What a cluster has to match: all three."""

    label_selector: dict[str, Any] = {}
    claim_selector: ClusterClaimSelector = ClusterClaimSelector()
    cel_selector: Expressions = Expressions()


class Predicate(_Part, frozen=True, kw_only=True):
    required_cluster_selector: ClusterSelector = ClusterSelector()


class Toleration(_Part, frozen=True, kw_only=True):
    key: str = ""
    operator: Literal["Equal", "Exists", ""] = "Equal"
    value: str = ""
    effect: Effect | Literal[""] = ""
    toleration_seconds: int | None = None


class AddOn(_Part, frozen=True, kw_only=True):
    resource_name: str
    score_name: str


class Coordinate(_Part, frozen=True, kw_only=True):
    type: Literal["BuiltIn", "AddOn"] = "BuiltIn"
    built_in: str = ""
    add_on: AddOn | None = None


class Prioritizer(_Part, frozen=True, kw_only=True):
    score_coordinate: Coordinate = Coordinate()
    weight: int = 1


class Policy(_Part, frozen=True, kw_only=True):
    mode: Literal["Additive", "Exact", ""] = "Additive"
    configurations: tuple[Prioritizer, ...] = ()


class DecisionGroup(_Part, frozen=True, kw_only=True):
    group_name: str
    group_cluster_selector: ClusterSelector = ClusterSelector()


class GroupStrategy(_Part, frozen=True, kw_only=True):
    decision_groups: tuple[DecisionGroup, ...] = ()
    clusters_per_decision_group: int | str = "100%"


class DecisionStrategy(_Part, frozen=True, kw_only=True):
    group_strategy: GroupStrategy = GroupStrategy()


class Spec(_Part, frozen=True, kw_only=True):
    """The spec of a Placement, without the fields that have no effect."""

    cluster_sets: tuple[str, ...] = ()
    number_of_clusters: int | None = None
    predicates: tuple[Predicate, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    prioritizer_policy: Policy = Policy()
    decision_strategy: DecisionStrategy = DecisionStrategy()


def spec(placement: Obj) -> Spec:
    """Return the spec of a placement; raises SpecError, which names the field."""
    return read(placement.get("spec"), Spec)
