"""
Simulated rollouts with edits and deletions in the meantime: scenarios for the crash explorer.

A kubelet takes two seconds to make a pod ready, so that a rollout has a middle; a
pod of the image `bad` is never ready until a namespace `cure` exists. The invariants
of every rollout are checked after each write.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from lamina.actors.garbage import GARBAGE
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Plan, Propagation, change, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.families.metacontroller.controller import source
from lamina.families.metacontroller.rollback import rollback
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import NAMESPACE, make
from lamina.testing.crash_explorer import Scenario, Step
from tests.unit.families.metacontroller.catset import COMPOSITE, PARENT, REVISION, Cats, touched
from tests.unit.families.metacontroller.promises import (
    NAMES,
    ROLLED,
    claimed_before_made,
    control_never_moves_back_by_itself,
    keeps_the_pace,
    nothing_in_use_is_forgotten,
    numbers_grow,
    snapshots_stay,
    the_spec_is_never_written,
)
from tests.unit.families.undoing import carry_out, seen

WAYS: Mapping[str, dict[str, Any]] = {
    "recreate": {"method": "RollingRecreate"},
    "in place": {"method": "RollingInPlace"},
    "recreate, server-side": {"method": "RollingRecreate", "applies": True},
    "in place, server-side": {"method": "RollingInPlace", "applies": True},
    "recreate, two at once": {"method": "RollingRecreate", "maxUnavailable": 2},
}
WORKS = timedelta(seconds=1)
"""Until there is nothing to do but wait for a pod."""
GETS_READY = timedelta(seconds=3)
OVER = timedelta(minutes=1)
_KEPT = 3
"""How many revisions are kept in scenarios with a rollback."""
_TAKES = timedelta(seconds=2)
CURE = NAMESPACE.ref("", "cure")


class _Pod(NamedTuple):
    obj: Obj
    cured: bool


def _run(pod: _Pod, answers: Answers, now: datetime, *, observant: bool) -> Plan:
    """Have a pod's status say what runs, and two seconds later that it is ready."""
    status, image = pod.obj.get("status") or {}, pod.obj["spec"]["image"]
    if status.get("image") != image:
        since = {
            "image": image,
            "since": now.isoformat(),
            "conditions": [{"type": "Ready", "status": "False"}],
            **({"observedGeneration": meta.generation(pod.obj)} if observant else {}),
        }
        return one_stage(
            "start it", [change(pod.obj, {"status": since}, "status")], because="it has another image"
        )
    if conditions.is_true(status["conditions"], "Ready") or (image == "bad" and not pod.cured):
        return NOTHING
    due = datetime.fromisoformat(status["since"]) + _TAKES
    if now < due:
        return Plan(requeue_after=due - now, because="it takes a while")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return one_stage("say so", [change(pod.obj, {"status": ready}, "status")], because="it is ready")


def _looked_at(world: World, ref: Ref) -> _Pod | None:
    pod = world.get(ref)
    return None if pod is None else _Pod(pod, world.get(CURE) is not None)


def _all_of_them(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for kind in ROLLED for one in world.every(kind.group_kind)]


def kubelet(*, observant: bool = False) -> Controller[_Pod]:
    """Return the controller that runs pods and boxes; an observant one reports the generation it observed."""
    return Controller(
        name="kubelet",
        watches=(
            *(Watch(selects=only(*kind.group_kind), enqueue=itself) for kind in ROLLED),
            Watch(selects=only("", "Namespace"), enqueue=_all_of_them),
        ),
        gather=_looked_at,
        plan=partial(_run, observant=observant),
        manager="kubelet",
    )


def given(**cats: Any) -> Cats:
    made = Cats(**cats)
    made.start()
    return made


def wants(**spec: Any) -> Step:
    return lambda cluster: cluster.patch(PARENT, {"spec": spec})


def image(name: str) -> Step:
    return wants(template={"image": name})


def loses_pods(cluster: SimulatedCluster) -> None:
    """One pod is deleted before its turn, one after it."""
    for name in ("nginx-0", "nginx-2"):
        if (ref := Ref("v1", "Pod", "default", name)) in cluster.objects:
            cluster.delete(ref)


