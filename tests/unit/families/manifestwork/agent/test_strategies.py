"""The four ways of writing a manifest, row by row."""

from typing import Any

from lamina.core.model.plan import Replace
from lamina.core.model.queries import DryRun, Refused
from lamina.errors import Invalid
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation.cluster.kinds import DEPLOYMENT, JOB, make
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy


def labelled(obj: Made, **labels: str) -> Made:
    return meta.with_metadata(obj, labels=labels)


# Update


def test_update_replaces_what_is_there_and_keeps_what_is_not_its_own() -> None:
    spoke = Spoke()
    spoke.home.create(
        {
            **labelled(config_map(old="1"), theirs="x"),
            "metadata": {
                "name": "cm1",
                "namespace": "default",
                "labels": {"theirs": "x"},
                "annotations": {"note": "kept"},
                "finalizers": ["held/by-them"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}],
            },
        }
    )
    spoke.ask(labelled(config_map(new="2"), ours="y"))

    there = spoke.there()
    assert there["data"] == {"new": "2"}
    assert meta.labels(there) == {"theirs": "x", "ours": "y"}
    assert meta.annotations(there) == {"note": "kept"}
    assert meta.finalizers(there) == ["held/by-them"]
    assert [one["kind"] for one in meta.owner_refs(there)] == ["Secret", "AppliedManifestWork"]


def test_update_corrects_manual_changes() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    spoke.home.patch(meta.ref(spoke.there()), {"data": {"a": "2", "b": "3"}})
    spoke.run()
    assert spoke.there()["data"] == {"a": "1"}

    spoke.home.delete(meta.ref(spoke.there()))
    spoke.run()
    assert spoke.there()["data"] == {"a": "1"}
    assert spoke.listed() == [("cm1", "uid")]


def test_a_key_that_ends_in_a_dash_is_taken_off() -> None:
    spoke = Spoke()
    spoke.home.create(labelled(config_map(), gone="x", stays="y"))
    spoke.ask(labelled(config_map(), **{"gone-": ""}))

    assert meta.labels(spoke.there()) == {"stays": "y"}


def test_a_label_that_a_later_manifest_drops_is_taken_off_and_those_of_others_stay() -> None:
    spoke = Spoke()
    spoke.ask(labelled(config_map(), ours="1", both="1"))
    spoke.home.patch(meta.ref(spoke.there()), {"metadata": {"labels": {"theirs": "x"}}})
    spoke.ask(labelled(config_map(), both="1"))
    assert meta.labels(spoke.there()) == {"both": "1", "theirs": "x"}

    # A field that a manifest once set and then dropped may be set by another manager.
    spoke.home.patch(meta.ref(spoke.there()), {"metadata": {"labels": {"ours": "theirs now"}}})
    spoke.run()
    assert meta.labels(spoke.there()) == {"both": "1", "theirs": "x", "ours": "theirs now"}


def test_an_annotation_that_a_later_manifest_drops_is_taken_off() -> None:
    spoke = Spoke()
    spoke.ask(meta.with_annotation(config_map(), "ours", "1"))
    spoke.ask(config_map())
    assert meta.annotations(spoke.there()) == {}


def test_uid_and_version_in_a_manifest_mean_nothing() -> None:
    spoke = Spoke()
    noisy = meta.with_metadata(config_map(), uid="other", resourceVersion="7", generation=3)
    spoke.ask(noisy)

    assert meta.uid(spoke.there()) != "other"
    assert spoke.said("Applied")[0] == "True"


def filled(made: Made, old: Obj | None) -> Made:
    """Do what a server does with what is left out."""
    if made["kind"] == "Deployment":
        return {**made, "spec": {"replicas": 1, "revisionHistoryLimit": 10, **made["spec"]}}
    return made


def test_what_the_server_fills_in_is_not_taken_for_a_change() -> None:
    spoke = Spoke()
    spoke.home.admit = filled
    wanted = make(DEPLOYMENT, "web", spec={"template": {"image": "web:1"}})
    spoke.ask(wanted)
    assert spoke.said("Applied")[0] == "True"
    before = len(spoke.home.journal)
    spoke.run()
    assert len(spoke.home.journal) == before

    spoke.ask(make(DEPLOYMENT, "web", spec={"template": {"image": "web:2"}}))
    assert spoke.there("web", what=DEPLOYMENT)["spec"]["template"] == {"image": "web:2"}
    assert spoke.said("Applied")[0] == "True"


