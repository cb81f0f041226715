"""The generated CRD: what it becomes, what is restored, and what is left alone."""

from collections.abc import Mapping

import pytest

from lamina.core.model.effects import Ask
from lamina.core.model.plan import Create, Replace
from lamina.core.model.queries import Answer, DryRun, Follow, Listed, Query
from lamina.core.model.reconcile import drive, planning
from lamina.errors import Forbidden, Invalid
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    CRD,
    DEFINITION_KIND,
    SPEC,
    Definitions,
    app,
    instance,
    resource,
)
from tests.unit.families.resourcegraph.definitions.test_rollback import widget, widget_crd


@pytest.fixture
def there() -> Definitions:
    made = Definitions()
    made.apply(app())
    return made


OTHER = DEFINITION_KIND.ref("", "other")


def crd(**labels: str) -> Made:
    """The CRD of the kind, of another owner."""
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "apps.kro.run", "labels": labels},
        "spec": {
            "group": "kro.run",
            "scope": "Namespaced",
            "names": {"kind": "App", "plural": "apps"},
            "versions": [version],
        },
    }


# Columns, names and labels


@pytest.mark.check("RG-15")
def test_a_change_of_columns_alone_becomes_a_revision_and_changes_the_crd(there: Definitions) -> None:
    columns = [{"name": "Name", "type": "string", "jsonPath": ".spec.name", "priority": 0}]

    there.apply(app(schema={"additionalPrinterColumns": columns}))

    assert there.numbers == [1, 2]
    [version] = there.crd["spec"]["versions"]
    assert version["additionalPrinterColumns"] == [
        {"name": "Name", "type": "string", "jsonPath": ".spec.name"}
    ]


def test_labels_that_the_definition_states_no_longer_go_and_those_of_others_stay(there: Definitions) -> None:
    there.apply(
        app(schema={"metadata": {"labels": {"team": "a", "tier": "one"}, "annotations": {"note": "x"}}})
    )
    there.cluster.patch(CRD, {"metadata": {"labels": {"mine": "yes"}}})

    there.apply(app(schema={"metadata": {"labels": {"tier": "two"}}}))

    labels = meta.labels(there.crd)
    assert (labels["tier"], labels["mine"]) == ("two", "yes")
    assert "team" not in labels
    assert meta.annotations(there.crd) == {"kro.run/rgd-revision": "3"}


def test_one_write_to_the_crd_is_made_for_a_revision(there: Definitions) -> None:
    there.cluster.journal.clear()

    there.apply(app(resource(more="two")))

    assert [type(one) for one in there.cluster.journal if one.ref == CRD] == [Replace]


# By hand


