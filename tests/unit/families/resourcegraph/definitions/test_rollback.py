"""An annotation rolls a definition back to an older revision, or says why not."""

import pytest

from lamina.core.model.plan import Action, Replace
from lamina.core.model.queries import DryRun
from lamina.errors import Forbidden, Invalid
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    SPEC,
    Definitions,
    app,
    instance,
    resource,
)

ROLLBACK = "kro.run/rollback-to-revision"


@pytest.fixture
def there() -> Definitions:
    """A definition at revision 3, with two instances."""
    made = Definitions()
    made.apply(app())
    made.apply(instance("a1"), instance("a2"))
    made.apply(app(resource(more="two")))
    made.apply(app(resource(more="three")))
    return made


@pytest.mark.check("RG-79")
def test_a_rollback_publishes_the_old_content_as_a_new_revision(there: Definitions) -> None:
    there.annotate(APP, rollback_to_revision="2")

    assert there.numbers == [1, 2, 3, 4]
    assert there.app["spec"]["resources"] == there.revision(2)["spec"]["resources"]
    assert meta.annotations(there.revision(4))["kro.run/content-from-revision"] == "2"
    assert meta.annotations(there.app) == {}
    assert there.condition("RollbackSucceeded") == (
        "True", "RolledBack", "Created revision 4 (content from revision 2)",
    )  # fmt: skip
    assert there.events("RollbackSucceeded") == ["Created revision 4 (content from revision 2)"]
    assert (there.on("a1"), there.on("a2")) == (4, 4)


@pytest.mark.check("RG-80")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("99", "RevisionNotFound"),
        ("0", "InvalidRevision"),
        ("-1", "InvalidRevision"),
        ("abc", "InvalidRevision"),
        ("", "InvalidRevision"),
    ],
)
def test_a_rollback_to_nowhere_changes_nothing(there: Definitions, value: str, reason: str) -> None:
    generation = meta.generation(there.app)

    there.annotate(APP, rollback_to_revision=value)

    assert there.condition("RollbackSucceeded")[:2] == ("False", reason)
    assert meta.generation(there.app) == generation
    assert there.numbers == [1, 2, 3]
    assert ROLLBACK not in meta.annotations(there.app)
    assert (there.on("a1"), there.on("a2")) == (3, 3)
    [event] = there.events("RollbackFailed")
    assert event.startswith(f"{reason}: ")


def test_a_message_about_a_missing_revision_lists_those_there_are(there: Definitions) -> None:
    there.annotate(APP, rollback_to_revision="99")

    assert there.condition("RollbackSucceeded")[2] == (
        "there is no revision 99; the available revisions are 1, 2, 3"
    )


@pytest.mark.check("RG-81")
def test_a_rollback_to_the_current_content_changes_nothing(there: Definitions) -> None:
    generation = meta.generation(there.app)

    there.annotate(APP, rollback_to_revision="3")

    assert there.condition("RollbackSucceeded")[:2] == ("True", "NoChange")
    assert there.numbers == [1, 2, 3]
    assert meta.generation(there.app) == generation
    assert ROLLBACK not in meta.annotations(there.app)


@pytest.mark.check("RG-81")
def test_a_rollback_to_the_current_content_reverts_an_edit_that_was_not_published(there: Definitions) -> None:
    there.apply(app(resource(more="${missing.x}")))
    assert there.status["state"] == "Inactive"

    there.annotate(APP, rollback_to_revision="3")

    assert there.app["spec"]["resources"] == there.revision(3)["spec"]["resources"]
    assert there.numbers == [1, 2, 3]
    assert there.status["state"] == "Active"
    assert there.condition("RollbackSucceeded")[:2] == ("True", "NoChange")


def test_the_same_failure_is_reported_again_and_the_annotation_goes_again(there: Definitions) -> None:
    for _ in range(2):
        there.annotate(APP, rollback_to_revision="99")
        assert ROLLBACK not in meta.annotations(there.app)

    assert len(there.events("RollbackFailed")) == 2


def extended() -> Made:
    return app(spec={**SPEC, "extra": "string"})


@pytest.mark.check("RG-82")
def test_a_rollback_past_an_added_field_succeeds_and_an_instance_that_is_pinned_keeps_the_field() -> None:
    there = Definitions()
    there.apply(app())
    there.apply(app(resource(more="two")))
    there.apply(extended())
    there.apply(
        instance("a1", extra="x"), instance("a2", extra="y", annotations={"kro.run/rgd-revision": "3"})
    )

    there.annotate(APP, rollback_to_revision="2")

    assert there.condition("RollbackSucceeded")[:2] == ("True", "RolledBack")
    assert there.on("a1") == 4
    assert "extra" in there.served["properties"]
    assert meta.annotations(there.crd)["kro.run/rgd-revision"] == "4"

    there.delete(meta.ref(there.instance("a2")))

    assert "extra" not in there.served["properties"]


