"""What an instance reports: suspension, errors, the fields and the conditions of the author."""

from collections.abc import Callable

import pytest

from lamina.errors import Forbidden
from lamina.families.resourcegraph.instances.view import MANAGED_RESOURCES
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.families.resourcegraph.instances.world import (
    REVISION,
    World,
    app,
    chain,
    cm,
    config_map,
    custom_kind,
    data,
    instance,
    node,
    ready,
)


def versioned(version: str) -> list[Made]:
    """Two chained ConfigMaps of a version."""
    return [
        node("a", config_map("${schema.spec.name}-a", v=version)),
        node("b", config_map("${schema.spec.name}-b", v=version, of="${a.metadata.name}")),
    ]


def refuses_version(version: str) -> Callable[[Made, Obj | None], Made]:
    """An admission that refuses ConfigMaps of a version."""

    def admit(made: Made, old: Obj | None) -> Made:
        if made["kind"] == "ConfigMap" and made["data"].get("v") == version and made != old:
            raise Forbidden("policy says no")
        return made

    return admit


@pytest.mark.check("RG-58")
def test_a_suspended_instance_is_reported_and_its_children_are_left_alone() -> None:
    world = World()
    world.publish(status={"seen": "${config.data.replicas}"})
    world.create(instance())
    world.annotate(app(), reconcile="Suspended")
    world.edit(app(), replicas=5)
    world.patch(cm("a1-cm"), {"data": {"replicas": "7"}})

    assert data(world.get(cm("a1-cm"))) == {"replicas": "7"}
    status, reason, message = world.condition("ResourcesReady")
    assert (status, reason) == ("False", "ReconciliationSuspended") and "kro.run/reconcile" in message
    assert world.status()["seen"] == "1"
    assert world.condition("Ready")[0] == "False"

    world.annotate(app(), reconcile=None)
    assert data(world.get(cm("a1-cm"))) == {"replicas": "5"}
    assert world.state() == "ACTIVE" and world.status()["seen"] == "5"


@pytest.mark.parametrize("value", ["suspended", "disabled", "DISABLED"])
@pytest.mark.check("RG-58")
def test_an_instance_that_is_suspended_from_the_start_creates_nothing(value: str) -> None:
    world = World()
    world.publish()
    world.create(instance(annotations={"kro.run/reconcile": value}))

    assert world.children() == [] and meta.finalizers(world.get(app())) == ["kro.run/finalizer"]
    world.delete(app())
    assert not world.has(app())


@pytest.mark.check("RG-61")
def test_a_child_that_the_server_refuses_is_an_error_that_heals_by_itself() -> None:
    world = World()
    refused = {"message": "policy no-config: ConfigMaps are forbidden"}

    def admit(made: Made, old: Obj | None) -> Made:
        if made["kind"] == "ConfigMap" and refused:
            raise Forbidden(refused["message"])
        return made

    world.cluster.admit = admit
    world.publish()
    world.create(instance())
    assert world.state() == "ERROR"
    assert refused["message"] in world.condition("ResourcesReady")[2]
    assert "configmap ns1/a1-cm" in world.condition("ResourcesReady")[2]
    assert world.inputs()[1]["status"]["propagationStatus"] == "Failed"

    refused.clear()
    world.run(600)
    assert world.state() == "ACTIVE" and world.children() == ["a1-cm"]
    assert world.inputs()[1]["status"]["propagationStatus"] == "Completed"


