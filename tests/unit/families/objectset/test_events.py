"""Each transition of a set, an ObjectSetPhase or a deployment is an event, and nothing else is."""

from collections import Counter
from collections.abc import Iterator

import pytest

from lamina.core.model.plan import Emit
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import Key, Loop, Process
from tests.unit.families.objectset.promises import OWN
from tests.unit.families.objectset.stories import KUBELET, STORIES, UNDER_TEST, cluster
from tests.unit.families.objectset.test_by_hand import MINUTE

_WARNINGS = (
    "ProbeFailure", "PreflightError", "CollisionDetected", "ObjectSetUnready", "ProgressDeadlineExceeded",
    "InvalidTemplate",
)  # fmt: skip


def expected(before: Obj, after: Obj) -> Iterator[tuple[str, str, str]]:
    """Yield type, reason and message of the events of a change of a status."""
    was = {one["type"]: one for one in conditions.of(before)}
    now = {one["type"]: one for one in conditions.of(after)}
    for name, one in now.items():
        old = was.get(name)
        if old is None or (old["status"], old.get("reason")) != (one["status"], one.get("reason")):
            kind = "Warning" if one["reason"] in _WARNINGS else "Normal"
            yield kind, one["reason"], one.get("message") or "none of its objects are left"
    if "Archived" not in now:
        if "Paused" in was and was["Paused"]["status"] == "True" and "Paused" not in now:
            yield "Normal", "Resumed", "reconciling goes on"
        if "InTransition" in was and "InTransition" not in now:
            yield "Normal", "TransitionFinished", "it controls all of its objects"


@pytest.mark.parametrize("name", STORIES)
def test_each_transition_is_an_event(name: str) -> None:
    story = STORIES[name]
    world = cluster(*story.given)
    wanted, emitted = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()

    def changed(ref: Ref, before: Obj | None, after: Obj | None) -> None:
        if ref.kind in OWN and after is not None:
            wanted.update((meta.uid(after), *one) for one in expected(before or {}, after))

    def written(key: Key, action: object) -> None:
        if isinstance(action, Emit):
            event = action.event
            emitted[event["involvedObject"]["uid"], event["type"], event["reason"], event["message"]] += 1

    world.listeners.append(changed)
    process = Process(world, UNDER_TEST)
    process.after_write = written
    loop = Loop(world, process, Process(world, (KUBELET,)))
    loop.pass_time(MINUTE)
    for step in story.steps:
        if callable(step):
            step(world)
        loop.pass_time(MINUTE)

    assert wanted
    assert emitted == wanted
