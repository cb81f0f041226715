"""Probes of a spec: what they select, what they say, and how they are invalid."""

from typing import Any

import pytest

from lamina.core.health.probe import HEALTHY, ProbeResult, ProbeStatus, unhealthy, unknown
from lamina.core.health.probe_spec import Probes, compile_probes
from lamina.errors import SpecError
from lamina.objects.types import Made, Obj

FIELD = "spec.availabilityProbes"
DEPLOYMENT = {"group": "apps", "kind": "Deployment"}
AVAILABLE: Obj = {"condition": {"type": "Available", "status": "True"}}
UPDATED: Obj = {"fieldsEqual": {"fieldA": ".status.updatedReplicas", "fieldB": ".status.replicas"}}
RUNNING: Obj = {"cel": {"rule": 'self.status.phase == "Running"', "message": "it does not run"}}


def entry(*probes: Obj, kind: Obj = DEPLOYMENT, labels: Obj | None = None) -> Made:
    selector: Made = {"kind": kind}
    if labels is not None:
        selector["selector"] = labels
    return {"selector": selector, "probes": [*probes]}


def deployment(status: Any = None, labels: Obj | None = None, generation: int = 2) -> Made:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "generation": generation, "labels": labels or {}},
        "status": status,
    }


def condition(status: str, **fields: Any) -> Made:
    return {"conditions": [{"type": "Available", "status": status, **fields}]}


def result(obj: Obj, *entries: Obj) -> ProbeResult:
    return compile_probes(entries, FIELD).probe(obj)


# Each probe

IS_FALSE, OUTDATED = '.status.condition["Available"] is False', '.status.condition["Available"] outdated'
DIFFERENT = '".status.updatedReplicas" != ".status.replicas" expected: 1 got: 2'


@pytest.mark.parametrize(
    ("probe", "status", "answer", "because"),
    [
        (AVAILABLE, condition("True"),                               "True",    ""),
        (AVAILABLE, condition("True", observedGeneration=2),         "True",    ""),
        (AVAILABLE, condition("False"),                              "False",   IS_FALSE),
        (AVAILABLE, condition("True", observedGeneration=1),         "Unknown", OUTDATED),
        (AVAILABLE, condition("False", observedGeneration=1),        "Unknown", OUTDATED),
        (AVAILABLE, {"conditions": []},                              "Unknown", 'missing .status.condition["Available"]'),
        (AVAILABLE, {"conditions": "Available"},                     "Unknown", "malformed .status.conditions"),
        (AVAILABLE, {},                                              "Unknown", "missing .status.conditions"),
        (AVAILABLE, condition("True") | {"observedGeneration": 1},   "Unknown", ".status outdated"),
        (UPDATED,   {"updatedReplicas": 2, "replicas": 2},           "True",    ""),
        (UPDATED,   {"updatedReplicas": 1, "replicas": 2},           "False",   DIFFERENT),
        (UPDATED,   {"updatedReplicas": 1},                          "False",   '".status.replicas" missing'),
        (UPDATED,   {},                                              "False",   '".status.updatedReplicas" missing'),
        (UPDATED,   {"updatedReplicas": 2, "replicas": 2, "observedGeneration": 1}, "Unknown", ".status outdated"),
        (RUNNING,   {"phase": "Running"},                            "True",    ""),
        (RUNNING,   {"phase": "Pending"},                            "False",   "it does not run"),
        (RUNNING,   {},                                              "Unknown", "CEL program failed: no such key: phase"),
        (RUNNING,   {"phase": "Pending", "observedGeneration": 3},   "Unknown", ".status outdated"),
        (RUNNING,   {"phase": "Running", "observedGeneration": 2},   "True",    ""),
    ],
)  # fmt: skip
def test_a_probe_is_true_false_or_unknown(probe: Obj, status: Obj, answer: str, because: str) -> None:
    assert result(deployment(status), entry(probe)) == ProbeResult(ProbeStatus(answer), because)


def test_the_status_of_a_condition_is_true_by_default() -> None:
    probe = {"condition": {"type": "Available"}}

    assert result(deployment(condition("True")), entry(probe)) == HEALTHY
    assert result(deployment(condition("False")), entry(probe)) == unhealthy(IS_FALSE)


@pytest.mark.parametrize("field", [".metadata.name", "metadata.name", "..metadata.name."])
def test_the_dots_around_a_path_are_optional(field: str) -> None:
    probe = {"fieldsEqual": {"fieldA": field, "fieldB": ".metadata.labels.name"}}

    assert result(deployment(labels={"name": "web"}), entry(probe)) == HEALTHY


