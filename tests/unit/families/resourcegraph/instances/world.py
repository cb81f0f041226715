"""
A simulated cluster with published definitions and the controllers of their instances.

Definitions and revisions are put into the cluster as their controller leaves them. A readyWhen
of these tests reads `data.ready` of a ConfigMap, which nothing but a test sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from lamina.actors.garbage import GARBAGE
from lamina.core.model.plan import Action, Emit
from lamina.families.resourcegraph.definitions.generated_crd import generated_crd
from lamina.families.resourcegraph.instances.source import source
from lamina.families.resourcegraph.labels import API_VERSION, OWNED
from lamina.families.resourcegraph.options import Options
from lamina.graph.language.simple_schema import build_schema
from lamina.merge.schema import Schema
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.simulation.cluster.kinds import KINDS, kind

OWN_KINDS = tuple(
    kind(
        API_VERSION,
        f"ResourceGraph{name}",
        f"resourcegraph{name.lower()}s",
        namespaced=name == "InputRevision",
        subresources=("status",),
    )
    for name in ("Definition", "DefinitionRevision", "InputRevision")
)
DEFINITION, REVISION, INPUT = OWN_KINDS
SPEC: Obj = {"name": "string", "replicas": "integer | default=1"}


def config_map(name: str, labels: Obj | None = None, /, **data: str) -> Made:
    """A ConfigMap; the namespace is given like data."""
    metadata: Made = {"name": name}
    namespace = data.pop("namespace", "")
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"key": "value"}}


def node(id: str, template: Made | None = None, **fields: Any) -> Made:
    stated = {"externalRef": fields.pop("external")} if "external" in fields else {"template": template}
    return {"id": id, **stated, **fields}


READY = '${ID.data.?ready.orValue("") == "true"}'


def ready(id: str) -> list[str]:
    return [READY.replace("ID", id)]


CONFIG = node("config", config_map("${schema.spec.name}-cm", replicas="${string(schema.spec.replicas)}"))


def chain(*ids: str, **fields: Any) -> list[Made]:
    """ConfigMaps, each of which names the one before."""
    made = []
    for place, id in enumerate(ids):
        data = {"replicas": "${string(schema.spec.replicas)}"}
        if place:
            data["before"] = "${ID.metadata.name}".replace("ID", ids[place - 1])
        made.append(node(id, config_map("${schema.spec.name}-" + id, None, **data), **fields))
    return made


def instance(
    name: str = "a1",
    *,
    kind: str = "App",
    namespace: str = "ns1",
    annotations: Obj | None = None,
    **spec: Any,
) -> Made:
    metadata: Made = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "kro.run/v1alpha1", "kind": kind, "metadata": metadata,
        "spec": {"name": name, "replicas": 1, **spec},
    }  # fmt: skip


def app(name: str = "a1", namespace: str = "ns1", kind: str = "App") -> Ref:
    return Ref("kro.run/v1alpha1", kind, namespace, name)


def cm(name: str, namespace: str = "ns1") -> Ref:
    return Ref("v1", "ConfigMap", namespace, name)


def rgd(name: str) -> Ref:
    return DEFINITION.ref("", name)


def _schema() -> Schema:
    """The schema of any object: metadata is merged as a server does it, anything else is open."""
    root, metadata, owners, owner, text, finalizers = (Schema() for _ in range(6))
    for one in (root, metadata, owner):
        one.type, one.open = "object", True
    text.type = "string"
    owners.type, owners.list_type, owners.list_keys, owners.items = "array", "map", ("uid",), owner
    finalizers.type, finalizers.list_type, finalizers.items = "array", "set", text
    metadata.properties = {"ownerReferences": owners, "finalizers": finalizers}
    root.properties = {"metadata": metadata}
    return root


_ANY = _schema()


def cluster() -> SimulatedCluster:
    return SimulatedCluster(
        kinds=Kinds((*KINDS.versions(), *OWN_KINDS)), tracks_creates=True, schema=lambda ref: _ANY
    )


def publish(
    on: SimulatedCluster,
    *resources: Made,
    kind: str = "App",
    spec: Obj = SPEC,
    status: Obj | None = None,
    scope: str = "Namespaced",
    number: int = 0,
    gate: str = "",
    limit: int | None = None,
    is_current: bool = True,
    is_empty: bool = False,
    annotations: Obj | None = None,
) -> int:
    """Publish a revision of the definition of a kind, as its controller does, and return its number."""
    name = kind.lower()
    schema: Made = {
        "kind": kind,
        "apiVersion": "v1alpha1",
        "group": "kro.run",
        "scope": scope,
        "spec": dict(spec),
    }
    if status:
        schema["status"] = dict(status)
    content: Made = {"schema": schema, "resources": [] if is_empty else list(resources or (CONFIG,))}
    stated: Made = dict(content)
    if gate:
        stated["propagateWhen"] = [gate]
    if limit is not None:
        stated["revisionManagement"] = {"historyLimit": limit}
    live = on.at(rgd(name))
    if live is None:
        live = on.create(
            {"apiVersion": API_VERSION, "kind": DEFINITION.kind, "metadata": {"name": name}, "spec": stated}
        )
    else:
        live = on.replace({**live, "spec": stated}, "")
    known = [
        one["spec"]["revision"]
        for ref, one in on.objects.items()
        if ref.kind == REVISION.kind and ref.name.startswith(f"{name}-rev-")
    ]
    number = number or max(known, default=0) + 1
    on.create(
        {
            "apiVersion": API_VERSION, "kind": REVISION.kind,
            "metadata": {
                "name": f"{name}-rev-{number}",
                "labels": {"kro.run/rgd-name": name, "kro.run/revision-number": str(number)},
                "annotations": dict(annotations or {}),
                "ownerReferences": [meta.owner_ref(live, controller=True)],
            },
            "spec": {"revision": number, **content},
        }
    )  # fmt: skip
    crd = generated_crd(live, build_schema(schema), _status_schema(status or {}), number)
    there = on.at(meta.ref(crd))
    if there is None:
        on.create(crd)
    else:
        on.patch(
            meta.ref(crd), {"metadata": {"annotations": crd["metadata"]["annotations"]}, "spec": crd["spec"]}
        )
    if is_current:
        on.patch(rgd(name), {"status": {"currentRevision": number}}, subresource="status")
    return number


def _status_schema(status: Obj) -> Made:
    return {
        "type": "object",
        "properties": {
            name: {"x-kubernetes-preserve-unknown-fields": True} for name in status if name != "conditions"
        },
    }


def custom_kind(on: SimulatedCluster, kind: str = "Widget", group: str = "ex.example.com") -> None:
    """Define a kind whose content is not known."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    on.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.{group}"},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}, "subresources": {"status": {}}}],
            },
        }
    )  # fmt: skip


