"""
Applies the examples of one round to a server and says what the controller on it made of them.

Definitions are created after those that generate the kinds of their children, then
instances. Where no controller writes the status of a child, it is written here, so that
what depends on it is made as well. Server defaults are not sent: the fields of a child are
those that its field manager applied.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lamina.client.client import Client
from lamina.errors import AlreadyExists, Invalid
from lamina.families.resourcegraph.labels import (
    APPLYSET,
    DEFINITION,
    DEFINITION_NAME,
    INSTANCE_ID,
    INSTANCE_KIND,
    KRO_VERSION,
    NODE_ID,
    OWNED,
    TOOLING,
)
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.conformance.kro.corpus import GENERATED, Examples, Manifest, nodes

API_VERSION = f"{GENERATED}/v1alpha1"
DEFINITIONS = (API_VERSION, DEFINITION.kind)
CRDS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_LOOK = 0.2
_ARGO = "argocd"
"""A namespace that one of the examples names."""
_SEEDED = re.compile(r'("name": "RANDOM_SEEDED_STRING", "value": ")[a-z0-9]+"')
"""The one value of the examples that is derived from the uid of an instance."""


@dataclass
class Round:
    """The examples of one round on one server."""

    client: Client
    examples: Examples
    timeout: float = 60.0
    _generated: tuple[Kind, ...] = ()
    _kinds: tuple[Kind, ...] = ()
    """The kinds of children."""
    _refused: dict[str, str] = field(default_factory=dict)
    """What the API server says about each definition that it refuses."""
    _filled: set[str] = field(default_factory=set)
    """The uids of children whose status has been written."""

    async def define(self) -> None:
        """Create the kinds and the definitions, and wait until each is accepted or refused."""
        for kind in self.examples.kinds.values():
            await self.client.create(kind["crd"])
        for kind in self.examples.kinds.values():
            await self._until(
                meta.ref(kind["crd"]), lambda crd: conditions.is_true(conditions.of(crd), "Established")
            )
        for some in _levels(self.examples.definitions):
            created = [one for one in some if await self._is_created(one)]
            for one in created:
                await self._until(meta.ref(one), _is_decided)
        served = await self.client.discover()
        generated = (one["spec"]["schema"]["kind"] for one in self.examples.definitions.values())
        templates = {
            (t["apiVersion"], t["kind"]) for one in self.examples.definitions.values() for _, t in nodes(one)
        }
        self._generated = tuple(made for one in generated if (made := served.find(API_VERSION, one)))
        self._kinds = tuple(made for one in sorted(templates) if (made := served.find(*one)))

    async def instantiate(self) -> None:
        """Create the instances whose kind exists, in their namespaces."""
        kinds = {one.kind for one in self._generated}
        instances = [one for one in self.examples.instances.values() if one["kind"] in kinds]
        for namespace in sorted({_ARGO, *(name for one in instances for name in _namespaces(one))}):
            with suppress(AlreadyExists):
                await self.client.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                )
        for one in instances:
            await self.client.create(one)

    async def settled(
        self, *, quiet: float, is_so: Callable[[Manifest], bool] = lambda sent: False
    ) -> Manifest:
        """Return what was made, when it is as wanted or nothing has changed for some time; write statuses meanwhile."""
        last, since = await self.sent(), time.monotonic()

        def is_settled(sent: Manifest) -> bool:
            nonlocal last, since
            if sent != last:
                last, since = sent, time.monotonic()
            return time.monotonic() - since >= quiet or is_so(sent)

        with suppress(AssertionError):
            # What is made at the end of that time is compared, too.
            await eventually(self.sent, is_settled, seconds=self.timeout, interval=_LOOK)
        return last

    async def sent(self) -> Manifest:
        """Return what was made so far of each definition and of each instance."""
        paths = {one["metadata"]["name"]: path for path, one in self.examples.definitions.items()}
        defined = (await self.client.list(DEFINITIONS)).items
        instances = [one for kind in self._generated for one in (await self.client.list(kind)).items]
        children = [
            one for kind in self._kinds for one in (await self.client.list(kind, labels=NODE_ID)).items
        ]
        await self._fill(children)
        crds = {
            meta.labels(one).get(DEFINITION_NAME): one
            for one in (await self.client.list(CRDS, labels=OWNED)).items
        }
        sent: Manifest = {
            paths[meta.name(one)]: shown_definition(one, crds.get(meta.name(one))) for one in defined
        }
        sent |= {paths[name]: {"invalid": message} for name, message in self._refused.items()}
        for one in instances:
            own = [child for child in children if meta.labels(child)[INSTANCE_ID] == meta.uid(one)]
            sent[_named(one)] = shown_instance(one, own)
        return _masked(sent, {meta.uid(one): _named(one) for one in (*defined, *instances)})

    async def _is_created(self, definition: Manifest) -> bool:
        """Create a definition; False where the API server refuses it."""
        try:
            await self.client.create(definition)
        except Invalid as error:
            self._refused[meta.name(definition)] = str(error)
        return meta.name(definition) not in self._refused

    async def _until(self, ref: Ref, is_so: Callable[[Made], bool]) -> None:
        await eventually(
            lambda: self.client.get(ref),
            is_so,
            seconds=self.timeout,
            describe=lambda obj: repr(obj.get("status")),
        )

    async def _fill(self, children: Iterable[Made]) -> None:
        """Write the statuses of new children."""
        by_kind = {one["spec"]["schema"]["kind"]: path for path, one in self.examples.definitions.items()}
        for child in children:
            labels = meta.labels(child)
            found = self.examples.statuses.get(by_kind[labels[INSTANCE_KIND]], {}).get(labels[NODE_ID])
            if found and meta.uid(child) not in self._filled:
                status = dict(found)
                if child["kind"] == "Deployment":
                    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
                    status |= dict.fromkeys(counts, child["spec"]["replicas"])
                await self.client.patch(
                    meta.ref(child), {"status": status}, subresource="status", manager="other"
                )
                self._filled.add(meta.uid(child))


def _levels(definitions: Mapping[str, Manifest]) -> Iterator[list[Manifest]]:
    """Yield definitions after those that generate the kinds of their resources."""
    left = dict(definitions)
    while left:
        generated = {one["spec"]["schema"]["kind"] for one in left.values()}
        level = {path: one for path, one in left.items() if not generated & _chained(one)}
        yield list((level or left).values())
        left = {path: one for path, one in left.items() if path not in level} if level else {}


def _chained(definition: Manifest) -> set[str]:
    return {template["kind"] for _, template in nodes(definition) if template["apiVersion"] == API_VERSION}


def _namespaces(instance: Manifest) -> set[str]:
    return {meta.namespace(instance), instance["spec"].get("namespace", "")} - {""}


def _is_decided(definition: Obj) -> bool:
    """Say whether a definition is accepted and active, or refused."""
    accepted = conditions.find(conditions.of(definition), "GraphAccepted")
    if accepted is None or accepted["status"] == "Unknown":
        return False
    state = (definition.get("status") or {}).get("state")
    return (
        state == "Active"
        or accepted["status"] == "False"
        or _conditions(definition).get("KindReady") == "False"
    )


def _named(obj: Obj) -> str:
    where = f"{meta.namespace(obj)}/" if meta.namespace(obj) else ""
    return f"{obj['kind']} {where}{meta.name(obj)}"


# ── what is sent of each object ──


def shown_definition(definition: Obj, crd: Obj | None) -> Manifest:
    """Return whether a definition was accepted, and why not; the order of its resources, and the kind that it generates."""
    status = definition.get("status") or {}
    accepted: Obj = conditions.find(conditions.of(definition), "GraphAccepted") or {}
    sent: Manifest = {
        "state": status.get("state"),
        "conditions": _conditions(definition),
        "order": status.get("topologicalOrder") or [],
        "resources": status.get("resources") or [],
    }
    if accepted.get("status") == "False":
        sent["refused"] = accepted["message"]
    if crd is not None:
        sent["crd"] = {
            **{part: crd["spec"][part] for part in ("group", "names", "scope", "versions")},
            "labels": meta.labels(crd),
            "annotations": meta.annotations(crd),
        }
    return sent


def shown_instance(instance: Obj, children: Iterable[Obj]) -> Manifest:
    """Return the metadata and the status of an instance, and its children."""
    status = instance.get("status") or {}
    return {
        "labels": meta.labels(instance),
        "annotations": meta.annotations(instance),
        "finalizers": instance["metadata"].get("finalizers") or [],
        "spec": instance["spec"],
        "conditions": _conditions(instance),
        "status": {name: value for name, value in status.items() if name != "conditions"},
        "children": {_named(child): applied_fields(child, APPLYSET) for child in children},
    }


def _conditions(obj: Obj) -> dict[str, str]:
    return {one["type"]: one["status"] for one in conditions.of(obj)}


def applied_fields(obj: Obj, manager: str) -> Any:
    """Return the fields that a manager has applied; of a CRD the digest of its spec."""
    applied: Any = {}
    for entry in obj["metadata"].get("managedFields") or ():
        if entry["manager"] == manager and entry["operation"] == "Apply":
            applied = _owned(obj, entry["fieldsV1"])
    if obj["kind"] == CRDS[1]:
        applied["spec"] = hashlib.sha256(json.dumps(applied["spec"], sort_keys=True).encode()).hexdigest()
    return applied


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the part of a value that a field set has."""
    below = {name: those for name, those in fields.items() if name != "."}
    if isinstance(value, dict) and below:
        return {
            name: _owned(value[name], those) for key, those in below.items() if (name := key[2:]) in value
        }
    if isinstance(value, list) and below:
        return [_owned(one, those) for key, those in below.items() for one in value if _is_meant(one, key)]
    return value


def _is_meant(item: Any, key: str) -> bool:
    """Say whether an element of a field set, `k:{…}` or `v:…`, is about an item of a list."""
    named = json.loads(key[2:])
    if key.startswith("v:"):
        return bool(item == named)
    return all(item.get(name, _DEFAULTS.get(name)) == value for name, value in named.items())


_DEFAULTS = {"protocol": "TCP"}


def _masked(sent: Manifest, names: Mapping[str, str]) -> Manifest:
    """Return what is sent without what differs between two runs: uids, what is derived from them, and the version of a build."""
    text = json.dumps(sent)
    for uid, name in names.items():
        text = text.replace(uid, f"<uid of {name}>")
    text = _SEEDED.sub(r'\1<seeded>"', text)
    text = re.sub(rf'("{re.escape(KRO_VERSION)}": )"[^"]*"', r'\1"<version>"', text)
    text = re.sub(rf'("{re.escape(TOOLING)}": )"[^"]*"', r'\1"<version>"', text)
    masked: Manifest = json.loads(text)
    return masked
