"""
A simulated cluster with definitions, and a stand-in for the controllers of their instances.

The stand-in records an input revision of the revision that an instance may have, then moves the
instance, and reports it completed two seconds later. One whose spec says so is refused its children
on a revision, so that only the input revision names it, or never becomes ready on a revision.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from lamina.actors import DEFINITIONS, GARBAGE
from lamina.core.model.controller import AnyController, Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Create, Plan, Propagation, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.families.resourcegraph.definitions.admission import admitted, is_gated
from lamina.families.resourcegraph.definitions.controller import definitions
from lamina.families.resourcegraph.labels import (
    API_VERSION,
    INPUT_REVISION_LABEL,
    INSTANCE_NAME,
    PIN,
    RGD_REVISION_LABEL,
    UPDATE_POLICY,
)
from lamina.families.resourcegraph.options import Options
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.simulation.cluster.kinds import DEFINITION, KINDS, kind

OWN_KINDS = tuple(
    kind(
        API_VERSION,
        f"ResourceGraph{name}",
        f"resourcegraph{name.lower()}s",
        namespaced=False,
        subresources=("status",),
    )
    for name in ("Definition", "DefinitionRevision")
)
DEFINITION_KIND, REVISION_KIND = OWN_KINDS
INPUT_KIND = kind(API_VERSION, "ResourceGraphInputRevision", "resourcegraphinputrevisions")
APP = DEFINITION_KIND.ref("", "app")
CRD = DEFINITION.ref("", "apps.kro.run")
TAKES = timedelta(seconds=2)


def config_map(**data: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${schema.spec.name}-cm"},
        "data": {"replicas": "${string(schema.spec.replicas)}", **data},
    }


def resource(id: str = "config", **data: str) -> Made:
    return {"id": id, "template": config_map(**data)}


SPEC: Obj = {"name": "string", "replicas": "integer | default=1"}


def app(
    *resources: Made,
    name: str = "app",
    spec: Obj = SPEC,
    schema: Obj | None = None,
    annotations: Obj | None = None,
    **fields: Any,
) -> Made:
    """A definition; `fields` are those of its spec beside the schema and the resources."""
    stated = {
        "kind": "App", "apiVersion": "v1alpha1", "group": "kro.run", "scope": "Namespaced", "spec": dict(spec),
        **(schema or {}),
    }  # fmt: skip
    metadata: Made = {"name": name}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphDefinition",
        "metadata": metadata,
        "spec": {"schema": stated, "resources": list(resources or (resource(),)), **fields},
    }


def instance(name: str, namespace: str = "ns1", annotations: Obj | None = None, **spec: Any) -> Made:
    metadata: Made = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "kro.run/v1alpha1", "kind": "App", "metadata": metadata,
        "spec": {"name": name, "replicas": 1, **spec},
    }  # fmt: skip


# The stand-in for the controllers of instances


class _Instance(NamedTuple):
    obj: Obj
    definition: Obj | None
    revisions: Sequence[Obj]
    inputs: Sequence[int]
    """The revisions that its input revisions name, oldest first."""


def _look_at(world: World, ref: Ref) -> _Instance | None:
    obj = world.get(ref)
    if obj is None:
        return None
    inputs = [one["spec"] for one in world.owned_by(meta.uid(obj), INPUT_KIND.group_kind)]
    recorded = [one["rgdRevision"] for one in sorted(inputs, key=lambda one: int(one["inputRevision"]))]
    return _Instance(obj, world.get(APP), tuple(world.every(REVISION_KIND.group_kind)), recorded)


def _effective(one: _Instance) -> int:
    """Return the revision that an instance is to be on, 0 for none."""
    annotations, status = meta.annotations(one.obj), one.obj.get("status") or {}
    current = ((one.definition or {}).get("status") or {}).get("currentRevision") or 0
    on = one.inputs[-1] if one.inputs else status.get("currentRGDRevision") or 0
    if PIN in annotations:
        return int(annotations[PIN])
    if not on:
        return int(current)
    if annotations.get(UPDATE_POLICY, "Auto") != "Auto":
        return int(on)
    target = next((each for each in one.revisions if each["spec"]["revision"] == current), None)
    if target is None or one.definition is None:
        return int(on)
    if is_gated(one.definition, target) and meta.uid(one.obj) not in admitted(target):
        return int(on)
    return int(current)


def _move(one: _Instance, answers: Answers, now: datetime) -> Plan:
    status = one.obj.get("status") or {}
    target = _effective(one)
    if meta.is_deleting(one.obj) or not target:
        return NOTHING
    if not one.inputs or one.inputs[-1] != target:
        because = f"recording revision {target}"
        return one_stage("record it", [Create(obj=_input_revision(one, target))], because=because)
    if one.obj["spec"].get("refused") == target:
        return Plan(because="its children are refused")
    if status.get("currentRGDRevision") != target:
        began = {**status, "currentRGDRevision": target, "since": now.isoformat(), "state": "IN_PROGRESS"}
        patch = set_status(one.obj, {**began, "conditions": _ready(one.obj, "False", now, status)})
        return one_stage(
            "move it", [patch] if patch is not None else [], because=f"moving to revision {target}"
        )
    if status.get("observedRGDRevision") == target or one.obj["spec"].get("sick") == target:
        return NOTHING
    due = datetime.fromisoformat(status["since"]) + TAKES
    if now < due:
        return Plan(requeue_after=due - now, because="its resources take a while")
    done = {**status, "observedRGDRevision": target, "state": "ACTIVE"}
    patch = set_status(one.obj, {**done, "conditions": _ready(one.obj, "True", now, status)})
    return one_stage("report it", [patch] if patch is not None else [], because="it is ready")


def _input_revision(one: _Instance, target: int) -> Made:
    number = len(one.inputs) + 1
    labels = {
        INSTANCE_NAME: meta.name(one.obj),
        INPUT_REVISION_LABEL: str(number),
        RGD_REVISION_LABEL: str(target),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": INPUT_KIND.kind,
        "metadata": {
            "name": f"{meta.name(one.obj)}-input-rev-{number}",
            "namespace": meta.namespace(one.obj),
            "labels": labels,
            "ownerReferences": [meta.owner_ref(one.obj, controller=True)],
        },
        "spec": {"inputRevision": number, "rgdRevision": target, "instanceSpec": one.obj["spec"]},
    }  # fmt: skip


def _ready(obj: Obj, status: str, now: datetime, old: Obj) -> Any:
    found = old.get("conditions") or []
    message = "" if status == "True" else "awaiting resource readiness: config"
    generation = meta.generation(obj)
    return conditions.with_condition(
        found, "Ready", status, now=now, reason="Ready", message=message, generation=generation
    )


def _every_instance(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(_APP_KIND)]


_APP_KIND = kind("kro.run/v1alpha1", "App", "apps").group_kind
INSTANCES: Controller[_Instance] = Controller(
    name="instances",
    watches=(
        Watch(selects=only(*_APP_KIND), enqueue=itself),
        Watch(selects=only(*DEFINITION_KIND.group_kind), enqueue=_every_instance),
        Watch(selects=only(*REVISION_KIND.group_kind), enqueue=_every_instance),
        Watch(selects=only(*INPUT_KIND.group_kind), enqueue=_every_instance),
    ),
    gather=_look_at,
    plan=_move,
    manager="instances",
)


# Clusters


def cluster(*objects: Made) -> SimulatedCluster:
    made = SimulatedCluster(kinds=Kinds((*KINDS.versions(), *OWN_KINDS, INPUT_KIND)), tracks_creates=True)
    for one in objects:
        made.create(one)
    return made


class Definitions:
    """A simulated cluster on which the controller of definitions runs, and in which time passes."""

    def __init__(self, *others: AnyController, options: Options | None = None) -> None:
        self.cluster = cluster()
        self.controller = definitions(options or Options())
        self.others = others or (INSTANCES, GARBAGE, DEFINITIONS)
        self._processes: tuple[Process, ...] = ()
        self.start()

    def start(self) -> None:
        """Start the processes, without memory."""
        for one in self._processes:
            one.stop()
        self._processes = (Process(self.cluster, [self.controller]), Process(self.cluster, self.others))
        self.loop = Loop(self.cluster, *self._processes, max_steps=20_000)

    @property
    def process(self) -> Process:
        return self._processes[0]

    def run(self, seconds: float = 30) -> None:
        self.loop.until(self.cluster.now + timedelta(seconds=seconds))

    def loses_discovery(self) -> Kinds:
        """Start the processes anew while discovery lacks the generated kind, and return what it has otherwise."""
        found = self.cluster.kinds
        self.cluster.kinds = Kinds(one for one in found.versions() if one.kind != "App")
        self.start()
        self.run(5)
        return found

    def apply(self, *objects: Made, seconds: float = 30) -> None:
        """Create objects, or replace the specs and annotations of those that exist, and let time pass."""
        for obj in objects:
            live = self.cluster.at(meta.ref(obj))
            if live is None:
                self.cluster.create(obj)
            else:
                self.cluster.replace({**live, "spec": obj["spec"]}, "")
        self.run(seconds)

    def annotate(self, ref: Ref, seconds: float = 30, **values: str | None) -> None:
        """Set annotations of this family by the ends of their names; None removes one."""
        annotations = {f"kro.run/{name.replace('_', '-')}": value for name, value in values.items()}
        self.cluster.patch(ref, {"metadata": {"annotations": annotations}})
        self.run(seconds)

    def delete(self, ref: Ref, how: Propagation = Propagation.BACKGROUND, seconds: float = 30) -> None:
        self.cluster.delete(ref, how)
        self.run(seconds)

    def get(self, ref: Ref) -> Made:
        return self.cluster.get(ref)

    @property
    def app(self) -> Made:
        return self.cluster.get(APP)

    @property
    def status(self) -> Made:
        found: Made = self.app.get("status") or {}
        return found

    def condition(self, name: str, ref: Ref = APP) -> tuple[str, str, str]:
        """The status, reason and message of a condition."""
        found = conditions.find(conditions.of(self.cluster.get(ref)), name)
        assert found is not None, f"{ref} has no condition {name}"
        return found["status"], found.get("reason", ""), found.get("message", "")

    def revision(self, number: int, name: str = "app") -> Made:
        return self.cluster.get(REVISION_KIND.ref("", f"{name}-rev-{number}"))

    @property
    def numbers(self) -> list[int]:
        """The numbers of the revisions that there are."""
        return numbers(self.cluster)

    def instance(self, name: str) -> Made:
        return self.cluster.get(Ref("kro.run/v1alpha1", "App", "ns1", name))

    def on(self, name: str) -> int:
        """The revision that an instance is on."""
        found: int = (self.instance(name).get("status") or {}).get("currentRGDRevision") or 0
        return found

    def events(self, reason: str) -> list[str]:
        return [
            obj["message"]
            for ref, obj in self.cluster.objects.items()
            if ref.kind == "Event" and obj["reason"] == reason
        ]

    @property
    def crd(self) -> Made:
        return self.cluster.get(CRD)

    @property
    def served(self) -> Made:
        """The schema of the spec of instances."""
        version = self.crd["spec"]["versions"][0]
        found: Made = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        return found


def numbers(cluster: SimulatedCluster) -> list[int]:
    found = [obj for ref, obj in cluster.objects.items() if ref.kind == REVISION_KIND.kind]
    return sorted(one["spec"]["revision"] for one in found)
