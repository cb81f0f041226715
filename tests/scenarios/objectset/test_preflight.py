"""Preflight: a phase with something wrong is not written at all, and written once the cause is gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import pytest
import pytest_asyncio

from lamina.errors import Invalid, NotFound, Unavailable
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    has_condition,
    is_archived,
    message,
)
from tests.scenarios.objectset.widgets import definition, definition_ref, install, widget

pytestmark = pytest.mark.asyncio(loop_scope="session")

ESTABLISHED: Obj = {
    "selector": {"kind": {"group": "apiextensions.k8s.io", "kind": "CustomResourceDefinition"}},
    "probes": [{"condition": {"type": "Established", "status": "True"}}],
}
LIMITED: Obj = {"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 3}}}
RETRY = 35.0
"""Within so many seconds a set looks again at what was wrong."""


@asynccontextmanager
async def own_group(stage: Stage) -> AsyncIterator[str]:
    group = f"g{uuid4().hex[:8]}.example.com"
    yield group
    with suppress(NotFound):
        await stage.client.delete(definition_ref(group))


@pytest_asyncio.fixture(loop_scope="session")
async def group(stage: Stage) -> AsyncIterator[str]:
    """A group without kinds; the kind Widget is removed from it at the end."""
    async with own_group(stage) as group:
        yield group


@pytest_asyncio.fixture(loop_scope="session")
async def cluster_group(cluster_stage: Stage) -> AsyncIterator[str]:
    """The same for a scenario with ClusterObjectSets."""
    async with own_group(cluster_stage) as group:
        yield group


def is_refused(found: Made) -> bool:
    return condition(found, "Available") == ("False", "PreflightError")


async def until_refused(stage: Stage, *told: str) -> Made:
    """Wait until a set reports what is wrong, in these words, and nothing happens any more."""
    found = await stage.until_set("v1", is_refused)
    await stage.settled()
    for one in told:
        assert one in message(found, "Available")
    return found


async def until_recovered(stage: Stage) -> Made:
    """Let the time pass after which a set looks again, and wait until it is finished."""
    stage.pass_time(RETRY)
    return await stage.until_set("v1")


def cluster_role(name: str) -> Made:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [],
    }


WRONG = {
    "owner-references": (
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}},
        "metadata.ownerReferences must not be set",
    ),
    "generated-name": ({"metadata": {"generateName": "wrong-"}}, "metadata.generateName must not be set"),
    "another-namespace": ({"metadata": {"namespace": "default"}}, "metadata.namespace must be"),
    "no-such-namespace": ({"metadata": {"namespace": "nowhere"}}, "metadata.namespace must be"),
    "cluster-scoped": (cluster_role("wrong"), "ClusterRole is cluster-scoped"),
    "cluster-scoped-in-a-namespace": (
        {**cluster_role("wrong"), "metadata": {"name": "wrong", "namespace": "HERE"}},
        "ClusterRole is cluster-scoped",
    ),
    "unknown-kind": (
        {"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"},
        'no matches for kind "Nothing" in version "nowhere.example.com/v1"',
    ),
    "unknown-version": ({"apiVersion": "v9"}, 'no matches for kind "ConfigMap" in version "v9"'),
    "wrong-type": ({"data": ["no", "map"]}, "data"),
    "unknown-field": ({"undeclared": {"a": "b"}}, "undeclared"),
    "invalid-value": ({"data": {"no/key": "value"}}, "no/key"),
    "invalid-name": ({"metadata": {"name": "Wrong_Name"}}, "Wrong_Name"),
    "no-name": ({"metadata": {"name": ""}}, "metadata.name is required"),
}


@check("OS-40")
@pytest.mark.parametrize(("wrong", "told"), WRONG.values(), ids=WRONG.keys())
async def test_nothing_of_a_phase_is_written_that_has_something_wrong(
    stage: Stage, wrong: Obj, told: str
) -> None:
    manifest = stage.config_map("wrong")
    metadata = {**manifest["metadata"], **(wrong.get("metadata") or {})}
    if metadata.get("namespace") == "HERE":
        metadata["namespace"] = stage.namespace
    bad = {**manifest, **wrong, "metadata": metadata}
    async with stage.running():
        await stage.given_set(
            "v1",
            stage.phase("p1", stage.config_map("cm-a")),
            stage.phase("p2", stage.config_map("cm-b"), bad, stage.config_map("cm-c")),
            stage.phase("p3", stage.config_map("cm-d")),
        )
        name = bad["metadata"]["name"]
        found = await until_refused(stage, 'Phase "p2"', f"{bad['kind']} ", name, told)

        assert controlled(found) == ["cm-a"], "the phase before it was written"
        assert [meta.name(one) for one in await stage.listed(("v1", "ConfigMap"))] == ["cm-a"]
        assert condition(found, "InTransition") == ("True", "InTransition")
        assert stage.is_due("v1", within=RETRY)


@check("OS-40")
async def test_all_that_is_wrong_with_a_phase_is_reported_at_once(stage: Stage) -> None:
    owned = stage.config_map("cm-a")
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]
    elsewhere = stage.config_map("cm-b")
    elsewhere["metadata"]["namespace"] = "default"
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", owned, elsewhere, cluster_role("cr")))

        await until_refused(
            stage, "cm-a: metadata.ownerReferences", "default/cm-b: metadata.namespace", "ClusterRole cr: "
        )


@check("OS-40")
@pytest.mark.parametrize("apart", [False, True], ids=["in-one-phase", "in-two-phases"])
async def test_an_object_that_comes_twice_is_reported(stage: Stage, apart: bool) -> None:
    twice = stage.config_map("cm", key="again")
    explicit = {**twice, "metadata": {**twice["metadata"], "namespace": stage.namespace}}
    async with stage.running():
        first = (stage.config_map("cm"),) if apart else (stage.config_map("cm"), explicit)
        second = (explicit,) if apart else (stage.config_map("other"),)
        await stage.given_set("v1", stage.phase("p1", *first), stage.phase("p2", *second))
        place = "p2" if apart else "p1"
        await until_refused(stage, f'Phase "{place}"', f"ConfigMap {stage.namespace}/cm", "duplicate object")

        assert await stage.listed(("v1", "ConfigMap")) == []


@check("OS-40")
async def test_a_set_recovers_when_the_missing_kind_is_installed(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm"), widget(group, "w")))
        await until_refused(stage, 'Phase "p1"', f"{group} Widget ", 'no matches for kind "Widget"')
        assert await stage.object("cm") is None

        await install(stage.client, definition(group))
        await until_recovered(stage)

        assert controlled(await stage.set("v1")) == ["cm", "w"]


async def widen(stage: Stage, group: str, obj: Made) -> None:
    """Remove the limit from a schema, and wait until the server goes by that."""
    made = definition(group)
    await stage.edit(definition_ref(group), {"spec": {"versions": made["spec"]["versions"]}})
    where = meta.with_metadata(obj, namespace=stage.namespace)

    async def is_accepted() -> bool:
        # A server answers with Unavailable while it exchanges the schema.
        with suppress(Invalid, Unavailable):
            await stage.client.create(where, dry_run=True)
            return True
        return False

    await eventually(is_accepted)


@check("OS-40")
async def test_a_set_recovers_when_the_schema_allows_what_it_did_not(stage: Stage, group: str) -> None:
    await install(stage.client, definition(group, spec=LIMITED))
    many = widget(group, "w", spec={"replicas": 5})
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm"), many))
        await until_refused(stage, 'Phase "p1"', f"{group} Widget {stage.namespace}/w", "replicas")
        assert await stage.object("cm") is None

        await widen(stage, group, many)
        await until_recovered(stage)


@check("OS-40")
async def test_an_object_that_may_be_written_no_more_blocks_its_phase_and_recovers(
    stage: Stage, group: str
) -> None:
    await install(stage.client, definition(group))
    many = widget(group, "w", spec={"replicas": 5})
    ref = stage.object_ref("w", f"{group}/v1", "Widget")
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm"), many))
        await stage.until_set("v1")
        limited = definition(group, spec=LIMITED)
        await stage.edit(definition_ref(group), {"spec": {"versions": limited["spec"]["versions"]}})
        where = meta.with_metadata(many, namespace=stage.namespace, name="other")
        await eventually(lambda: is_invalid(stage, where))
        await stage.client.delete(ref)
        await until_refused(stage, 'Phase "p1"', "replicas")

        await widen(stage, group, meta.with_metadata(many, name="other"))
        await until_recovered(stage)

        assert await stage.get(ref) is not None


async def is_invalid(stage: Stage, obj: Made) -> bool:
    try:
        await stage.client.create(obj, dry_run=True)
    except (Invalid, Unavailable) as refused:
        return isinstance(refused, Invalid)
    return False


@check("OS-40")
async def test_an_object_of_a_cluster_set_needs_a_namespace_that_exists(cluster_stage: Stage) -> None:
    stage = cluster_stage
    nowhere = f"{stage.namespace}-later"
    async with stage.running():
        unplaced = stage.config_map("cm-a")
        del unplaced["metadata"]["namespace"]
        elsewhere = stage.config_map("cm-b")
        elsewhere["metadata"]["namespace"] = nowhere
        await stage.given_set("v1", stage.phase("p1", unplaced), stage.phase("p2", elsewhere))
        await until_refused(stage, 'Phase "p1"', "ConfigMap cm-a", "metadata.namespace is required")


@check("OS-40")
async def test_a_cluster_set_recovers_when_the_namespace_of_an_object_is_created(
    cluster_stage: Stage,
) -> None:
    stage = cluster_stage
    later = f"{stage.namespace}-later"
    async with stage.running():
        elsewhere = stage.config_map("cm-b")
        elsewhere["metadata"]["namespace"] = later
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm-a"), elsewhere))
        await until_refused(stage, 'Phase "p1"', f"ConfigMap {later}/cm-b", f'namespace "{later}" not found')
        assert await stage.object("cm-a") is None

        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": later}})
        try:
            await until_recovered(stage)
        finally:
            await stage.client.delete(Ref("v1", "Namespace", "", later))


@check("OS-41")
async def test_a_definition_and_an_object_of_it_are_rolled_out_in_two_phases(
    cluster_stage: Stage, cluster_group: str
) -> None:
    stage, group = cluster_stage, cluster_group
    async with stage.running():
        made = widget(group, "w")
        made["metadata"]["namespace"] = stage.namespace
        phases = (stage.phase("p1", definition(group)), stage.phase("p2", made))
        await stage.given_set("v1", *phases, availabilityProbes=[ESTABLISHED])
        found = await stage.until_set("v1")
        assert controlled(found) == [f"widgets.{group}", "w"]

        held = Ref(f"{group}/v1", "Widget", stage.namespace, "w")
        await stage.edit(held, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.client.delete(stage.set_ref("v1"))
        await stage.until(held, meta.is_deleting)
        await stage.settled()
        assert not meta.is_deleting(await stage.client.get(definition_ref(group))), "it goes after the object"

        await stage.edit(held, {"metadata": {"finalizers": None}})
        await stage.until_gone(stage.set_ref("v1"))

        assert await stage.get(definition_ref(group)) is None


@check("OS-42")
async def test_a_namespace_and_its_content_are_rolled_out_in_two_phases(cluster_stage: Stage) -> None:
    stage = cluster_stage
    name = f"{stage.namespace}-own"
    content = Ref("v1", "ConfigMap", name, "cm")
    async with stage.running():
        manifest = {**stage.config_map("cm"), "metadata": {"name": "cm", "namespace": name}}
        await stage.given_set(
            "v1", stage.phase("p1", namespace(name)), stage.phase("p2", manifest), probed=False
        )
        found = await stage.until_set("v1")
        assert controlled(found) == [name, "cm"]

        await stage.edit(content, {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.set_state("v1", "Archived")
        await stage.until(content, meta.is_deleting)
        await stage.settled()
        assert not meta.is_deleting(await stage.client.get(Ref("v1", "Namespace", "", name)))

        await stage.edit(content, {"metadata": {"finalizers": None}})
        await stage.until_set("v1", is_archived)

        assert await stage.get(Ref("v1", "Namespace", "", name)) is None


def namespace(name: str) -> Made:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@check("OS-43")
async def test_a_definition_and_an_object_of_it_need_two_phases(
    cluster_stage: Stage, cluster_group: str
) -> None:
    stage, group = cluster_stage, cluster_group
    async with stage.running():
        made = widget(group, "w")
        made["metadata"]["namespace"] = stage.namespace
        await stage.given_set("v1", stage.phase("p1", definition(group), made))
        found = await until_refused(
            stage, 'Phase "p1"', f"{group} Widget {stage.namespace}/w", 'no matches for kind "Widget"'
        )

        assert "earlier phase" in message(found, "Available"), "the remedy is named"
        assert await stage.get(definition_ref(group)) is None


@check("OS-43")
async def test_a_namespace_and_its_content_need_two_phases(cluster_stage: Stage) -> None:
    stage = cluster_stage
    name = f"{stage.namespace}-own"
    async with stage.running():
        manifest = {**stage.config_map("cm"), "metadata": {"name": "cm", "namespace": name}}
        await stage.given_set("v1", stage.phase("p1", namespace(name), manifest))
        found = await until_refused(
            stage, 'Phase "p1"', f"ConfigMap {name}/cm", f'namespace "{name}" not found'
        )

        assert "earlier phase" in message(found, "Available"), "the remedy is named"
        assert await stage.get(Ref("v1", "Namespace", "", name)) is None


@check("OS-40")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"protection": "Sometimes"}, 'collisionProtection: unknown value "Sometimes"'),
        ({"slices": ["missing"]}, "objectslice"),
    ],
    ids=["unknown-collision-mode", "missing-slice"],
)
async def test_a_phase_with_bad_input_is_reported_and_not_written(
    stage: Stage, fields: Made, told: str
) -> None:
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm"), **fields))
        found = await until_refused(stage, told)

        assert any(one in message(found, "Available") for one in ("expected one of", "create it"))
        assert await stage.object("cm") is None


@check("OS-40")
async def test_an_unknown_default_collision_mode_is_reported(stage: Stage) -> None:
    async with stage.running():
        await stage.given_set(
            "v1", stage.phase("p1", stage.config_map("cm")), collisionProtection="Sometimes"
        )
        await until_refused(stage, "collisionProtection", "Sometimes", "Prevent, IfNoController, None")

        assert await stage.object("cm") is None


@check("OS-40")
async def test_two_phases_of_one_name_are_reported(stage: Stage) -> None:
    async with stage.running():
        phases = [stage.phase("p1", stage.config_map(name)) for name in ("cm-a", "cm-b")]
        await stage.given_set("v1", *phases)
        await until_refused(stage, "spec.phases", '"p1"', "rename")

        assert await stage.listed(("v1", "ConfigMap")) == []


@check("OS-40")
@pytest.mark.parametrize(
    ("labels", "selector", "told"),
    [
        ({"app": "other"}, {"matchLabels": {"app": "web"}}, "spec.template.metadata.labels: do not match"),
        ({"app": "web"}, {}, "spec.selector: selects everything"),
        (
            {"app": "web"},
            {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]},
            "spec.selector",
        ),
    ],
    ids=["labels-do-not-match", "empty-selector", "invalid-selector"],
)
async def test_a_deployment_whose_selector_does_not_fit_its_template_is_reported(
    stage: Stage, labels: Made, selector: Made, told: str
) -> None:
    made = stage.deployment("web", stage.phase("p1", stage.config_map("cm")))
    made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["selector"] = selector
    async with stage.running():
        await stage.client.create(made)
        found = await stage.until_deployment("web", lambda now: has_condition(now, "Progressing"))
        await stage.settled()

        assert condition(found, "Progressing") == ("False", "InvalidTemplate")
        assert told in message(found, "Progressing")
        assert await stage.revisions("web") == []

        right = stage.deployment("web", stage.phase("p1", stage.config_map("cm")))
        await stage.update(stage.deployment_ref("web"), lambda old: {**old, "spec": right["spec"]})
        await stage.until_rolled_out("web", 1)
