"""What the writes of definitions and of instances are counted as."""

from collections import Counter as Count
from collections.abc import Sequence

from lamina.core.model.plan import Action, Create, Delete, Patch, Replace
from tests.unit.families.resourcegraph.definitions.clusters import APP, Definitions, instance, resource
from tests.unit.families.resourcegraph.definitions.clusters import app as definition
from tests.unit.families.resourcegraph.instances.world import World, app, custom_kind, node
from tests.unit.families.resourcegraph.instances.world import instance as an_instance

KIND = "kro.run/v1alpha1, Kind=App"


def counted(actions: Sequence[Action]) -> dict[tuple[str, ...], int]:
    """How often each counter was added to, by its name and the values of its labels."""
    found = [
        (counter.name, *(value for _, value in counter.labels))
        for action in actions
        if isinstance(action, Create | Delete | Patch | Replace)
        for counter in action.counters
    ]
    return dict(Count(found))


def test_revisions_states_and_rollbacks_of_a_definition() -> None:
    there = Definitions()
    there.apply(definition(revisionManagement={"historyLimit": 1}))
    there.apply(instance("a1"))
    assert counted(there.cluster.journal) == {("rgd_graph_revision_issue_total", "no_revision"): 1}

    before = len(there.cluster.journal)
    there.apply(definition(resource(more="two"), revisionManagement={"historyLimit": 1}))
    there.apply(definition(resource(more="${no}"), revisionManagement={"historyLimit": 1}))
    there.apply(definition(resource(more="two"), revisionManagement={"historyLimit": 1}))
    there.annotate(APP, rollback_to_revision="1")
    there.annotate(APP, rollback_to_revision="9")
    there.annotate(APP, rollback_to_revision="9")
    there.annotate(APP, rollback_to_revision="3")
    there.delete(APP)
    found = counted(there.cluster.journal[before:])

    assert found["rgd_graph_revision_issue_total", "spec_changed"] == 2
    assert found["rgd_graph_revision_gc_deleted_total",] == 1
    assert found["rollback_total", "definition", "RolledBack"] == 1
    assert found["rollback_total", "definition", "RevisionNotFound"] == 2
    assert found["rollback_total", "definition", "NoChange"] == 1
    assert found["rgd_state_transitions_total", "app", "Active", "Inactive"] == 1
    assert found["rgd_state_transitions_total", "app", "Inactive", "Active"] == 1
    assert found["rgd_deletions_total", "app"] == 1


def test_states_and_rollbacks_of_an_instance() -> None:
    world = World()
    world.publish()
    world.create(an_instance())
    world.edit(app(), replicas=2)
    world.annotate(app(), rollback_to_input_revision="1")
    world.annotate(app(), rollback_to_input_revision="9")
    world.annotate(app(), rollback_to_input_revision="9")
    world.annotate(app(), rollback_to_input_revision="3")

    assert counted(world.cluster.journal) == {
        ("instance_state_transitions_total", KIND, "", "ACTIVE"): 1,
        ("rollback_total", "instance", "RolledBack"): 1,
        ("rollback_total", "instance", "InputRevisionNotFound"): 2,
        ("rollback_total", "instance", "NoChange"): 1,
    }


def test_what_a_pass_reports_as_an_error_is_a_transition_too() -> None:
    world = World()
    custom_kind(world.cluster)
    world.publish(node("other", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${x.y}"}}))
    world.create(an_instance())

    assert counted(world.cluster.journal) == {("instance_state_transitions_total", KIND, "", "ERROR"): 1}