def test_a_field_is_served_until_no_instance_is_on_its_revision() -> None:
    there = Definitions()
    there.apply(app())
    there.apply(extended())
    there.apply(instance("a1", extra="x"))
    gate = ["${false}"]
    there.annotate(APP, rollback_mode="Gated", seconds=0)
    there.cluster.patch(APP, {"spec": {"propagateWhen": gate}})

    there.annotate(APP, rollback_to_revision="1")

    assert there.numbers == [1, 2, 3]
    assert there.on("a1") == 2
    assert "extra" in there.served["properties"]


def test_a_rollback_waits_while_discovery_lacks_the_kind_whose_instances_it_checks() -> None:
    there = Definitions()
    there.apply(app(spec={**SPEC, "size": "integer | default=1 maximum=5"}))
    there.apply(app(spec={**SPEC, "size": "integer | default=1 maximum=9"}))
    there.apply(instance("a1", size=9))
    found = there.loses_discovery()

    there.annotate(APP, rollback_to_revision="1")
    assert there.numbers == [1, 2]

    there.cluster.kinds = found
    there.start()
    there.run()

    assert there.condition("RollbackSucceeded")[:2] == ("False", "BreakingChange")
    assert there.numbers == [1, 2]


@pytest.mark.check("RG-83")
def test_a_rollback_past_a_changed_type_is_refused() -> None:
    there = Definitions()
    there.apply(app())
    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.apply(app(spec={**SPEC, "replicas": "string"}))
    assert there.numbers == [1, 2]
    generation = meta.generation(there.app)

    there.annotate(APP, rollback_to_revision="1")

    status, reason, message = there.condition("RollbackSucceeded")
    assert (status, reason) == ("False", "BreakingChange")
    assert "replicas" in message
    assert there.numbers == [1, 2]
    assert meta.generation(there.app) == generation


def test_a_rollback_that_would_make_specs_invalid_names_the_instances() -> None:
    there = Definitions()
    there.apply(app(spec={**SPEC, "size": "integer | default=1 maximum=5"}))
    there.apply(app(spec={**SPEC, "size": "integer | default=1 maximum=9"}))
    pinned = instance("p", size=9, annotations={"kro.run/rgd-revision": "2"})
    there.apply(pinned, instance("ok", size=5), *(instance(f"a{n}", size=9) for n in range(4)))

    there.annotate(APP, rollback_to_revision="1")

    status, reason, message = there.condition("RollbackSucceeded")
    assert (status, reason) == ("False", "BreakingChange")
    assert [name for name in ("ns1/a0", "ns1/a1", "ns1/a2", "ns1/a3", "ns1/ok", "ns1/p") if name in message] == [
        "ns1/a0", "ns1/a1", "ns1/a2",
    ]  # fmt: skip
    assert "and 1 more" in message
    assert there.numbers == [1, 2]

    there.annotate(APP, allow_breaking_changes="true", seconds=0)
    there.annotate(APP, rollback_to_revision="1")

    assert there.condition("RollbackSucceeded")[:2] == ("True", "RolledBack")
    assert there.numbers == [1, 2, 3]


def test_a_revision_that_does_not_compile_any_more_is_refused() -> None:
    there = Definitions()
    crd = widget_crd()
    there.apply(crd)
    there.apply(app(widget()))
    there.apply(app())
    there.delete(meta.ref(crd))

    there.annotate(APP, rollback_to_revision="1")

    status, reason, message = there.condition("RollbackSucceeded")
    assert (status, reason) == ("False", "RevisionFailed")
    assert "Widget" in message
    assert there.numbers == [1, 2]


def widget() -> Made:
    return {
        "id": "widget",
        "template": {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "${schema.spec.name}"}},
    }


def widget_crd() -> Made:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


@pytest.mark.parametrize("error", [Invalid("spec.schema: no"), Forbidden("a policy forbids it")])
def test_what_the_server_refuses_is_reported_with_its_text(
    there: Definitions, error: Forbidden | Invalid
) -> None:
    there.cluster.refuse = {DryRun: error}

    there.annotate(APP, rollback_to_revision="2")

    assert there.condition("RollbackSucceeded") == ("False", "Rejected", str(error))
    assert there.numbers == [1, 2, 3]


def test_a_rollback_is_an_approval() -> None:
    there = Definitions()
    manual: Made = {"revisionManagement": {"updatePolicy": {"type": "Manual"}}}
    there.apply(app(**manual))
    there.apply(app(resource(more="two"), **manual))
    there.annotate(APP, create_revision="true")

    there.annotate(APP, rollback_to_revision="1")

    assert there.numbers == [1, 2, 3]
    assert there.app["spec"]["revisionManagement"] == manual["revisionManagement"]


