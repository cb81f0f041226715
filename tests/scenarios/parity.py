"""
Parity: every write of a scenario, made once more by the simulated API server.

A recorder collects what controllers write on the embedded server. At the end of
the scenario each write is made again by a simulated cluster that holds the object
as it was just before: the object becomes the same, but for times, uids and
versions. The embedded server lists its collections as of any version, so what
other writers do in between does not matter.

An action that the embedded server refused is refused by the simulated one with the
same code, in one of the states that the object had since the action was decided.
What a simulation does not model is not compared: authentication and authorization,
admission webhooks and policies, the validation of statuses, and faults.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import orjson

from lamina.client import codec
from lamina.client.client import Client
from lamina.core.crd.kinds import DEFINITION
from lamina.core.model.effects import Written
from lamina.core.model.plan import Action, Apply, Delete, DeleteAll, Emit, Patch, Post, Replace
from lamina.errors import ApiError, Forbidden, Invalid, TooManyRequests, Unauthorized, UnknownKind
from lamina.objects import meta
from lamina.objects.diff import ABSENT, Change, diff
from lamina.objects.kinds import Kind
from lamina.objects.times import stamp
from lamina.objects.types import Obj, Ref
from lamina.runtime.metrics.recorder import Recorder
from lamina.simulation import SimulatedCluster
from lamina.simulation.admission_adapter import AdmissionAdapter, builtin
from tests.bed.fixtures import chosen_server

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ENDING = "NamespaceTerminating"
_CONDITIONS = ("status", "conditions")
_SINCE = "lastTransitionTime"
_PRUNED = (("status", "observedGeneration"), ("status", "unknown"))
"""The fields that controllers and hooks of the scenarios write and the schemas of custom kinds do not have."""
_Writes: TypeAlias = Sequence[tuple[Action, Written]]
_OF_ITS_OWN = ("uid", "resourceVersion", "creationTimestamp")


@dataclass
class Parity:
    """What controllers wrote in a scenario, on the clusters by the names they have for them."""

    clients: Mapping[str, Client]
    writes: list[tuple[Action, Written]] = field(default_factory=list)
    refusals: list[tuple[Action, ApiError]] = field(default_factory=list)
    compared: int = 0
    refused: int = 0
    """How many refusals were compared."""

    @property
    def has_compared(self) -> bool:
        """Say whether a write was compared, where writes are compared at all."""
        return self.compared > 0 or chosen_server() == "real"

    def recorder(self, controller: str) -> Recorder:
        """Return the recorder of one controller."""
        return _Recorder(self)

    async def check(self) -> None:
        """Repeat every action since the last check, and compare the objects and the refusals."""
        # Controllers may still run, and add to the lists.
        writes, self.writes = self.writes, []
        refusals, self.refusals = self.refusals, []
        if chosen_server() == "real":
            # Its writes are those of the embedded one, and its collections as of a version are compacted.
            return
        differences = [found async for found in _differences(self, writes, refusals)]
        assert not differences, "\n\n".join(differences)


class _Recorder(Recorder):
    def __init__(self, parity: Parity) -> None:
        self._parity = parity

    def wrote(self, action: Action, written: Sequence[Written] = ()) -> None:
        # Bindings and evictions are subresources of pods, which families have none of;
        # a deletion of a whole collection is compared by the objects it names.
        if not isinstance(action, Post):
            self._parity.writes += [(action, one) for one in written]

    def refused(self, action: Action, error: ApiError) -> None:
        if not isinstance(action, Post | Emit | DeleteAll) and _is_modelled(error):
            self._parity.refusals.append((action, error))


def composed(*recorders: Recorder) -> Recorder:
    """Return a recorder that passes each call on to all of these."""

    def each(name: str, *values: Any, **named: Any) -> None:
        for one in recorders:
            getattr(one, name)(*values, **named)

    made = Recorder()
    for name in vars(Recorder):
        if not name.startswith("_"):
            setattr(made, name, partial(each, name))
    return made


def _is_modelled(error: ApiError) -> bool:
    """Say whether a simulated cluster knows the rule by which an action was refused."""
    if isinstance(error, Forbidden):
        return any(cause.reason == _ENDING for cause in error.causes)
    if isinstance(error, Invalid) and all(cause.field.startswith("status.") for cause in error.causes):
        # Statuses are taken as they come.
        return False
    is_admission = any(word in error.message for word in ("admission webhook", "ValidatingAdmissionPolicy"))
    return error.code < TooManyRequests.code and not isinstance(error, Unauthorized) and not is_admission


async def _differences(
    parity: Parity, writes: _Writes, refusals: Sequence[tuple[Action, ApiError]]
) -> AsyncIterator[str]:
    simulated = {cluster: await _simulated(client) for cluster, client in parity.clients.items()}
    histories = await _histories(parity, writes, [action for action, _ in refusals])
    made = Counter((written.ref, written.version) for _, written in writes)
    for action, error in refusals:
        ref = action.ref
        history = histories.get((ref.cluster, ref.api_version, ref.kind))
        if history is None:
            continue
        parity.refused += 1
        codes = {_code(simulated[ref.cluster], action, state, error) for state in history.since(action)}
        if error.code not in codes:
            yield f"{type(action).__name__} {ref} was refused with {error.code} ({error}), by the simulation with {codes}"
    for action, written in writes:
        ref = written.ref
        history = histories.get((ref.cluster, ref.api_version, ref.kind))
        if history is None:
            # The kind has gone with its definition, and its objects with it.
            continue
        before, after = history.around(action, written)
        parity.compared += 1
        changes = _changes(simulated[ref.cluster], action, ref, before, after)
        if changes and made[ref, written.version] > 1:
            # The server answers a write that changes nothing with the version that another write made.
            changes = _changes(simulated[ref.cluster], action, ref, after, after)
        if changes:
            yield f"{type(action).__name__} {ref}: " + "; ".join(map(str, changes))


def _changes(
    cluster: SimulatedCluster, action: Action, ref: Ref, before: Obj | None, after: Obj | None
) -> list[Change]:
    """Return where a simulated cluster leaves an object in another state than the server did."""
    cluster = cluster.copy()
    if before is not None:
        cluster.load([before])
    elif ref.kind == DEFINITION.kind:
        # A simulated cluster has all definitions, as they are at the end.
        cluster.objects.pop(ref._replace(cluster=""), None)
    found: Any
    try:
        cluster.perform(_single(action, ref), "parity")
        found = _compared(cluster.at(ref._replace(cluster="")))
    except ApiError as refused:
        found = {"refused": str(refused)}
    if found is None and ref.kind == DEFINITION.kind and after is not None and meta.is_deleting(after):
        # A simulation has no instances to clean up first, so a definition goes at once.
        return []
    return [one for one in diff(_compared(after) or {}, found or {}) if not _is_known(ref, one)]


def _code(cluster: SimulatedCluster, action: Action, state: Obj | None, error: ApiError) -> int:
    """Return the code with which a simulated cluster refuses an action on an object in a state, 0 if it does not."""
    cluster = cluster.copy()
    if state is not None:
        cluster.load([state])
    if isinstance(error, Forbidden):
        ends = {"name": action.ref.namespace, "deletionTimestamp": stamp(cluster.now)}
        cluster.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": ends}])
    try:
        cluster.perform(action, "parity")
    except ApiError as refused:
        return refused.code
    return 0


def _is_known(ref: Ref, change: Change) -> bool:
    """
    Say whether a simulated cluster is known to differ here.

    A simulation writes a shorter status of a definition, and no phase of a namespace
    that ends. It allocates no addresses, and has no admission plugins. Statuses are
    taken as they come: those of built-in kinds are not defaulted, because their
    controllers write them whole, and those of custom kinds are not pruned, because
    simulated agents keep in them what they have to remember.
    """
    path = change.path
    match ref.kind:
        case DEFINITION.kind:
            is_name = path[:2] == ("status", "acceptedNames")
            return (
                is_name
                or path == ("status", "storedVersions")
                or (path[:2], path[-1]) == (_CONDITIONS, "message")
            )
        case "Namespace":
            return path in (("metadata", "deletionGracePeriodSeconds"), ("status", "phase"))
        case "Service":
            return path[:2] in (("spec", "clusterIP"), ("spec", "clusterIPs"))
        case "Pod":
            return path[0] == "spec" and "kube-api-access-" in str(change.before)
        case "PersistentVolumeClaim":
            return path == ("spec", "storageClassName") and change.after is ABSENT
        case "ReplicationController":
            is_default = path == ("status", "replicas") or (path[:2], path[-1]) == (_CONDITIONS, _SINCE)
            return is_default and change.after is ABSENT
    return path in _PRUNED and change.before is ABSENT


@dataclass
class _History:
    """Every version of the objects of a kind that were written, oldest first; None where one was deleted."""

    versions: dict[tuple[str, str], list[tuple[int, Obj | None]]] = field(default_factory=dict)

    def add(self, obj: Obj, *, is_deleted: bool = False) -> None:
        key = meta.namespace(obj), meta.name(obj)
        version = int(meta.resource_version(obj))
        self.versions.setdefault(key, []).append((version, None if is_deleted else obj))

    def reaches(self, key: tuple[str, str], written: int, now: Obj | None) -> bool:
        """Say whether it has what was written last to an object, and what has become of the object since."""
        last, obj = self.versions.get(key, [(0, None)])[-1]
        return last >= written and (obj is None if now is None else last >= int(meta.resource_version(now)))

    def since(self, action: Action) -> list[Obj | None]:
        """Return the states that an object had since an action on it was decided."""
        states = self.versions[action.ref.namespace, action.ref.name]
        decided = _decided_on(action)
        return [obj for version, obj in states if version >= decided] or [states[-1][1]]

    def around(self, action: Action, written: Written) -> tuple[Obj | None, Obj | None]:
        """Return the object as it was just before a write, and as the write left it."""
        states = self.versions.get((written.ref.namespace, written.ref.name), [])
        if written.version is None:
            there = [obj for _, obj in states if obj is not None and meta.uid(obj) == written.uid]
            return there[-1], None
        place = next(place for place, (version, _) in enumerate(states) if version == written.version)
        before, after = (states[place - 1][1] if place else None), states[place][1]
        if isinstance(action, Patch | Replace) and (before is None or _decided_on(action) == written.version):
            # The write made no version: it changed nothing, or removed the last finalizer of an object
            # that was being deleted.
            is_gone = after is not None and meta.is_deleting(after) and states[place + 1 :][:1]
            return after, None if is_gone and states[place + 1][1] is None else after
        return before, after


def _decided_on(action: Action) -> int:
    """Return the version of the object that an action names, 0 where it names none."""
    match action:
        case Patch(version=version) | Delete(version=version):
            return int(version or 0)
        case Replace(obj=obj) | Apply(obj=obj):
            return int(meta.resource_version(obj) or 0)
        case _:
            return 0


async def _histories(
    parity: Parity, writes: _Writes, refused: Sequence[Action]
) -> dict[tuple[str, str, str], _History]:
    """Return the history of each kind on each cluster, from before the first write that is to be compared."""
    touched = [(one.ref, one.version or 0) for _, one in writes] + [(action.ref, 0) for action in refused]
    wanted: dict[tuple[str, str, str], dict[tuple[str, str], int]] = {}
    for ref, version in touched:
        last = wanted.setdefault((ref.cluster, ref.api_version, ref.kind), {})
        key = ref.namespace, ref.name
        last[key] = max(version, last.get(key, 0))
    found = {}
    for (cluster, api_version, name), last in wanted.items():
        client = parity.clients[cluster]
        named = [(one.ref, one.version or _decided_on(action)) for action, one in writes]
        named += [(action.ref, _decided_on(action)) for action in refused]
        versions = [version for ref, version in named if ref.cluster == cluster and version]
        if not versions:
            # No action names a version: which states of the objects it met is not known.
            continue
        since = min(versions) - 1
        with suppress(UnknownKind):
            kind = await client.kind(api_version, name)
            found[cluster, api_version, name] = await _history(client, kind, last, str(since))
    return found


async def _history(client: Client, kind: Kind, last: Mapping[tuple[str, str], int], since: str) -> _History:
    """Return the versions of objects from a version on, at least up to the last one that was written of each."""
    history = _History()
    then = [("resourceVersion", since), ("resourceVersionMatch", "Exact")]
    body = await client.request("GET", codec.collection(kind, ""), query=then)
    for obj in orjson.loads(body)["items"]:
        if (meta.namespace(obj), meta.name(obj)) in last:
            history.add(codec.set_kind(obj, kind))
    for key in last:
        history.versions.setdefault(key, [(int(since), None)])
    now = {(meta.namespace(obj), meta.name(obj)): obj for obj in (await client.list(kind)).items}
    async with asyncio.timeout(60), aclosing(client.watch(kind, version=since)) as events:
        while not all(history.reaches(key, written, now.get(key)) for key, written in last.items()):
            event = await anext(events)
            obj = event["object"]
            if event["type"] != "BOOKMARK" and (meta.namespace(obj), meta.name(obj)) in last:
                history.add(obj, is_deleted=event["type"] == "DELETED")
    return history


async def _simulated(client: Client) -> SimulatedCluster:
    cluster = SimulatedCluster(kinds=builtin())
    AdmissionAdapter(cluster)
    kind = cluster.kinds.preferred(DEFINITION)
    assert kind is not None, "definitions are built in"
    cluster.load((await client.list(kind)).items)
    return cluster


def _single(action: Action, ref: Ref) -> Action:
    """Return the deletion of one object of a collection that is deleted; any other action as it is."""
    if isinstance(action, DeleteAll):
        return Delete(ref=ref, uid="", propagation=action.propagation)
    return action


def _compared(obj: Obj | None) -> Any:
    """Return what is compared of an object."""
    if obj is None:
        return None
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OF_ITS_OWN}
    if metadata.get("generateName"):
        metadata.pop("name", None)
    applied = sorted(_applied(metadata.pop("managedFields", None) or ()))
    masked = _timeless({**obj, "metadata": metadata}, meta.uid(obj))
    return {**masked, "applied": dict(applied)}


def _applied(entries: Sequence[Obj]) -> Iterator[tuple[str, str]]:
    """Yield what was applied through which subresource; a simulated cluster does not track other writes."""
    for one in entries:
        if one.get("operation") == "Apply":
            yield (
                one.get("subresource", ""),
                orjson.dumps(one["fieldsV1"], option=orjson.OPT_SORT_KEYS).decode(),
            )


def _timeless(value: Any, uid: str) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(held, uid) for key, held in value.items()}
    if isinstance(value, list):
        return [_timeless(held, uid) for held in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        return "a time"
    return "its uid" if value == uid else value
