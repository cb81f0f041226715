"""What is refused and what is warned of when a work, a replica set or a placement is written."""

from typing import Any

import orjson
import pytest

from lamina.core.admission import ALLOWED, AdmissionRequest, AdmissionResponse, FailurePolicy
from lamina.families.manifestwork.admission import checks, judge_executor, judge_manifests, judge_placement
from lamina.families.manifestwork.labels import PLACEMENT, REPLICA_SET, WORK
from lamina.objects.types import GroupKind, Made, Obj
from tests.unit.families.manifestwork.fleet import all_at_once, progressive

NO_OBJECT: Obj = {}


def manifest(name: str = "cm1", kind: str = "ConfigMap", **metadata: Any) -> Made:
    named = {"name": name, "namespace": "default"} if name else {"namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": {**named, **metadata}}


def work(*manifests: Any, executor: Obj | None = None) -> Made:
    spec: Made = {"workload": {"manifests": list(manifests)}}
    return {
        "metadata": {"name": "w", "namespace": "c1"},
        "spec": spec | ({"executor": executor} if executor else {}),
    }


def app(*manifests: Any, strategy: Obj | None = None, name: str = "app", **metadata: Any) -> Made:
    refs = [{"name": "place", "rolloutStrategy": strategy or progressive()}]
    template = {"workload": {"manifests": list(manifests)}}
    return {
        "metadata": {"name": name, "namespace": "team", **metadata},
        "spec": {"placementRefs": refs, "manifestWorkTemplate": template},
    }


def attempt(kind: GroupKind, new: Obj, old: Obj = NO_OBJECT) -> AdmissionRequest:
    return AdmissionRequest(
        operation="UPDATE" if old else "CREATE",
        kind=kind,
        namespace=new["metadata"]["namespace"],
        name=new["metadata"]["name"],
        new=new,
        old=old,
        user={"username": "ada", "groups": ["people"]},
    )


@pytest.mark.parametrize(
    ("manifests", "refusal"),
    [
        ([manifest()],                            ""),
        ([],                                      "Workload manifests should not be empty"),
        ([manifest("")],                          "name must be set in manifest"),
        ([manifest(generateName="cm")],           "generateName must not be set in manifest"),
        ([{"kind": "X"}],                         "Object 'apiVersion' is missing in '{\"kind\":\"X\"}'"),
        ([{"apiVersion": "v1"}],                  "Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'"),
        (["text"],                                "a manifest has to be an object, and \"text\" is none"),
        ([manifest(), manifest("cm2")],           ""),
        ([manifest(), manifest(kind="Secret")],   ""),
        ([manifest(), manifest(namespace="b")],   ""),
        ([manifest(), manifest()],
         "duplicate manifest for resource default/cm1 with resource type v1.ConfigMap"),
    ],
)  # fmt: skip
def test_manifests_are_refused_in_the_words_of_the_original(manifests: list[Any], refusal: str) -> None:
    for kind, made in ((WORK, work(*manifests)), (REPLICA_SET, app(*manifests))):
        assert judge_manifests(attempt(kind, made)).refusal == refusal


def test_manifests_are_measured_together() -> None:
    first, second = manifest("a", labels={"x": "y" * 300}), manifest("b", labels={"x": "y" * 300})
    size = len(orjson.dumps(first)) + len(orjson.dumps(second))

    assert judge_manifests(attempt(WORK, work(first, second)), limit=size) == ALLOWED
    refused = judge_manifests(attempt(WORK, work(first, second)), limit=size - 1)
    assert refused.refusal == f"the size of manifests is {size} bytes which exceeds the {size - 1} limit"


