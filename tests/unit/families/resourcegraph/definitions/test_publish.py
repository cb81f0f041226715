"""Revisions are created, numbered and approved."""

import pytest

from lamina.core.rollout.revision import CHANGE_CAUSE
from lamina.families.resourcegraph.definitions.controller import definitions
from lamina.families.resourcegraph.definitions.revision_object import issued, new_revision, number_in_name
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.types import Obj
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    DEFINITION_KIND,
    REVISION_KIND,
    SPEC,
    Definitions,
    app,
    instance,
    resource,
)


@pytest.fixture
def there() -> Definitions:
    """A definition that is served as revision 1."""
    made = Definitions()
    made.apply(app())
    return made


# The first revision


@pytest.mark.check("RG-1")
def test_a_definition_gets_a_crd_with_the_labels_and_columns_of_upstream(there: Definitions) -> None:
    crd = there.crd

    assert meta.labels(crd) == {
        "kro.run/owned": "true",
        "kro.run/kro-version": "v0.9.4",
        "kro.run/resource-graph-definition-id": meta.uid(there.app),
        "kro.run/resource-graph-definition-name": "app",
    }
    assert meta.annotations(crd) == {"kro.run/rgd-revision": "1"}
    [version] = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert [one["name"] for one in version["additionalPrinterColumns"]] == ["State", "Ready", "Age"]
    assert there.status["state"] == "Active"
    assert there.status["topologicalOrder"] == ["config"]
    assert {one["status"] for one in there.status["conditions"]} == {"True"}


def test_a_revision_has_the_change_cause_of_its_definition_and_a_rollback_that_of_the_old_revision() -> None:
    made = Definitions()
    made.apply(app(annotations={CHANGE_CAUSE: "first"}))
    made.cluster.patch(APP, {"metadata": {"annotations": {CHANGE_CAUSE: "second"}}})
    made.apply(app(resource(more="data")))
    made.annotate(APP, rollback_to_revision="1")

    causes = [meta.annotations(made.revision(number))[CHANGE_CAUSE] for number in (1, 2, 3)]
    assert causes == ["first", "second", "first"]