@pytest.mark.check("RG-61")
@pytest.mark.parametrize("gate", ["", "${true}"], ids=["no gate", "a gate"])
def test_a_move_whose_child_is_refused_is_reported_as_started(gate: str) -> None:
    world = World()
    world.publish(*versioned("1"), gate=gate)
    world.create(instance())
    world.cluster.admit = refuses_version("2")
    world.publish(*versioned("2"), gate=gate)
    if gate:
        assert world.propagation()["pendingRGDRevision"] == 2
        uids = [meta.uid(world.get(app()))]
        world.cluster.patch(
            REVISION.ref("", "app-rev-2"), {"status": {"admitted": uids}}, subresource="status"
        )
        world.run()

    status, found = world.status(), world.propagation()
    assert (status["currentRGDRevision"], status["currentInputRevision"]) == (2, 2)
    assert (status["observedRGDRevision"], status["observedInputRevision"]) == (1, 1)
    assert (found["status"], found["targetInputRevision"]) == ("InProgress", 2)
    assert (found["resourcesAtTarget"], found["totalResources"]) == (0, 2)
    assert "pendingRGDRevision" not in found and "policy says no" in found["message"]
    assert [(one["revision"], one["status"]) for one in status["inputRevisionHistory"]] == [
        (2, "Failed"),
        (1, "Superseded"),
    ]


@pytest.mark.check("RG-61")
def test_a_refused_repair_undoes_no_propagation() -> None:
    world = World()
    world.publish(*versioned("1"))
    world.create(instance())
    before = world.propagation()
    world.cluster.admit = refuses_version("1")
    world.patch(cm("a1-b"), {"data": {"v": "9"}})

    assert world.state() == "ERROR" and world.propagation() == before
    assert world.status()["observedInputRevision"] == 1


def test_a_refused_repair_starts_no_input_revision_of_a_paused_instance() -> None:
    world = World()
    world.publish(*versioned("1"))
    world.create(instance())
    world.annotate(app(), update_policy="Paused")
    world.edit(app(), replicas=2)
    world.cluster.admit = refuses_version("1")
    world.patch(cm("a1-b"), {"data": {"v": "9"}})

    assert world.state() == "ERROR" and list(world.inputs()) == [1, 2]
    assert world.status()["currentInputRevision"] == 1 and world.propagation()["status"] == "Blocked"


def test_the_fields_of_the_author_are_evaluated_best_effort() -> None:
    world = World()
    a, b = chain("a", "b")
    status = {
        "first": "${a.metadata.name}",
        "second": {"name": "${b.metadata.name}"},
        "state": "${a.data.replicas}",
    }
    world.publish({**a, "readyWhen": ready("a")}, b, status=status)
    world.create(instance())
    assert world.status()["first"] == "a1-a" and "second" not in world.status()

    world.make_ready("a1-a")
    assert world.status()["second"] == {"name": "a1-b"}
    assert world.state() == "ACTIVE"

    # A dependent that only waits keeps what is reported of it.
    world.patch(cm("a1-a"), {"data": {"ready": None}})
    assert world.state() == "IN_PROGRESS" and world.status()["second"] == {"name": "a1-b"}


@pytest.mark.check("RG-39")
def test_conditions_of_the_author_replace_the_built_in_ones() -> None:
    world = World()
    made = "${runtime.newCondition({type: 'Works', status: config.data.replicas == '1' ? 'True' : 'False', reason: 'R', message: 'm'})}"
    world.publish(status={"conditions": [made]})
    world.create(instance())

    assert [one["type"] for one in world.status()["conditions"]] == ["Works"]
    assert world.condition("Works")[0] == "True" and world.state() == "ACTIVE"
    before = world.status()["conditions"][0]["lastTransitionTime"]
    world.edit(app(), replicas=2)
    assert world.condition("Works")[0] == "False"
    assert world.status()["conditions"][0]["lastTransitionTime"] > before

    world.annotate(app(), rgd_revision="9")
    assert [one["type"] for one in world.status()["conditions"]] == ["Works", "RevisionResolved"]
    world.annotate(app(), rgd_revision=None)
    assert [one["type"] for one in world.status()["conditions"]] == ["Works"]


