"""What expressions may say, what is refused before anything is served, and what they result in."""

from typing import Any

import pytest

from lamina.families.resourcegraph.options import Options
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import (
    CONFIG,
    Stage,
    condition,
    config_map,
    is_active,
    message,
    node,
    status,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = "${schema.spec.name}"


def deployment(id: str = "web", **spec: Any) -> Made:
    """A Deployment without what the server requires: only types are checked."""
    metadata = {"name": NAME}
    return node(id, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def config(id: str, name: str = "", /, **data: str) -> Made:
    return node(id, config_map(name or f"{NAME}-{id}", **data))


async def refused(stage: Stage, kind: str, *resources: Obj, **more: Any) -> str:
    """Define a kind that is refused, check that nothing is made of it, and return the message."""
    text = await stage.refused_definition(*resources, name=kind.lower(), kind=kind, **more)
    found = await stage.definition_now(kind.lower())
    assert status(found)["state"] == "Inactive"
    assert condition(found, "GraphAccepted") == ("False", "InvalidResourceGraph")
    assert await stage.get(stage.crd_ref(kind)) is None
    assert not await stage.revisions(kind.lower())
    return text


async def accepted(stage: Stage, kind: str, *resources: Obj, **more: Any) -> Made:
    """Define a kind, and wait until it is active."""
    return await stage.given_definition(*resources, name=kind.lower(), kind=kind, **more)


# What is refused


@check("RG-19")
async def test_a_string_is_no_number_of_replicas(stage: Stage) -> None:
    async with stage.running():
        text = await refused(stage, "Mismatch", deployment(replicas=NAME))
        assert 'type mismatch in resource "web" at path "spec.replicas"' in text, text
        assert 'returns type "string" but expected "int"' in text, text
        await accepted(stage, "Match", deployment(replicas="${schema.spec.replicas}"))


@check("RG-20")
async def test_what_an_expression_refers_to_has_to_exist(stage: Stage) -> None:
    cases = {
        "Nodes": ("${missing.data.x}", "references unknown identifiers: [missing]"),
        "Functions": ("${frobnicate(schema.spec.name)}", "uses unknown functions: [frobnicate]"),
        "Fields": ("${schema.spec.nme}", "undefined field 'nme'"),
    }
    async with stage.running():
        for kind, (text, said) in cases.items():
            found = await refused(stage, kind, config("a", x=text))
            assert said in found, found
            # It names the field, and points at the position in the expression.
            assert "spec.resources[0].template.data.x" in found, found
            assert "^" in found, found


@check("RG-21")
async def test_parts_of_a_text_are_strings(stage: Stage) -> None:
    async with stage.running():
        text = await refused(stage, "Mixed", config("a", x="${schema.spec.name}-${schema.spec.replicas}"))
        assert "schema.spec.replicas" in text and "string" in text, text
        await accepted(stage, "Texts", config("a", x="${schema.spec.name}-${string(schema.spec.replicas)}"))
        await stage.given_instance("a1", kind="Texts", replicas=3)
        assert (await stage.until_object("a1-a"))["data"] == {"x": "a1-3"}


@check("RG-24")
async def test_conditions_of_nodes_see_their_own_variables_and_return_what_is_asked(stage: Stage) -> None:
    seen = {**config("a", x="1"), "readyWhen": ["${schema.spec.name == 'x'}"]}
    other = {**config("b", x="1"), "readyWhen": ["${a.data.x == '1'}"]}
    included = {**config("a"), "includeWhen": ["${schema.spec.name}"]}
    looped = {**config("a", NAME + "-${n}"), "forEach": [{"n": "${schema.spec.name}"}]}
    async with stage.running():
        for kind, resources, said in [
            ("Instance", (seen,), "references unknown identifiers: [schema]"),
            ("Other", (config("a", x="1"), other), "references unknown identifiers: [a]"),
            ("Include", (included,), "must return bool or optional_type(bool), but returns"),
            ("Loop", (looped,), "must return a list"),
        ]:
            text = await refused(stage, kind, *resources)
            assert said in text, text


@check("RG-25")
async def test_readiness_of_a_collection_is_about_each_item(stage: Stage) -> None:
    loop = {"forEach": [{"n": "${['x', 'y']}"}]}
    many = {**config("many", NAME + "-${n}", on="true"), **loop}
    async with stage.running():
        text = await refused(stage, "Own", {**many, "readyWhen": ["${many.all(m, m.data.on == 'true')}"]})
        assert "references unknown identifiers: [many]" in text, text
        await accepted(stage, "Each", {**many, "readyWhen": ["${each.data.on == 'true'}"]})
        await stage.given_instance("a1", kind="Each")
        assert [meta.name(one) for one in await stage.children()] == ["a1-x", "a1-y"]


@check("RG-26")
async def test_resources_that_refer_to_each_other_are_a_cycle(stage: Stage) -> None:
    async with stage.running():
        text = await refused(
            stage, "Cycle", config("a", x="${b.metadata.name}"), config("b", x="${a.metadata.name}")
        )
        assert "graph contains a cycle" in text, text
        assert "a -> b -> a" in text, text


@check("RG-27")
async def test_resources_are_ordered_as_they_are_listed_and_after_what_they_refer_to(stage: Stage) -> None:
    async with stage.running():
        free = await accepted(stage, "Free", config("c"), config("b"), config("a"))
        assert status(free)["topologicalOrder"] == ["c", "b", "a"]
        bound = await accepted(stage, "Bound", config("c", x="${a.metadata.name}"), config("b"), config("a"))
        assert status(bound)["topologicalOrder"] == ["b", "a", "c"]
        assert status(bound)["resources"] == [{"id": "c", "dependencies": [{"id": "a"}]}]


@check("RG-28")
async def test_ids_follow_the_naming_convention(stage: Stage) -> None:
    async with stage.running():
        for kind, resources in {
            "Dashed": (config("my-id"),),
            "Upper": (config("My"),),
            "Schema": (config("schema"),),
            "Each": (config("each"),),
            "Twice": (config("a", "x"), config("a", "y")),
        }.items():
            text = await refused(stage, kind, *resources)
            assert "naming convention violation" in text, text


@check("RG-29")
async def test_labels_of_the_controller_are_reserved(stage: Stage) -> None:
    async with stage.running():
        for kind, metadata in {
            "Label": {"labels": {"kro.run/x": "y"}},
            "Annotation": {"annotations": {"internal.kro.run/x": "y"}},
        }.items():
            template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, **metadata}}
            text = await refused(stage, kind, node("a", template))
            assert "are reserved for internal use" in text, text
            assert next(iter(next(iter(metadata.values())))) in text, text


