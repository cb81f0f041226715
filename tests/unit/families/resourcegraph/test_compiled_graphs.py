"""Graphs are compiled once, with the schemas that the server has."""

from typing import Any

import pytest

from lamina.core.model.queries import Absent, Answer, Answers, Found, Query, Read, ReadSchema, Unserved
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.graph.compile import kinds_needed
from lamina.graph.graph import Graph, GraphError
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref
from tests.unit.graph.graphs import (
    BUCKET,
    BUCKET_SCHEMA,
    bucket,
    config,
    definition,
    kind_schema,
    reference,
    resource,
)

CONFIG = Kind("v1", "ConfigMap", "configmaps", True)
MARKS = {"buckets.aws.example.com": "m1"}
READ = Read(
    Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.aws.example.com"), whole=True
)
SNAPSHOT = definition(config("a", "x", {"arn": "${b.status.arn}"}), bucket("b"))


def crd(schema: Obj = BUCKET_SCHEMA, *, version: str = "v1", labels: Obj | None = None) -> Made:
    versions = [{"name": "v0", "schema": {}}, {"name": version, "schema": {"openAPIV3Schema": schema}}]
    return {
        "metadata": {"name": "buckets.aws.example.com", "labels": labels or {}},
        "spec": {"versions": versions},
    }


class Server:
    """Answers the queries for schemas, and notes them."""

    def __init__(self, definition_of_buckets: Obj | None = None) -> None:
        self.asked: list[Query] = []
        self.crd = definition_of_buckets or crd()

    def graph(self, snapshot: Obj, graphs: Graphs, *kinds: Kind, marks: Any = MARKS) -> Graph | GraphError:
        answers = Answers()
        for _ in range(3):
            found = graphs.find(snapshot, Kinds(kinds or (CONFIG, BUCKET)), marks, answers)
            if not isinstance(found, tuple):
                return found
            self.asked += found
            answers = answers | {query: self.answer(query) for query in found}
        raise AssertionError(f"it goes on asking: {found}")

    def answer(self, query: Query) -> Answer:
        match query:
            case ReadSchema(kind):
                found = kind_schema(kind.api_version, kind.kind)
                return Unserved() if found is None else Found({"schema": found.schema})
            case _:
                assert query == READ
                return Found(self.crd) if self.crd else Absent()


def test_the_kinds_of_a_definition_are_those_of_templates_and_references() -> None:
    snapshot = definition(
        config("a"),
        bucket("b"),
        config("c"),
        reference("d", kind="Secret", name="x"),
        {"id": "e"},
        {"id": "f", "template": {"kind": "X"}},
        {"id": "g", "template": {"apiVersion": "v1", "kind": "${schema.spec.kind}", "metadata": {}}},
        {"id": "h", "template": "${x}"},
    )
    assert kinds_needed(snapshot) == (("v1", "ConfigMap"), ("aws.example.com/v1", "Bucket"), ("v1", "Secret"))
    assert kinds_needed({"schema": {}}) == ()


def test_schemas_are_asked_for_once_and_the_graph_is_kept() -> None:
    server, graphs = Server(), Graphs()
    graph = server.graph(SNAPSHOT, graphs)

    assert isinstance(graph, Graph)
    assert graph.order == ("b", "a")
    assert server.asked == [ReadSchema(CONFIG), READ]
    assert server.graph(SNAPSHOT, graphs) is graph
    assert server.graph({**SNAPSHOT, "resources": list(SNAPSHOT["resources"])}, graphs) is graph
    assert server.graph(definition(*SNAPSHOT["resources"]), graphs) is graph
    assert len(server.asked) == 2


def test_a_snapshot_that_is_modified_in_place_is_another_one() -> None:
    server, graphs = Server(), Graphs()
    snapshot = definition(config("a"))
    graph = server.graph(snapshot, graphs)
    snapshot["resources"][0]["template"]["metadata"]["name"] = "y"

    assert server.graph(snapshot, graphs) is not graph


def test_the_schemas_of_kinds_are_shared_by_definitions() -> None:
    server, graphs = Server(), Graphs()
    server.graph(SNAPSHOT, graphs)
    other = server.graph(definition(bucket("b"), config("c")), graphs)

    assert isinstance(other, Graph)
    assert other.order == ("b", "c")
    assert len(server.asked) == 2


def test_the_order_of_resources_is_part_of_a_graph() -> None:
    server, graphs = Server(), Graphs()
    one, two = config("a"), config("b")
    orders = [server.graph(definition(*both), graphs) for both in ((one, two), (two, one))]
    assert [graph.order for graph in orders if isinstance(graph, Graph)] == [("a", "b"), ("b", "a")]


