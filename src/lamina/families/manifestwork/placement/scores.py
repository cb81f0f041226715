"""
Scores of clusters, for placements that do not select all: the weighted sum of their prioritizers.

By default, clusters that are selected already stay, and those that fewer placements
have selected come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from msgspec import Struct

from lamina.errors import SpecError
from lamina.families.manifestwork.placement.api import Policy, Prioritizer
from lamina.objects import meta
from lamina.objects.quantities import thousandths
from lamina.objects.times import moment
from lamina.objects.types import Obj

MOST = 100


class ScoreInputs(Struct, frozen=True, kw_only=True):
    """What scores depend on: the selected clusters, how often others selected each, and add-on scores."""

    selected: frozenset[str]
    used: Mapping[str, int]
    add_ons: Mapping[tuple[str, str], Obj]
    """By cluster and name."""
    now: datetime


def totals(clusters: Sequence[Obj], policy: Policy, inputs: ScoreInputs) -> dict[str, int]:
    """Return the score of each cluster."""
    sums = dict.fromkeys(map(meta.name, clusters), 0)
    for weight, scorer in _scorers(policy):
        if weight:
            for name, score in scorer(clusters, inputs).items():
                sums[name] += weight * score
    return sums


_Scorer = Callable[[Sequence[Obj], ScoreInputs], Mapping[str, int]]


def _steady(clusters: Sequence[Obj], inputs: ScoreInputs) -> dict[str, int]:
    """Return the scores of the prioritizer `Steady`, which favours the clusters that are selected."""
    return {(name := meta.name(one)): MOST if name in inputs.selected else 0 for one in clusters}


def _balance(clusters: Sequence[Obj], inputs: ScoreInputs) -> dict[str, int]:
    """Return the scores of the prioritizer `Balance`, which favours clusters that fewer placements have selected."""
    most = max(inputs.used.values(), default=0)
    scores: dict[str, int] = {}
    for one in clusters:
        used = inputs.used.get(meta.name(one), 0)
        # Cut towards zero before it is doubled, as upstream does.
        share = Fraction(1, 2) - Fraction(used, most) if used else Fraction(1, 2)
        scores[meta.name(one)] = 2 * int(MOST * share)
    return scores


def _allocatable(resource: str) -> _Scorer:
    def score(clusters: Sequence[Obj], inputs: ScoreInputs) -> dict[str, int]:
        amounts = {
            meta.name(one): thousandths(
                str(((one.get("status") or {}).get("allocatable") or {}).get(resource, 0))
            )
            for one in clusters
        }
        least, most = min(amounts.values()), max(amounts.values())
        if least == most:
            return dict.fromkeys(amounts, MOST)
        return {
            name: int(MOST * (2 * Fraction(own - least, most - least) - 1)) for name, own in amounts.items()
        }

    return score


def _add_on(resource: str, wanted: str) -> _Scorer:
    def score(clusters: Sequence[Obj], inputs: ScoreInputs) -> dict[str, int]:
        return {(name := meta.name(one)): _given(inputs, name, resource, wanted) for one in clusters}

    return score


def _given(inputs: ScoreInputs, cluster: str, resource: str, wanted: str) -> int:
    status = (inputs.add_ons.get((cluster, resource)) or {}).get("status") or {}
    ends = moment(status.get("validUntil"))
    if ends is not None and ends <= inputs.now:
        return 0
    return next((one["value"] for one in status.get("scores") or () if one["name"] == wanted), 0)


_BUILT_IN: Mapping[str, _Scorer] = {
    "Steady": _steady,
    "Balance": _balance,
    "ResourceAllocatableCPU": _allocatable("cpu"),
    "ResourceAllocatableMemory": _allocatable("memory"),
}


def _scorers(policy: Policy) -> list[tuple[int, _Scorer]]:
    found: dict[str, tuple[int, _Scorer]] = {}
    if policy.mode != "Exact":
        found = {name: (1, _BUILT_IN[name]) for name in ("Steady", "Balance")}
    for place, one in enumerate(policy.configurations):
        name, scorer = _scorer(one, f"spec.prioritizerPolicy.configurations[{place}].scoreCoordinate")
        found[name] = (one.weight, scorer)
    return list(found.values())


def _scorer(asked: Prioritizer, field: str) -> tuple[str, _Scorer]:
    where = asked.score_coordinate
    if where.type == "AddOn":
        if where.add_on is None:
            raise SpecError(f"{field}.addOn: is required where the type is AddOn")
        own = where.add_on
        return f"AddOn/{own.resource_name}/{own.score_name}", _add_on(own.resource_name, own.score_name)
    scorer = _BUILT_IN.get(where.built_in)
    if scorer is None:
        raise SpecError(f"{field}.builtIn: {where.built_in or 'nothing'} is none of {', '.join(_BUILT_IN)}")
    return where.built_in, scorer


def check(policy: Policy) -> None:
    """Raise SpecError where a policy names a prioritizer that does not exist."""
    _scorers(policy)
