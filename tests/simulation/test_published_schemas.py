"""A simulated cluster publishes the schemas that a server publishes."""

from lamina.app import App
from lamina.core.model.queries import Answer, Found, ReadSchema, Unserved
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj
from lamina.runtime.controller.live_queries import LiveQueries
from lamina.settings import Settings
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import CONFIG_MAP, DEFINITION, DEPLOYMENT, POD, WIDGET, kind
from lamina.testing.builders import definition

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 1},
                "port": {"x-kubernetes-int-or-string": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        }
    },
}
GADGET = kind("example.com/v1", "Gadget", "gadgets", subresources=("status",))


async def test_every_schema_is_that_of_a_server() -> None:
    wanted, cluster = definition("Gadget", schema=SCHEMA), SimulatedCluster()
    cluster.create(wanted)
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        client = app.client()
        await client.create(wanted)
        await client.discover()
        queries = [ReadSchema(one) for one in (CONFIG_MAP, DEPLOYMENT, POD, DEFINITION, GADGET)]
        published = await LiveQueries(client).ask(queries)

    assert {query: cluster.answer(query) for query in queries} == published
    assert all(isinstance(answer, Found) for answer in published.values())


def answer_of(cluster: SimulatedCluster, kind: Kind) -> Answer:
    return cluster.answer(ReadSchema(kind))


def test_a_custom_kind_has_the_schema_of_its_definition_as_long_as_that_exists() -> None:
    cluster = SimulatedCluster()
    assert answer_of(cluster, GADGET) == Unserved()
    made = cluster.create(definition("Gadget", schema=SCHEMA))
    assert properties(answer_of(cluster, GADGET))["spec"]["required"] == ["size"]
    changed = {"type": "object", "properties": {"spec": {"type": "string"}}}
    spec = definition("Gadget", schema=changed)["spec"]
    cluster.patch(meta.ref(made), {"spec": spec})
    assert properties(answer_of(cluster, GADGET))["spec"] == {"type": "string"}
    cluster.delete(meta.ref(made))
    assert answer_of(cluster, GADGET) == Unserved()


def properties(answer: Answer) -> Obj:
    assert isinstance(answer, Found)
    found: Obj = answer.obj["schema"]["properties"]
    return found


def test_a_kind_without_a_definition_has_no_schema() -> None:
    assert answer_of(SimulatedCluster(), WIDGET) == Unserved()


def test_a_refusal_leaves_the_query_open() -> None:
    cluster = SimulatedCluster(refuse={ReadSchema: Forbidden("not yours")})

    try:
        answer_of(cluster, CONFIG_MAP)
    except Forbidden as refusal:
        assert str(refusal) == "not yours"
    else:
        raise AssertionError("it was answered")