@pytest.mark.check("RG-18")
def test_a_crd_that_was_edited_is_restored(there: Definitions) -> None:
    wanted = there.crd["spec"]
    [version] = wanted["versions"]

    there.cluster.patch(
        CRD, {"spec": {"versions": [{**version, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    )
    there.cluster.patch(CRD, {"metadata": {"labels": {"kro.run/resource-graph-definition-id": "another"}}})
    there.run()

    assert there.crd["spec"] == wanted
    assert meta.labels(there.crd)["kro.run/resource-graph-definition-id"] == meta.uid(there.app)
    assert there.status["state"] == "Active"


@pytest.mark.check("RG-18")
def test_a_crd_that_was_deleted_is_restored(there: Definitions) -> None:
    wanted = there.crd["spec"]

    there.delete(CRD)

    assert there.crd["spec"] == wanted
    assert there.status["state"] == "Active"
    assert there.numbers == [1]


def test_a_crd_that_is_being_deleted_is_reported_and_created_again_once_it_is_gone(
    there: Definitions,
) -> None:
    there.cluster.patch(CRD, {"metadata": {"finalizers": ["team/backup"]}})
    there.delete(CRD)

    assert there.condition("KindReady")[:2] == ("False", "Failed")
    assert "is being deleted" in there.condition("KindReady")[2]
    assert there.status["state"] == "Inactive"

    there.cluster.patch(CRD, {"metadata": {"finalizers": None}})
    there.run()

    assert there.status["state"] == "Active"


def test_a_crd_is_restored_while_an_edit_is_refused(there: Definitions) -> None:
    there.apply(app(resource(more="${missing.x}")))

    there.delete(CRD)

    assert there.condition("KindReady")[0] == "True"
    assert meta.annotations(there.crd)["kro.run/rgd-revision"] == "1"


# Other owners


@pytest.mark.check("RG-16")
def test_a_crd_of_another_owner_is_not_touched() -> None:
    there = Definitions(options=Options(deletes_definitions=True))
    there.apply(crd(team="a"))
    before = there.crd

    there.apply(app())

    assert there.condition("KindReady") == (
        "False", "Failed",
        "failed to update CRD apps.kro.run: CRD already exists and is not owned by KRO",
    )  # fmt: skip
    assert there.status["state"] == "Inactive"
    assert there.numbers == []
    assert there.crd == before

    there.delete(APP)

    assert there.crd == before
    assert there.cluster.at(APP) is None


@pytest.mark.check("RG-17")
def test_of_two_definitions_of_one_kind_the_second_is_refused(there: Definitions) -> None:
    there.apply(app(name="other"))

    other = there.get(OTHER)
    assert other["status"]["state"] == "Inactive"
    assert there.condition("KindReady", OTHER) == (
        "False", "Failed",
        "failed to update CRD apps.kro.run: CRD is owned by another ResourceGraphDefinition app",
    )  # fmt: skip
    assert there.numbers == [1]

    there.delete(OTHER)

    assert there.cluster.at(OTHER) is None
    assert there.status["state"] == "Active"
    assert meta.labels(there.crd)["kro.run/resource-graph-definition-name"] == "app"


def test_of_two_definitions_created_at_once_one_is_served() -> None:
    there = Definitions()

    there.apply(app(), app(name="other"))

    states = sorted(there.get(ref)["status"]["state"] for ref in (APP, OTHER))
    assert states == ["Active", "Inactive"]


@pytest.mark.check("RG-73")
def test_the_crd_of_a_former_definition_of_the_same_name_is_adopted() -> None:
    there = Definitions()
    there.apply(crd(**{
        "kro.run/owned": "true",
        "kro.run/resource-graph-definition-name": "app",
        "kro.run/resource-graph-definition-id": "gone",
    }))  # fmt: skip

    there.apply(app())

    assert meta.labels(there.crd)["kro.run/resource-graph-definition-id"] == meta.uid(there.app)
    assert there.status["state"] == "Active"


# What the server refuses


@pytest.mark.parametrize("error", [Invalid("spec.versions[0].schema: no"), Forbidden("a policy forbids it")])
def test_a_kind_that_the_server_refuses_is_reported_and_makes_no_revision(error: Forbidden | Invalid) -> None:
    there = Definitions()
    there.cluster.refuse = {DryRun: error}

    there.apply(app())

    assert there.condition("KindReady") == ("False", "Failed", str(error))
    assert there.numbers == []

    there.cluster.refuse = {}
    there.run(90)

    assert there.status["state"] == "Active"
    assert there.numbers == [1]


def test_a_crd_that_cannot_be_written_is_reported_and_tried_again() -> None:
    there = Definitions()
    there.cluster.refuse = {Create: Forbidden("not now")}
    there.apply(app(), seconds=5)
    assert there.numbers == []

    there.cluster.refuse = {}
    there.process.before_write = _refuse_the_crd(there)
    there.run(5)

    status, reason, message = there.condition("KindReady")
    assert (status, reason) == ("False", "Failed")
    assert "not now" in message
    assert there.status["state"] == "Inactive"

    there.process.before_write = lambda key, action: None
    there.cluster.refuse = {}
    there.run(60)

    assert there.status["state"] == "Active"


def _refuse_the_crd(there: Definitions):  # type: ignore[no-untyped-def]
    def before(key: object, action: object) -> None:
        is_crd = isinstance(action, Create) and action.ref == CRD
        there.cluster.refuse = {Create: Forbidden("not now")} if is_crd else {}

    return before


def test_a_crd_that_is_not_established_is_waited_for(there: Definitions) -> None:
    names = {"type": "NamesAccepted", "status": "False", "message": "App is already in use"}
    there.cluster.patch(CRD, {"status": {"conditions": [names]}})
    there.run()

    assert there.condition("KindReady") == (
        "False", "Failed", "CRD apps.kro.run is not served: App is already in use",
    )  # fmt: skip

    there.cluster.patch(CRD, {"status": {"conditions": []}})
    there.run()

    assert there.condition("KindReady")[0] == "Unknown"
    assert there.condition("Ready")[0] == "Unknown"


# Kinds of resources


def test_a_definition_heals_when_a_kind_that_it_needs_is_installed() -> None:
    there = Definitions()
    there.apply(app(widget()))
    assert there.condition("GraphAccepted")[:2] == ("False", "InvalidResourceGraph")

    there.apply(widget_crd())

    assert there.status["state"] == "Active"
    assert there.numbers == [1]


def test_a_change_of_the_schema_of_a_kind_is_noticed() -> None:
    there = Definitions()
    there.apply(widget_crd())
    made = widget()
    made["template"]["spec"] = {"size": "${schema.spec.replicas}"}
    there.apply(app(made))
    assert there.status["state"] == "Active"

    [version] = widget_crd()["spec"]["versions"]
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "string"}}}},
    }
    there.cluster.patch(
        meta.ref(widget_crd()), {"spec": {"versions": [{**version, "schema": {"openAPIV3Schema": schema}}]}}
    )
    there.run()

    assert there.condition("GraphAccepted")[:2] == ("False", "InvalidResourceGraph")
    assert there.condition("GraphRevisionsResolved")[:2] == ("False", "Failed")
    assert there.condition("KindReady")[0] == "True"
    assert there.status["currentRevision"] == 1

    there.cluster.patch(meta.ref(widget_crd()), {"spec": {"versions": [version]}})
    there.run()

    assert there.status["state"] == "Active"
    assert there.numbers == [1]