def test_what_moves_by_itself_is_not_asked_about_again() -> None:
    spoke = Spoke()
    asked: list[Any] = []
    spoke.home.admit = filled
    answer = spoke.home.answer

    def counted(question: Any) -> Any:
        if type(question).__name__ == "DryRun":
            asked.append(question.key)
        return answer(question)

    spoke.home.answer = counted  # type: ignore[method-assign]
    spoke.ask(make(DEPLOYMENT, "web", spec={"template": {"image": "web:1"}}))
    spoke.home.patch(DEPLOYMENT.ref("default", "web"), {"status": {"replicas": 1}}, subresource="status")
    spoke.run()

    assert len(set(asked)) == 1, "the same question each time, so a server is asked once"


def test_what_cannot_be_replaced_and_holds_all_that_is_wanted_is_left_alone() -> None:
    spoke = Spoke()
    spoke.home.admit = lambda made, old: _job(made, old) if made["kind"] == "Job" else made
    answer = spoke.home.answer

    def strict(question: Any) -> Any:
        is_replacing = isinstance(question, DryRun) and question.replaces
        if is_replacing and "selector" not in question.obj["spec"]:
            return Refused(422, "field is immutable")
        return answer(question)

    spoke.home.answer = strict  # type: ignore[method-assign]
    spoke.ask(make(JOB, "once", spec={"template": {"image": "web:1"}}))

    assert spoke.said("Applied")[0] == "True"
    assert not [one for one in spoke.home.journal if isinstance(one, Replace)]

    spoke.ask(
        make(JOB, "once", spec={"template": {"image": "web:1"}, "suspend": True}, labels={"new": "1"}),
        deleteOption={"propagationPolicy": "Orphan"},
    )
    there = spoke.there("once", what=JOB)
    assert there["spec"] == {"selector": {"u": "1"}, "template": {"image": "web:1"}, "suspend": True}
    assert (meta.labels(there), meta.owner_refs(there)) == ({"new": "1"}, ())
    assert spoke.said("Applied")[0] == "True"


def _job(made: Made, old: Obj | None) -> Made:
    if old is not None and made["spec"].get("selector") != old["spec"]["selector"]:
        raise Invalid("field is immutable")
    return {**made, "spec": {"selector": {"u": "1"}, **made["spec"]}}


# CreateOnly


def test_create_only_makes_it_and_never_changes_it() -> None:
    spoke = Spoke()
    first, second = config_map(a="1"), config_map(a="2")
    spoke.ask(first, manifestConfigs=[config_for(first, **strategy("CreateOnly"))])
    spoke.ask(second, manifestConfigs=[config_for(second, **strategy("CreateOnly"))])

    assert spoke.there()["data"] == {"a": "1"}
    assert spoke.said("Applied")[0] == "True"
    assert spoke.condition("Applied")["observedGeneration"] == 2


def test_create_only_claims_what_is_there_and_lets_go_when_it_is_to_stay() -> None:
    spoke = Spoke()
    spoke.home.create(config_map(a="theirs"))
    mine = config_map(a="1")
    how = [config_for(mine, **strategy("CreateOnly"))]
    spoke.ask(mine, manifestConfigs=how)
    assert [one["kind"] for one in meta.owner_refs(spoke.there())] == ["AppliedManifestWork"]
    assert spoke.there()["data"] == {"a": "theirs"}

    spoke.ask(mine, manifestConfigs=how, deleteOption={"propagationPolicy": "Orphan"})
    assert meta.owner_refs(spoke.there()) == ()


# ReadOnly


def test_read_only_writes_nothing_and_tells_what_is_there() -> None:
    spoke = Spoke()
    mine = config_map(a="1")
    how = [config_for(mine, **strategy("ReadOnly"))]
    spoke.ask(mine, manifestConfigs=how)
    assert not spoke.has()
    assert spoke.said("Applied")[0] == "True"
    assert spoke.said("Available") == ("False", "ResourcesNotAvailable")

    spoke.home.create(config_map(a="theirs"))
    spoke.run()
    assert spoke.said("Available")[0] == "True"
    assert meta.owner_refs(spoke.there()) == ()

    spoke.hub.delete(spoke.work_ref())
    spoke.run()
    assert spoke.has()
    assert spoke.hub.at(spoke.work_ref()) is None


