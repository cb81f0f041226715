"""Owners of phases, the objects that they want, and a server that answers what they ask."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from lamina.core.health.probe_spec import Probes, compile_probes
from lamina.core.model.queries import Absent, Answer, Answers, DryRun, Found, Query, Read, Refused, Unserved
from lamina.core.ownership.handover import Adoption
from lamina.core.phases.conventions import Conventions
from lamina.core.phases.manifest import ConditionMapping, Manifest, ObjectKey, located
from lamina.core.phases.owner import PhaseOwner, Siblings
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Condition, Made, Obj, Ref

REVISION, MARK = "ex.com/revision", "ex.com/mark"
CONVENTIONS = Conventions(
    manager="ex",
    former_managers=("old-ex",),
    revision=REVISION,
    mark=MARK,
    inherited_labels=("team",),
    tolerated_labels={"made-by": "upstream"},
    owner="stack",
    cluster_owner="ClusterStack",
    owners="ex.com/owners",
)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
NODE = Kind("v1", "Node", "nodes", False)
THING = Kind("ex.com/v1", "Thing", "things", True)
KINDS = Kinds((CONFIG_MAP, NODE, THING))
DELETED = "2026-01-01T00:00:00Z"


def owner(
    revision: int = 5,
    *,
    siblings: Iterable[int] | Mapping[int, int] = (),
    ended: Iterable[int] = (),
    taken: Iterable[str] = (),
    shared: tuple[Read, ...] = (),
    namespace: str = "team",
    deleting: bool = False,
    probed: bool = False,
    **fields: Any,
) -> PhaseOwner:
    """Return a revision as an owner; `siblings` are the others by the numbers in their names, and their numbers."""
    obj = owner_object(revision, namespace=namespace, deleting=deleting)
    numbers = siblings if isinstance(siblings, Mapping) else {one: one for one in siblings}
    return PhaseOwner(
        obj=obj,
        revision=revision,
        conventions=CONVENTIONS,
        siblings=Siblings(
            numbers={f"uid-{one}": number for one, number in numbers.items()},
            ended=frozenset(f"uid-{one}" for one in ended),
            taken=frozenset(map(key, taken)),
            shared=shared,
        ),
        probes=ready() if probed else Probes(),
        **fields,
    )


def owner_object(revision: int, *, namespace: str = "team", deleting: bool = False) -> Made:
    metadata: Made = {
        "name": f"stack-{revision}",
        "uid": f"uid-{revision}",
        "generation": 1,
        "labels": {"team": "blue", "other": "x"},
    }
    if namespace:
        metadata["namespace"] = namespace
    if deleting:
        metadata["deletionTimestamp"] = DELETED
    return {"apiVersion": "ex.com/v1", "kind": "Stack", "metadata": metadata}


def ready() -> Probes:
    """Return the probe of the condition Ready of ConfigMaps."""
    probe = {"selector": {"kind": {"kind": "ConfigMap"}}, "probes": [{"condition": {"type": "Ready"}}]}
    return compile_probes([probe], "spec.probes")


def body(name: str = "a", kind: Kind = CONFIG_MAP, **metadata: Any) -> Made:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, **metadata},
        "data": {"k": "v"},
    }


def manifest(
    name: str = "a",
    *,
    obj: Obj | None = None,
    adoption: Adoption | None = Adoption.NEVER,
    mappings: Iterable[tuple[str, str]] = (),
    namespace: str = "team",
    **fields: Any,
) -> Manifest:
    wanted = body(name) if obj is None else obj
    key, kind = located(wanted, namespace, KINDS)
    return Manifest(
        phase="deploy",
        obj=wanted,
        key=key,
        kind=kind,
        adoption=adoption,
        mappings=tuple(ConditionMapping(*one) for one in mappings),
        **fields,
    )


def key(name: str, namespace: str = "team") -> ObjectKey:
    return ObjectKey("", "ConfigMap", namespace, name)


def live(
    name: str = "a",
    controller: int | str | None = 5,
    *,
    revision: int | None = None,
    owners: Iterable[int] = (),
    deleting: bool = False,
    conditions: Iterable[Condition] = (),
    **metadata: Any,
) -> Made:
    """Return an object of the server; its controller is a revision, or another object of that name."""
    references: list[Made] = [
        {"apiVersion": "ex.com/v1", "kind": "Stack", "name": f"stack-{one}", "uid": f"uid-{one}"}
        for one in owners
    ]
    if controller is not None:
        who = f"stack-{controller}" if isinstance(controller, int) else controller
        kind = "Stack" if isinstance(controller, int) else "Other"
        references.append(
            {
                "apiVersion": "ex.com/v1",
                "kind": kind,
                "name": who,
                "uid": f"uid-{controller}",
                "controller": True,
            }
        )
    number = revision if revision is not None else controller if isinstance(controller, int) else None
    marks: Made = (
        {"labels": {MARK: "True"}, "annotations": {REVISION: str(number)}} if number is not None else {}
    )
    made: Made = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "generation": 1,
        **marks,
        **({"ownerReferences": references} if references else {}),
        **({"deletionTimestamp": DELETED} if deleting else {}),
        **metadata,
    }
    status: Made = {"status": {"conditions": list(conditions)}} if conditions else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made, "data": {"k": "v"}, **status}


READY: Condition = {"type": "Ready", "status": "True"}
BROKEN: Condition = {"type": "Ready", "status": "False"}


def by_key(*objects: Obj) -> Mapping[ObjectKey, Obj]:
    return {key(meta.name(one), meta.namespace(one)): one for one in objects}


class Server(Struct, kw_only=True):
    """Answers live reads from its objects, and dry runs with what is applied or with what `judges` says."""

    objects: Iterable[Obj] = ()
    judges: Callable[[DryRun], Answer | None] = lambda asked: None
    asked: list[Query] = field(default_factory=list)

    def answer(self, query: Query) -> Answer:
        self.asked.append(query)
        match query:
            case Read(ref):
                found = next((one for one in self.objects if self._has(one, ref)), None)
                return Found(found) if found is not None else Absent()
            case DryRun():
                return self.judges(query) or Found(query.obj)
            case _:
                return Unserved()

    def _has(self, obj: Obj, ref: Ref) -> bool:
        return (obj["kind"], meta.namespace(obj), meta.name(obj)) == (ref.kind, ref.namespace, ref.name)

    def answers(self, decide: Callable[[Answers], Any]) -> Any:
        """Return what is decided once everything that is asked has been answered."""
        answers = Answers()
        for _ in range(9):
            decided = decide(answers)
            if not decided.queries:
                return decided
            answers |= {one: self.answer(one) for one in decided.queries}
        raise AssertionError(f"asks without end: {decided.queries}")


def refuses(code: int = 422, because: str = "no") -> Callable[[DryRun], Answer | None]:
    return lambda asked: Refused(code, because)
