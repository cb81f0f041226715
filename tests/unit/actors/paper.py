"""
A cluster on paper: what a server does with the plans of actors, carried out on a dict.

Small enough to be checked by reading, and strict where it matters: versions and
uids are compared, finalizers hold, and a namespace that is ending takes nothing
new. `settle` runs controllers against it as the one loop does, from nothing
remembered, until nobody has anything left to do.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, assert_never

from lamina.core.controller import AnyController
from lamina.core.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Post, Propagation, Replace
from lamina.core.questions import (
    Absent,
    Answer,
    Answers,
    Call,
    Follow,
    Found,
    Listed,
    Question,
    Read,
    ReadAll,
    Rehearse,
    Unserved,
)
from lamina.core.world import Change
from lamina.errors import AlreadyExists, ApiError, Conflict, NotFound
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.times import stamp
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.runtime.memory import Gone, Memory, Shelf

ALL_VERBS = frozenset(("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))


def kind(api_version: str, name: str, plural: str, *, namespaced: bool = True) -> Kind:
    return Kind(api_version, name, plural, namespaced, ALL_VERBS)


CONFIG_MAP = kind("v1", "ConfigMap", "configmaps")
POD = kind("v1", "Pod", "pods")
ACCOUNT = kind("v1", "ServiceAccount", "serviceaccounts")
EVENT = kind("v1", "Event", "events")
NAMESPACE = kind("v1", "Namespace", "namespaces", namespaced=False)
ROLE = kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
WIDGET = kind("ex.example.com/v1", "Widget", "widgets")
DEFINITION = kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
NODE = kind("v1", "Node", "nodes", namespaced=False)
SERVICE = kind("v1", "Service", "services")
ENDPOINTS = kind("v1", "Endpoints", "endpoints")
ENDPOINT_SLICE = kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
VOLUME = kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
VOLUME_CLAIM = kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASS = kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
REPLICATION_CONTROLLER = kind("v1", "ReplicationController", "replicationcontrollers")
DEPLOYMENT = kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = kind("apps/v1", "ReplicaSet", "replicasets")
STATEFUL_SET = kind("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SET = kind("apps/v1", "DaemonSet", "daemonsets")
CONTROLLER_REVISION = kind("apps/v1", "ControllerRevision", "controllerrevisions")
JOB = kind("batch/v1", "Job", "jobs")
CRON_JOB = kind("batch/v1", "CronJob", "cronjobs")
BUDGET = kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
KINDS = Kinds(
    (
        CONFIG_MAP, POD, ACCOUNT, EVENT, NAMESPACE, ROLE, WIDGET, DEFINITION, NODE, SERVICE, ENDPOINTS,
        ENDPOINT_SLICE, VOLUME, VOLUME_CLAIM, STORAGE_CLASS, REPLICATION_CONTROLLER, DEPLOYMENT, REPLICA_SET,
        STATEFUL_SET, DAEMON_SET, CONTROLLER_REVISION, JOB, CRON_JOB, BUDGET,
    )
)  # fmt: skip


def make(what: Kind, name: str, namespace: str = "default", **fields: Any) -> Made:
    """Return an object of a kind; fields of the metadata are given by their own names."""
    inside = ("labels", "annotations", "finalizers", "ownerReferences", "creationTimestamp", "managedFields")
    metadata = {"name": name} | ({"namespace": namespace} if what.namespaced else {})
    metadata |= {key: value for key, value in fields.items() if key in inside}
    body = {key: value for key, value in fields.items() if key not in inside}
    return {"apiVersion": what.api_version, "kind": what.kind, "metadata": metadata, **body}


@dataclass
class Paper:
    """One cluster, and everything that was written to it."""

    kinds: Kinds = KINDS
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    objects: dict[Ref, Made] = field(default_factory=dict)
    gone: Gone = field(default_factory=Gone)
    journal: list[Action] = field(default_factory=list)
    refuse: Mapping[type[Action], ApiError] = field(default_factory=dict)
    news: list[tuple[Obj | None, Obj | None]] = field(default_factory=list)
    version: int = 0
    uids: int = 0

    # ── what anybody may do ──

    def create(self, obj: Obj) -> Made:
        ref = meta.ref(obj)
        if ref in self.objects:
            raise AlreadyExists(f"{ref} already exists")
        made = deepcopy(dict(obj))
        self.uids += 1
        made["metadata"]["uid"] = f"uid-{self.uids}"
        made["metadata"].setdefault("creationTimestamp", stamp(self.now))
        made["metadata"].setdefault("generation", 1)
        return self._put(ref, made)

    def get(self, ref: Ref) -> Made:
        if ref not in self.objects:
            raise NotFound(f"{ref} not found")
        return self.objects[ref]

    def has(self, obj: Obj) -> bool:
        """Say whether this very object is still there."""
        there = self.objects.get(meta.ref(obj))
        return there is not None and meta.uid(there) == meta.uid(obj)

    def patch(
        self, ref: Ref, patch: Obj, *, uid: str = "", version: str = "", subresource: str | None = None
    ) -> Made:
        """Change an object; with a subresource, or an empty one for the object itself, only what is behind it."""
        old = self._checked(ref, uid, version)
        new = _merged(old, patch)
        if subresource == "status":
            new["spec"] = old.get("spec")
        elif subresource == "" and "status" in old:
            new["status"] = old["status"]
        new = {field: value for field, value in new.items() if value is not None}
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"] = {**new["metadata"], "generation": meta.generation(old) + 1}
        return self._put(ref, new)

    def delete(
        self,
        ref: Ref,
        how: Propagation = Propagation.BACKGROUND,
        *,
        uid: str = "",
        version: str = "",
        grace: int | None = None,
    ) -> None:
        """Ask for the end of an object. A pod that is on a node is given time, and goes when nobody gives it any."""
        new = deepcopy(self._checked(ref, uid, version))
        if grace is None and ref.kind == "Pod" and (new.get("spec") or {}).get("nodeName"):
            new["metadata"]["deletionGracePeriodSeconds"] = 30
        else:
            new["metadata"].pop("deletionGracePeriodSeconds", None)
        metadata = new["metadata"]
        finalizers = [one for one in metadata.get("finalizers") or () if one not in _BY_PROPAGATION.values()]
        if how in _BY_PROPAGATION:
            finalizers.append(_BY_PROPAGATION[how])
        elif metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or []
        metadata["finalizers"] = finalizers
        metadata.setdefault("deletionTimestamp", stamp(self.now))
        self._put(ref, new)

    def perform(self, action: Action) -> None:
        """Carry out one action, or refuse it as a server would."""
        if type(action) in self.refuse:
            raise self.refuse[type(action)]
        match action:
            case Create(obj=obj):
                self.create(obj)
            case Emit(event=event):
                # Told already, which holds nobody up.
                with suppress(AlreadyExists):
                    self.create(event)
            case Patch(ref=ref, uid=uid, version=version, patch=patch, subresource=subresource):
                self.patch(ref, patch, uid=uid, version=version, subresource=subresource)
            case Replace(obj=obj):
                self._checked(action.ref, meta.uid(obj), meta.resource_version(obj))
                self._put(action.ref, deepcopy(dict(obj)))
            case Apply(obj=obj):
                # Whatever is stated is laid over what is there; who owned it is not kept on paper.
                if action.ref in self.objects:
                    self.patch(action.ref, obj, uid=meta.uid(obj))
                else:
                    self.create(obj)
            case Post(ref=ref, body=body, subresource="binding"):
                self.patch(ref, {"spec": {"nodeName": body["target"]["name"]}})
            case Post(ref=ref, subresource=subresource):
                raise NotFound(f"{ref} has no {subresource}")
            case Delete(ref=ref, uid=uid, version=version, propagation=how, grace=grace):
                self.delete(ref, how, uid=uid, version=version, grace=grace)
            case DeleteAll(kind=what, namespace=namespace):
                for ref in [meta.ref(one) for one in self.listed(what, namespace)]:
                    self.delete(ref)
            case _:
                assert_never(action)
        self.journal.append(action)

    def listed(self, what: Kind, namespace: str = "") -> list[Made]:
        return [
            obj
            for ref, obj in self.objects.items()
            if (ref.api_version, ref.kind) == what[:2] and (not namespace or ref.namespace == namespace)
        ]

    def answer(self, question: Question) -> Answer:
        match question:
            case Read(ref):
                if self.kinds.find(ref.api_version, ref.kind) is None:
                    return Unserved()
                return Found(self.objects[ref]) if ref in self.objects else Absent()
            case ReadAll(what, namespace):
                return Listed(tuple(self.listed(what, namespace)))
            case Follow(kind=what):
                return Listed(tuple(one for one in self.listed(what) if question.matches(one)))
            case Call() | Rehearse():
                raise NotFound("nobody is called on paper")
            case _:
                assert_never(question)

    # ── what a controller sees ──

    def world(self, controller: AnyController, *, unseen: Iterable[Ref] = ()) -> Memory:
        """Return what a controller's informers would remember, leaving out what they have not seen yet."""
        shelves: dict[GroupKind, Shelf] = {}
        for watch in controller.watches:
            for what in self.kinds:
                if watch.selects(what) and what.group_kind not in shelves:
                    shelf = shelves[what.group_kind] = Shelf(what)
                    for obj in self.listed(what):
                        if meta.ref(obj) not in unseen and watch.named in ("", meta.name(obj)):
                            shelf.put(watch.keep(obj))
        memory = Memory(self.gone)
        memory.arrange(self.kinds, shelves)
        return memory

    def concerned(
        self, controller: AnyController, before: Obj | None, after: Obj | None, world: Memory
    ) -> list[Ref]:
        about = after if after is not None else before
        assert about is not None
        what = self.kinds.find(about["apiVersion"], about["kind"])
        if what is None:
            return []
        keys: list[Ref] = []
        for watch in controller.watches:
            if watch.selects(what) and watch.named in ("", meta.name(about)):
                change = Change(
                    what,
                    watch.keep(before) if before is not None else None,
                    watch.keep(after) if after is not None else None,
                )
                keys += watch.concerns(world, change)
        return keys

    # ── inside ──

    def _checked(self, ref: Ref, uid: str, version: str) -> Made:
        old = self.get(ref)
        if (uid and uid != meta.uid(old)) or (version and version != meta.resource_version(old)):
            raise Conflict(f"{ref} has moved on")
        return old

    def _put(self, ref: Ref, new: Made) -> Made:
        before = self.objects.get(ref)
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        held = (
            meta.finalizers(new)
            or (new.get("spec") or {}).get("finalizers")
            or new["metadata"].get("deletionGracePeriodSeconds")
        )
        if meta.is_deleting(new) and not held:
            del self.objects[ref]
            self.gone.add(meta.uid(new))
            self.news.append((before, None))
        else:
            self.objects[ref] = new
            self.news.append((before, new))
        return new


