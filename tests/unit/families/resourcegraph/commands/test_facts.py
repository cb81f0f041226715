"""What commands read."""

from collections.abc import Iterable

import pytest

from lamina.core.crd.kinds import kinds_of
from lamina.core.model.queries import Absent, Answer, Answers, Found, Listed, Query, Read, ReadAll
from lamina.core.model.revision_commands import Targets
from lamina.errors import SettingsError
from lamina.families.resourcegraph.commands.facts import Facts, gather, targets
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.labels import RGD_NAME
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Ref
from tests.unit.families.resourcegraph.commands.objects import (
    GROUP,
    RGD,
    definition,
    input_revision,
    instance,
    revision,
)

APPLICATION = Kind(f"{GROUP}/v1alpha1", "Application", "applications", True)
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments", True)
KINDS = Kinds([*(kind for crd in definitions() for kind in kinds_of(crd)), APPLICATION, DEPLOYMENT])
RGD_REF = Ref(str(RGD["apiVersion"]), RGD["kind"], "", "application")
INSTANCE_REF = APPLICATION.ref("default", "my-app")


def answered(queries: Iterable[Query], objects: Iterable[Made]) -> Answers:
    """Answer queries as a cluster does that has these objects."""
    known: dict[Query, Answer] = {}
    for query in queries:
        match query:
            case Read(ref):
                there = [one for one in objects if meta.ref(one) == ref]
                known[query] = Found(there[0]) if there else Absent()
            case ReadAll(kind, namespace, labels=labels):
                known[query] = Listed(
                    tuple(
                        one
                        for one in objects
                        if one["kind"] == kind.kind
                        and (not namespace or meta.namespace(one) == namespace)
                        and labels.matches(meta.labels(one))
                    )
                )
    return Answers(known)


def found_targets(*objects: Made, kinds: Kinds = KINDS) -> Targets:
    asked = targets(kinds, Answers())
    assert isinstance(asked, tuple)
    found = targets(kinds, answered(asked, objects))
    assert isinstance(found, Targets)
    return found


def read(ref: Ref, *objects: Made, revisions: bool = True, instances: bool | None = None) -> Facts:
    found, answers = found_targets(*objects), Answers()
    while isinstance(facts := gather(found, ref, answers, revisions=revisions, instances=instances), tuple):
        answers = answers | answered(facts, objects).known
    return facts


def test_commands_take_definitions_and_the_kinds_that_they_generate() -> None:
    found = found_targets(definition())

    assert {kind.kind for kind in found.kinds} == {"ResourceGraphDefinition", "Application"}


def test_the_group_of_a_generated_kind_is_that_of_definitions_unless_it_is_stated() -> None:
    plain = Kind("kro.run/v1alpha1", "Application", "applications", True)
    stated = definition({"schema": {"kind": "Application", "apiVersion": "v1alpha1"}, "resources": []})

    found = found_targets(stated, kinds=Kinds([*KINDS, plain]))

    assert {kind.group for kind in found.kinds if kind.kind == "Application"} == {"kro.run"}


def test_without_the_kinds_of_the_family_the_error_says_how_to_install_them() -> None:
    with pytest.raises(
        SettingsError, match="the server does not serve the kind ResourceGraphDefinition"
    ) as error:
        targets(Kinds([DEPLOYMENT]), Answers())
    assert "lamina crds" in str(error.value.hint)


def test_the_revisions_of_a_definition_are_its_own_and_orphans_oldest_first() -> None:
    orphan, foreign = revision(9), revision(8)
    del orphan["metadata"]["ownerReferences"]
    foreign["metadata"]["ownerReferences"][0]["uid"] = "u-other"

    found = read(RGD_REF, definition(), revision(10), orphan, foreign, revision(2))

    assert found.revisions == (revision(2), orphan, revision(10))
    assert found.instances == ()


def test_a_name_that_is_too_long_for_a_label_is_found_by_its_short_form() -> None:
    name = "a" * 80
    owner, one = definition(), revision(1)
    owner["metadata"]["name"] = name
    one["metadata"]["labels"] = {RGD_NAME: label_value(name)}

    assert read(RGD_REF._replace(name=name), owner, one).revisions == (one,)


def test_the_input_revisions_of_an_instance_are_those_that_it_controls() -> None:
    namesake = input_revision(1, 1)
    namesake["metadata"]["ownerReferences"][0]["uid"] = "u-namesake"

    found = read(INSTANCE_REF, definition(), instance(), input_revision(2, 1), namesake)

    assert found.revisions == (input_revision(2, 1),)
    assert found.title == "application/my-app"


def test_input_revisions_that_are_inline_are_read_from_the_status() -> None:
    history = [
        {"revision": 2, "rgdRevision": 1, "createdAt": "2025-01-01T00:00:00Z", "status": "Completed", "instanceSpec": {"a": 1}},
        {"revision": 1, "rgdRevision": 1},
    ]  # fmt: skip

    found = read(INSTANCE_REF, definition(), instance(inputRevisionHistory=history))

    assert [one["spec"]["inputRevision"] for one in found.revisions] == [1, 2]
    assert found.revisions[1]["spec"]["instanceSpec"] == {"a": 1}


@pytest.mark.parametrize("whole", [True, False])
def test_the_instances_of_a_definition_are_read_in_all_namespaces(whole: bool) -> None:
    elsewhere = instance("other")
    elsewhere["metadata"]["namespace"] = "prod"

    found = read(RGD_REF, definition(), instance(), elsewhere, revisions=False, instances=whole)

    assert found.instances == (instance(), elsewhere)


def test_a_definition_whose_kind_is_not_served_yet_has_no_instances() -> None:
    stated = definition({"schema": {"kind": "Database", "apiVersion": "v1"}, "resources": []})

    assert read(RGD_REF, stated, instances=True).instances == ()


@pytest.mark.check("RG-108")
@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (RGD_REF, 'resourcegraphdefinitions.kro.run "application" not found'),
        (INSTANCE_REF, 'applications.apps.example.com "my-app" not found'),
    ],
)
def test_an_object_that_does_not_exist_is_an_error(ref: Ref, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{message}$"):
        read(ref)