def test_a_change_of_another_field_is_not_refused_for_what_was_admitted_before() -> None:
    wrong = work(manifest(), manifest())
    held = {**wrong, "metadata": {**wrong["metadata"], "finalizers": ["somebody"]}}
    assert judge_manifests(attempt(WORK, held, old=wrong)) == ALLOWED

    before = app(manifest(), manifest())
    after = {**before, "spec": {**before["spec"], "revisionHistoryLimit": 3}}
    assert judge_manifests(attempt(REPLICA_SET, after, old=before)).refusal == ""

    assert judge_manifests(attempt(WORK, wrong, old=work(manifest()))).refusal


def test_an_abort_that_cannot_come_is_warned_of() -> None:
    never = progressive(progressDeadline="None")
    (said,) = judge_manifests(attempt(REPLICA_SET, app(manifest(), strategy=never))).warnings
    assert said.startswith("spec.placementRefs[0].rolloutStrategy: failureStrategy AbortAll does nothing")

    for fine in (progressive(), progressive(progressDeadline="None", failureStrategy=""), all_at_once()):
        assert judge_manifests(attempt(REPLICA_SET, app(manifest(), strategy=fine))) == ALLOWED


@pytest.mark.parametrize("value", [0, "0%", "00%"])
def test_a_concurrency_of_zero_which_sends_to_all_at_once_is_warned_of(value: Any) -> None:
    (said,) = judge_manifests(
        attempt(REPLICA_SET, app(manifest(), strategy=progressive(maxConcurrency=value)))
    ).warnings
    assert said == (
        f"spec.placementRefs[0].rolloutStrategy.progressive.maxConcurrency: {value} does not stop a rollout: "
        "all clusters get the change at once"
    )

    unused = {**all_at_once(), "progressive": {"maxConcurrency": value}}
    fine = (
        unused,
        progressive(maxConcurrency=10),
        progressive(maxConcurrency="10%"),
        progressive(maxConcurrency=None),
    )
    for strategy in fine:
        assert judge_manifests(attempt(REPLICA_SET, app(manifest(), strategy=strategy))) == ALLOWED


def test_the_deadline_that_counts_is_the_one_of_the_strategy_that_is_chosen() -> None:
    strategy = {
        **all_at_once(progressDeadline="None", failureStrategy="AbortAll"),
        "progressive": {"progressDeadline": "5s"},
    }

    assert len(judge_manifests(attempt(REPLICA_SET, app(manifest(), strategy=strategy))).warnings) == 1


def test_a_definition_that_an_abort_may_take_away_is_warned_of() -> None:
    definition = manifest("widgets.example.com", "CustomResourceDefinition")
    (said,) = judge_manifests(attempt(REPLICA_SET, app(manifest(), definition))).warnings
    assert said.startswith("the template holds the CustomResourceDefinition widgets.example.com, and")

    stays = progressive(failureStrategy="")
    assert judge_manifests(attempt(REPLICA_SET, app(definition, strategy=stays))) == ALLOWED


def test_a_name_that_is_too_long_is_warned_of() -> None:
    (said,) = judge_manifests(attempt(REPLICA_SET, app(manifest(), name="a" * 59))).warnings
    assert "which has 64 characters, 63 at most: no work will be made" in said

    assert judge_manifests(attempt(REPLICA_SET, app(manifest(), name="a" * 58))) == ALLOWED


def test_a_key_that_many_examples_have_and_no_server_knows_is_warned_of() -> None:
    """The server has dropped it by then; kubectl leaves a note of what was applied."""
    written = {
        "spec": {"placementRefs": [{"name": "a"}, {"rolloutStrategy": {"rolloutType": "Progressive"}}]}
    }
    note = {"kubectl.kubernetes.io/last-applied-configuration": orjson.dumps(written).decode()}
    (said,) = judge_manifests(attempt(REPLICA_SET, app(manifest(), annotations=note))).warnings
    assert said.startswith("spec.placementRefs[1].rolloutStrategy.rolloutType is no field and is dropped")

    for nonsense in ("", "{", "[]", '{"spec": 3}', '{"spec": {"placementRefs": [1]}}'):
        note = {"kubectl.kubernetes.io/last-applied-configuration": nonsense}
        assert judge_manifests(attempt(REPLICA_SET, app(manifest(), annotations=note))) == ALLOWED