@pytest.mark.check("RG-38")
def test_conditions_that_fail_leave_the_others_and_are_an_error() -> None:
    world = World()
    good = "${runtime.newCondition({type: 'Good', status: 'True', reason: '', message: ''})}"
    twice = "${[runtime.newCondition({type: string(schema.spec.name), status: 'True', reason: '', message: ''}), runtime.newCondition({type: string(schema.spec.name), status: 'True', reason: '', message: ''})]}"
    world.publish(status={"conditions": [good, twice]})
    world.create(instance())

    assert [one["type"] for one in world.status()["conditions"]] == ["Good"]
    assert world.state() == "ERROR"


@pytest.mark.check("RG-106")
def test_a_field_of_the_author_hides_that_of_the_controller() -> None:
    world = World()
    world.publish(
        status={"propagation": "${config.data.replicas}", "currentInputRevision": "${config.metadata.name}"}
    )
    world.create(instance())
    world.edit(app(), replicas=2)

    assert world.status()["propagation"] == "2"
    assert world.status()["currentInputRevision"] == "a1-cm"
    assert world.status()["observedInputRevision"] == 2
    assert list(world.inputs()) == [1, 2]
    world.annotate(app(), rgd_revision="9")
    assert world.state() == "ERROR" and world.status()["propagation"] == "2"


def test_the_children_are_listed_in_the_status() -> None:
    world = World()
    a, b = chain("a", "b")
    world.publish({**a, "readyWhen": ready("a")}, b)
    world.create(instance())

    assert world.status()["managedResources"] == [
        {
            "id": "a",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "ns1",
            "name": "a1-a",
            "state": "waiting",
            "inputRevision": 1,
            "ready": False,
        }
    ]
    assert MANAGED_RESOURCES not in world.condition("ResourcesPropagated")[2]


def test_a_child_is_listed_at_the_input_revision_that_it_is_at() -> None:
    world = World()
    a, b = chain("a", "b")
    is_ready = '${a.data.?seen.orValue("") == a.data.replicas}'
    world.publish({**a, "readyWhen": [is_ready]}, b)
    world.create(instance())
    world.patch(cm("a1-a"), {"data": {"seen": "1"}})
    world.edit(app(), replicas=2)

    found = [(one["name"], one["inputRevision"], one["ready"]) for one in world.status()["managedResources"]]
    assert found == [("a1-a", 2, False), ("a1-b", 1, True)]


def test_a_list_of_children_that_is_cut_says_so() -> None:
    world = World()
    many = node(
        "many", config_map("${schema.spec.name}-${string(i)}"), forEach=[{"i": "${lists.range(150)}"}]
    )
    world.publish(many)
    world.create(instance())

    assert len(world.status()["managedResources"]) == 100
    message = world.condition("ResourcesPropagated")[2]
    assert "150/150 resources" in message and f"status.{MANAGED_RESOURCES} lists the first 100" in message


def test_an_expression_that_fails_is_an_error_with_its_text() -> None:
    world = World()
    world.publish(
        node("x", config_map("x", value="${string(schema.spec.replicas / (schema.spec.replicas - 1))}"))
    )
    world.create(instance())

    assert world.state() == "ERROR" and world.children() == []
    assert "divi" in world.condition("ResourcesReady")[2]
    world.edit(app(), replicas=2)
    assert world.state() == "ACTIVE"


def test_a_definition_without_resources_is_complete_at_once() -> None:
    world = World()
    world.publish(is_empty=True, status={"n": "${schema.spec.replicas}"})
    world.create(instance())

    assert world.state() == "ACTIVE" and world.status()["n"] == 1
    assert world.propagation() == {**world.propagation(), "status": "Completed", "totalResources": 0}
    world.delete(app())
    assert not world.has(app())


def test_a_definition_whose_kind_is_not_served_heals_when_it_is() -> None:
    world = World()
    thing = {
        "apiVersion": "ex.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "${schema.spec.name}-t"},
    }
    world.publish(node("thing", thing))
    world.create(instance())
    assert world.state() == "ERROR" and world.condition("RevisionResolved")[1] == "RevisionFailed"

    custom_kind(world.cluster, "Thing")
    world.run()
    assert world.state() == "ACTIVE"
