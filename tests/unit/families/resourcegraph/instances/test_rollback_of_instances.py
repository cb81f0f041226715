"""Rollback of an instance to an input revision: the pair or the spec alone, and what is refused."""

from typing import Any

import pytest

from lamina.core.model.plan import Replace
from lamina.core.model.queries import DryRun, Found, Listed, Read
from lamina.errors import Conflict, InternalError, Invalid
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    INPUT,
    REVISION,
    SPEC,
    World,
    app,
    cm,
    config_map,
    data,
    instance,
    node,
    rgd,
)

V2 = node("config", config_map("${schema.spec.name}-cm", replicas="${string(schema.spec.replicas)}", v="2"))
ROLLBACK = "kro.run/rollback-to-input-revision"


def edited(*replicas: int) -> World:
    """A world with an instance whose replicas were edited, one input revision each."""
    world = World()
    world.publish()
    world.create(instance())
    for count in replicas:
        world.edit(app(), replicas=count)
    return world


def outcome(world: World) -> tuple[str, str]:
    return world.condition("RollbackSucceeded")[:2]


def is_over(world: World) -> bool:
    return not {ROLLBACK, "kro.run/rollback-scope"} & meta.annotations(world.get(app())).keys()


@pytest.mark.check("RG-86")
def test_the_spec_of_an_input_revision_is_restored_under_a_new_number() -> None:
    world = edited(5)
    world.annotate(app(), rollback_to_input_revision="1")

    assert world.get(app())["spec"]["replicas"] == 1
    assert data(world.get(cm("a1-cm"))) == {"replicas": "1"}
    found = world.inputs()
    assert list(found) == [1, 2, 3] and found[3]["status"]["propagationStatus"] == "Completed"
    assert found[1]["status"]["superseded"] and found[2]["status"]["superseded"]
    assert is_over(world)
    status, reason, message = world.condition("RollbackSucceeded")
    assert (
        (status, reason) == ("True", "RolledBack")
        and "input revision 1" in message
        and "RGD revision 1" in message
    )
    assert world.events("RollbackSucceeded")
    assert "kro.run/rgd-revision" not in meta.annotations(world.get(app()))


def test_fields_that_were_added_since_are_removed() -> None:
    world = World()
    world.publish(spec={**SPEC, "color": "string"}, is_current=True)
    world.create(instance(color="red"))
    world.cluster.patch(app(), {"spec": {"color": None}}, subresource="")
    world.run()
    world.annotate(app(), rollback_to_input_revision="1")
    assert world.get(app())["spec"]["color"] == "red"
    world.annotate(app(), rollback_to_input_revision="2")
    assert "color" not in world.get(app())["spec"]


@pytest.mark.check("RG-87")
def test_the_pair_is_restored_with_a_pin_where_the_revision_is_not_the_current_one() -> None:
    world = edited()
    world.publish(V2)
    world.annotate(app(), rollback_to_input_revision="1")

    assert meta.annotations(world.get(app()))["kro.run/rgd-revision"] == "1"
    assert world.stamps("a1-cm") == ("1", "3") and "v" not in data(world.get(cm("a1-cm")))
    assert outcome(world) == ("True", "RolledBack")

    world.annotate(app(), rollback_to_input_revision="2")
    assert "kro.run/rgd-revision" not in meta.annotations(world.get(app()))
    assert world.stamps("a1-cm") == ("2", "4")


@pytest.mark.check("RG-87")
def test_the_scope_spec_restores_no_revision() -> None:
    world = edited()
    world.publish(V2)
    world.edit(app(), replicas=7)
    world.annotate(app(), rollback_to_input_revision="1", rollback_scope="spec")

    assert "kro.run/rgd-revision" not in meta.annotations(world.get(app()))
    assert data(world.get(cm("a1-cm"))) == {"replicas": "1", "v": "2"}
    assert is_over(world)


