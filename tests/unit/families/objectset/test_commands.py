"""What commands show of deployments and sets: their status, their history, a rollback, a preview, and their rights."""

import re
from datetime import UTC, datetime

import pytest

from lamina.cli.commands.revisions import described, shown
from lamina.core.model.plan import Replace
from lamina.core.model.queries import Answers
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import ChangeKind, Preview
from lamina.errors import LaminaError, RevisionNotFound
from lamina.families.objectset.family import family
from lamina.families.objectset.labels import DELETION_POLICY, GROUP
from lamina.objects.types import Made
from lamina.runtime.cache.lister import Lister
from tests.unit.families.objectset.revisions import (
    Revisions,
    config_map,
    deployment,
    object_set,
    phase,
    ref,
    template,
)

FAMILY = family()
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = ref("ObjectDeployment", "web")


def world_of(world: Revisions) -> Lister:
    return world.cluster.world(FAMILY.controllers[1])


def status_of(world: Revisions, name: str = "web", kind_name: str = "ObjectDeployment") -> OwnerStatus:
    found = FAMILY.owner_status(world_of(world), ref(kind_name, name))
    assert found is not None
    return found


def preview_of(world: Revisions, obj: Made) -> Preview:
    answers = Answers()
    while isinstance(found := FAMILY.plan(world_of(world), obj, answers, world.cluster.now), tuple):
        answers = answers | {query: world.cluster.answer(query) for query in found}
    assert found is not None
    return found


def edited(world: Revisions, obj: Made) -> Made:
    """The live object with another spec, as a dry run returns it."""
    return {**world.cluster.get(WEB), "spec": obj["spec"]}


def web(*phases: Made) -> Made:
    return deployment("web", template(*phases))


GOOD = web(phase("config", config_map("cm", data="v1")), phase("app", config_map("a")))
BAD = web(phase("config", config_map("cm", data="v2")), phase("app", config_map("b", healthy=False)))


def test_a_healthy_deployment_shows_its_objects_by_phase() -> None:
    world = Revisions()
    world.apply(GOOD)

    found = status_of(world)

    assert (found.state, found.goal, found.updated, found.available) == (State.HEALTHY, 1, 2, 2)
    assert list(found.targets) == ["config/ConfigMap default/cm", "app/ConfigMap default/a"]


def test_a_deployment_in_the_middle_shows_what_each_revision_controls() -> None:
    world = Revisions()
    world.apply(GOOD)
    world.apply(BAD)

    found = status_of(world)

    assert found.state is State.PROGRESSING
    assert {name: one.revision for name, one in found.targets.items()} == {
        "config/ConfigMap default/cm": 2,
        "app/ConfigMap default/b": 2,
        "app/ConfigMap default/a": 1,
    }
    assert '".metadata.annotations.name" missing' in found.targets["app/ConfigMap default/b"].message
    assert [one.number for one in found.history.revisions] == [1, 2]


def test_a_set_without_a_deployment_is_an_owner_itself() -> None:
    world = Revisions()
    world.apply(GOOD, object_set("alone", template(phase("p", config_map("x")))))

    owners = [one["metadata"]["name"] for one in FAMILY.owners(world_of(world))]

    assert owners == ["web", "alone"]
    assert status_of(world, "alone", "ObjectSet").state is State.HEALTHY


def test_an_archived_set_and_an_invalid_template_show_their_states() -> None:
    world = Revisions()
    world.apply(object_set("alone", template(phase("p", config_map("x"))), lifecycleState="Archived"))
    world.apply({**GOOD, "spec": {**GOOD["spec"], "selector": {"matchLabels": {"app": "other"}}}})

    assert status_of(world, "alone", "ObjectSet").state is State.ARCHIVED
    found = status_of(world)
    assert found.state is State.DEGRADED
    assert "spec.template.metadata.labels" in found.message


def test_a_set_with_an_invalid_spec_is_not_waited_for() -> None:
    twice = phase("p", config_map("x"), config_map("x"))
    world = Revisions()
    world.apply(
        object_set("alone", template(twice)), object_set("sliced", template(phase("p", slices=["s"])))
    )

    found, waiting = (status_of(world, name, "ObjectSet") for name in ("alone", "sliced"))

    assert (found.state, found.has_ended) == (State.DEGRADED, True)
    assert "duplicate object" in found.message
    assert (waiting.state, waiting.has_ended) == (State.DEGRADED, False)
    assert "does not exist; create it" in waiting.message


def test_a_rollback_takes_the_newest_earlier_template_that_has_succeeded() -> None:
    world = Revisions()
    world.apply(GOOD)
    world.apply(BAD)

    plan = FAMILY.rollback(world_of(world), WEB, None)

    (write,) = plan.actions
    assert isinstance(write, Replace)
    assert write.obj["spec"]["template"]["spec"]["phases"] == GOOD["spec"]["template"]["spec"]["phases"]
    world.apply(dict(write.obj))
    assert [one["spec"]["revision"] for one in world.sets_of("web")] == [1, 2, 3]
    assert (world.config_map("cm") or {})["data"] == {"data": "v1"}
    assert world.config_map("b") is None


