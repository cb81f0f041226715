"""The status that an agent reports of works: condition rules, health without rules, feedback, and when."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.core.health.kstatus import health
from lamina.core.model.agents import AgentOptions
from lamina.core.model.plan import Replace
from lamina.errors import Invalid
from lamina.families.manifestwork.agent.api import ConditionRule, FeedbackRule, JsonPathRule
from lamina.families.manifestwork.agent.condition_rules import evaluated
from lamina.families.manifestwork.agent.feedback import feedback
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation.cluster.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    SECRET,
    STATEFUL_SET,
    WIDGET,
    make,
)
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy


def rule(condition: str, *expressions: str, **more: Any) -> Made:
    return {"condition": condition, "type": "CEL", "celExpressions": list(expressions), **more}


def one(obj: Made, *expressions: str, **more: Any) -> tuple[str, str, str]:
    """Return what a rule makes of an object."""
    asked = ConditionRule(condition="Fine", type=more.pop("type", "CEL"), cel_expressions=expressions, **more)
    (found,) = evaluated(obj, [asked])
    return found.status, found.reason.removeprefix("ConditionRule"), found.message


CM = config_map(phase="done", n="3")


@pytest.mark.parametrize(
    ("expressions", "status", "reason"),
    [
        (("object.data.phase == 'done'",),                              "True",  "Evaluated"),
        (("object.data.phase == 'done'", "object.data.n == '4'"),       "False", "Evaluated"),
        (("object.data.missing == 'x'",),                               "False", "ExpressionError"),
        (("object.data.phase",),                                        "False", "ExpressionError"),
        (("object.data.phase ==",),                                     "False", "ExpressionError"),
        (("has(object.data.phase) && !has(object.data.nope)",),         "True",  "Evaluated"),
        (("'n' in object.data && size(object.data) == 2",),             "True",  "Evaluated"),
        (("object.data.exists(k, k.startsWith('ph'))",),                "True",  "Evaluated"),
        (("quantity('1Ki').isGreaterThan(quantity('1000'))",),          "True",  "Evaluated"),
        (("int(object.data.n) > 2 ? true : false",),                    "True",  "Evaluated"),
        (("hasConditions(object)",),                                    "False", "Evaluated"),
        ((),                                                            "Unknown", "Invalid"),
    ],
)  # fmt: skip
def test_expressions_must_all_hold(expressions: tuple[str, ...], status: str, reason: str) -> None:
    assert one(CM, *expressions)[:2] == (status, reason)


def test_what_has_conditions_is_an_object_with_some() -> None:
    for conditions, holds in (([{"type": "x"}], "True"), ([], "False"), ("text", "False")):
        status = one({**CM, "status": {"conditions": conditions}}, "hasConditions(object.status)")[0]
        assert status == holds


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({},                                                      "Manifest is Fine"),
        ({"message": "said"},                                     "said"),
        ({"message": "said", "message_expression": "''"},         "said"),
        ({"message_expression": "object.data.phase + (result ? '!' : '?')"}, "done!"),
        ({"message_expression": "1"},  "expected message expression to have a string result, got int"),
    ],
)  # fmt: skip
def test_a_message_comes_from_its_expression_or_its_text_or_the_name(more: Any, message: str) -> None:
    assert one(CM, "true", **more)[2] == message


def test_a_condition_that_does_not_hold_says_that_it_is_not() -> None:
    assert one(CM, "false")[2] == "Manifest is not Fine"


def test_an_expression_that_costs_too_much_is_a_failing_one() -> None:
    big = {**CM, "items": list(range(2000))}
    status, reason, message = one(big, "object.items.all(a, object.items.all(b, a + b >= 0))")
    assert (status, reason) == ("False", "ExpressionError")
    assert "cost limit" in message


def test_all_expressions_of_an_object_have_one_budget() -> None:
    big = {**CM, "items": list(range(300))}
    costly = "object.items.all(a, object.items.all(b, a >= 0))"
    rules = [ConditionRule(condition=f"C{n}", type="CEL", cel_expressions=(costly,)) for n in range(40)]
    answers = [found.status for found in evaluated(big, rules)]

    assert answers[0] == "True"
    assert answers[-1] == "False"
    assert answers == sorted(answers, reverse=True), "once it is used up it stays so"


@pytest.mark.parametrize(
    ("obj", "condition", "status"),
    [
        (make(JOB, "j", status={"conditions": [{"type": "Complete", "status": "True"}]}), "Complete", "True"),
        (make(JOB, "j", status={"conditions": [{"type": "Failed", "status": "True"}]}), "Complete", "True"),
        (make(JOB, "j", status={"conditions": []}), "Complete", "False"),
        (make(JOB, "j"), "Complete", "False"),
        (make(POD, "p", status={"phase": "Succeeded"}), "Complete", "True"),
        (make(POD, "p", status={"phase": "Running"}), "Complete", "False"),
        (make(POD, "p"), "Complete", "False"),
        (make(JOB, "j"), "Degraded", None),
        (make(SECRET, "s"), "Complete", None),
    ],
)
def test_what_is_well_known_needs_no_expression(obj: Made, condition: str, status: str | None) -> None:
    asked = ConditionRule(condition=condition, type="WellKnownConditions")
    found = [one.status for one in evaluated(obj, [asked])]
    assert found == ([] if status is None else [status])


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (make(JOB, "j", status={"conditions": [{"type": "Failed", "status": "True"}]}), "Job is finished"),
        (make(JOB, "j"), "Job is not finished"),
        (make(POD, "p", status={"phase": "Succeeded"}), "Pod is in phase Succeeded"),
        (make(POD, "p", status={"phase": "Running"}), "Pod is in phase Running"),
        (make(POD, "p"), "Manifest is not Complete"),
    ],
)
def test_what_is_well_known_says_so_in_the_words_of_the_original(obj: Made, message: str) -> None:
    asked = ConditionRule(condition="Complete", type="WellKnownConditions")
    assert [one.message for one in evaluated(obj, [asked])] == [message]

    own = ConditionRule(condition="Complete", type="WellKnownConditions", message="said")
    assert [one.message for one in evaluated(obj, [own])] == ["said"]


@pytest.mark.parametrize(
    ("expression", "type"),
    [("'a'", "string"), ("1", "int"), ("1.5", "double"), ("null", "null_type"), ("[1]", "list"), ("{'a': 1}", "map"), ("object.data", "map")],
)  # fmt: skip
def test_types_are_named_as_the_expression_language_names_them(expression: str, type: str) -> None:
    assert one(CM, expression)[2] == f"expected bool result, got {type}"
    if type != "string":
        assert one(CM, "true", message_expression=expression)[2] == (
            f"expected message expression to have a string result, got {type}"
        )


def test_an_unknown_type_of_rule_is_invalid() -> None:
    assert one(CM, "true", type="Oracle")[:2] == ("Unknown", "Invalid")


# Of all manifests together


@pytest.mark.parametrize(
    ("condition", "answers", "becomes"),
    [
        ("Progressing", ("yes", "no"),    "True"),
        ("Progressing", ("odd", "no"),    "Unknown"),
        ("Progressing", ("no", "no"),     "False"),
        ("Degraded",    ("yes", "no"),    "True"),
        ("Degraded",    ("no", "no"),     "False"),
        ("Fine",        ("yes", "no"),    "False"),
        ("Fine",        ("yes", "odd"),   "Unknown"),
        ("Fine",        ("yes", "yes"),   "True"),
    ],
)  # fmt: skip
def test_one_is_enough_to_progress_or_degrade_and_anything_else_takes_all(
    condition: str, answers: tuple[str, str], becomes: str
) -> None:
    spoke = Spoke()
    manifests = [config_map(f"cm{n}", a=answer) for n, answer in enumerate(answers)]
    rules = {"yes": "CEL", "no": "CEL", "odd": "Oracle"}
    spoke.ask(
        *manifests,
        manifestConfigs=[
            config_for(
                manifest,
                conditionRules=[{**rule(condition, "object.data.a == 'yes'"), "type": rules[answer]}],
            )
            for manifest, answer in zip(manifests, answers, strict=True)
        ],
    )

    assert spoke.said(condition) == (becomes, "ConditionRulesAggregated")
    assert spoke.condition(condition)["observedGeneration"] == 1


def test_conditions_of_rules_that_are_gone_are_gone() -> None:
    spoke = Spoke()
    manifest = config_map()
    spoke.ask(manifest, manifestConfigs=[config_for(manifest, conditionRules=[rule("Fine", "true")])])
    assert spoke.said("Fine")[0] == "True"
    spoke.ask(manifest)

    assert spoke.said("Fine") == ("", "")
    assert spoke.said_of(0, "Fine") == ("", "")


def test_nothing_is_said_by_a_rule_of_a_generation_that_is_not_applied_yet() -> None:
    spoke = Spoke()
    how = [config_for(config_map(), conditionRules=[rule("Progressing", "object.data.phase != 'done'")])]
    spoke.ask(config_map(phase="done", rev="1"), manifestConfigs=how)
    play = spoke.play()
    spoke.home.refuse = {Replace: Invalid("not now")}
    spoke.want(config_map(phase="working", rev="2"), manifestConfigs=how)
    play.settle()

    assert spoke.condition("Applied")["observedGeneration"] == 2
    assert spoke.condition("Progressing")["observedGeneration"] == 1
    assert spoke.condition_of(0, "Progressing")["observedGeneration"] == 1
    spoke.home.refuse = {}
    spoke.next_try(play)
    assert spoke.said("Progressing")[0] == "True"
    assert spoke.condition("Progressing")["observedGeneration"] == 2


def test_the_first_config_that_says_something_counts_and_names_may_have_wildcards() -> None:
    spoke = Spoke()
    broad = {"group": "", "resource": "configmaps", "name": "cm*", "namespace": "*"}
    exact = config_for(config_map(), conditionRules=[rule("Second", "true")], **strategy("CreateOnly"))
    first = {"resourceIdentifier": broad, "conditionRules": [rule("First", "true")]}
    spoke.ask(config_map(a="1"), manifestConfigs=[first, exact])
    spoke.ask(config_map(a="2"), manifestConfigs=[first, exact])

    assert spoke.said("First")[0] == "True"
    assert spoke.said("Second") == ("", "")
    assert spoke.there()["data"] == {"a": "1"}, "the strategy is the second one's"


# Complete


def test_what_is_complete_is_left_alone_until_another_generation_comes() -> None:
    spoke = Spoke()
    how = [config_for(config_map(), conditionRules=[rule("Complete", "object.data.done == 'yes'")])]
    spoke.ask(config_map(done="yes"), manifestConfigs=how)
    assert spoke.said("Complete")[0] == "True"
    spoke.home.delete(meta.ref(spoke.there()))
    spoke.run()
    assert not spoke.has(), "what has completed may go"
    assert spoke.said("Applied")[0] == "True"
    assert spoke.said("Complete")[0] == "True"
    assert spoke.said("Available")[0] == "False"

    spoke.ask(config_map(done="no"), manifestConfigs=how)
    assert spoke.there()["data"] == {"done": "no"}
    assert spoke.said("Complete")[0] == "False"


# What is known without rules


def deployment(**status: Any) -> Made:
    return make(DEPLOYMENT, "web", spec={"replicas": 2}, status=status)


DONE = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
LATE = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}]
FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
OVER = [{"type": "Complete", "status": "True"}]
SPREAD = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
}


@pytest.mark.parametrize(
    ("obj", "waits", "failed"),
    [
        (deployment(**DONE),                                             False, False),
        (deployment(**{**DONE, "observedGeneration": 0}),                True,  False),
        (deployment(**{**DONE, "updatedReplicas": 1}),                   True,  False),
        (deployment(**{**DONE, "availableReplicas": 1}),                 True,  False),
        (deployment(**{**DONE, "replicas": 3}),                          True,  False),
        (deployment(**DONE, conditions=LATE),                            True,  True),
        (make(STATEFUL_SET, "db", spec={"replicas": 2}, status=DONE),    False, False),
        (make(STATEFUL_SET, "db", spec={"replicas": 2}, status={**DONE, "updatedReplicas": 1}), True, False),
        (make(STATEFUL_SET, "db", spec={"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
              status={**DONE, "updatedReplicas": 1}),                    False, False),
        (make(STATEFUL_SET, "db", spec={"replicas": 2}, status={**DONE, "availableReplicas": 0}), True, False),
        (make(DAEMON_SET, "ds", spec={}, status=SPREAD),                 False, False),
        (make(DAEMON_SET, "ds", spec={}, status={**SPREAD, "numberAvailable": 1}), True, False),
        (make(DAEMON_SET, "ds", spec={}, status={**SPREAD, "updatedNumberScheduled": 1}), True, False),
        (make(JOB, "j", status={"active": 1}),                           False, False),
        (make(JOB, "j", status={"active": 1, "failed": 1}),              True,  False),
        (make(JOB, "j", status={"failed": 1, "conditions": OVER}),       False, False),
        (make(JOB, "j", status={"conditions": FAILED}),                  True,  True),
        (make(WIDGET, "w"),                                              False, False),
    ],
)  # fmt: skip
def test_kinds_that_are_known_are_settled_or_not(obj: Made, waits: bool, failed: bool) -> None:
    obj["metadata"]["generation"] = 1
    found = health(obj)
    assert (bool(found.waiting), bool(found.failed)) == (waits, failed)


def test_a_work_without_rules_progresses_until_what_it_made_is_settled() -> None:
    spoke = Spoke()
    spoke.ask(make(DEPLOYMENT, "web", spec={"replicas": 2}))
    assert spoke.said("Applied")[0] == "True"
    assert spoke.said("Progressing") == ("True", "Applying")
    ref = DEPLOYMENT.ref("default", "web")

    spoke.home.patch(ref, {"status": {**DONE, "conditions": LATE}}, subresource="status")
    spoke.run()
    assert spoke.said("Degraded") == ("True", "Failed")
    assert "late" in spoke.condition("Degraded")["message"]

    spoke.home.patch(ref, {"status": {**DONE, "conditions": []}}, subresource="status")
    spoke.run()
    assert spoke.said("Progressing") == ("False", "Completed")
    assert spoke.said("Degraded") == ("False", "Completed")


def test_what_is_only_read_delays_nothing() -> None:
    spoke = Spoke()
    spoke.home.create(deployment())
    manifest = make(DEPLOYMENT, "web", spec={})
    spoke.ask(manifest, manifestConfigs=[config_for(manifest, "deployments", **strategy("ReadOnly"))])
    assert spoke.said("Progressing") == ("False", "Completed")


def test_of_two_conditions_only_the_one_with_a_rule_comes_from_it() -> None:
    spoke = Spoke()
    how = [config_for(config_map(), conditionRules=[rule("Progressing", "true")])]
    spoke.ask(config_map(), manifestConfigs=how)
    assert spoke.said("Progressing") == ("True", "ConditionRulesAggregated")
    assert spoke.said("Degraded") == ("False", "Completed")


# When


def test_applied_counts_anew_with_each_generation() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    first = spoke.condition("Applied"), spoke.condition_of(0, "Applied"), spoke.condition("Available")
    spoke.pass_time(60)
    spoke.ask(config_map(a="2"))

    assert spoke.condition("Applied")["lastTransitionTime"] > first[0]["lastTransitionTime"]
    assert spoke.condition_of(0, "Applied")["lastTransitionTime"] > first[1]["lastTransitionTime"]
    assert spoke.condition("Available")["lastTransitionTime"] == first[2]["lastTransitionTime"]


def test_what_exists_no_more_is_not_available() -> None:
    spoke = Spoke()
    spoke.home.create(config_map("theirs"))
    how = [config_for(config_map("theirs"), **strategy("ReadOnly"))]
    spoke.ask(config_map("theirs"), config_map(), manifestConfigs=how)
    assert spoke.said("Available") == ("True", "ResourcesAvailable")
    spoke.home.delete(meta.ref(spoke.there("theirs")))
    spoke.run()

    assert spoke.said_of(0, "Available") == ("False", "ResourceNotAvailable")
    assert spoke.condition("Available")["message"] == "1 of 2 resources are not available"


def test_a_work_without_manifests_is_applied_and_its_availability_unknown() -> None:
    spoke = Spoke()
    spoke.ask()
    assert spoke.said("Applied")[0] == "True"
    assert spoke.said("Available") == ("Unknown", "ResourcesStatusUnknown")


# Feedback


def paths(**named: str) -> FeedbackRule:
    rules = tuple(JsonPathRule(name=name, path=path) for name, path in named.items())
    return FeedbackRule(type="JSONPaths", json_paths=rules)


OBJ: Made = {
    "apiVersion": "v1",
    "kind": "Thing",
    "n": 3,
    "t": "text",
    "b": True,
    "f": 1.5,
    "nothing": None,
    "list": [{"x": 1}, {"x": 2}],
}


@pytest.mark.parametrize(
    ("path", "raw", "value", "wrong"),
    [
        (".n",          False, {"type": "Integer", "integer": 3},              ""),
        (".t",          False, {"type": "String", "string": "text"},           ""),
        (".b",          False, {"type": "Boolean", "boolean": True},           ""),
        (".missing",    False, None,                                           ""),
        (".nothing",    False, None,                                           ""),
        (".f",          False, None,                                           "the type float"),
        (".list",       False, None,                                           "the type list"),
        (".list[0]",    False, None,                                           "the type object"),
        (".list[*].x",  False, {"type": "Integer", "integer": 1},              ""),
        (".list[*].x",  True,  {"type": "JsonRaw", "jsonRaw": "[1,2]"},        ""),
        (".list[0]",    True,  {"type": "JsonRaw", "jsonRaw": '{"x":1}'},      ""),
        (".f",          True,  {"type": "JsonRaw", "jsonRaw": "1.5"},          ""),
        ('.list[?(@.x==2)].x', False, {"type": "Integer", "integer": 2},       ""),
        (".list[",      False, None,                                           "failed to parse json path"),
        (".t[0]",       False, None,                                           "failed to find value"),
    ],
)  # fmt: skip
def test_values_come_with_their_type(path: str, raw: bool, value: Made | None, wrong: str) -> None:
    found = feedback(OBJ, [paths(v=path)], raw=raw)
    assert [one["fieldValue"] for one in found.values] == ([value] if value else [])
    assert [text for text in found.wrong if wrong not in text] == []
    assert bool(found.wrong) == bool(wrong)


def test_json_has_an_end() -> None:
    found = feedback({**OBJ, "list": ["x" * 2000]}, [paths(v=".list")], raw=True)
    assert "larger than the maximum length 1024" in found.wrong[0]


def test_a_path_for_another_version_is_a_mistake() -> None:
    one = FeedbackRule(type="JSONPaths", json_paths=(JsonPathRule(name="v", path=".n", version="v2"),))
    assert "is not matched" in feedback(OBJ, [one]).wrong[0]


@pytest.mark.parametrize(
    ("obj", "values"),
    [
        (
            make(DEPLOYMENT, "d", status={"replicas": 2, "readyReplicas": 1}),
            {"ReadyReplicas": 1, "Replicas": 2},
        ),
        (
            make(
                DAEMON_SET, "d", status={"numberReady": 1, "desiredNumberScheduled": 2, "numberAvailable": 1}
            ),
            {"NumberReady": 1, "DesiredNumberScheduled": 2, "NumberAvailable": 1},
        ),
        (
            make(JOB, "j", status={"succeeded": 1, "conditions": OVER}),
            {"JobComplete": "True", "JobSucceeded": 1},
        ),
        (
            make(POD, "p", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}),
            {"PodReady": "False", "PodPhase": "Running"},
        ),
    ],
)
def test_what_is_well_known_needs_no_path(obj: Made, values: Made) -> None:
    found = feedback(obj, [FeedbackRule(type="WellKnownStatus")])
    told = {one["name"]: next(v for k, v in one["fieldValue"].items() if k != "type") for one in found.values}
    assert told == values
    assert not found.wrong


def test_other_kinds_have_nothing_well_known() -> None:
    assert feedback(OBJ, [FeedbackRule(type="WellKnownStatus")]).wrong


def test_feedback_follows_what_happens_and_says_whether_it_worked() -> None:
    spoke = Spoke()
    told = [{"type": "JSONPaths", "jsonPaths": [{"name": "note", "path": ".metadata.annotations.note"}]}]
    how = [config_for(config_map(), feedbackRules=told)]
    spoke.ask(config_map(), manifestConfigs=how)
    assert spoke.said_of(0, "StatusFeedbackSynced") == ("True", "StatusFeedbackSynced")
    assert spoke.values() == {}
    first = spoke.condition_of(0, "StatusFeedbackSynced")["lastTransitionTime"]
    spoke.pass_time(60)
    spoke.home.patch(meta.ref(spoke.there()), {"metadata": {"annotations": {"note": "1"}}})
    spoke.run()

    assert spoke.values() == {"note": "1"}
    assert spoke.condition_of(0, "StatusFeedbackSynced")["lastTransitionTime"] > first
    spoke.ask(config_map())
    assert spoke.said_of(0, "StatusFeedbackSynced") == ("True", "NoStatusFeedbackSynced")
    assert "statusFeedback" not in spoke.entry()


def test_feedback_that_fails_says_so_and_tells_the_rest() -> None:
    spoke = Spoke()
    rules = [
        {"type": "WellKnownStatus"},
        {"type": "JSONPaths", "jsonPaths": [{"name": "a", "path": ".data.a"}]},
    ]
    spoke.ask(config_map(a="1"), manifestConfigs=[config_for(config_map(), feedbackRules=rules)])
    assert spoke.said_of(0, "StatusFeedbackSynced") == ("False", "StatusFeedbackSyncFailed")
    assert spoke.values() == {"a": "1"}


def test_more_kinds_than_may_be_watched_are_looked_at_now_and_then() -> None:
    spoke = Spoke(options=AgentOptions(watches=1))
    told = [{"type": "JSONPaths", "jsonPaths": [{"name": "t", "path": ".type"}]}]
    secret = make(SECRET, "s", type="Opaque")
    how = [config_for(secret, "secrets", feedbackRules=told, **strategy("ReadOnly"))]
    spoke.home.create(secret)
    spoke.want(config_map(), secret, manifestConfigs=how)
    play = spoke.play()
    play.settle()
    play.pass_time(timedelta(seconds=2))
    assert spoke.values(1) == {"t": "Opaque"}

    spoke.home.patch(SECRET.ref("default", "s"), {"type": "Other"})
    play.settle()
    assert spoke.values(1) == {"t": "Opaque"}
    play.pass_time(timedelta(seconds=20))
    assert spoke.values(1) == {"t": "Other"}


def test_a_rule_whose_name_no_server_would_take_is_passed_over() -> None:
    spoke = Spoke()
    rules = [rule("not a name!", "true"), rule("Fine", "true"), rule("Applied", "false")]
    spoke.ask(config_map(), manifestConfigs=[config_for(config_map(), conditionRules=rules)])

    said = [one["type"] for one in spoke.entry()["conditions"]]
    assert said == ["Applied", "Available", "StatusFeedbackSynced", "Fine"]
    assert spoke.said("Applied")[0] == "True"