@pytest.mark.parametrize("field", [".spec.ports[0]", ".spec.ports.0", '.metadata.labels["app.io/a"]', ""])
def test_a_path_has_neither_indexes_nor_quoted_keys(field: str) -> None:
    obj = deployment(labels={"app.io/a": "x"}) | {"spec": {"ports": [1]}}
    probe = {"fieldsEqual": {"fieldA": field, "fieldB": field}}

    assert result(obj, entry(probe)) == unhealthy(f'".{field.strip(".")}" missing')


@pytest.mark.parametrize(
    ("probe", "because"),
    [
        ({**UPDATED, **AVAILABLE, **RUNNING}, '".status.updatedReplicas" missing'),
        ({**RUNNING, **AVAILABLE}, "missing .status.conditions"),
        ({**RUNNING, "condition": None}, "CEL program failed: no such key: phase"),
    ],
)
def test_of_several_members_the_first_wins(probe: Obj, because: str) -> None:
    assert result(deployment({}), entry(probe)).because == because


@pytest.mark.parametrize("probe", [{}, {"cel": None}, {"later": {"version": 2}}])
def test_a_probe_without_a_known_member_is_ignored(probe: Obj) -> None:
    assert result(deployment(), entry(probe)) == HEALTHY
    assert result(deployment({}), entry(probe, UPDATED)) == unhealthy('".status.updatedReplicas" missing')


def test_an_entry_without_probes_still_waits_for_the_current_status() -> None:
    assert result(deployment({"observedGeneration": 1}), entry()) == unknown(".status outdated")


# Selectors


@pytest.mark.parametrize(
    ("kind", "api_version", "selected"),
    [
        (DEPLOYMENT,                              "apps/v1",      True),
        (DEPLOYMENT,                              "apps/v1beta1", True),
        (DEPLOYMENT,                              "v1",           False),
        (DEPLOYMENT,                              "extensions/v1beta1", False),
        ({"group": "apps", "kind": "DaemonSet"},  "apps/v1",      False),
        ({"group": "", "kind": "Deployment"},     "v1",           True),
        ({"kind": "Deployment"},                  "v1",           True),
        ({"group": "", "kind": "Deployment"},     "apps/v1",      False),
    ],
)  # fmt: skip
def test_an_entry_selects_a_kind_of_a_group_in_any_version(
    kind: Obj, api_version: str, selected: bool
) -> None:
    obj = deployment(condition("False")) | {"apiVersion": api_version}

    assert result(obj, entry(AVAILABLE, kind=kind)).is_healthy is not selected


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (None,                                                                    {},                            True),
        ({},                                                                      {"app": "web"},                True),
        ({"matchLabels": {"app": "web"}},                                         {"app": "web", "tier": "a"},   True),
        ({"matchLabels": {"app": "web"}},                                         {"app": "db"},                 False),
        ({"matchLabels": {"app": "web"}},                                         {},                            False),
        ({"matchLabels": {"app": "web", "tier": "a"}},                            {"app": "web"},                False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},    {"app": "web"},         True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, {"app": "web"},         False),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, {},                     True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]},            {},                            False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist", "values": None}]}, {},                 True),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}, {"app": "web"}, False),
    ],
)  # fmt: skip
def test_an_entry_selects_by_the_labels_of_the_live_object(
    selector: Obj | None, labels: Obj, selected: bool
) -> None:
    obj = deployment(condition("False"), labels=labels)

    assert result(obj, entry(AVAILABLE, labels=selector)).is_healthy is not selected


def test_the_generation_guard_is_for_objects_that_are_selected() -> None:
    obj = deployment({"observedGeneration": 1}, labels={"app": "db"})

    assert result(obj, entry(AVAILABLE, labels={"matchLabels": {"app": "web"}})) == HEALTHY


@pytest.mark.parametrize("entries", [[], [entry(AVAILABLE, kind={"kind": "Pod"})]])
def test_an_object_that_no_entry_selects_is_available(entries: list[Obj]) -> None:
    assert compile_probes(entries, FIELD).probe(deployment()) == HEALTHY


def test_an_entry_without_a_kind_is_for_every_kind() -> None:
    assert result({"kind": "Pod", "status": {}}, {"probes": [RUNNING]}).answer is ProbeStatus.UNKNOWN


# Several probes


def test_all_that_is_false_is_said() -> None:
    obj = deployment(condition("False") | {"updatedReplicas": 1, "replicas": 2, "phase": "Pending"})

    assert result(obj, entry(AVAILABLE, UPDATED), entry(RUNNING)) == unhealthy(
        f"{IS_FALSE}, {DIFFERENT}, it does not run"
    )