def definition_of_kinds(stage: Stage, name: str, plural: str = "things") -> Made:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": stage.group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": plural, "singular": "thing", "listKind": "ThingList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


@check("RG-30")
async def test_a_template_of_a_kind_has_expressions_in_its_metadata_alone(stage: Stage) -> None:
    async with stage.running():
        spec = definition_of_kinds(stage, f"things.{stage.group}", NAME)
        text = await refused(stage, "Spec", node("a", spec))
        assert "CEL expressions in CRDs are only supported for metadata fields" in text, text
        name = definition_of_kinds(stage, f"${{schema.spec.name}}.{stage.group}")
        found = await accepted(stage, "Name", node("a", name))
        assert condition(found, "GraphAccepted") == ("True", "Valid")


@check("RG-31")
async def test_values_of_a_template_have_the_types_and_the_names_of_the_kind(stage: Stage) -> None:
    async with stage.running():
        text = await refused(stage, "Typed", deployment(template={"spec": {"containers": "nginx"}}))
        assert "expected array type for path spec.template.spec.containers, got string" in text, text
        text = await refused(stage, "Named", deployment(replica=3))
        assert "schema not found for field replica" in text, text


@check("RG-33")
async def test_a_structure_with_a_further_field_does_not_fit(stage: Stage) -> None:
    def pod(containers: str) -> Made:
        template = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": NAME},
            "spec": {"containers": containers},
        }
        return node("pod", template)

    container = {"name": "string", "image": "string"}
    spec = {"name": "string", "containers": "[]Container"}
    async with stage.running():
        text = await refused(
            stage,
            "Extra",
            pod("${schema.spec.containers}"),
            spec=spec,
            schema={"types": {"Container": {**container, "extra": "string"}}},
        )
        assert 'field "extra" exists in output but not in expected type' in text, text
        await accepted(
            stage,
            "Fits",
            pod("${schema.spec.containers}"),
            spec=spec,
            schema={"types": {"Container": container}},
        )


