"""Defaulting, validation and schemas of the embedded server, for a simulated cluster."""

from __future__ import annotations

from functools import cache
from operator import is_

from lamina.core.crd.kinds import DEFINITION
from lamina.merge.schema import Schema
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.server.kinds import kind as served
from lamina.server.kinds import metadata as rules
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.custom.kinds import kinds_of
from lamina.server.kinds.kind import invalid_error
from lamina.simulation.cluster.apiserver import SimulatedCluster
from lamina.simulation.cluster.object_rules import USUAL, KindRules

_OPEN = Schema()
_OPEN.type, _OPEN.open = "object", True


@cache
def _built_in() -> dict[tuple[str, str], served.Kind]:
    return {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}


@cache
def builtin() -> Kinds:
    """Return the kinds that every cluster serves."""
    found = sorted(_built_in().values(), key=lambda kind: not kind.preferred)
    return Kinds(_described(kind) for kind in found if kind.stored)


def _described(kind: served.Kind) -> Kind:
    return Kind(
        api_version=kind.api_version,
        kind=kind.kind,
        plural=kind.plural,
        namespaced=kind.namespaced,
        verbs=frozenset(kind.verbs),
        subresources=frozenset(sub.name for sub in kind.subresources),
    )


class AdmissionAdapter:
    """
    Admits objects to a simulated cluster as the embedded server does.

    They are decoded, defaulted and validated; objects of unknown kinds are stored
    as they are.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._custom: dict[tuple[str, str], served.Kind] = {}
        self._known: dict[Ref, str] = {}
        self._seen: list[Obj] = []
        cluster.admit, cluster.schema, cluster.rules = self.admit, self.schema, self.rules

    def admit(self, obj: Made, old: Obj | None) -> Made:
        """Return an object as a server stores it; raises Invalid or BadRequest where it would not."""
        kind = self._find(obj["apiVersion"], obj["kind"])
        if kind is None:
            return obj
        body = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
        made = kind.shape.decode(body, served.Findings())
        kind.shape.default(made)
        if old is None:
            kind.shape.prepare_create(made)
            causes = [*rules.validate_create(kind, made), *kind.shape.validate_create(made)]
        else:
            causes = [*kind.shape.validate_update(made, old, "")]
            causes = [one for one in causes if not isinstance(one, served.RatchetedCause)]
        if causes:
            raise invalid_error(kind, meta.name(obj), causes)
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **made}

    def rules(self, ref: Ref) -> KindRules:
        """Return what is done with the metadata of a kind."""
        kind = self._find(ref.api_version, ref.kind)
        if kind is None:
            return USUAL
        shape = kind.shape
        return KindRules(shape.has_generation, shape.has_status, shape.counts_annotations)

    def schema(self, ref: Ref) -> Schema:
        """Return the schema by which an object's fields merge."""
        kind = self._find(ref.api_version, ref.kind)
        return kind.schema if kind is not None else _OPEN

    def _find(self, api_version: str, name: str) -> served.Kind | None:
        found = _built_in().get((api_version, name))
        if found is not None:
            return found
        self._learn()
        return self._custom.get((api_version, name))

    def _learn(self) -> None:
        """Read the CRDs that were added or changed."""
        there = self._definitions()
        # Called at every write of a custom kind; nearly always no CRD has changed.
        if len(there) == len(self._seen) and all(map(is_, there, self._seen)):
            return
        self._seen = there
        for definition in there:
            ref, version = meta.ref(definition), meta.resource_version(definition)
            if self._known.get(ref) != version:
                self._known[ref] = version
                self._custom |= {(kind.api_version, kind.kind): kind for kind in kinds_of(definition)}

    def _definitions(self) -> list[Obj]:
        kind = self._cluster.kinds.preferred(GroupKind(*DEFINITION))
        return list(self._cluster.listed(kind)) if kind is not None else []