_BY_PROPAGATION = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    new = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value)
    return new


class Crashed(Exception):
    """The process died after so many writes."""


def settle(
    paper: Paper,
    *controllers: AnyController,
    random: Random | None = None,
    crash_after: int | None = None,
    patience: int = 3000,
) -> None:
    """
    Run controllers until nobody has anything left to do.

    They start with nothing remembered, as after a crash. With `random`, keys
    are taken in any order. With `crash_after`, the process dies after that many
    writes, and what it had not done yet is not done.
    """
    paper.news.clear()
    keys: dict[tuple[int, Ref], None] = {}
    for number, controller in enumerate(controllers):
        world = paper.world(controller)
        for obj in list(paper.objects.values()):
            keys |= dict.fromkeys((number, ref) for ref in paper.concerned(controller, None, obj, world))
    writes = 0
    for _ in range(patience):
        if not keys:
            return
        chosen = random.choice(list(keys)) if random else next(iter(keys))
        del keys[chosen]
        number, ref = chosen
        look_again = False
        try:
            plan = planned(paper, controllers[number], ref)
            look_again = plan is not None and plan.look_again == timedelta(0)
            for action in plan.actions if plan is not None else ():
                if writes == crash_after:
                    raise Crashed
                writes += 1
                paper.perform(action)
        except (Conflict, NotFound, AlreadyExists):
            look_again = True
        if look_again:
            keys[chosen] = None
        news, paper.news = paper.news, []
        for other, controller in enumerate(controllers):
            world = paper.world(controller)
            for before, after in news:
                heard = paper.concerned(controller, before, after, world)
                keys |= dict.fromkeys((other, key) for key in heard)
    raise AssertionError(f"nobody comes to rest: {list(keys)[:5]}")


def planned(paper: Paper, controller: AnyController, ref: Ref, *, unseen: Sequence[Ref] = ()) -> Any:
    """Return the plan a controller would make for a key now, or None if it has nothing to decide."""
    view = controller.gather(paper.world(controller, unseen=unseen), ref)
    if view is None:
        return None
    answers = Answers()
    for _ in range(20):
        asked = controller.questions(view, answers)
        if not asked:
            return controller.plan(view, answers, paper.now)
        answers = answers | {question: paper.answer(question) for question in asked}
    raise AssertionError("it never stops asking")
