"""
Keeps compiled graphs, and asks for the schemas that compiling one needs.

All controllers of a family share the graphs, so that a revision is compiled once for all of
its instances. Nothing depends on what is kept but the cost of a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from lamina.core.model.queries import Answers, Found, Query, Read, ReadSchema
from lamina.families.resourcegraph.definitions.crd_cache import crd_name, crd_ref
from lamina.families.resourcegraph.labels import DEFINITION_NAME
from lamina.graph.compile import compile_graph, kinds_needed
from lamina.graph.graph import Graph, GraphError, KindSchema
from lamina.graph.naming import MOST_DIMENSIONS
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj

Key = TypeVar("Key")
Value = TypeVar("Value")

_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class _Target(NamedTuple):
    """A kind of a definition: None as `kind` where it is not served, and the mark of its CRD, if it has one."""

    stated: tuple[str, str]
    kind: Kind | None
    mark: str | None = None

    @property
    def query(self) -> Query | None:
        """Return the query for the schema. That of a CRD is read live: a published one may be older."""
        if self.kind is None:
            return None
        if self.mark is None:
            return ReadSchema(self.kind)
        return Read(crd_ref(crd_name(self.kind)), whole=True)


class _Held(Generic[Key, Value]):
    """A bounded number of values, without those that were not used for the longest time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: Key, value: Value) -> Value:
        self._values[key] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value


class Graphs:
    """The compiled graphs of one family value, bounded in number, and the schemas of kinds."""

    def __init__(
        self, *, omit: bool = False, most_dimensions: int = MOST_DIMENSIONS, most: int = 1024
    ) -> None:
        self._omit, self._most_dimensions = omit, most_dimensions
        self._graphs: _Held[tuple[str, tuple[_Target, ...]], Graph | GraphError] = _Held(most)
        self._schemas: _Held[_Target, KindSchema] = _Held(500)

    def find(
        self, snapshot: Obj, kinds: Kinds, marks: Mapping[str, str], answers: Answers
    ) -> Graph | GraphError | tuple[Query, ...]:
        """Return what `graph_of` does."""
        resources: Sequence[Obj] = snapshot.get("resources") or ()
        targets = tuple(_target(stated, kinds, marks) for stated in kinds_needed(snapshot))
        key = digest([snapshot["schema"], *resources]), targets
        known = self._graphs.get(key)
        if known is not None:
            return known
        schemas = {one: self._schemas.get(one) for one in targets}
        asked = {one: query for one in targets if schemas[one] is None and (query := one.query) is not None}
        missing = tuple(query for query in asked.values() if query not in answers)
        if missing:
            return missing
        for target, query in asked.items():
            found = answers.get(query)
            schema = _schema(target, found.obj) if isinstance(found, Found) else None
            schemas[target] = None if schema is None else self._schemas.put(target, schema)
        graph = self._compiled(snapshot, {one.stated: schema for one, schema in schemas.items() if schema})
        if all(schemas[one] for one in asked):
            # A schema that was not found may be published in a moment.
            self._graphs.put(key, graph)
        return graph

    def _compiled(self, snapshot: Obj, schemas: Mapping[tuple[str, str], KindSchema]) -> Graph | GraphError:
        try:
            return compile_graph(snapshot, schemas, omit=self._omit, most_dimensions=self._most_dimensions)
        except GraphError as wrong:
            return wrong.with_traceback(None)


def graph_of(
    snapshot: Obj,
    world_kinds: Kinds,
    crd_marks: Mapping[str, str],
    answers: Answers,
    graphs: Graphs,
) -> Graph | GraphError | tuple[Query, ...]:
    """
    Return the compiled graph of a snapshot or its error, or the queries whose answers it needs.

    `crd_marks` has the marks of CRDs by name, which change with their schemas.
    """
    return graphs.find(snapshot, world_kinds, crd_marks, answers)


def _target(stated: tuple[str, str], kinds: Kinds, marks: Mapping[str, str]) -> _Target:
    kind = kinds.find(*stated)
    return _Target(stated, kind, None if kind is None else marks.get(crd_name(kind)))


def _schema(target: _Target, found: Obj) -> KindSchema | None:
    """Return the schema in an answer, None where a CRD does not have the version."""
    assert target.kind is not None
    if target.mark is None:
        return KindSchema(target.kind, found.get("schema") or _ANYTHING)
    version = target.kind.api_version.rpartition("/")[2]
    # A CRD that is a child of an instance is owned, too, and no definition generates its kind.
    is_generated = DEFINITION_NAME in meta.labels(found)
    for one in (found.get("spec") or {}).get("versions") or ():
        if one.get("name") == version:
            schema = (one.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
            return KindSchema(target.kind, schema, is_generated)
    return None