@pytest.mark.check("RG-88")
@pytest.mark.parametrize("number", ["0", "-1", "abc", "", "99"])
def test_what_does_not_exist_is_refused(number: str) -> None:
    world = edited(5)
    generation = meta.generation(world.get(app()))
    world.annotate(app(), rollback_to_input_revision=number)

    reason = "InputRevisionNotFound" if number == "99" else "InvalidRevision"
    assert outcome(world) == ("False", reason)
    assert is_over(world) and meta.generation(world.get(app())) == generation
    assert list(world.inputs()) == [1, 2] and world.state() == "ACTIVE"
    assert world.events("RollbackFailed")


@pytest.mark.check("RG-88")
def test_a_pruned_revision_of_the_definition_is_refused() -> None:
    world = edited()
    world.publish(V2)
    world.cluster.delete(REVISION.ref("", "app-rev-1"))
    world.annotate(app(), rollback_to_input_revision="1")

    assert outcome(world) == ("False", "RGDRevisionPruned") and is_over(world)
    assert world.stamps("a1-cm") == ("2", "2")
    world.annotate(app(), rollback_to_input_revision="1", rollback_scope="spec")
    assert outcome(world) == ("True", "NoChange")


@pytest.mark.check("RG-88")
def test_what_the_server_refuses_changes_nothing() -> None:
    world = edited(5)

    def admit(made: Made, old: Obj | None) -> Made:
        if made["kind"] == "App" and old is not None and made["spec"]["replicas"] < old["spec"]["replicas"]:
            raise Invalid("spec.replicas: field is immutable")
        return made

    world.cluster.admit = admit
    world.annotate(app(), rollback_to_input_revision="1")

    assert outcome(world) == ("False", "SpecRejected") and is_over(world)
    assert "field is immutable" in world.condition("RollbackSucceeded")[2]
    assert world.get(app())["spec"]["replicas"] == 5


@pytest.mark.check("RG-88")
def test_a_spec_that_would_lose_fields_is_refused() -> None:
    world = World()
    world.publish(spec={**SPEC, "color": "string"})
    world.create(instance(color="red"))
    world.publish(CONFIG)
    world.cluster.patch(app(), {"spec": {"color": None}}, subresource="")
    world.run()

    def prune(made: Made, old: Obj | None) -> Made:
        return (
            made
            if made["kind"] != "App"
            else {**made, "spec": {k: v for k, v in made["spec"].items() if k != "color"}}
        )

    world.cluster.admit = prune
    world.annotate(app(), rollback_to_input_revision="1")

    assert (
        outcome(world) == ("False", "SpecPruned") and "spec.color" in world.condition("RollbackSucceeded")[2]
    )
    assert is_over(world)


@pytest.mark.check("RG-88")
def test_a_rollback_to_the_same_content_changes_nothing() -> None:
    world = edited()
    world.annotate(app(), rollback_to_input_revision="1")

    assert outcome(world) == ("True", "NoChange") and is_over(world)
    assert list(world.inputs()) == [1]


def test_a_scope_that_is_unknown_is_refused() -> None:
    world = edited(5)
    world.annotate(app(), rollback_to_input_revision="1", rollback_scope="all")

    assert outcome(world) == ("False", "InvalidRevision") and is_over(world)


def test_a_manual_instance_is_pinned_to_what_it_is_rolled_back_to() -> None:
    world = World()
    world.publish()
    world.create(instance(annotations={"kro.run/update-policy": "Manual"}))
    world.publish(V2)
    world.annotate(app(), accept_rgd_revision="2")
    world.annotate(app(), rollback_to_input_revision="1")

    assert world.stamps("a1-cm")[0] == "1" and outcome(world) == ("True", "RolledBack")


def test_beside_conditions_of_an_author_a_failed_rollback_is_shown() -> None:
    world = World()
    made = "${runtime.newCondition({type: 'Works', status: 'True', reason: 'R', message: 'm'})}"
    world.publish(status={"conditions": [made]})
    world.create(instance())
    world.edit(app(), replicas=2)
    world.annotate(app(), rollback_to_input_revision="99")
    assert [one["type"] for one in world.status()["conditions"]] == [
        "Works",
        "RollbackSucceeded",
    ] and is_over(world)

    world.annotate(app(), rollback_to_input_revision="1")
    assert [one["type"] for one in world.status()["conditions"]] == ["Works"] and is_over(world)
    assert world.get(app())["spec"]["replicas"] == 1
    world.annotate(app(), rollback_to_input_revision="1")
    assert is_over(world)


