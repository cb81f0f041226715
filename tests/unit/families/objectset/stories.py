"""
Simulated revisions, with edits, failures and deletions in the meantime: scenarios for the crash explorer.

A kubelet takes two seconds to make a widget ready, so that a rollout has a middle; a widget
of an image that begins with `bad` is never ready until a namespace `cure` exists. The
garbage collector is perturbed along with the controllers: what it deletes counts, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from lamina.actors.garbage import GARBAGE
from lamina.core.model.controller import AnyController, Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Delete, Plan, Propagation, change, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change as Changed
from lamina.core.model.world import World
from lamina.families.objectset.labels import API_VERSION, DELETION_POLICY, OWNING_DEPLOYMENT, REVISION
from lamina.merge.schema import Schema
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, KINDS, NAMESPACE, WIDGET, make
from lamina.testing.crash_explorer import Scenario, Step
from tests.unit.families.objectset.promises import PROMISES, is_archived, items, number, sets, state
from tests.unit.families.objectset.revisions import (
    CONTROLLERS,
    HEALTHY_BY_NAME,
    OWN_KINDS,
    config_map,
    deployment,
    object_set,
    phase,
)

TAKES = timedelta(seconds=2)
"""How long the kubelet takes."""
HALF_WAY = timedelta(seconds=1)
"""Until everything that can be written is, and no widget that changed is ready."""
OVER = timedelta(seconds=30)
"""Until it has ended, or is stuck, whatever has been perturbed."""
CURE = NAMESPACE.ref("", "cure")
WEB = Ref(API_VERSION, "ObjectDeployment", "default", "web")
READY: Made = {
    "selector": {"kind": {"group": "ex.example.com", "kind": "Widget"}},
    "probes": [{"condition": {"type": "Ready", "status": "True"}}],
}
UNDER_TEST: tuple[AnyController, ...] = (*CONTROLLERS, GARBAGE)


# ── objects ──


def widget(name: str, image: str = "one", **annotations: str) -> Made:
    fields: Made = {"annotations": annotations} if annotations else {}
    made = make(WIDGET, name, spec={"image": image}, **fields)
    del made["metadata"]["namespace"]
    return made


def orphan(name: str) -> Made:
    return widget(name, **{DELETION_POLICY: "Orphan"})


def spec(*those: Made, **fields: Any) -> Made:
    return {"phases": list(those), "availabilityProbes": [READY, HEALTHY_BY_NAME], **fields}


def ref_of(name: str) -> Ref:
    return WIDGET.ref("default", name)


def set_ref(name: str) -> Ref:
    return Ref(API_VERSION, "ObjectSet", "default", name)


def object_slice(name: str, *objects: Made) -> Made:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": API_VERSION, "kind": "ObjectSlice", "metadata": metadata,
        "objects": [{"object": one} for one in objects],
    }  # fmt: skip


# ── the kubelet ──


class _Widget(NamedTuple):
    obj: Obj
    cured: bool


def _run(widget: _Widget, answers: Answers, now: datetime) -> Plan:
    """Report two seconds after a change of the image that it is ready."""
    obj = widget.obj
    status, generation = obj.get("status") or {}, meta.generation(obj)
    if meta.is_deleting(obj):
        return NOTHING
    if status.get("observedGeneration") != generation:
        began = {
            "observedGeneration": generation,
            "since": now.isoformat(),
            "conditions": [{"type": "Ready", "status": "False"}],
        }
        return one_stage(
            "start it", [change(obj, {"status": began}, "status")], because="its spec has changed"
        )
    if conditions.is_true(status["conditions"], "Ready") or (
        obj["spec"]["image"].startswith("bad") and not widget.cured
    ):
        return NOTHING
    due = datetime.fromisoformat(status["since"]) + TAKES
    if now < due:
        return Plan(requeue_after=due - now, because="it takes a while")
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return one_stage("report", [change(obj, {"status": ready}, "status")], because="it is ready")


def _looked_at(world: World, ref: Ref) -> _Widget | None:
    obj = world.get(ref)
    return None if obj is None else _Widget(obj, world.get(CURE) is not None)


def _all_of_them(world: World, change: Changed) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(WIDGET.group_kind)]


KUBELET: Controller[_Widget] = Controller(
    name="kubelet",
    watches=(
        Watch(selects=only(*WIDGET.group_kind), enqueue=itself),
        Watch(selects=only("", "Namespace"), enqueue=_all_of_them),
    ),
    gather=_looked_at,
    plan=_run,
    manager="kubelet",
)


# ── outcomes ──


def outcome(cluster: SimulatedCluster) -> Any:
    """
    Return the end: each object with the template of the set that controls it, and what sets and deployments report.

    Which other revisions there are depends on which templates were observed at all.
    """
    return {**objects(cluster), "live sets": _live(cluster), "deployment": _reported(cluster)}


def objects(cluster: SimulatedCluster) -> Any:
    found = {}
    for ref, obj in cluster.objects.items():
        if ref.kind in ("Widget", "ConfigMap"):
            holder = meta.controller_of(obj)
            owner = None if holder is None else _template(cluster, holder["uid"])
            found[f"{ref.kind} {ref.name}"] = {"content": obj.get("spec") or obj.get("data"), "owner": owner}
    return found


def _template(cluster: SimulatedCluster, uid: str) -> Any:
    one = next(obj for obj in cluster.objects.values() if meta.uid(obj) == uid)
    return (one["kind"], one["spec"].get("phases") or one["spec"]["objects"])


def _live(cluster: SimulatedCluster) -> Any:
    live = [one for one in sets(cluster.objects) if not is_archived(one)]
    return [
        {
            "content": _content(cluster, one),
            "state": state(one),
            "conditions": _conditions(one),
            "controlled": _controlled(one),
        }
        for one in sorted(live, key=number)
    ]


def _content(cluster: SimulatedCluster, one: Obj) -> Any:
    return [(item.phase, item.manifest) for item in items(cluster.objects, one)]


def _conditions(one: Obj) -> Any:
    return sorted((each["type"], each["status"], each.get("reason", "")) for each in conditions.of(one))


def _controlled(one: Obj) -> Any:
    return sorted(each["name"] for each in (one.get("status") or {}).get("controllerOf") or ())


def _reported(cluster: SimulatedCluster) -> Any:
    web = cluster.objects.get(WEB)
    return _conditions(web) if web is not None else "gone"


def effects(cluster: SimulatedCluster) -> Any:
    """Return what is the same whichever process crashes: how often each object was created and deleted."""
    return Counter(
        (type(action).__name__, action.ref.name)
        for action in cluster.journal
        if isinstance(action, Create | Delete) and action.ref.kind in ("Widget", "ConfigMap")
    )


# ── clusters ──


def _schema() -> Schema:
    """Return the schema of any object: metadata is merged as a server does it, anything else is open."""
    root, metadata, owners, owner = (Schema() for _ in range(4))
    for one in (root, metadata, owner):
        one.type, one.open = "object", True
    owners.type, owners.list_type, owners.list_keys, owners.items = "array", "map", ("uid",), owner
    metadata.properties, root.properties = {"ownerReferences": owners}, {"metadata": metadata}
    return root


_ANY = _schema()


def cluster(*objects: Made) -> SimulatedCluster:
    made = SimulatedCluster(
        kinds=Kinds((*KINDS.versions(), *OWN_KINDS)), tracks_creates=True, schema=lambda ref: _ANY
    )
    for one in objects:
        made.create(one)
    return made


# ── steps ──

Change: TypeAlias = Callable[[SimulatedCluster], object]
"""A step that changes the cluster."""


def wants(template: Made, **fields: Any) -> Change:
    """The template of the deployment is replaced."""

    def change(cluster: SimulatedCluster) -> None:
        old = cluster.get(WEB)
        made = {**old["spec"]["template"], "spec": template}
        cluster.replace({**old, "spec": {**old["spec"], "template": made, **fields}}, "")

    return change


def sets_deployment(**fields: Any) -> Change:
    return lambda cluster: cluster.patch(WEB, {"spec": fields})


def creates(*objects: Made) -> Change:
    def change(cluster: SimulatedCluster) -> None:
        for one in objects:
            cluster.create(one)

    return change


def edits(ref: Ref, patch: Obj) -> Change:
    return lambda cluster: cluster.patch(ref, patch) if ref in cluster.objects else None


def turns(name: str, state: str) -> Change:
    return edits(set_ref(name), {"spec": {"lifecycleState": state}})


def loses(*refs: Ref, how: Propagation = Propagation.BACKGROUND) -> Change:
    def change(cluster: SimulatedCluster) -> None:
        for ref in refs:
            if ref in cluster.objects:
                cluster.delete(ref, how)

    return change


def each_set(act: Callable[[SimulatedCluster, Made], object], which: slice = slice(None)) -> Change:
    """Do something with the sets of the deployment, oldest first."""

    def change(cluster: SimulatedCluster) -> None:
        live = [one for one in sets(cluster.objects) if not is_archived(one)]
        for one in sorted(live, key=number)[which]:
            act(cluster, one)

    return change


def latest(act: Callable[[SimulatedCluster, Made], object]) -> Change:
    return each_set(act, slice(-1, None))


def oldest(act: Callable[[SimulatedCluster, Made], object]) -> Change:
    return each_set(act, slice(1))


def _is_deleted(cluster: SimulatedCluster, one: Made) -> None:
    cluster.delete(meta.ref(one))


def _is_deleted_in_the_foreground(cluster: SimulatedCluster, one: Made) -> None:
    cluster.delete(meta.ref(one), Propagation.FOREGROUND)


def is_(state: str) -> Callable[[SimulatedCluster, Made], object]:
    return lambda cluster, one: cluster.patch(meta.ref(one), {"spec": {"lifecycleState": state}})


def loses_phases(cluster: SimulatedCluster) -> None:
    for ref in [ref for ref in cluster.objects if ref.kind == "ObjectSetPhase"]:
        cluster.delete(ref)


is_cured = creates(make(NAMESPACE, "cure"))
HELD = {"metadata": {"finalizers": ["team/backup"]}}
RELEASED = {"metadata": {"finalizers": None}}


class Story(NamedTuple):
    given: Sequence[Made]
    steps: Sequence[Step]
    outcome: Callable[[SimulatedCluster], Any] | None = None


def of_web(first: Made, *steps: Step, **fields: Any) -> Story:
    """A story of a deployment that has rolled out its first template."""
    return Story((deployment("web", first, **fields),), steps)


def p1(*objects: Made, **fields: Any) -> Made:
    return phase("p1", *objects, **fields)


def p2(*objects: Made, **fields: Any) -> Made:
    return phase("p2", *objects, **fields)


A1, A2, A3, BAD_A = (widget("a", image) for image in ("one", "two", "three", "bad"))
B1, B2, B3, BAD_B = (widget("b", image) for image in ("one", "two", "three", "bad"))
X, Y = widget("x"), config_map("y")
CONFIG1, CONFIG2, CONFIG3 = (config_map("config", version=one) for one in ("one", "two", "three"))
CLASSED = {"class": "default"}
SOAKS = {"successDelaySeconds": 36_000}


def numbered(name: str, number: str | None) -> Change:
    """The number on an object is edited."""
    return edits(ref_of(name), {"metadata": {"annotations": {REVISION: number}}})


def labelled(one: Made) -> Made:
    """A set with the label of a deployment that does not exist."""
    return {**one, "metadata": {**one["metadata"], "labels": {OWNING_DEPLOYMENT: "web"}}}


def three_at_once() -> Story:
    made = [
        object_set(
            f"v{n}",
            spec(p1(widget("a", f"v{n}"), config_map(f"only-{n}"))),
            previous=[f"v{k}" for k in range(1, n)],
        )
        for n in (1, 2, 3)
    ]
    # Which of the older ones was available for a moment depends on when each was observed.
    return Story((), (creates(*made),), objects)


STORIES: Mapping[str, Story] = {
    "from nothing": Story((), (creates(deployment("web", spec(p1(A1, Y), p2(B1)))),)),
    "in place": of_web(spec(p1(A1, CONFIG1)), wants(spec(p1(A2, CONFIG2)))),
    "in place, whatever is there": of_web(
        spec(p1(A1, CONFIG1, protection="None")), wants(spec(p1(A2, CONFIG2, protection="None"))),
        OVER, wants(spec(p1(BAD_A, CONFIG3, protection="None"))), HALF_WAY, edits(ref_of("a"), {"spec": {"image": "x"}}),
    ),
    "side by side": of_web(spec(p1(widget("web-1"))), wants(spec(p1(widget("web-2"))))),
    "side by side, stuck, and then something better": of_web(
        spec(p1(widget("web-1"))), wants(spec(p1(widget("web-2", "bad")))), OVER, wants(spec(p1(widget("web-3")))),
    ),
    "a failure in the middle": of_web(
        spec(p1(CONFIG1), p2(widget("web-1"))),
        wants(spec(p1(CONFIG2), p2(widget("web-2", "bad")))), OVER,
        wants(spec(p1(CONFIG3), p2(widget("web-3")))),
    ),
    "a failure in the middle, in one phase": of_web(
        spec(p1(CONFIG1, widget("web-1"))),
        wants(spec(p1(CONFIG2, widget("web-2", "bad")))), OVER,
        wants(spec(p1(CONFIG3, widget("web-3", "bad-too")))), OVER, is_cured,
    ),
    "four failures": of_web(
        spec(p1(widget("web-1"))),
        *[step for n in (2, 3, 4) for step in (wants(spec(p1(widget(f"web-{n}", "bad")))), OVER)],
        wants(spec(p1(widget("web-5")))),
    ),
    "two phases, the first one stuck": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, is_cured,
    ),
    "two phases, the first one stuck twice, and then dropped objects": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, wants(spec(p1(widget("a", "bad-too")))), OVER, is_cured,
    ),
    "two phases, the first one stuck twice": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, wants(spec(p1(widget("a", "bad-too")), p2(B3))), OVER,
        is_cured,
    ),
    "two phases, the first one stuck, and drift": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER,
        edits(ref_of("b"), {"spec": {"image": "drift"}}), HALF_WAY, loses(ref_of("b")), OVER,
        edits(ref_of("a"), {"spec": {"image": "drift"}}), HALF_WAY, loses(ref_of("a")), OVER, is_cured,
    ),
    "two phases, the first one stuck, and then something better": of_web(
        spec(p1(A1, X), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, wants(spec(p1(A3), p2(B3, Y))),
    ),
    "objects dropped by a second failure": of_web(
        spec(p1(A1, X)), wants(spec(p1(BAD_A, X))), OVER, wants(spec(p1(widget("a", "bad-too")))), OVER, is_cured,
    ),
    "objects dropped by a failure": of_web(
        spec(p1(A1, X, Y)), wants(spec(p1(BAD_A))), OVER, loses(ref_of("x")), OVER, wants(spec(p1(A3))),
    ),
    "objects dropped in the middle": of_web(
        spec(p1(A1, X), p2(Y)), wants(spec(p1(A2))), HALF_WAY, loses(ref_of("x"), CONFIG_MAP.ref("default", "y")),
    ),
    "a later phase that only the old revision controls": of_web(
        spec(p1(A1, B1), p2(Y)), wants(spec(p1(BAD_A), p2(Y))), OVER, is_cured,
    ),
    "an object that two failures wait for": of_web(
        spec(p1(A1)), wants(spec(p1(A2, X, widget("z", "bad")))), OVER, wants(spec(p1(widget("z", "bad"), A3))), OVER,
        wants(spec(p1(BAD_A), p2(X))), OVER, is_cured,
    ),
    "a failure that has an object of the working revision": of_web(
        spec(p1(A1, X, Y)), wants(spec(p1(A2, X, BAD_B))), OVER, wants(spec(p1(A3, widget("z", "bad")))), OVER, loses(ref_of("x")),
        OVER, is_cured,
    ),
    "a failure that has an object of the working revision, archived by hand": of_web(
        spec(p1(A1, X, Y)), wants(spec(p1(A2, X, BAD_B))), OVER, wants(spec(p1(A3, widget("z", "bad")))), OVER,
        each_set(is_("Archived"), slice(1, 2)), OVER, is_cured,
    ),
    "changed again in the middle": of_web(spec(p1(A1), p2(B1)), wants(spec(p1(A2), p2(B2))), HALF_WAY, wants(spec(p1(A3), p2(B3)))),
    "phases the other way round": of_web(spec(p1(A1), p2(B1)), wants(spec(p1(B2), p2(A2)))),
    "there and back": of_web(
        spec(p1(A1), p2(X)), wants(spec(p1(A2, Y))), OVER, wants(spec(p1(A1), p2(X))), OVER, wants(spec(p1(A2, Y))),
    ),
    "back from a failure": of_web(spec(p1(A1, X)), wants(spec(p1(BAD_A, Y))), OVER, wants(spec(p1(A1, X)))),
    "back in the middle": of_web(spec(p1(A1), p2(X)), wants(spec(p1(A2, Y))), HALF_WAY, wants(spec(p1(A1), p2(X)))),
    "paused in the middle": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(A2), p2(B2))), HALF_WAY, sets_deployment(paused=True), OVER,
        edits(ref_of("b"), {"spec": {"image": "drift"}}), loses(ref_of("a")), OVER, sets_deployment(paused=False),
    ),
    "a revision paused by hand": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, oldest(is_("Paused")), OVER, loses(ref_of("b")), OVER,
        is_cured, OVER,
    ),
    "the latest paused by hand": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, latest(is_("Paused")), is_cured, OVER, latest(is_("Active")),
    ),
    "paused and resumed while a failure has an object of the working revision": of_web(
        spec(p1(widget("c"), widget("d")), **SOAKS),
        wants(spec(p1(widget("c", "two"), widget("z", "bad")), **SOAKS)), OVER,
        wants(spec(p1(widget("y", "bad")), **SOAKS)), OVER,
        sets_deployment(paused=True), OVER, sets_deployment(paused=False), OVER, is_cured,
    ),
    "with a soak": of_web(
        spec(p1(A1), successDelaySeconds=10), wants(spec(p1(A2), successDelaySeconds=10)),
    ),
    "without a history": of_web(
        spec(p1(A1)), wants(spec(p1(A2))), OVER, wants(spec(p1(BAD_A))), OVER, wants(spec(p1(A3))), revisionHistoryLimit=0,
    ),
    "objects that stay": of_web(spec(p1(A1, orphan("o"))), wants(spec(p1(A2)))),
    "the latest revision deleted by hand": of_web(
        spec(p1(A1, X)), wants(spec(p1(A2, X))), OVER, latest(_is_deleted),
    ),
    "the latest revision deleted in the middle": of_web(
        spec(p1(A1, X)), wants(spec(p1(BAD_A, X))), OVER, latest(_is_deleted), OVER, is_cured,
    ),
    "the latest revision deleted in the foreground in the middle": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, latest(_is_deleted_in_the_foreground), OVER, is_cured,
    ),
    "the latest revision deleted in the foreground in the middle, class": of_web(
        spec(p1(A1, **CLASSED), p2(B1)), wants(spec(p1(BAD_A, **CLASSED), p2(B2))), OVER,
        latest(_is_deleted_in_the_foreground), OVER, is_cured,
    ),
    "the oldest revision deleted in the middle": of_web(
        spec(p1(A1, X)), wants(spec(p1(BAD_A), p2(X))), OVER, oldest(_is_deleted), OVER, is_cured,
    ),
    "the latest revision archived by hand": of_web(
        spec(p1(A1, X)), wants(spec(p1(BAD_A), p2(X))), OVER, latest(is_("Archived")), OVER, is_cured,
    ),
    "the oldest revision archived by hand": of_web(
        spec(p1(A1, X)), wants(spec(p1(BAD_A), p2(X))), OVER, oldest(is_("Archived")), OVER, is_cured,
    ),
    "hand-deleted objects": of_web(
        spec(p1(A1, X), p2(Y)), loses(ref_of("a"), ref_of("x"), CONFIG_MAP.ref("default", "y")), HALF_WAY, wants(spec(p1(A2, X))),
    ),
    "a class": of_web(spec(p1(A1, **CLASSED), p2(Y, B1)), wants(spec(p1(A2, **CLASSED), p2(Y, B2)))),
    "a class that is stuck": of_web(
        spec(p1(A1, X, **CLASSED), p2(B1)), wants(spec(p1(BAD_A, **CLASSED), p2(B2))), OVER, loses(ref_of("x"), ref_of("b")), OVER,
        is_cured,
    ),
    "to a class and back": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(A2, **CLASSED), p2(B2))), OVER, wants(spec(p1(A1), p2(B1, **CLASSED))),
    ),
    "to a class that is stuck": of_web(
        spec(p1(A1, X), p2(B1)), wants(spec(p1(BAD_A, **CLASSED), p2(X))), OVER, wants(spec(p1(A3, X))),
    ),
    "a class, paused in the middle": of_web(
        spec(p1(A1, **CLASSED)), wants(spec(p1(A2, **CLASSED), p2(X))), HALF_WAY, sets_deployment(paused=True), OVER,
        loses(ref_of("a")), OVER, sets_deployment(paused=False),
    ),
    "a class, the oldest revision archived by hand": of_web(
        spec(p1(A1, X, **CLASSED)), wants(spec(p1(BAD_A), p2(X))), OVER, oldest(is_("Archived")), OVER, is_cured,
    ),
    "phases of a class deleted by hand": of_web(spec(p1(A1, **CLASSED), p2(B1)), loses_phases),
    "slices": Story(
        (object_slice("s1", X), deployment("web", spec(p1(A1, slices=["s1"]), p2(B1)))),
        (creates(object_slice("s2", config_map("y"))), wants(spec(p1(BAD_A, slices=["s2"]), p2(X))), OVER, is_cured),
    ),
    "a slice that comes late": Story(
        (object_slice("s1", X), deployment("web", spec(p1(A1, slices=["s1"])))),
        (wants(spec(p1(A2), p2(slices=["s2"]))), OVER, creates(object_slice("s2", X))),
    ),
    "a collision": Story(
        (config_map("y", namespace="default"), deployment("web", spec(p1(A1)))),
        (wants(spec(p1(A2, Y))), OVER, loses(CONFIG_MAP.ref("default", "y"))),
    ),
    "a deployment deleted": of_web(spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A, X), p2(B2))), OVER, loses(WEB)),
    "a deployment deleted, class": of_web(spec(p1(A1, **CLASSED), p2(B1)), wants(spec(p1(A2, X), p2(B2, **CLASSED))), HALF_WAY, loses(WEB)),
    "a deployment deleted in the foreground": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER, loses(WEB, how=Propagation.FOREGROUND),
    ),
    "archived in order": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (edits(ref_of("b"), HELD), turns("v1", "Archived"), OVER, edits(ref_of("b"), RELEASED)),
    ),
    "deleted in order": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (edits(ref_of("b"), HELD), loses(set_ref("v1")), OVER, edits(ref_of("b"), RELEASED)),
    ),
    "archived, and a replacement held": of_web(
        spec(p1(widget("web-1"), X)), edits(ref_of("web-1"), HELD), wants(spec(p1(widget("web-2")))), OVER,
        wants(spec(p1(widget("web-1", "two"), X))), OVER, edits(ref_of("web-1"), RELEASED),
    ),
    "three sets at once": three_at_once(),
    "sets without a deployment": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (creates(object_set("v2", spec(p1(BAD_A), p2(B2)), previous=["v1"])), OVER, is_cured, OVER, turns("v1", "Archived")),
    ),
    "sets of which one has a label": Story(
        (labelled(object_set("v1", spec(p1(A1), p2(B1)))),),
        (creates(object_set("v2", spec(p1(BAD_A), p2(B2)), previous=["v1"])), OVER, turns("v1", "Archived"), OVER, is_cured),
    ),
    "sets in a row": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (
            creates(object_set("v2", spec(p1(A2)), previous=["v1"])), OVER,
            creates(object_set("v3", spec(p1(BAD_A), p2(B3)), previous=["v2"])), OVER, turns("v1", "Archived"), OVER, is_cured,
        ),
    ),
    "numbers edited during a handover": of_web(
        spec(p1(A1), p2(B1)), wants(spec(p1(BAD_A), p2(B2))), OVER,
        *[step for number in (None, "1", "99") for step in (numbered("a", number), numbered("b", number), HALF_WAY)],
        OVER, is_cured,
    ),
    "a superseded failure with a class": of_web(
        spec(p1(A1, widget("c"))),
        wants(spec(p1(widget("c", "bad"), **CLASSED), p2(A2), phase("p3", B2, **CLASSED))), OVER,
        wants(spec(p1(widget("c", "two"), widget("z", "bad")))), OVER, is_cured,
    ),
    "a set without a deployment, deleted": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (creates(object_set("v2", spec(p1(BAD_A), p2(B2)), previous=["v1"])), OVER, loses(set_ref("v2"))),
    ),
    "a set without a deployment, archived": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (creates(object_set("v2", spec(p1(BAD_A), p2(B2)), previous=["v1"])), OVER, turns("v2", "Archived")),
    ),
    "a set without a deployment, orphaned": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),), (loses(set_ref("v1"), how=Propagation.ORPHAN),),
    ),
    "a set without a deployment, orphaned while the one before is paused": Story(
        (object_set("v1", spec(p1(A1), p2(B1))),),
        (
            creates(object_set("v2", spec(p1(A2), p2(BAD_B)), previous=["v1"])), OVER, turns("v1", "Paused"), OVER,
            loses(set_ref("v2"), how=Propagation.ORPHAN), OVER, turns("v1", "Active"),
        ),
    ),
    "a set of another lineage, orphaned": Story(
        (
            object_set("v1", spec(p1(A1), p2(B1)), collisionProtection="IfNoController"),
            object_set("other", spec(p1(A2), p2(X)), collisionProtection="None"),
        ),
        (OVER, loses(set_ref("other"), how=Propagation.ORPHAN)),
    ),
    "sets of two lineages, orphaned one after the other": Story(
        (object_set("v1", spec(p1(A1))),),
        (
            creates(object_set("v2", spec(p1(A2)), previous=["v1"])), OVER,
            creates(object_set("other", spec(p1(A3)), collisionProtection="None")), OVER, turns("v1", "Archived"), OVER,
            loses(set_ref("other"), how=Propagation.ORPHAN), OVER, loses(set_ref("v2"), how=Propagation.ORPHAN),
        ),
    ),
}  # fmt: skip


def scenarios() -> Iterator[Scenario]:
    """Yield each story."""
    for name, story in STORIES.items():
        yield Scenario(
            name=name,
            given=partial(cluster, *story.given),
            steps=story.steps,
            controllers=UNDER_TEST,
            others=(KUBELET,),
            invariants=PROMISES,
            outcome=story.outcome or outcome,
            effects=effects,
        )
