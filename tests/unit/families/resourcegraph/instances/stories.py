"""
Simulated instances with edits, new revisions, pins, rollbacks and deletions: scenarios for the crash explorer.

An actor makes a ConfigMap ready two seconds after each change of its replicas, so that a
propagation has a middle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from lamina.actors.garbage import GARBAGE
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Plan, change, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import World
from lamina.families.resourcegraph.instances.source import source
from lamina.families.resourcegraph.labels import OWNED
from lamina.families.resourcegraph.options import InputStorage, Options
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.testing.crash_explorer import Scenario, Step
from tests.unit.families.resourcegraph.instances.promises import PROMISES, inputs_of
from tests.unit.families.resourcegraph.instances.world import (
    REVISION,
    SPEC,
    app,
    cluster,
    cm,
    config_map,
    instance,
    node,
    publish,
    rgd,
)

TAKES = timedelta(seconds=2)
HALF_WAY = timedelta(seconds=1)
OVER = timedelta(seconds=30)
HELD: Made = {"metadata": {"finalizers": ["team/backup"]}}
RELEASED: Made = {"metadata": {"finalizers": None}}


# The actor


def _run(obj: Obj, answers: Answers, now: datetime) -> Plan:
    """Report the replicas that a ConfigMap has had for two seconds."""
    found = obj.get("data") or {}
    wanted, seen = found.get("replicas"), found.get("seen")
    if wanted is None or found.get("ready") == wanted or OWNED not in meta.labels(obj) or wanted == "13":
        return NOTHING
    if seen is None or not seen.startswith(f"{wanted}@"):
        patch = change(obj, {"data": {"seen": f"{wanted}@{now.isoformat()}"}})
        return one_stage("start", [patch], because="its replicas have changed")
    due = datetime.fromisoformat(seen.partition("@")[2]) + TAKES
    if now < due:
        return Plan(requeue_after=due - now, because="it takes a while")
    return one_stage("report", [change(obj, {"data": {"ready": wanted}})], because="it is ready")


def _look_at(world: World, ref: Ref) -> Obj | None:
    return world.get(ref)


ACTOR: Controller[Obj] = Controller(
    name="actor",
    watches=(Watch(selects=only("", "ConfigMap"), enqueue=itself),),
    gather=_look_at,
    plan=_run,
    manager="actor",
)


# Graphs

IS_READY = '${ID.data.?ready.orValue("") == ID.data.replicas}'


def links(*ids: str, **data: str) -> list[Made]:
    """ConfigMaps that take a while to become ready; each names the one before."""
    made = []
    for place, id in enumerate(ids):
        before = {"before": "${ID.metadata.name}".replace("ID", ids[place - 1])} if place else {}
        template = config_map(
            "${schema.spec.name}-" + id, None, replicas="${string(schema.spec.replicas)}", **before, **data
        )
        made.append(node(id, template, readyWhen=[IS_READY.replace("ID", id)]))
    return made


ITEMS = node(
    "pods",
    config_map("${schema.spec.name}-${x}", replicas="${string(schema.spec.replicas)}"),
    forEach=[{"x": "${schema.spec.xs}"}],
)
GATED = {
    **ITEMS,
    "readyWhen": [IS_READY.replace("ID", "each")],
    "propagateWhen": ["${linearlyUpdated(each, pods, 1)}"],
}
LISTS: Obj = {**SPEC, "xs": "[]string"}
ELSEWHERE = node(
    "pods", config_map("x", namespace="${x}", replicas="1"), forEach=[{"x": "${schema.spec.xs}"}]
)
OPTIONAL = {**links("b")[0], "includeWhen": ["${schema.spec.replicas > 1}"]}
EXTERNAL = node("ext", external={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ext"}})
COPY = node("copy", config_map("${schema.spec.name}-copy", token="${ext.data.token}"))


# Steps

Change: TypeAlias = Callable[[SimulatedCluster], object]


def publishes(*resources: Made, **fields: Any) -> Change:
    return lambda on: publish(on, *resources, **fields)


def edits(ref: Ref, **spec: Any) -> Change:
    return lambda on: on.patch(ref, {"spec": spec}, subresource="") if ref in on.objects else None


def patches(ref: Ref, patch: Obj) -> Change:
    return lambda on: on.patch(ref, patch) if ref in on.objects else None


def annotates(name: str = "a1", **values: str | None) -> Change:
    annotations = {f"kro.run/{key.replace('_', '-')}": value for key, value in values.items()}
    return patches(app(name), {"metadata": {"annotations": annotations}})


def creates(*objects: Made) -> Change:
    def create(on: SimulatedCluster) -> None:
        for one in objects:
            on.create(one)

    return create


def loses(*refs: Ref) -> Change:
    def lose(on: SimulatedCluster) -> None:
        for ref in refs:
            if ref in on.objects:
                on.delete(ref)

    return lose


def admits(number: int, *names: str) -> Change:
    def admit(on: SimulatedCluster) -> None:
        uids = [meta.uid(on.get(app(name))) for name in names]
        on.patch(REVISION.ref("", f"app-rev-{number}"), {"status": {"admitted": uids}}, subresource="status")

    return admit


# Outcomes


def outcome(cluster: SimulatedCluster) -> Any:
    """Return the end: the children and what instances report, without what depends on the number of edits observed."""
    found: dict[str, Any] = {}
    for ref, obj in cluster.objects.items():
        if ref.kind == "ConfigMap":
            found[f"{ref.namespace}/{ref.name}"] = {
                name: one for name, one in (obj.get("data") or {}).items() if name != "seen"
            }
        elif ref.kind == "App":
            status = obj.get("status") or {}
            newest = inputs_of(cluster.objects, obj)
            found[f"instance {ref.name}"] = {
                "spec": obj.get("spec"),
                "annotations": dict(meta.annotations(obj)),
                "state": status.get("state"),
                "on": status.get("currentRGDRevision"),
                "propagation": (status.get("propagation") or {}).get("status"),
                "conditions": sorted(
                    (one["type"], one["status"], one.get("reason", "")) for one in conditions.of(obj)
                ),
                "is settled": status.get("observedInputRevision") == status.get("currentInputRevision"),
                "input": newest[max(newest)]["spec"]["instanceSpec"] if newest else None,
            }
    return found


def exact(cluster: SimulatedCluster) -> Any:
    """Return the end with the numbers of input revisions: for stories whose edits are all observed."""
    stamps = {
        f"stamps of {ref.name}": (
            meta.annotations(obj).get("kro.run/rgd-revision"),
            meta.annotations(obj).get("kro.run/input-revision"),
        )
        for ref, obj in cluster.objects.items()
        if ref.kind == "ConfigMap"
    }
    inputs = {
        ref.name: (
            obj["spec"],
            {key: value for key, value in (obj.get("status") or {}).items() if key != "createdAt"},
        )
        for ref, obj in cluster.objects.items()
        if ref.kind == "ResourceGraphInputRevision"
    }
    return {**outcome(cluster), **stamps, **inputs}


def effects(cluster: SimulatedCluster) -> Any:
    """Return what is the same whichever process crashes: which input revisions were created, in order."""
    return [
        action.ref.name
        for action in cluster.journal
        if isinstance(action, Create) and action.ref.kind == "ResourceGraphInputRevision"
    ]


class Story(NamedTuple):
    given: Sequence[Change]
    steps: Sequence[Step]
    outcome: Callable[[SimulatedCluster], Any] = exact
    options: Options = Options()


def of_app(
    resources: Iterable[Made], *steps: Step, spec: Obj = SPEC, made: Made | None = None, **fields: Any
) -> Story:
    """A story of an instance that has reached its first revision."""
    created = creates(made if made is not None else instance())
    return Story((publishes(*resources, spec=spec), created), steps, **fields)


def _lists(*xs: str, **spec: Any) -> Made:
    return instance(xs=list(xs), **spec)


ABC = links("a", "b", "c")
V2 = links("a", "b", "c", v="2")

STORIES: Mapping[str, Story] = {
    "from nothing": Story((publishes(*ABC),), (creates(instance()),)),
    "an edit": of_app(ABC, edits(app(), replicas=2)),
    "an edit in the middle of another": of_app(ABC, edits(app(), replicas=2), HALF_WAY, edits(app(), replicas=3), outcome=outcome),
    "an edit, and back": of_app(ABC, edits(app(), replicas=2), HALF_WAY, edits(app(), replicas=1), outcome=outcome),
    "a new revision": of_app(ABC, publishes(*V2)),
    "a new revision in the middle of an edit": of_app(ABC, edits(app(), replicas=2), HALF_WAY, publishes(*V2), outcome=outcome),
    "two revisions at once": of_app(ABC, publishes(*V2), HALF_WAY, publishes(*links("a", "b", v="3")), outcome=outcome),
    "a node that is removed": of_app(ABC, publishes(*links("a", "c")), OVER, publishes(*ABC)),
    "a node that is included": of_app([*links("a"), OPTIONAL], edits(app(), replicas=2), OVER, edits(app(), replicas=1)),
    "a collection that grows and shrinks": of_app(
        [ITEMS], edits(app(), xs=["a", "b", "c"]), OVER, edits(app(), xs=["c"]), OVER, edits(app(), xs=[]), spec=LISTS, made=_lists("a"),
    ),
    "a collection in other namespaces": of_app([ELSEWHERE], edits(app(), xs=["ns2", "ns3"]), OVER, edits(app(), xs=["ns4"]), OVER, loses(app()), spec=LISTS, made=_lists("ns1")),
    "a gated collection": of_app([GATED], edits(app(), replicas=2), OVER, spec=LISTS, made=_lists("a", "b", "c")),
    "drift": of_app(ABC, patches(cm("a1-b"), {"data": {"replicas": "9"}}), HALF_WAY, loses(cm("a1-c")), OVER, loses(cm("a1-a"))),
    "an external object": Story(
        (publishes(EXTERNAL, COPY), creates(instance())),
        (creates(config_map("ext", namespace="ns1", token="one")), OVER, patches(cm("ext"), {"data": {"token": "two"}}), OVER, loses(cm("ext")), OVER, loses(app())),
    ),
    "a child that is held": of_app(links("a", "b"), patches(cm("a1-a"), HELD), loses(cm("a1-a")), OVER, edits(app(), replicas=2), OVER, patches(cm("a1-a"), RELEASED)),
    "a pruned child that is held": of_app(ABC, patches(cm("a1-c"), HELD), publishes(*links("a", "b")), OVER, patches(cm("a1-c"), RELEASED)),
    "a pin": of_app(ABC, publishes(*V2), OVER, annotates(rgd_revision="1"), OVER, edits(app(), replicas=2), OVER, annotates(rgd_revision=None)),
    "a pin before a new revision": of_app(ABC, annotates(rgd_revision="1"), publishes(*V2), OVER, edits(app(), replicas=2)),
    "a pin to nowhere": of_app(ABC, annotates(rgd_revision="9"), edits(app(), replicas=2), OVER, annotates(rgd_revision=None), outcome=outcome),
    "a pin in the middle": of_app(ABC, publishes(*V2), HALF_WAY, annotates(rgd_revision="1"), outcome=outcome),
    "policy Manual": of_app(ABC, annotates(update_policy="Manual"), publishes(*V2), OVER, annotates(accept_rgd_revision="latest")),
    "policy Paused": of_app(ABC, annotates(update_policy="Paused"), edits(app(), replicas=2), OVER, publishes(*V2), patches(cm("a1-a"), {"data": {"replicas": "9"}}), OVER, annotates(update_policy=None), outcome=outcome),
    "a pause in the middle": of_app(ABC, edits(app(), replicas=2), HALF_WAY, annotates(update_policy="Paused"), OVER, annotates(update_policy=None), outcome=outcome),
    "a suspension": of_app(ABC, annotates(reconcile="suspended"), edits(app(), replicas=2), OVER, annotates(reconcile=None)),
    "a gate": Story(
        (publishes(*ABC, gate="${true}"), creates(instance("a1"), instance("a2"))),
        (publishes(*V2, gate="${true}"), OVER, admits(2, "a1"), OVER, admits(2, "a2"), edits(app("a2"), replicas=2)),
        outcome,
    ),
    "a rollback": of_app(ABC, edits(app(), replicas=5), OVER, annotates(rollback_to_input_revision="1")),
    "a rollback in the middle": of_app(ABC, edits(app(), replicas=5), HALF_WAY, annotates(rollback_to_input_revision="1"), outcome=outcome),
    "a rollback of the pair": of_app(ABC, publishes(*V2), OVER, annotates(rollback_to_input_revision="1"), OVER, annotates(rollback_to_input_revision="2")),
    "a rollback to nowhere": of_app(ABC, annotates(rollback_to_input_revision="7")),
    "a child that is stuck": of_app(ABC, edits(app(), replicas=13), OVER, edits(app(), replicas=2)),
    "deleted": of_app(ABC, loses(app())),
    "deleted in the middle": of_app(ABC, edits(app(), replicas=2), HALF_WAY, loses(app())),
    "deleted while one is held": of_app(ABC, patches(cm("a1-b"), HELD), loses(app()), OVER, patches(cm("a1-b"), RELEASED)),
    "deleted and created again": of_app(ABC, loses(app()), OVER, creates(instance()), outcome=outcome),
    "deleted without a definition": of_app(ABC, loses(rgd("app")), OVER, loses(app())),
    "two instances and one object": Story(
        (publishes(node("x", config_map("shared", of="${schema.spec.name}"))), creates(instance("a1"))),
        (creates(instance("a2")), OVER, loses(app("a1"))),
    ),
    "inline": of_app(ABC, edits(app(), replicas=2), OVER, publishes(*V2), OVER, annotates(rollback_to_input_revision="1"), outcome=outcome, options=Options(input_storage=InputStorage.INLINE)),
}  # fmt: skip


def _given(story: Story) -> SimulatedCluster:
    made = cluster()
    for act in story.given:
        act(made)
    return made


def scenarios() -> Iterator[Scenario]:
    """Yield each story."""
    for name, story in STORIES.items():
        is_inline = story.options.input_storage is InputStorage.INLINE
        recorded = ("children_follow_what_is_recorded", "nothing_that_is_wanted_is_pruned")
        yield Scenario(
            name=name,
            given=partial(_given, story),
            steps=story.steps,
            sources=partial(_sources, story.options),
            others=(ACTOR, GARBAGE),
            invariants=[
                one for one in PROMISES if not (is_inline and getattr(one, "__name__", "") in recorded)
            ],
            outcome=story.outcome,
            effects=effects if story.outcome is exact else None,
        )


def _sources(options: Options) -> Sequence[Any]:
    return (source(options),)