def loses_revisions(cluster: SimulatedCluster) -> None:
    for revision in cluster.listed(REVISION):
        cluster.delete(meta.ref(revision))


def is_deleted(cluster: SimulatedCluster) -> None:
    cluster.delete(PARENT)


def is_left_alone(cluster: SimulatedCluster) -> None:
    """The parent is deleted, and its children are orphaned."""
    cluster.delete(PARENT, Propagation.ORPHAN)


def is_there_again(cluster: SimulatedCluster) -> None:
    """The parent is created again, as it was."""
    assert isinstance(cluster, Cats)
    cluster.start(image="two")


def is_cured(cluster: SimulatedCluster) -> None:
    cluster.create(make(NAMESPACE, "cure"))


def hook_has_a_headache(*images: str) -> Step:
    """The hook fails for some images; without images it works again."""

    def change(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Cats)
        cluster.busy = set(images)

    return change


def undoes(cluster: SimulatedCluster) -> None:
    """The parent is rolled back to the revision before."""
    controller = Cats().controller(kept=_KEPT)
    carry_out(cluster, PARENT, rollback(seen(cluster, controller, PARENT), None))


STORIES: Mapping[str, Sequence[Step]] = {
    "a plain roll": (image("two"),),
    "scaled up in the middle": (image("two"), WORKS, wants(replicas=5)),
    "scaled down in the middle": (image("two"), WORKS, wants(replicas=1)),
    "scaled down and up": (image("two"), WORKS, wants(replicas=1), WORKS, wants(replicas=3)),
    "undone in the middle": (image("two"), WORKS, GETS_READY, undoes),
    "undone after the end": (image("two"), OVER, undoes),
    "reverted in the middle": (image("two"), WORKS, GETS_READY, image("one")),
    "changed again in the middle": (image("two"), WORKS, GETS_READY, GETS_READY, image("three")),
    "children die in the middle": (image("two"), WORKS, loses_pods),
    "revisions are lost in the middle": (image("two"), WORKS, loses_revisions),
    "deleted in the middle": (image("two"), WORKS, is_deleted),
    "stuck, and then cured": (image("bad"), OVER, is_cured),
    "stuck, and then something better": (image("bad"), OVER, image("three")),
}
WITHOUT_A_HOOK_FOR_THE_END: Mapping[str, Sequence[Step]] = {
    "deleted in the middle, without a finalize hook": (image("two"), WORKS, is_deleted),
    "orphaned in the middle, and made again": (
        image("two"), WORKS, is_left_alone, WORKS, is_there_again,
    ),
    "a hook that fails for what is left": (
        image("two"), WORKS, hook_has_a_headache("one"), GETS_READY, hook_has_a_headache(),
    ),
    "a hook that fails for what is new": (
        image("two"), WORKS, hook_has_a_headache("two"), GETS_READY, hook_has_a_headache(),
    ),
}  # fmt: skip


# ── what it leads to ──


def outcome(cluster: SimulatedCluster) -> Any:
    """
    Return the end of a rollout: the image of each child, the revisions with their children, and the condition.

    Which other revisions are kept depends on which specs were observed at all.
    """
    assert isinstance(cluster, Cats)
    there = {ref.name: obj["spec"]["image"] for ref, obj in cluster.objects.items() if ref.kind in NAMES}
    revisions = [(image, groups) for image, groups in _revisions(cluster) if groups]
    if PARENT not in cluster.objects:
        return there, revisions, "gone"
    said = cluster.condition()
    return there, revisions, (said["status"], said["reason"])


def _revisions(cluster: Cats) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    return sorted(
        (
            one["parentPatch"]["spec"]["template"]["image"],
            sorted((group["kind"], sorted(group["names"])) for group in one["children"]),
        )
        for one in cluster.revisions()
    )


def _effects(cluster: SimulatedCluster, *, counts: bool) -> Any:
    """
    Return what is the same whichever process crashes: which revisions are kept, and what was done to pods.

    In place, a child without an observed generation still counts as ready: a process that crashes may be
    quicker than its kubelet, and what was done is not counted.
    """
    assert isinstance(cluster, Cats)
    return _revisions(cluster), sorted(touched(cluster)) if counts else ()


