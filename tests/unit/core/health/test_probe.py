"""Is this object well, and how do we know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.health.probe import (
    HEALTHY,
    Probe,
    ProbeResult,
    ProbeStatus,
    all_of,
    condition_is,
    conjunction,
    fields_are_equal,
    has_condition,
    has_observed_its_spec,
    unhealthy,
    unknown,
    with_generation_guard,
)
from lamina.objects.types import Made, Obj

READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}]}}
LATE = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Down"}]}}


@pytest.mark.parametrize(
    ("obj", "probe", "answer", "because"),
    [
        (READY, has_condition("Ready"),               ProbeStatus.TRUE,    ""),
        (READY, has_condition("Ready", "True"),       ProbeStatus.TRUE,    ""),
        (READY, has_condition("Ready", "True", "Up"), ProbeStatus.TRUE,    ""),
        ({},    has_condition("Ready"),               ProbeStatus.UNKNOWN, 'required condition type missing: "Ready"'),
        (LATE,  has_condition("Ready", "True"),       ProbeStatus.FALSE,   '"Ready" condition status is "False" (want "True")'),
        (LATE,  has_condition("Ready", None, "Up"),   ProbeStatus.FALSE,   '"Ready" condition reason is "Down" (want "Up")'),
    ],
)  # fmt: skip
def test_a_condition_is_asked_for(obj: Obj, probe: Probe, answer: ProbeStatus, because: str) -> None:
    verdict = probe(obj)

    assert (verdict.answer, verdict.because) == (answer, because)


@pytest.mark.parametrize(
    ("generation", "seen", "answer"),
    [
        (2, 2, ProbeStatus.TRUE),
        (2, 1, ProbeStatus.UNKNOWN),
        (2, 0, ProbeStatus.TRUE),
        (2, None, ProbeStatus.TRUE),
    ],
)
def test_a_status_about_an_older_generation_is_no_answer(
    generation: int, seen: int, answer: ProbeStatus
) -> None:
    obj = {"metadata": {"generation": generation}, "status": {"observedGeneration": seen}}

    assert has_observed_its_spec(obj).answer is answer


def test_several_probes_say_what_the_first_unwell_one_says() -> None:
    both = all_of([has_condition("Ready", "True"), has_condition("Synced")])

    assert both(LATE).because.startswith('"Ready"')
    assert both(READY).because == 'required condition type missing: "Synced"'
    assert all_of([])({}) == HEALTHY


# Any conditions

STATUSES = st.sampled_from(("True", "False", "Unknown"))
REASONS = st.sampled_from(("Up", "Down"))


def obj(status: str, reason: str) -> Made:
    return {"status": {"conditions": [{"type": "Ready", "status": status, "reason": reason}]}}


@given(status=STATUSES, reason=REASONS, wanted=st.none() | STATUSES, wanted_reason=st.none() | REASONS)
def test_a_condition_is_healthy_where_all_that_is_compared_is_equal(
    status: str, reason: str, wanted: str | None, wanted_reason: str | None
) -> None:
    found = has_condition("Ready", wanted, wanted_reason)(obj(status, reason))

    assert found.is_healthy is (wanted in (None, status) and wanted_reason in (None, reason))
    assert found.answer in (ProbeStatus.TRUE, ProbeStatus.FALSE)
    assert bool(found.because) is not found.is_healthy


@given(status=STATUSES, reason=REASONS, name=st.sampled_from(("Synced", "ready", "")))
def test_a_condition_that_is_missing_is_unknown_whatever_the_others_are(
    status: str, reason: str, name: str
) -> None:
    assert has_condition(name)(obj(status, reason)).answer is ProbeStatus.UNKNOWN


@pytest.mark.parametrize(
    "broken", [{}, {"status": None}, {"status": "Ready"}, {"status": {"conditions": "x"}}]
)
def test_an_object_without_conditions_is_unknown(broken: Obj) -> None:
    assert has_condition("Ready")(broken).answer is ProbeStatus.UNKNOWN


@given(results=st.lists(st.sampled_from((HEALTHY, unknown("one"), unhealthy("two"))), max_size=5))
def test_all_probes_are_healthy_or_the_first_that_is_not_decides(results: list[ProbeResult]) -> None:
    asked: list[int] = []

    def probe(number: int) -> Probe:
        def ask(obj: Obj) -> ProbeResult:
            asked.append(number)
            return results[number]

        return ask

    found = all_of([probe(number) for number in range(len(results))])({})
    bad = [number for number, one in enumerate(results) if not one.is_healthy]

    assert found == (results[bad[0]] if bad else HEALTHY)
    assert asked == list(range((bad[0] + 1) if bad else len(results)))


def test_probes_that_come_from_an_iterator_are_asked_each_time() -> None:
    probe = all_of(iter([has_condition("Ready", "True")]))

    assert not probe(LATE).is_healthy
    assert not probe(LATE).is_healthy


@pytest.mark.parametrize(
    "status", [None, "Ready", {}, {"observedGeneration": "2"}, {"observedGeneration": -1}]
)
def test_a_status_that_names_no_generation_is_about_the_current_one(status: object) -> None:
    assert has_observed_its_spec({"metadata": {"generation": 3}, "status": status}).is_healthy


@given(generation=st.integers(0, 5), observed=st.integers(1, 5))
def test_a_status_is_outdated_where_it_names_an_older_generation(generation: int, observed: int) -> None:
    found = has_observed_its_spec(
        {"metadata": {"generation": generation}, "status": {"observedGeneration": observed}}
    )

    assert found.is_healthy is (observed >= generation)
    assert found.answer in (ProbeStatus.TRUE, ProbeStatus.UNKNOWN)


# Conditions of one generation


def reported(*conditions: object, generation: int = 2) -> Made:
    return {"metadata": {"generation": generation}, "status": {"conditions": [*conditions]}}


@pytest.mark.parametrize(
    ("obj", "answer", "because"),
    [
        (reported({"type": "Up", "status": "True"}), "True", ""),
        (reported({"type": "Up", "status": "True", "observedGeneration": 2}), "True", ""),
        (reported({"type": "On"}, {"type": "Up", "status": "True"}), "True", ""),
        (reported({"type": "Up", "status": "True"}, "no condition"), "True", ""),
        (reported({"type": "Up", "status": "False"}), "False", '.status.condition["Up"] is False'),
        (reported({"type": "Up", "status": "Unknown"}), "False", '.status.condition["Up"] is Unknown'),
        (reported({"type": "Up"}), "False", '.status.condition["Up"] is without status'),
        (reported({"type": "Up", "status": "True", "observedGeneration": 1}), "Unknown", '.status.condition["Up"] outdated'),
        (reported({"type": "Up", "status": "False", "observedGeneration": 1}), "Unknown", '.status.condition["Up"] outdated'),
        (reported({"type": "Up", "status": "True", "observedGeneration": 3}), "Unknown", '.status.condition["Up"] outdated'),
        (reported({"type": "Up", "status": "True", "observedGeneration": 0}), "Unknown", '.status.condition["Up"] outdated'),
        (reported({"type": "Up", "status": "True", "observedGeneration": "1"}), "True", ""),
        (reported({"type": "Up", "status": "True", "observedGeneration": None}), "True", ""),
        (reported({"type": "On", "status": "True"}), "Unknown", 'missing .status.condition["Up"]'),
        (reported(), "Unknown", 'missing .status.condition["Up"]'),
        (reported("no condition", {"type": "Up", "status": "True"}), "Unknown", "malformed .status.conditions"),
        ({"status": {"conditions": {"type": "Up"}}}, "Unknown", "malformed .status.conditions"),
        ({"status": {"conditions": None}}, "Unknown", "malformed .status.conditions"),
        ({"status": {}}, "Unknown", "missing .status.conditions"),
        ({"status": "Up"}, "Unknown", "missing .status.conditions"),
        ({"status": None}, "Unknown", "missing .status.conditions"),
        ({}, "Unknown", "missing .status.conditions"),
    ],
)  # fmt: skip
def test_a_condition_has_its_status_for_the_current_generation(obj: Obj, answer: str, because: str) -> None:
    assert condition_is("Up")(obj) == ProbeResult(ProbeStatus(answer), because)


def test_a_condition_may_have_to_be_something_else_than_true() -> None:
    obj = reported({"type": "Stalled", "status": "False"})

    assert condition_is("Stalled", "False")(obj) == HEALTHY


def test_the_first_condition_of_a_type_decides() -> None:
    obj = reported({"type": "Up", "status": "False"}, {"type": "Up", "status": "True"})

    assert condition_is("Up")(obj) == unhealthy('.status.condition["Up"] is False')


# Fields that have to be equal

A, B = ("spec", "a"), ("status", "b")


def pair(one: object, other: object) -> Made:
    return {"spec": {"a": one}, "status": {"b": other}}


@pytest.mark.parametrize("value", [3, "x", None, True, 1.5, [], {}, {"x": [1, {"y": "z"}]}])
def test_fields_with_equal_values_are_equal(value: object) -> None:
    assert fields_are_equal(A, B)(pair(value, value)) == HEALTHY


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (3,               2,               "expected: 3 got: 2"),
        ("3",             3,               'expected: "3" got: 3'),
        (1,               True,            "expected: 1 got: true"),
        (None,            {},              "expected: null got: {}"),
        ([1, 2],          [2, 1],          "expected: [1,2] got: [2,1]"),
        ({"x": {"y": 1}}, {"x": {"y": 2}}, 'expected: {"x":{"y":1}} got: {"x":{"y":2}}'),
        ("x" * 200,       "y",             'expected: "' + "x" * 79 + '... got: "y"'),
    ],
)  # fmt: skip
def test_fields_with_different_values_are_not_equal(one: object, other: object, shown: str) -> None:
    assert fields_are_equal(A, B)(pair(one, other)) == unhealthy(f'".spec.a" != ".status.b" {shown}')


@pytest.mark.parametrize(
    ("obj", "missing"),
    [
        ({}, ".spec.a"),
        ({"spec": None, "status": {"b": 1}}, ".spec.a"),
        ({"spec": {"b": 1}, "status": {"a": 1}}, ".spec.a"),
        ({"spec": ["a"], "status": {"b": 1}}, ".spec.a"),
        ({"spec": {"a": 1}}, ".status.b"),
        ({"spec": {"a": None}}, ".status.b"),
        ({"spec": {"a": 1}, "status": "b"}, ".status.b"),
    ],
)
def test_a_field_that_is_missing_equals_none_not_even_another_that_is(obj: Obj, missing: str) -> None:
    assert fields_are_equal(A, B)(obj) == unhealthy(f'"{missing}" missing')


def test_the_data_of_a_secret_is_not_shown() -> None:
    obj = {"kind": "Secret", "data": {"a": "c2VjcmV0", "b": "aGlkZGVu"}}

    result = fields_are_equal(("data", "a"), ("data", "b"))(obj)

    assert result == unhealthy('".data.a" != ".data.b"')


# The generation guard


@pytest.mark.parametrize(
    ("status", "outdated"),
    [
        ({"observedGeneration": 2}, False),
        ({"observedGeneration": 1}, True),
        ({"observedGeneration": 0}, True),
        ({"observedGeneration": 3}, True),
        ({"observedGeneration": None}, False),
        ({"observedGeneration": "1"}, False),
        ({"observedGeneration": True}, False),
        ({}, False),
        ("Up", False),
        (None, False),
    ],
)
def test_no_probe_runs_where_the_status_is_about_another_generation(status: object, outdated: bool) -> None:
    asked: list[Obj] = []

    def probe(obj: Obj) -> ProbeResult:
        asked.append(obj)
        return unhealthy("asked")

    result = with_generation_guard(probe)({"metadata": {"generation": 2}, "status": status})

    assert result == (unknown(".status outdated") if outdated else unhealthy("asked"))
    assert bool(asked) is not outdated


# Several probes, with all that is wrong


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], HEALTHY),
        ([HEALTHY, HEALTHY], HEALTHY),
        ([HEALTHY, unhealthy("a"), HEALTHY], unhealthy("a")),
        ([unhealthy("a"), unhealthy("b")], unhealthy("a, b")),
        ([unhealthy("a"), unhealthy("b"), unhealthy("a")], unhealthy("a, b")),
        ([unhealthy("a"), unknown("b"), HEALTHY], unknown("b")),
        ([unknown("b"), unhealthy("a"), unknown("c")], unknown("b, c")),
    ],
)
def test_a_conjunction_collects_what_is_wrong_and_unknown_hides_what_is_false(
    results: list[ProbeResult], expected: ProbeResult
) -> None:
    def always(result: ProbeResult) -> Probe:
        return lambda obj: result

    assert conjunction(map(always, results))({}) == expected


def test_a_conjunction_from_an_iterator_is_asked_each_time() -> None:
    probe = conjunction(iter([condition_is("Ready")]))

    assert probe(LATE) == probe(LATE) == unhealthy('.status.condition["Ready"] is False')