def test_unknown_hides_what_is_false() -> None:
    obj = deployment({"updatedReplicas": 1, "replicas": 2})

    assert result(obj, entry(UPDATED, AVAILABLE), entry(RUNNING)) == unknown(
        "missing .status.conditions, CEL program failed: no such key: phase"
    )


def test_only_all_true_is_available() -> None:
    obj = deployment(condition("True") | {"updatedReplicas": 2, "replicas": 2, "phase": "Running"})

    assert result(obj, entry(AVAILABLE, UPDATED), entry(RUNNING)) == HEALTHY
    assert not result(obj, entry(AVAILABLE, UPDATED), entry({"condition": {"type": "Ready"}})).is_healthy


def test_an_outdated_status_is_said_once() -> None:
    obj = deployment({"observedGeneration": 1})

    assert result(obj, entry(AVAILABLE), entry(UPDATED)) == unknown(".status outdated")


# Invalid probes

FIX = 'correct it; the object is the variable "self"'
OPERATORS = "correct it; the operators are In and NotIn, with values, and Exists and DoesNotExist, without"


def cel(rule: str) -> Obj:
    return {"cel": {"rule": rule, "message": "no"}}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry(AVAILABLE, cel("slf"))],
         "spec.availabilityProbes[0].probes[1].cel.rule: CEL expression \"slf\" does not compile: undeclared reference to "
         f"'slf' (in container '') (line 1, column 1), did you mean 'self'?: {FIX}"),
        ([entry(), entry(cel("self.ready"))],
         'spec.availabilityProbes[1].probes[0].cel.rule: CEL expression must evaluate to a bool, and the type of "self.ready" '
         'is dyn: compare its value, as in "self.status.ready == true"'),
        ([entry(labels={"matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]})],
         f'spec.availabilityProbes[0].selector.selector: "Is" is not a valid label selector operator: {OPERATORS}'),
        ([entry(labels={"matchExpressions": [{"key": "app", "operator": "In"}]})],
         "spec.availabilityProbes[0].selector.selector: values: Invalid value: []: for 'in', 'notin' operators, values set "
         f"can't be empty: {OPERATORS}"),
        ([entry({"condition": {"status": "True"}})],
         "spec.availabilityProbes[0].probes[0].condition: object missing required field `type`"),
        ([entry({"fieldsEqual": {"fieldA": ".a", "fieldB": 1}})],
         "spec.availabilityProbes[0].probes[0].fieldsEqual.fieldB: expected `str`, got `int`"),
        ([entry(labels={"matchLabels": ["app"]})],
         "spec.availabilityProbes[0].selector.selector.matchLabels: expected `object`, got `array`"),
    ],
)  # fmt: skip
def test_an_invalid_probe_names_its_field_and_the_remedy(entries: list[Obj], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        compile_probes(entries, FIELD)

    assert str(raised.value) == message


def test_all_that_is_invalid_is_said_at_once() -> None:
    selector = {"matchLabels": {"app": "not a label"}}

    with pytest.raises(SpecError) as raised:
        compile_probes([entry(cel("1"), cel("2"), labels=selector), entry(cel("3"))], FIELD)

    found = [one.partition(": ")[0] for one in str(raised.value).split("; spec") if one]
    assert [one.removeprefix("spec") for one in found] == [
        ".availabilityProbes[0].probes[0].cel.rule",
        ".availabilityProbes[0].probes[1].cel.rule",
        ".availabilityProbes[0].selector.selector",
        ".availabilityProbes[1].probes[0].cel.rule",
    ]


def test_an_invalid_expression_that_is_not_used_does_no_harm() -> None:
    assert result(deployment(condition("True")), entry({**AVAILABLE, **cel("slf")})) == HEALTHY


def test_the_field_of_the_probes_may_be_another() -> None:
    for where in ("spec.template.spec.availabilityProbes", "spec.availabilityProbes"):
        with pytest.raises(SpecError) as raised:
            compile_probes([entry(cel("1"))], where)
        assert str(raised.value).startswith(f"{where}[0].probes[0].cel.rule: ")


# Compiled once


def test_equal_probes_are_compiled_once() -> None:
    first = compile_probes([entry(AVAILABLE, RUNNING)], FIELD)

    assert compile_probes([dict(reversed(entry(AVAILABLE, RUNNING).items()))], FIELD) is first
    assert compile_probes([entry(RUNNING, AVAILABLE)], FIELD) is not first


def test_a_spec_without_probes_has_none() -> None:
    assert compile_probes((), FIELD) == Probes()