EXECUTOR = {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}}


@pytest.mark.parametrize(
    "executor", ["me", ["me"], {"subject": "me"}, {"subject": {"serviceAccount": "me"}}, {"subject": {}}]
)
def test_an_executor_of_the_wrong_shape_is_refused_in_words(executor: Any) -> None:
    verdict = judge_executor(attempt(WORK, work(manifest(), executor=executor)))

    assert verdict == AdmissionResponse(refusal="executor service account can not be nil")


def test_a_writer_of_a_work_with_an_executor_has_to_be_allowed_to_act_as_it() -> None:
    leave = judge_executor(attempt(WORK, work(manifest(), executor=EXECUTOR))).leave

    assert leave is not None
    assert leave.attributes == {
        "group": "work.open-cluster-management.io",
        "resource": "manifestworks",
        "verb": "execute-as",
        "namespace": "c1",
        "name": "system:serviceaccount:ops:robot",
    }
    assert (
        leave.refusal == "user ada cannot manipulate the Manifestwork with executor ops/robot in namespace c1"
    )


def test_it_is_asked_whenever_a_work_changes_and_not_otherwise() -> None:
    made = work(manifest(), executor=EXECUTOR)
    held = {**made, "metadata": {**made["metadata"], "finalizers": ["somebody"]}}
    another = work(manifest("cm2"), executor=EXECUTOR)

    assert judge_executor(attempt(WORK, held, old=made)) == ALLOWED
    assert judge_executor(attempt(WORK, another, old=made)).leave is not None
    assert judge_executor(attempt(WORK, work(manifest()), old=made)) == ALLOWED
    unnamed = work(manifest(), executor={"subject": {"type": "ServiceAccount"}})
    assert judge_executor(attempt(WORK, unnamed)) == AdmissionResponse(
        refusal="executor service account can not be nil"
    )


def test_what_a_placement_says_in_vain_is_warned_of() -> None:
    placement = {
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"sortBy": "Score", "numberOfClusters": 3},
    }

    assert judge_placement(attempt(PLACEMENT, placement)).warnings == ("spec.sortBy has no effect",)
    assert judge_placement(attempt(PLACEMENT, {**placement, "spec": {}})) == ALLOWED


def test_a_field_that_a_program_sends_without_anything_in_it_is_not_warned_of() -> None:
    said = {"spreadPolicy": {}, "sortBy": "", "prioritizerPolicy": {}}
    placement = {"metadata": {"name": "p", "namespace": "team"}, "spec": said}

    assert judge_placement(attempt(PLACEMENT, placement)) == ALLOWED
    spread = {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]}
    assert judge_placement(attempt(PLACEMENT, {**placement, "spec": {"spreadPolicy": spread}})).warnings == (
        "spec.spreadPolicy has no effect",
    )


def test_only_executor_checks_stop_writes_while_the_webhook_is_away() -> None:
    absences = {check.name.partition(".")[0]: check.absence for check in checks()}

    assert absences == {
        "manifests": FailurePolicy.LETS_PASS,
        "executors": FailurePolicy.REFUSES,
        "placements": FailurePolicy.LETS_PASS,
    }


def test_what_another_scheduler_heeds_is_not_for_us_to_judge() -> None:
    assert [check.name.partition(".")[0] for check in checks(schedules=False)] == ["manifests", "executors"]


def test_without_a_rollout_controller_no_replica_set_may_be_written() -> None:
    (disabled,) = (one for one in checks(replica_sets=False) if one.name.startswith("replicasets."))

    assert disabled.rules[0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert disabled.judge(attempt(REPLICA_SET, app(manifest()))).refusal == (
        "ManifestWorkReplicaSet feature is disabled"
    )
    assert disabled.judge(attempt(WORK, work(manifest()))) == ALLOWED
    assert not any(one.name.startswith("replicasets.") for one in checks())