@pytest.mark.check("RG-63")
def test_the_first_revision_is_a_copy_of_the_definition_and_the_status_names_it(there: Definitions) -> None:
    revision, status = there.revision(1), there.status

    assert revision["apiVersion"] == API_VERSION
    assert revision["spec"] == {
        "revision": 1,
        "schema": there.app["spec"]["schema"],
        "resources": there.app["spec"]["resources"],
    }
    assert meta.labels(revision) == {"kro.run/rgd-name": "app", "kro.run/revision-number": "1"}
    assert meta.annotations(revision) == {"kro.run/source-generation": "1"}
    assert list(meta.owner_refs(revision)) == [
        {
            "apiVersion": API_VERSION, "kind": "ResourceGraphDefinition", "name": "app",
            "uid": meta.uid(there.app), "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip
    assert revision["status"]["specHash"] == status["currentRevisionHash"]
    assert len(status["currentRevisionHash"]) == 32
    assert revision["status"]["superseded"] is False
    assert (status["currentRevision"], status["lastIssuedRevision"]) == (1, 1)
    assert status["currentRevisionName"] == "app-rev-1"
    assert there.condition("GraphVerified", meta.ref(revision))[:2] == ("True", "Verified")


@pytest.mark.check("RG-62")
def test_a_definition_at_rest_is_not_written(there: Definitions) -> None:
    before = there.cluster.version
    there.start()

    there.run(3600)

    assert there.cluster.version == before


@pytest.mark.check("RG-78")
def test_a_restart_of_many_definitions_writes_nothing() -> None:
    there = Definitions()
    for number in range(20):
        there.apply(app(name=f"app{number}", schema={"kind": f"App{number}"}), seconds=1)
    before = there.cluster.version
    there.controller = definitions()

    there.start()
    there.run(60)

    assert there.cluster.version == before
    states = {
        obj["status"]["state"]
        for ref, obj in there.cluster.objects.items()
        if ref.kind == DEFINITION_KIND.kind
    }
    assert states == {"Active"}


# Edits


@pytest.mark.check("RG-65")
def test_a_change_of_a_template_becomes_a_revision_that_instances_move_to(there: Definitions) -> None:
    there.apply(instance("a1"), instance("a2"))

    there.apply(app(resource(more="one")))

    assert there.numbers == [1, 2]
    assert [
        (one["revision"], one["current"], one["instanceCount"]) for one in there.status["revisionHistory"]
    ] == [
        (2, True, 2),
        (1, False, 0),
    ]
    assert [there.revision(n)["status"]["superseded"] for n in (1, 2)] == [True, False]
    assert [there.revision(n)["status"]["instanceCount"] for n in (1, 2)] == [0, 2]
    assert (there.on("a1"), there.on("a2")) == (2, 2)
    assert meta.annotations(there.crd) == {"kro.run/rgd-revision": "2"}
    assert there.events("RevisionCreated") == [
        "Created revision 1, app-rev-1",
        "Created revision 2, app-rev-2",
    ]


@pytest.mark.check("RG-64")
def test_what_changes_nothing_of_the_content_makes_no_revision() -> None:
    there = Definitions()
    two = (
        resource("one"),
        {**resource("two"), "readyWhen": ["${two.data.a == 'a'}", "${two.data.b == 'b'}"]},
    )
    there.apply(app(*two))

    reordered = {**two[1], "readyWhen": two[1]["readyWhen"][::-1]}
    there.apply(app(reordered, two[0], schema={"group": "kro.run", "types": {}, "metadata": {}}))
    there.apply(app(*two, propagateWhen=["${each.index == 0}"], revisionManagement={"historyLimit": 3}))
    there.cluster.patch(APP, {"metadata": {"labels": {"team": "a"}}})
    there.run()

    assert there.numbers == [1]
    assert there.status["observedGeneration"] == meta.generation(there.app)


@pytest.mark.check("RG-66")
def test_an_invalid_edit_makes_no_revision_and_the_next_valid_one_has_the_next_number(
    there: Definitions,
) -> None:
    there.apply(instance("a1"))

    there.apply(app(resource(more="${missing.data.x}")))

    assert there.numbers == [1]
    status, reason, message = there.condition("GraphAccepted")
    assert (status, reason) == ("False", "InvalidResourceGraph")
    assert "references unknown identifiers: [missing]" in message
    assert "spec.resources[0].template.data.more" in message
    assert there.condition("Ready")[:2] == ("False", "InvalidResourceGraph")
    assert there.status["state"] == "Inactive"
    for name in ("GraphRevisionsResolved", "KindReady", "ControllerReady"):
        assert there.condition(name)[0] == "True"
    assert {one["observedGeneration"] for one in there.status["conditions"]} == {meta.generation(there.app)}
    assert there.on("a1") == 1

    there.apply(app(resource(more="fixed")))

    assert there.numbers == [1, 2]
    assert there.status["state"] == "Active"
    assert there.on("a1") == 2


@pytest.mark.check("RG-20")
def test_a_definition_that_never_compiled_has_no_revision_and_no_crd() -> None:
    there = Definitions()

    there.apply(app(resource(more="${missing.data.x}")))

    assert there.numbers == []
    assert not any(ref.kind == "CustomResourceDefinition" for ref in there.cluster.objects)
    assert there.condition("KindReady") == (
        "Unknown", "AwaitingReconciliation", 'condition "KindReady" is awaiting reconciliation',
    )  # fmt: skip
    assert there.condition("RevisionCurrent")[:2] == ("False", "NotPublished")


@pytest.mark.check("RG-67")
def test_empty_metadata_of_the_kind_makes_no_revision(there: Definitions) -> None:
    there.apply(app(schema={"metadata": {"labels": {}, "annotations": {}}}))

    assert there.numbers == [1]


def test_content_that_returns_gets_a_new_revision_with_the_old_hash(there: Definitions) -> None:
    there.apply(app(resource(more="one")))
    there.apply(app())

    assert there.numbers == [1, 2, 3]
    hashes = [there.revision(n)["status"]["specHash"] for n in (1, 2, 3)]
    assert hashes[0] == hashes[2] != hashes[1]


def test_numbers_are_not_used_again_where_all_revisions_are_gone(there: Definitions) -> None:
    there.apply(app(resource(more="one")))
    for number in there.numbers:
        ref = REVISION_KIND.ref("", f"app-rev-{number}")
        there.cluster.patch(ref, {"metadata": {"finalizers": None}})
        there.cluster.delete(ref)

    there.run()

    assert there.numbers == [3]


@pytest.mark.parametrize(
    ("status", "numbers", "highest"),
    [
        ({}, [], 0),
        ({}, [1, 2], 2),
        ({"currentRevision": 5}, [1, 2], 5),
        ({"lastIssuedRevision": 7, "currentRevision": 5, "revisionHistory": []}, [6], 7),
        ({"lastIssuedRevision": 7, "revisionHistory": []}, [9], 9),
        # As upstream leaves it, whose revisions are objects of its own.
        ({"lastIssuedRevision": 7}, [], 0),
    ],
)
def test_the_highest_number_issued_is_that_of_the_status_or_of_a_revision(
    status: Obj, numbers: list[int], highest: int
) -> None:
    assert issued(status, numbers) == highest


def test_the_first_revision_of_a_definition_that_upstream_has_served_is_number_one() -> None:
    there = Definitions()
    there.cluster.create(app())
    there.cluster.patch(APP, {"status": {"state": "Active", "lastIssuedRevision": 4}}, subresource="status")
    there.run()

    assert there.numbers == [1]
    assert (there.status["currentRevision"], there.status["lastIssuedRevision"]) == (1, 1)


@pytest.mark.check("RG-75")
def test_a_long_name_is_cut_in_names_and_labels() -> None:
    there, name = Definitions(), "a" * 240 + "." + "b" * 9

    there.apply(app(name=name))

    [revision] = [obj for ref, obj in there.cluster.objects.items() if ref.kind == REVISION_KIND.kind]
    assert len(meta.name(revision)) <= 253
    assert all(len(value) <= 63 for value in meta.labels(revision).values())
    assert number_in_name(name, revision) == 1
    definition = there.get(DEFINITION_KIND.ref("", name))
    assert definition["status"]["state"] == "Active"
    assert definition["status"]["currentRevision"] == 1


def test_a_revision_of_a_rollback_says_where_its_content_is_from() -> None:
    made = new_revision(app(), 4, content_from=2, mode="Gated")

    assert meta.annotations(made) == {
        "kro.run/source-generation": "0",
        "kro.run/content-from-revision": "2",
        "kro.run/rollback-mode": "Gated",
    }


# Breaking changes


@pytest.mark.check("RG-76")
def test_a_breaking_edit_makes_no_revision_unless_it_is_allowed(there: Definitions) -> None:
    there.apply(app(spec={**SPEC, "extra": "string"}))
    there.apply(instance("a1"))

    there.apply(app())

    assert there.numbers == [1, 2]
    assert there.condition("GraphAccepted")[0] == "True"
    status, reason, message = there.condition("KindReady")
    assert (status, reason) == ("False", "Failed")
    assert message.startswith(
        "cannot update CRD apps.kro.run: breaking changes detected: Property extra was removed (spec.extra)"
    )
    assert message.endswith(
        '\nannotate the definition with kro.run/allow-breaking-changes="true" to allow them'
    )
    assert there.status["state"] == "Inactive"
    assert "extra" in there.served["properties"]
    assert there.on("a1") == 2

    there.annotate(APP, allow_breaking_changes="true")

    assert there.numbers == [1, 2, 3]
    assert there.status["state"] == "Active"
    assert there.on("a1") == 3
    assert "extra" not in there.served["properties"]


def test_a_type_may_change_where_breaking_changes_are_allowed(there: Definitions) -> None:
    there.apply(instance("a1", annotations={"kro.run/rgd-revision": "1"}))
    there.annotate(APP, allow_breaking_changes="true")

    there.apply(app(spec={**SPEC, "replicas": "string"}))

    assert there.condition("GraphAccepted")[0] == "True"
    assert there.numbers == [1, 2]
    assert there.served["properties"]["replicas"]["type"] == "string"


# Manual updates


@pytest.fixture
def manual() -> Definitions:
    """A definition whose edits have to be approved."""
    made = Definitions()
    made.apply(app(revisionManagement={"updatePolicy": {"type": "Manual"}}))
    return made


def edited(more: str = "one", policy: str = "Manual") -> dict[str, object]:
    return app(resource(more=more), revisionManagement={"updatePolicy": {"type": policy}})


@pytest.mark.check("RG-77")
def test_an_edit_waits_for_approval(manual: Definitions) -> None:
    assert manual.numbers == [1]

    manual.apply(edited())

    assert manual.numbers == [1]
    assert manual.condition("RevisionCurrent")[:2] == ("False", "AwaitingApproval")
    assert manual.condition("GraphAccepted")[0] == "True"
    assert manual.status["state"] == "Active"

    manual.annotate(APP, create_revision="true")

    assert manual.numbers == [1, 2]
    assert manual.condition("RevisionCurrent")[0] == "True"
    assert "kro.run/create-revision" not in meta.annotations(manual.app)

    manual.apply(edited("two"))
    assert manual.numbers == [1, 2]


@pytest.mark.check("RG-77")
def test_an_approval_of_a_generation_is_for_that_generation_only(manual: Definitions) -> None:
    manual.apply(edited())
    generation = meta.generation(manual.app)

    manual.annotate(APP, create_revision=str(generation - 1))

    assert manual.numbers == [1]
    assert manual.condition("RevisionCurrent")[:2] == ("False", "StaleApproval")
    assert "kro.run/create-revision" not in meta.annotations(manual.app)

    manual.annotate(APP, create_revision=str(generation))

    assert manual.numbers == [1, 2]
    assert meta.annotations(manual.revision(2))["kro.run/source-generation"] == str(generation)


def test_a_stale_approval_is_reported_until_the_next_edit(manual: Definitions) -> None:
    manual.apply(edited())
    manual.annotate(APP, create_revision="17")
    assert manual.condition("RevisionCurrent")[1] == "StaleApproval"

    manual.apply(edited("two"))

    assert manual.condition("RevisionCurrent")[1] == "AwaitingApproval"


def test_an_invalid_edit_that_awaits_approval_is_reported_as_invalid(manual: Definitions) -> None:
    manual.apply(edited("${missing.x}"))

    assert manual.condition("GraphAccepted")[:2] == ("False", "InvalidResourceGraph")
    assert manual.numbers == [1]


def test_an_edit_is_published_when_the_policy_becomes_automatic(manual: Definitions) -> None:
    manual.apply(edited())

    manual.apply(edited(policy="Automatic"))

    assert manual.numbers == [1, 2]


def test_an_approval_without_an_edit_is_removed(manual: Definitions) -> None:
    manual.annotate(APP, create_revision="true")

    assert manual.numbers == [1]
    assert "kro.run/create-revision" not in meta.annotations(manual.app)