def test_a_rollback_to_a_revision_that_is_not_kept_names_those_that_are() -> None:
    world = Revisions()
    world.apply(GOOD)

    with pytest.raises(RevisionNotFound, match="the available revisions are 1"):
        FAMILY.rollback(world_of(world), WEB, 7)
    with pytest.raises(LaminaError, match="no earlier revision that has succeeded"):
        FAMILY.rollback(world_of(world), WEB, None)


def test_the_list_of_revisions_says_which_have_succeeded() -> None:
    world = Revisions()
    for version in ("one", "two"):
        world.apply(web(phase("p", config_map("x", version=version))))
    world.apply(web(phase("p", config_map("x", healthy=False, version="three"))))
    world.edit(ref("ConfigMap", "x"), {"metadata": {"annotations": {"name": None}}})
    found = status_of(world)

    rows = [described(found, one) for one in reversed(found.history.revisions)]

    assert [(row["revision"], row["succeeded"]) for row in rows] == [(3, False), (2, True), (1, True)]
    header, newest, *_ = shown(rows, NOW).splitlines()
    assert header.split() == ["REVISION", "ROLE", "TARGETS", "SUCCEEDED", "AGE", "NAME"]
    assert newest.split()[:4] == ["3", "wanted", "1", "no"]


def test_a_list_of_revisions_that_report_no_success_has_no_column_for_it() -> None:
    row = {
        "revision": 1,
        "role": "wanted",
        "targets": [],
        "succeeded": False,
        "name": "a",
        "created": "",
        "changeCause": "",
    }

    assert shown([row], NOW).splitlines()[0].split() == ["REVISION", "ROLE", "TARGETS", "AGE", "NAME"]


def test_a_set_has_nothing_to_roll_back_to() -> None:
    world = Revisions()
    world.apply(object_set("alone", template(phase("p", config_map("x")))))

    with pytest.raises(LaminaError, match="is one revision"):
        FAMILY.rollback(world_of(world), ref("ObjectSet", "alone"), None)


def test_a_preview_shows_what_a_new_revision_takes_over_creates_and_deletes() -> None:
    world = Revisions()
    world.apply(GOOD)
    writes = len(world.cluster.journal)

    found = preview_of(world, edited(world, BAD))

    assert found.goal == 2
    assert [(one.target, one.kind, one.revision, one.step) for one in found.changes] == [
        ("config/ConfigMap default/cm", ChangeKind.UPDATE, 1, 1),
        ("app/ConfigMap default/b", ChangeKind.CREATE, 0, 2),
        ("ConfigMap default/a", ChangeKind.DELETE, 1, 0),
    ]
    assert len(world.cluster.journal) == writes


def test_a_preview_says_that_an_object_of_the_policy_orphan_stays() -> None:
    world = Revisions()
    kept = config_map("kept")
    kept["metadata"]["annotations"][DELETION_POLICY] = "Orphan"
    world.apply(web(phase("p", kept, config_map("x"), config_map("y"))))

    found = preview_of(world, edited(world, web(phase("p", config_map("x")))))

    changes = {one.target: one.kind for one in found.changes if one.kind is not ChangeKind.UPDATE}
    assert changes == {"ConfigMap default/kept": ChangeKind.RELEASE, "ConfigMap default/y": ChangeKind.DELETE}


def test_a_preview_says_which_revision_would_be_created() -> None:
    world = Revisions()
    world.apply(GOOD)

    found = preview_of(world, edited(world, BAD))

    assert re.fullmatch(r"a new revision, web-\w+, would be created", found.because)


def test_a_preview_of_the_template_that_is_rolled_out_changes_nothing() -> None:
    world = Revisions()
    world.apply(GOOD)

    assert preview_of(world, edited(world, GOOD)).changes == ()


def test_a_preview_says_what_a_collision_protection_would_refuse() -> None:
    world = Revisions()
    world.cluster.create({**config_map("cm"), "metadata": {"name": "cm", "namespace": "default"}})

    found = preview_of(world, GOOD)

    assert "refusing adoption" in str(found.failure)
    assert [one.target for one in found.changes] == ["app/ConfigMap default/a"]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (web(phase("p"), phase("p")), "several phases"),
        (web(phase("p", {"apiVersion": "none.example.com/v1", "kind": "None", "metadata": {"name": "n"}})), "no matches"),
        ({**GOOD, "spec": {**GOOD["spec"], "selector": {"matchLabels": {"app": "other"}}}}, "spec.selector"),
    ],
)  # fmt: skip
def test_a_preview_says_what_is_wrong_with_a_template(obj: Made, words: str) -> None:
    found = preview_of(Revisions(), obj)

    assert words in str(found.failure)


def test_the_rights_are_those_of_its_kinds_and_of_the_objects_in_them() -> None:
    needed = FAMILY.rights([GOOD])

    assert needed.allow("", "configmaps", "delete")
    assert needed.allow(GROUP, "objectsets/status", "patch")
    assert not needed.allow("", "secrets", "get")
    assert not needed.notes
    assert FAMILY.rights([]).notes