@pytest.mark.check("RG-91")
def test_a_field_that_was_removed_is_served_as_long_as_a_pinned_instance_has_it(there: Definitions) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}))
    there.apply(instance("a1", extra="x", annotations={"kro.run/rgd-revision": "2"}), instance("a2"))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)

    there.apply(app())

    assert there.numbers == [1, 2, 3]
    assert there.on("a2") == 3
    assert "extra" in there.served["properties"]


def test_a_field_does_not_go_where_only_the_cache_lacks_the_instance_that_needs_it(
    there: Definitions,
) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}))
    there.apply(instance("a1", extra="x", annotations={"kro.run/rgd-revision": "2"}))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.apply(app())
    there.cluster.patch(CRD, {"metadata": {"labels": {"kro.run/kro-version": None}}})

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        return {
            one: Listed(()) if isinstance(one, Follow) else there.cluster.answer(one) for one in ask.queries
        }

    view = there.controller.gather(there.cluster.world(there.controller), APP)
    assert view is not None
    plan = drive(planning(there.controller, view, lambda: there.cluster.now), answer)

    [action] = plan.actions
    assert isinstance(action, Replace)
    [version] = action.obj["spec"]["versions"]
    assert "extra" in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


# While discovery lacks the kind


def test_a_field_does_not_go_while_discovery_lacks_the_kind(there: Definitions) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}))
    there.apply(instance("a1", extra="x", annotations={"kro.run/rgd-revision": "2"}))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.apply(app())
    there.cluster.journal.clear()

    found = there.loses_discovery()

    assert [one.ref for one in there.cluster.journal if one.ref == CRD] == []
    assert there.condition("KindReady")[0] == "True"
    assert there.condition("ControllerReady")[::2] == ("Unknown", "waiting until kind App is served")

    there.cluster.kinds = found
    there.start()
    there.run()

    assert "extra" in there.served["properties"]
    assert there.status["state"] == "Active"


def test_what_is_reported_of_instances_stays_while_discovery_lacks_the_kind(there: Definitions) -> None:
    gated: Made = {"propagateWhen": ["${exponentiallyUpdated(instances, each)}"]}
    there.apply(app(**gated), instance("a1", refused=2), instance("a2"))
    there.apply(app(resource(more="two"), **gated))
    before = there.revision(2)["status"], there.revision(1)["status"], there.status["revisionHistory"]
    assert before[0]["admitted"] == [meta.uid(there.instance("a1"))]
    assert before[1]["instanceCount"] == 2

    there.loses_discovery()

    after = there.revision(2)["status"], there.revision(1)["status"], there.status["revisionHistory"]
    assert after == before


def test_a_crd_that_does_not_serve_the_kind_is_restored_and_keeps_its_fields(there: Definitions) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}))
    there.apply(instance("a1", extra="x", annotations={"kro.run/rgd-revision": "2"}))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.apply(app())
    [version] = there.crd["spec"]["versions"]
    written: list[list[str]] = []

    def before(key: object, action: object) -> None:
        if isinstance(action, Replace) and action.ref == CRD:
            [made] = action.obj["spec"]["versions"]
            written.append(sorted(made["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]))

    there.process.before_write = before
    there.cluster.patch(CRD, {"spec": {"versions": [{**version, "served": False}]}})
    there.run()

    assert there.crd["spec"]["versions"] == [version]
    assert written and all("extra" in one for one in written)
    assert there.status["state"] == "Active"


def test_a_crd_that_an_input_revision_needs_as_it_is_is_not_written_again(there: Definitions) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}, **HISTORY))
    there.apply(instance("a1", annotations={"kro.run/update-policy": "Manual"}, refused=3))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.apply(app(spec={**SPEC, "more": "string"}, **HISTORY))
    there.annotate(meta.ref(there.instance("a1")), update_policy=None)
    there.annotate(meta.ref(there.instance("a1")), update_policy="Manual")
    there.apply(app(resource(x="4"), **HISTORY))
    assert set(there.served["properties"]) == {"name", "replicas", "extra", "more"}
    there.cluster.journal.clear()

    there.annotate(APP, note="x")

    assert [one.ref for one in there.cluster.journal if one.ref == CRD] == []


HISTORY: Made = {"revisionManagement": {"historyLimit": 0}}


def test_of_a_field_whose_type_has_changed_the_current_type_is_served_and_of_the_others_all(
    there: Definitions,
) -> None:
    there.apply(app(spec={**SPEC, "size": "integer", "color": "string"}))
    there.apply(instance("a1", size=3, color="red", annotations={"kro.run/rgd-revision": "2"}))
    there.annotate(APP, allow_breaking_changes="true", seconds=0)

    there.apply(app(spec={**SPEC, "size": "string"}))

    assert {name: one["type"] for name, one in there.served["properties"].items()} == {
        "name": "string", "replicas": "integer", "size": "string", "color": "string",
    }  # fmt: skip
