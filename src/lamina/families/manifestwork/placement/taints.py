"""Which taints keep a cluster from being chosen, and until when one that is tolerated for a while does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lamina.errors import SpecError
from lamina.families.manifestwork.placement.api import Toleration
from lamina.objects.times import moment
from lamina.objects.types import Obj


def check(tolerations: Sequence[Toleration]) -> None:
    """Raise SpecError where a toleration contradicts itself."""
    for place, one in enumerate(tolerations):
        field = f"spec.tolerations[{place}]"
        if not one.key and one.operator != "Exists":
            raise SpecError(f"{field}.operator: must be Exists where there is no key")
        if one.operator == "Exists" and one.value:
            raise SpecError(f"{field}.value: must be empty where the operator is Exists")


def admits(
    cluster: Obj, tolerations: Sequence[Toleration], *, is_chosen: bool, now: datetime
) -> tuple[bool, datetime | None]:
    """Say whether a cluster may be chosen as far as its taints go, and when that has to be asked again."""
    again: datetime | None = None
    for taint in (cluster.get("spec") or {}).get("taints") or ():
        effect = taint.get("effect")
        if effect == "PreferNoSelect" or (effect == "NoSelectIfNew" and is_chosen):
            continue
        tolerated, ends = _tolerated(taint, tolerations, now)
        if not tolerated:
            return False, None
        if ends is not None and (again is None or ends < again):
            again = ends
    return True, again


def has_run_out(cluster: Obj, tolerations: Sequence[Toleration], now: datetime) -> bool:
    """Say whether a cluster has a taint that was tolerated for a while, and is no longer."""
    return any(
        any(_matches(taint, one) for one in tolerations) and not _tolerated(taint, tolerations, now)[0]
        for taint in (cluster.get("spec") or {}).get("taints") or ()
    )


def _tolerated(taint: Obj, tolerations: Sequence[Toleration], now: datetime) -> tuple[bool, datetime | None]:
    ending: datetime | None = None
    for one in tolerations:
        if not _matches(taint, one):
            continue
        if one.toleration_seconds is None:
            return True, None
        added = moment(taint.get("timeAdded")) or now
        ends = added + timedelta(seconds=one.toleration_seconds)
        if ends > now and (ending is None or ends > ending):
            ending = ends
    return ending is not None, ending


def _matches(taint: Obj, one: Toleration) -> bool:
    if one.effect and one.effect != taint.get("effect"):
        return False
    if one.key and one.key != taint.get("key"):
        return False
    return one.operator == "Exists" or one.value == (taint.get("value") or "")