@pytest.mark.check("RG-87")
def test_behind_a_closed_gate_the_pair_is_restored_with_a_pin() -> None:
    world = World()
    for version in ("1", "2"):
        world.publish(node("config", config_map("${schema.spec.name}-cm", v=version)), gate="${false}")
    world.create(instance())
    world.annotate(app(), rgd_revision="1")
    assert world.stamps("a1-cm") == ("1", "2")

    world.annotate(app(), rollback_to_input_revision="1")
    assert meta.annotations(world.get(app()))["kro.run/rgd-revision"] == "2"
    assert world.stamps("a1-cm") == ("2", "3") and outcome(world) == ("True", "RolledBack")


def test_an_admitted_instance_needs_no_pin() -> None:
    world = World()
    world.publish(gate="${true}")
    world.create(instance())
    world.edit(app(), replicas=5)
    world.annotate(app(), rollback_to_input_revision="1")

    assert "kro.run/rgd-revision" not in meta.annotations(world.get(app()))
    assert outcome(world) == ("True", "RolledBack")


def test_a_rollback_waits_for_the_cache_to_have_the_definition() -> None:
    world = edited(5)
    answer = world.cluster.answer

    def newer(query: Any) -> Any:
        found = answer(query)
        if isinstance(query, Read) and query.ref == rgd("app") and isinstance(found, Found):
            return Found({**found.obj, "status": {"currentRevision": 2}})
        return found

    world.cluster.answer = newer  # type: ignore[method-assign]
    world.annotate(app(), rollback_to_input_revision="1")
    assert world.get(app())["spec"]["replicas"] == 5 and not is_over(world)

    world.cluster.answer = answer  # type: ignore[method-assign]
    world.run()
    assert world.get(app())["spec"]["replicas"] == 1 and is_over(world)


@pytest.mark.check("RG-88")
def test_a_dry_run_that_the_server_fails_is_tried_again() -> None:
    world = edited(5)
    world.cluster.refuse = {DryRun: InternalError('failed calling webhook "x": connection refused')}
    world.annotate(app(), rollback_to_input_revision="1")
    status, reason, message = world.condition("RollbackSucceeded")
    assert (status, reason) == ("Unknown", "DryRunFailed") and "connection refused" in message
    assert not is_over(world) and world.get(app())["spec"]["replicas"] == 5

    world.cluster.refuse = {}
    world.run(60)
    assert world.get(app())["spec"]["replicas"] == 1 and is_over(world)
    assert outcome(world) == ("True", "RolledBack")


@pytest.mark.parametrize("scope", [None, "spec"])
def test_a_rollback_that_is_withdrawn_has_not_succeeded(scope: str | None) -> None:
    world = edited(5)
    world.cluster.refuse = {Replace: Conflict("x")}
    world.annotate(app(), rollback_to_input_revision="1", rollback_scope=scope)
    assert outcome(world) == ("Unknown", "Restoring")
    world.annotate(app(), rollback_to_input_revision=None, rollback_scope=None)
    world.cluster.refuse = {}
    world.run(60)

    assert world.get(app())["spec"]["replicas"] == 5
    types = [one["type"] for one in world.status()["conditions"]]
    assert "RollbackSucceeded" not in types


@pytest.mark.check("RG-88")
def test_an_input_revision_that_the_cache_lacks_is_waited_for() -> None:
    world = edited(5)
    answer = world.cluster.answer
    lacking = [True]

    def more(query: Any) -> Any:
        found = answer(query)
        if isinstance(found, Listed) and query.kind.kind == INPUT.kind and lacking:
            obj = next(iter(world.inputs().values()))
            return Listed((*found.objects, meta.with_metadata(obj, name="a1-input-rev-3", uid="other")))
        return found

    world.cluster.answer = more  # type: ignore[method-assign]
    world.annotate(app(), rollback_to_input_revision="3")
    assert not is_over(world)

    lacking.clear()
    world.run()
    assert outcome(world) == ("False", "InputRevisionNotFound") and is_over(world)
