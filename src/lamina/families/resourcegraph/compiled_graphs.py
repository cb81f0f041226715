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


class RevisionGraph(NamedTuple):
    """
    The graph by which the resources of a published revision are kept.

    `wrong` says why the revision does not compile as it is; without a graph nothing is written.
    """

    graph: Graph | None
    wrong: str = ""


class Graphs:
    """The compiled graphs of one family value, bounded in number, and the schemas of kinds."""

    def __init__(
        self, *, omit: bool = False, most_dimensions: int = MOST_DIMENSIONS, most: int = 1024
    ) -> None:
        self._omit, self._most_dimensions = omit, most_dimensions
        self._graphs: _Held[tuple[str, tuple[_Target, ...]], Graph | GraphError] = _Held(most)
        self._partial: _Held[tuple[str, tuple[_Target, ...]], Graph | GraphError] = _Held(most)
        """Graphs in which kinds that are not served are left open."""
        self._last: _Held[str, Graph] = _Held(most)
        """The last graph of each revision that has compiled, by the uid of the revision."""
        self._schemas: _Held[_Target, KindSchema] = _Held(500)

    def of_revision(
        self, revision: Obj, kinds: Kinds, marks: Mapping[str, str], answers: Answers
    ) -> RevisionGraph | tuple[Query, ...]:
        """
        Return the graph of a published revision, or the queries whose answers it needs.

        It has compiled once. If one of its kinds is not served any more, the nodes that do not need that kind
        are compiled as before. If it does not compile for another reason, the graph that was compiled last
        is used.
        """
        snapshot: Obj = revision.get("spec") or {}
        found = self.find(snapshot, kinds, marks, answers)
        if isinstance(found, tuple):
            return found
        if isinstance(found, Graph):
            return RevisionGraph(self._last.put(meta.uid(revision), found))
        missing = [one for one in kinds_needed(snapshot) if kinds.find(*one) is None]
        if missing:
            reduced = self.find(snapshot, kinds, marks, answers, is_partial=True)
            if isinstance(reduced, Graph):
                return RevisionGraph(reduced, _not_served(missing))
        last = self._last.get(meta.uid(revision))
        kept = "; its resources are kept by the graph that was compiled before" if last is not None else ""
        return RevisionGraph(last, f"does not compile: {found}{kept}")

    def find(
        self,
        snapshot: Obj,
        kinds: Kinds,
        marks: Mapping[str, str],
        answers: Answers,
        *,
        is_partial: bool = False,
    ) -> Graph | GraphError | tuple[Query, ...]:
        """
        Return the compiled graph of a snapshot or its error, or the queries whose answers it needs.

        `marks` has the marks of CRDs by name, which change with their schemas. If `is_partial`, kinds that are not
        served are left open.
        """
        resources: Sequence[Obj] = snapshot.get("resources") or ()
        targets = tuple(_target(stated, kinds, marks) for stated in kinds_needed(snapshot))
        key, graphs = (
            (digest([snapshot["schema"], *resources]), targets),
            self._partial if is_partial else self._graphs,
        )
        known = graphs.get(key)
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
        if is_partial:
            schemas |= {one: _open_schema(one.stated, snapshot) for one in targets if one.kind is None}
        graph = self._compiled(snapshot, {one.stated: schema for one, schema in schemas.items() if schema})
        if all(schemas[one] for one in asked):
            # A schema that was not found may be published in a moment.
            graphs.put(key, graph)
        return graph

    def _compiled(self, snapshot: Obj, schemas: Mapping[tuple[str, str], KindSchema]) -> Graph | GraphError:
        try:
            return compile_graph(snapshot, schemas, omit=self._omit, most_dimensions=self._most_dimensions)
        except GraphError as wrong:
            return wrong.with_traceback(None)


def _target(stated: tuple[str, str], kinds: Kinds, marks: Mapping[str, str]) -> _Target:
    kind = kinds.find(*stated)
    return _Target(stated, kind, None if kind is None else marks.get(crd_name(kind)))


def _open_schema(stated: tuple[str, str], snapshot: Obj) -> KindSchema:
    """
    Return the schema of a kind that is not served any more.

    Whether the kind is namespaced follows from a revision that was valid with it.
    """
    targets = (one.get("template") or one.get("externalRef") or {} for one in snapshot["resources"])
    own = (one for one in targets if (one.get("apiVersion"), one.get("kind")) == stated)
    is_namespaced = snapshot["schema"].get("scope") != "Cluster" or any(
        "namespace" in meta.metadata(one) for one in own
    )
    kind = Kind(*stated, plural=stated[1].lower(), namespaced=is_namespaced)
    # What only instances of other definitions may have was checked when the revision was published.
    return KindSchema(kind, _ANYTHING, is_generated=True, is_served=False)


def _not_served(missing: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{kind} of {api_version}" for api_version, kind in missing)
    return (
        f"needs {shown}, which is not served: install the CustomResourceDefinition; until then nodes of "
        "that kind, and those that depend on them, are left as they are, and all others are kept"
    )


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
