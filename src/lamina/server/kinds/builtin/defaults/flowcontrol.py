"""Defaults of flow schemas and priority levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made


def _flow_schema(spec: Made) -> None:
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def _exempt(level: Made) -> None:
    level.setdefault("nominalConcurrencyShares", 0)
    level.setdefault("lendablePercent", 0)


def _limited(level: Made) -> None:
    if level.get("nominalConcurrencyShares") is None:
        level["nominalConcurrencyShares"] = 30
    level.setdefault("lendablePercent", 0)


def _queuing(queuing: Made) -> None:
    for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
        if not queuing.get(name):
            queuing[name] = value


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "flowcontrol/v1.FlowSchemaSpec": _flow_schema,
    "flowcontrol/v1.ExemptPriorityLevelConfiguration": _exempt,
    "flowcontrol/v1.LimitedPriorityLevelConfiguration": _limited,
    "flowcontrol/v1.QueuingConfiguration": _queuing,
}