def test_a_rollback_leaves_the_rest_of_the_spec_as_it_is(there: Definitions) -> None:
    there.cluster.patch(
        APP, {"spec": {"propagateWhen": ["${true}"], "revisionManagement": {"historyLimit": 7}}}
    )

    there.annotate(APP, rollback_to_revision="2")

    assert there.app["spec"]["propagateWhen"] == ["${true}"]
    assert there.app["spec"]["revisionManagement"] == {"historyLimit": 7}


@pytest.mark.check("RG-85")
def test_an_edit_after_a_rollback_that_is_not_published_yet_is_an_edit(there: Definitions) -> None:
    edited = app(resource(more="meanwhile"))["spec"]

    def edit(key: object, action: Action) -> None:
        if isinstance(action, Replace) and action.ref == APP:
            there.cluster.replace({**there.app, "spec": edited}, "")

    there.process.after_write = edit

    there.annotate(APP, rollback_to_revision="2")

    assert there.numbers == [1, 2, 3, 4]
    assert there.revision(4)["spec"]["resources"] == edited["resources"]
    assert "kro.run/content-from-revision" not in meta.annotations(there.revision(4))
    assert meta.annotations(there.app) == {}


@pytest.mark.check("RG-85")
def test_an_edit_just_before_a_rollback_is_written_is_kept_in_the_history(there: Definitions) -> None:
    edited = app(resource(more="meanwhile"))["spec"]

    def edit(key: object, action: Action) -> None:
        if isinstance(action, Replace) and action.ref == APP and there.app["spec"] != edited:
            there.cluster.replace({**there.app, "spec": edited}, "")
            there.process.before_write = lambda key, action: None

    there.process.before_write = edit

    there.annotate(APP, rollback_to_revision="2")

    assert there.app["spec"]["resources"] == there.revision(2)["spec"]["resources"]
    assert there.condition("RollbackSucceeded")[:2] == ("True", "RolledBack")
    assert ROLLBACK not in meta.annotations(there.app)
    assert there.numbers == list(range(1, len(there.numbers) + 1))


@pytest.mark.check("RG-84")
def test_a_rollback_in_the_middle_of_a_propagation_takes_all_instances_along() -> None:
    there = Definitions()
    there.apply(app(propagateWhen=["${linearlyUpdated(instances, each, 2)}"]))
    there.apply(*(instance(f"a{n}") for n in range(6)))
    there.apply(
        app(resource(more="two"), propagateWhen=["${linearlyUpdated(instances, each, 2)}"]), seconds=3
    )
    assert sorted({there.on(f"a{n}") for n in range(6)}) == [1, 2]

    there.annotate(APP, rollback_to_revision="1")

    assert {there.on(f"a{n}") for n in range(6)} == {3}
    assert there.condition("Propagated")[:2] == ("True", "AllInstancesUpdated")


@pytest.mark.check("RG-112")
@pytest.mark.parametrize(("mode", "at_once"), [("Gated", 1), ("Immediate", 8), ("", 8)])
def test_the_mode_of_a_rollback_says_whether_it_goes_in_waves(mode: str, at_once: int) -> None:
    there, gate = Definitions(), ["${exponentiallyUpdated(instances, each)}"]
    there.apply(app(propagateWhen=gate))
    there.apply(*(instance(f"a{n}") for n in range(8)))
    there.apply(app(resource(more="two"), propagateWhen=gate), seconds=60)
    assert {there.on(f"a{n}") for n in range(8)} == {2}

    if mode:
        there.annotate(APP, rollback_mode=mode, seconds=1)
    there.annotate(APP, rollback_to_revision="1", seconds=1)

    assert sum(there.on(f"a{n}") == 3 for n in range(8)) == at_once
    there.run(60)
    assert {there.on(f"a{n}") for n in range(8)} == {3}
    assert meta.annotations(there.app) == {}


def test_the_owner_of_the_spec_is_told_that_it_would_undo_a_rollback(there: Definitions) -> None:
    applied = {"operation": "Apply", "apiVersion": API_VERSION, "fieldsType": "FieldsV1"}
    entries = [
        {**applied, "manager": "argocd", "fieldsV1": {"f:spec": {"f:resources": {}}}},
        {**applied, "manager": "labels", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
    ]
    there.cluster.admit = lambda obj, old: meta.with_metadata(obj, managedFields=entries)

    there.annotate(APP, rollback_to_revision="2")

    [event] = there.events("SpecAppliedElsewhere")
    assert "applied by argocd:" in event
    assert "revision 2" in event
