"""What sets and ObjectSetPhases report alike: conditions, controllerOf, events of transitions, and gauges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lamina.core.model.condition_events import ConditionEvents
from lamina.core.model.condition_list import ConditionList
from lamina.core.model.plan import Gauge
from lamina.core.model.queries import Answers
from lamina.core.phases.condition_mapping import is_mapped
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.object_list import read_listed
from lamina.core.phases.phase_step import Failure, FailureReason
from lamina.families.objectset.labels import MANAGER
from lamina.families.objectset.metrics import cached, since
from lamina.objects.types import Obj

AVAILABLE = "Available"
_EVENTS = ConditionEvents(
    by=MANAGER,
    warnings=(*FailureReason, "ObjectSetUnready", "ProgressDeadlineExceeded", "InvalidTemplate"),
    messages={"Archived": "none of its objects are left"},
    ends={
        "Paused": ("Resumed", "reconciling goes on"),
        "InTransition": ("TransitionFinished", "it controls all of its objects"),
    },
    # A condition that is replaced by another one, such as Available by Archived, has the event of that one.
    final="Archived",
    is_silent=is_mapped,
)
report = _EVENTS.report
"""Returns the write of a status and the events of its transitions."""
_ALL_PASS = "Object is available and passes all probes."


def set_available(made: ConditionList, failure: Failure | None) -> None:
    if failure is None:
        made.set(AVAILABLE, "True", "Available", _ALL_PASS)
    else:
        made.set(AVAILABLE, "False", failure.reason, failure.message)


def read_controller_of(obj: Obj) -> Iterator[ObjectKey]:
    """Yield the objects that the status of a set or ObjectSetPhase lists as controlled."""
    yield from read_listed((obj.get("status") or {}).get("controllerOf") or ())


def set_gauges(obj: Obj, in_process: Iterable[Manifest], answers: Answers) -> tuple[Gauge, ...]:
    """Return the metrics of a set, which has these objects in phases without a class."""
    return (*since(obj), *cached(obj, in_process, answers))


def phase_gauges(
    obj: Obj, manifests: Iterable[Manifest], answers: Answers, cluster: str
) -> tuple[Gauge, ...]:
    """Return the metrics of an ObjectSetPhase, whose objects are on a cluster."""
    return tuple(cached(obj, manifests, answers, cluster))