def _scenario(name: str, steps: Sequence[Step], how: Mapping[str, Any], **cats: Any) -> Scenario:
    said = {key: value for key, value in how.items() if key != "observant"}
    observant = bool(how.get("observant"))
    kept = _KEPT if undoes in steps else 0
    finalizes = is_deleted in steps and name in STORIES
    build = partial(Cats(**cats).controller, **said, finalizes=finalizes, kept=kept)
    return Scenario(
        name=name,
        given=partial(given, **cats),
        steps=steps,
        controllers=lambda: (build(),),
        others=(kubelet(observant=observant), GARBAGE),
        invariants=(
            claimed_before_made,
            keeps_the_pace(how.get("maxUnavailable", 1)),
            control_never_moves_back_by_itself,
            the_spec_is_never_written,
            numbers_grow,
            snapshots_stay,
            nothing_in_use_is_forgotten,
        ),
        outcome=outcome,
        effects=partial(_effects, counts=observant or how["method"] == "RollingRecreate"),
    )


FURTHER_WAYS: Mapping[str, dict[str, Any]] = {
    "in place, observed": {"method": "RollingInPlace", "observant": True},
    "the last kept back": {"method": "RollingRecreate", "partition": 1},
    "with a deadline": {"method": "RollingRecreate", "progressDeadlineSeconds": 20},
}
_TOLD_FURTHER = (
    "a plain roll",
    "scaled down in the middle",
    "reverted in the middle",
    "changed again in the middle",
    "children die in the middle",
    "stuck, and then cured",
    "stuck, and then something better",
)


def _ruled(**cats: Any) -> Cats:
    """Return cats whose CompositeController exists and can be changed."""
    made = given(**cats)
    made.create(made.composite())
    return made


def is_ruled(**rolling: Any) -> Step:
    """The update strategy of the children is changed."""

    def change(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Cats)
        cluster.patch(COMPOSITE.ref("", "catset"), {"spec": cluster.composite(**rolling)["spec"]})

    return change


RULED: Mapping[str, Sequence[Step]] = {
    "paused in the middle, and let go on": (
        image("two"), WORKS, is_ruled(paused=True), OVER, is_ruled(paused=False),
    ),
    "quicker in the middle": (image("two"), WORKS, is_ruled(maxUnavailable=2)),
    "the last kept back, and then not": (is_ruled(partition=1), image("two"), OVER, is_ruled(partition=0)),
}  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """Yield each story with each strategy, and some in variants: another hook, two kinds of children."""
    for way, how in WAYS.items():
        for name, steps in STORIES.items():
            yield replace(_scenario(name, steps, how), name=f"{name}, {way}")
    for way, how in FURTHER_WAYS.items():
        for name in _TOLD_FURTHER:
            # Which are the last depends on how many there were when the controller looked.
            if "partition" not in how or not name.startswith("scaled"):
                yield replace(_scenario(name, STORIES[name], how), name=f"{name}, {way}")
    for name, steps in WITHOUT_A_HOOK_FOR_THE_END.items():
        told = _scenario(name, steps, WAYS["recreate"])
        # A parent that is created again starts a history of its own until it sees the one that it can adopt.
        apart = (numbers_grow, control_never_moves_back_by_itself) if is_there_again in steps else ()
        yield replace(told, invariants=[one for one in told.invariants if one not in apart])
    for name in _TOLD_FURTHER:
        for way in ("recreate", "in place"):
            told = _scenario(name, STORIES[name], WAYS[way], boxes=True)
            yield replace(told, name=f"{name}, two kinds, {way}")
    for name, steps in RULED.items():
        told = _scenario(name, steps, WAYS["recreate, two at once" if "quicker" in name else "recreate"])
        yield replace(told, given=_ruled, controllers=(), sources=lambda: (source(),))
    for name in ("a plain roll", "changed again in the middle"):
        told = _scenario(name, STORIES[name], WAYS["recreate"], says=False)
        yield replace(told, name=f"{name}, a hook without a status")