@check("RG-36")
async def test_a_status_field_without_a_reference_is_refused(stage: Stage) -> None:
    async with stage.running():
        text = await refused(stage, "Literal", CONFIG, schema={"status": {"a": {"b": "text"}}})
        assert "status fields without expressions are not supported" in text and "a.b" in text, text
        text = await refused(stage, "Constant", CONFIG, schema={"status": {"a": "${true}"}})
        assert "instance status field must refer to a resource or schema" in text, text


# What expressions result in


@check("RG-22")
async def test_a_literal_expression_is_written_as_text(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(config("a", cmd='echo ${"${HOME}"}'))
        await stage.given_instance("a1")
        assert (await stage.until_object("a1-a"))["data"] == {"cmd": "echo ${HOME}"}


@check("RG-23")
async def test_data_of_an_instance_are_never_evaluated(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(
            config("config", token="secret"),
            config("copy", alone="${schema.spec.value}", text="<${schema.spec.value}>"),
            spec={"name": "string", "value": "string"},
        )
        await stage.given_instance("a1", value="${config.data.token}")
        data = (await stage.until_object("a1-copy"))["data"]
        assert data == {"alone": "${config.data.token}", "text": "<${config.data.token}>"}


@check("RG-32")
async def test_an_optional_chain_has_its_default_until_the_value_is_there(stage: Stage) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {
            "type": "LoadBalancer",
            # A simulation allocates no ports, and every write is compared with one.
            "allocateLoadBalancerNodePorts": False,
            "ports": [{"port": 80}],
        },
    }
    host = '${svc.status.?loadBalancer.?ingress[?0].?hostname.orValue("none")}'
    async with stage.running():
        await stage.given_definition(node("svc", service), config("copy", host=host))
        await stage.given_instance("a1")
        assert (await stage.until_object("a1-copy"))["data"] == {"host": "none"}
        await stage.edit_status(
            stage.object_ref("a1", kind="Service"),
            {"loadBalancer": {"ingress": [{"hostname": "h.example.com"}]}},
        )
        await stage.until_object("a1-copy", lambda obj: obj["data"] == {"host": "h.example.com"})


@check("RG-34")
async def test_functions_have_the_values_of_upstream(stage: Stage) -> None:
    async with stage.running():
        await stage.given_definition(
            config(
                "a",
                random="${random.seededString(10,'test-seed')}",
                number="${string(random.seededInt(30000, 32768, 'my-service'))}",
                hash="${base64.encode(hash.fnv64a('hello world'))}",
                merged="${json.marshal({'a': {'x': 1, 'l': [1]}}.deepMerge({'a': {'y': 2, 'l': [2]}}))}",
                mapped="${json.marshal({'a': 1, 'b': 2}.transformMap(k, v, v * 10))}",
                inserted="${json.marshal(lists.insertAtIndex([1, 3], 1, 2))}",
            )
        )
        await stage.given_instance("a1")
        assert (await stage.until_object("a1-a"))["data"] == {
            "random": "5czheg3o5c",
            "number": "31247",
            # The bytes 779a65e7023cd2e7.
            "hash": "d5pl5wI80uc=",
            "merged": '{"a":{"l":[2],"x":1,"y":2}}',
            "mapped": '{"a":10,"b":20}',
            "inserted": "[1,2,3]",
        }


@check("RG-35")
async def test_without_its_gate_omit_is_refused(stage: Stage) -> None:
    async with stage.running():
        text = await refused(stage, "Gated", config("a", x="${omit()}"))
        assert "omit() requires the CELOmitFunction feature gate" in text, text


@check("RG-35")
async def test_with_its_gate_omit_leaves_a_field_out_and_never_a_name(stage: Stage) -> None:
    async with stage.running(Options(omit=True)):
        await stage.given_definition(
            config("a", x="${schema.spec.replicas > 1 ? schema.spec.name : omit()}", y="1")
        )
        await stage.given_instance("a1")
        assert (await stage.until_object("a1-a"))["data"] == {"y": "1"}
        await stage.edit_spec("a1", replicas=2)
        await stage.until_object("a1-a", lambda obj: obj["data"] == {"x": "a1", "y": "1"})
        await stage.edit_spec("a1", replicas=1)
        await stage.until_object("a1-a", lambda obj: obj["data"] == {"y": "1"})

        text = await refused(stage, "Nameless", config("a", "${omit()}"))
        assert "omit()" in text and "metadata.name" in text, text


@check("RG-37")
async def test_an_array_of_the_status_stays_an_array(stage: Stage) -> None:
    async with stage.running():
        fields = {"names": ["${config.metadata.name}", "${schema.spec.name}"]}
        await stage.given_definition(CONFIG, schema={"status": fields})
        found = await stage.given_instance("a1")
        assert status(found)["names"] == ["a1-cm", "a1"]
        (version,) = (await stage.client.get(stage.crd_ref()))["spec"]["versions"]
        properties = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        assert properties["names"]["type"] == "array"
        assert properties["names"]["items"]["type"] == "string"


def stated(type: str, status: str = "'True'", **more: str) -> str:
    fields = {"type": type, "status": status, **more}
    return "${runtime.newCondition({" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "})}"


@check("RG-38")
async def test_conditions_of_one_computed_type_are_dropped_and_are_an_error(stage: Stage) -> None:
    twice = [
        stated("schema.metadata.name + '.Ok'", reason="'First'"),
        stated("schema.metadata.name + '.Ok'", reason="'Second'"),
        stated("'Other'", "config.metadata.name != '' ? 'True' : 'False'"),
    ]
    async with stage.running():
        await stage.given_definition(CONFIG, schema={"status": {"conditions": twice}})
        made = await stage.given_instance("a1", settles=False)
        found = await stage.until(meta.ref(made), lambda obj: status(obj).get("state") == "ERROR")
        assert [(one["type"], one["status"]) for one in status(found)["conditions"]] == [("Other", "True")]
        assert await stage.until_object("a1-cm")


@check("RG-39")
async def test_conditions_of_the_author_stand_in_place_of_the_built_in_ones(stage: Stage) -> None:
    mine = [
        stated("'Mine'", "config.data.replicas == '1' ? 'True' : 'False'", message="config.data.replicas")
    ]
    gated = {**CONFIG, "readyWhen": ["${int(config.data.replicas) < 3}"]}
    async with stage.running():
        await stage.given_definition(gated, schema={"status": {"conditions": mine}})
        found = await stage.given_instance("a1")
        assert [one["type"] for one in status(found)["conditions"]] == ["Mine"]
        assert condition(found, "Mine") == ("True", "")
        # The state is still that of the controller: what is not ready is in progress.
        await stage.edit_spec("a1", replicas=3)
        found = await stage.until_instance("a1", lambda obj: status(obj)["state"] == "IN_PROGRESS")
        assert not {"Ready", "InstanceManaged", "GraphResolved", "ResourcesReady"} & {
            one["type"] for one in conditions.of(found)
        }
        await stage.edit_spec("a1", replicas=2)
        found = await stage.until_instance("a1", lambda obj: is_active(obj) and message(obj, "Mine") == "2")
        assert condition(found, "Mine") == ("False", "")