# ServerSideApply


def applies(manifest: Made, **how: Any) -> list[Made]:
    return [config_for(manifest, **strategy("ServerSideApply", **how))]


def test_apply_states_its_fields_and_leaves_those_of_others() -> None:
    spoke = Spoke()
    spoke.home.apply(config_map(theirs="x"), manager="somebody")
    mine = config_map(a="1")
    spoke.ask(mine, manifestConfigs=applies(mine))
    assert spoke.there()["data"] == {"theirs": "x", "a": "1"}
    assert [one["kind"] for one in meta.owner_refs(spoke.there())] == ["AppliedManifestWork"]

    other = config_map(b="2")
    spoke.ask(other, manifestConfigs=applies(other))
    assert spoke.there()["data"] == {"theirs": "x", "b": "2"}
    before = len(spoke.written)
    spoke.run()
    assert len(spoke.written) == before


def test_apply_takes_a_field_over_where_it_is_forced() -> None:
    spoke = Spoke()
    spoke.home.apply(config_map(a="theirs"), manager="somebody")
    mine = config_map(a="ours")
    spoke.ask(mine, manifestConfigs=applies(mine, force=True, fieldManager="work-agent-x"))

    assert spoke.there()["data"] == {"a": "ours"}
    managers = {one["manager"] for one in meta.metadata(spoke.there())["managedFields"]}
    assert "work-agent-x" in managers


def test_two_works_that_apply_the_same_own_it_together() -> None:
    spoke = Spoke()
    mine = config_map(a="1")
    spoke.want(mine, name="one", manifestConfigs=applies(mine))
    spoke.want(mine, name="two", manifestConfigs=applies(mine))
    spoke.run()

    assert sorted(one["name"] for one in meta.owner_refs(spoke.there())) == ["hash-one", "hash-two"]
    before = len(spoke.written)
    spoke.run()
    assert len(spoke.written) == before

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()
    assert [one["name"] for one in meta.owner_refs(spoke.there())] == ["hash-two"]


def test_fields_to_be_ignored_once_it_is_there_are_stated_when_it_is_made_only() -> None:
    spoke = Spoke()
    mine = config_map(a="1", b="1")
    how = applies(mine, ignoreFields=[{"condition": "OnSpokePresent", "jsonPaths": [".data.b"]}])
    spoke.ask(mine, manifestConfigs=how)
    assert spoke.there()["data"] == {"a": "1", "b": "1"}

    spoke.home.apply(config_map(b="theirs"), manager="somebody")
    spoke.ask(config_map(a="2", b="2"), manifestConfigs=how)
    assert spoke.there()["data"] == {"a": "2", "b": "theirs"}
    assert spoke.said("Applied")[0] == "True"


def test_fields_to_be_ignored_when_they_change_are_stated_when_the_manifest_changes_only() -> None:
    spoke = Spoke()
    mine = config_map(a="1", b="1")
    how = applies(mine, force=True, ignoreFields=[{"condition": "OnSpokeChange", "jsonPaths": [".data.b"]}])
    spoke.ask(mine, manifestConfigs=how)
    spoke.home.patch(meta.ref(spoke.there()), {"data": {"b": "theirs"}})
    spoke.run()
    assert spoke.there()["data"] == {"a": "1", "b": "theirs"}

    spoke.ask(config_map(a="1", b="2"), manifestConfigs=how)
    assert spoke.there()["data"] == {"a": "1", "b": "2"}


def test_an_expression_that_does_not_say_which_fields_are_meant_fails_with_its_own_reason() -> None:
    spoke = Spoke()
    mine = config_map(a="1")
    how = applies(mine, ignoreFields=[{"condition": "OnSpokePresent", "jqPathExpressions": [".data | keys"]}])
    spoke.ask(mine, manifestConfigs=how)

    assert spoke.said_of(0, "Applied") == ("False", "AppliedManifestSSAIgnoreFieldError")
    assert not spoke.has()