class World:
    """A simulated cluster on which the controllers of instances run, and in which time passes."""

    def __init__(self, options: Options | None = None, on: SimulatedCluster | None = None) -> None:
        self.cluster = on or cluster()
        self._options = options or Options()
        self._processes: tuple[Process, ...] = ()
        self.start()

    def start(self) -> None:
        """Start the processes, without memory."""
        for one in self._processes:
            one.stop()
        self._processes = (
            Process(self.cluster, sources=[source(self._options)]),
            Process(self.cluster, [GARBAGE]),
        )
        self.loop = Loop(self.cluster, *self._processes, max_steps=20_000)

    def run(self, seconds: float = 10) -> None:
        self.loop.until(self.cluster.now + timedelta(seconds=seconds))

    def publish(self, *resources: Made, seconds: float = 10, **fields: Any) -> int:
        number = publish(self.cluster, *resources, **fields)
        self.run(seconds)
        return number

    def create(self, *objects: Made, seconds: float = 10) -> None:
        for one in objects:
            self.cluster.create(one)
        self.run(seconds)

    def edit(self, ref: Ref, seconds: float = 10, **spec: Any) -> None:
        self.cluster.patch(ref, {"spec": spec}, subresource="")
        self.run(seconds)

    def patch(self, ref: Ref, patch: Obj, seconds: float = 10) -> None:
        self.cluster.patch(ref, patch)
        self.run(seconds)

    def annotate(self, ref: Ref, seconds: float = 10, **values: str | None) -> None:
        """Set annotations of this family by the ends of their names; None removes one."""
        annotations = {f"kro.run/{name.replace('_', '-')}": value for name, value in values.items()}
        self.patch(ref, {"metadata": {"annotations": annotations}}, seconds)

    def make_ready(self, *names: str, seconds: float = 10) -> None:
        for name in names:
            self.cluster.patch(cm(name), {"data": {"ready": "true"}})
        self.run(seconds)

    def delete(self, ref: Ref, seconds: float = 10) -> None:
        self.cluster.delete(ref)
        self.run(seconds)

    # ── what there is ──

    def get(self, ref: Ref) -> Made:
        return self.cluster.get(ref)

    def has(self, ref: Ref) -> bool:
        return self.cluster.at(ref) is not None

    def status(self, name: str = "a1", **fields: str) -> Made:
        found: Made = self.cluster.get(app(name, **fields)).get("status") or {}
        return found

    def state(self, name: str = "a1", **fields: str) -> str:
        return str(self.status(name, **fields).get("state"))

    def condition(self, type: str, name: str = "a1", **fields: str) -> tuple[str, str, str]:
        found = conditions.find(conditions.of(self.cluster.get(app(name, **fields))), type)
        assert found is not None, f"{name} has no condition {type}"
        return found["status"], found.get("reason", ""), found.get("message", "")

    def propagation(self, name: str = "a1") -> Made:
        found: Made = self.status(name)["propagation"]
        return found

    def inputs(self, name: str = "a1", namespace: str = "ns1") -> dict[int, Made]:
        owner = meta.uid(self.cluster.get(app(name)))
        return {
            one["spec"]["inputRevision"]: one
            for ref, one in self.cluster.objects.items()
            if ref.kind == INPUT.kind and ref.namespace == namespace and meta.is_controlled_by(one, owner)
        }

    def children(self) -> list[str]:
        """The names of the objects of the controllers, in the order of their creation."""
        return [
            ref.name
            for ref, one in self.cluster.objects.items()
            if ref.kind == "ConfigMap" and OWNED in meta.labels(one)
        ]

    def stamps(self, name: str, namespace: str = "ns1") -> tuple[str, str]:
        """The revision and the input revision that a ConfigMap was made from."""
        found = meta.annotations(self.cluster.get(cm(name, namespace)))
        return found.get("kro.run/rgd-revision", ""), found.get("kro.run/input-revision", "")

    def events(self, reason: str) -> list[str]:
        return [
            one["message"]
            for ref, one in self.cluster.objects.items()
            if ref.kind == "Event" and one["reason"] == reason
        ]

    def writes(self, act: Callable[[], object]) -> list[Action]:
        """The writes of controllers that follow from something, events left out."""
        before = len(self.cluster.journal)
        act()
        return [one for one in self.cluster.journal[before:] if not isinstance(one, Emit)]


def described(actions: Iterable[Action]) -> list[str]:
    return [
        f"{type(one).__name__.lower()} {one.ref.kind} {one.ref.name} {getattr(one, 'subresource', '')}".strip()
        for one in actions
    ]


def data(obj: Obj) -> Mapping[str, str]:
    found: Mapping[str, str] = obj.get("data") or {}
    return found


def with_image(image: str) -> Made:
    return node(
        "config",
        config_map("${schema.spec.name}-cm", image=image, replicas="${string(schema.spec.replicas)}"),
    )


def world_with(*instances: Made, options: Options | None = None, gate: str = "") -> World:
    """A world with one revision and these instances."""
    world = World(options)
    world.publish(with_image("v1"), gate=gate)
    world.create(*(instances or (instance(),)))
    return world