def test_a_changed_schema_compiles_it_again() -> None:
    server, graphs = Server(), Graphs()
    graph = server.graph(SNAPSHOT, graphs)
    server.crd = crd({"type": "object", "properties": {"status": {"type": "object"}}})

    assert server.graph(SNAPSHOT, graphs) is graph
    broken = server.graph(SNAPSHOT, graphs, marks={"buckets.aws.example.com": "m2"})
    assert isinstance(broken, GraphError)
    assert "undefined field 'arn'" in str(broken)
    assert server.asked == [ReadSchema(CONFIG), READ, READ]
    assert server.graph(SNAPSHOT, graphs) is graph


def test_a_definition_heals_when_a_kind_is_installed() -> None:
    server, graphs = Server(), Graphs()
    missing = server.graph(SNAPSHOT, graphs, CONFIG, marks={})

    assert isinstance(missing, GraphError)
    assert missing.missing == ("aws.example.com/v1", "Bucket")
    assert "schema not found for aws.example.com/v1, Kind=Bucket" in str(missing)
    assert isinstance(server.graph(SNAPSHOT, graphs), Graph)


@pytest.mark.parametrize("later", [crd(version="v2"), {}])
def test_a_schema_that_is_not_there_yet_is_asked_for_again(later: Obj) -> None:
    server, graphs = Server(), Graphs()
    there, server.crd = server.crd, later
    assert isinstance(server.graph(SNAPSHOT, graphs), GraphError)
    server.crd = there
    assert isinstance(server.graph(SNAPSHOT, graphs), Graph)


def test_a_kind_without_a_published_schema_is_asked_for_again() -> None:
    server, graphs = Server(), Graphs()
    unknown = Kind("metrics.k8s.io/v1", "PodMetrics", "pods", True)
    snapshot = definition(resource("a", "metrics.k8s.io/v1", "PodMetrics"))
    for count in (1, 2):
        assert isinstance(server.graph(snapshot, graphs, unknown), GraphError)
        assert server.asked == [ReadSchema(unknown)] * count


def test_an_error_is_kept_too() -> None:
    server, graphs = Server(), Graphs()
    snapshot = definition(config("a", "${missing.x}"))
    error = server.graph(snapshot, graphs)
    assert isinstance(error, GraphError)
    assert error.__traceback__ is None
    assert server.graph(snapshot, graphs) is error


def test_a_crd_of_a_definition_makes_its_kind_a_generated_one() -> None:
    for labels, generated in (
        ({"kro.run/owned": "true", "kro.run/resource-graph-definition-name": "bucket"}, True),
        # A CRD that is a child of an instance.
        ({"kro.run/owned": "true", "app.kubernetes.io/managed-by": "kro"}, False),
        ({}, False),
    ):
        graph = Server(crd(labels=labels)).graph(SNAPSHOT, Graphs())
        assert isinstance(graph, Graph)
        assert graph.nodes["b"].is_generated is generated


def test_a_crd_without_a_schema_allows_everything() -> None:
    server = Server({"metadata": {}, "spec": {"versions": [{"name": "v1"}]}})
    snapshot = definition(
        bucket("b", spec={"anything": {"goes": ["${schema.spec.name}"]}}), config("a", "${b.x.y}")
    )
    assert isinstance(server.graph(snapshot, Graphs()), Graph)


def test_options_are_those_of_the_store() -> None:
    snapshot = definition(config("a", "x", {"k": "${omit()}"}))
    assert isinstance(Server().graph(snapshot, Graphs()), GraphError)
    assert isinstance(Server().graph(snapshot, Graphs(omit=True)), Graph)
    two = [{"i": "${['a']}"}, {"j": "${['b']}"}]
    snapshot = definition(config("a", "${i}-${j}", forEach=two))
    assert isinstance(Server().graph(snapshot, Graphs()), Graph)
    assert isinstance(Server().graph(snapshot, Graphs(most_dimensions=1)), GraphError)


def test_the_number_of_graphs_is_bounded_and_the_ones_in_use_stay() -> None:
    server, graphs = Server(), Graphs(most=2)
    snapshots = [definition(config(f"a{index}")) for index in range(3)]
    first, second = (server.graph(one, graphs) for one in snapshots[:2])
    assert server.graph(snapshots[0], graphs) is first
    server.graph(snapshots[2], graphs)

    assert server.graph(snapshots[0], graphs) is first
    assert server.graph(snapshots[1], graphs) is not second
