"""Admission checks as values, and what the checks of every family have in common."""

import re
from typing import Any

import pytest

from lamina.core.admission import (
    ALLOWED,
    AccessCheck,
    AdmissionCheck,
    AdmissionRequest,
    AdmissionResponse,
    FailurePolicy,
)
from lamina.families.registry import chosen
from lamina.objects.types import GroupKind, Made

CHECKS = [pytest.param(check, id=check.name) for family in chosen("all") for check in family.checks]


def request(**changed: Any) -> AdmissionRequest:
    settings: dict[str, Any] = {
        "operation": "CREATE",
        "kind": GroupKind("example.com", "Other"),
        "namespace": "one",
        "name": "a",
        "new": {},
        "old": {},
        "user": {"username": "jane"},
    }
    return AdmissionRequest(**{**settings, **changed})


def test_a_response_allows_warns_of_nothing_and_needs_no_right_by_default() -> None:
    assert AdmissionResponse() == ALLOWED
    assert (ALLOWED.refusal, ALLOWED.warnings, ALLOWED.leave) == ("", (), None)


def test_a_write_passes_while_a_check_does_not_answer_unless_it_says_otherwise() -> None:
    plain = AdmissionCheck(name="a", path="/a", rules=(), judge=lambda asked: ALLOWED)

    assert plain.absence is FailurePolicy.LETS_PASS
    assert (plain.conditions, plain.ours) == ((), "")


@pytest.mark.parametrize(
    ("policy", "written"), [(FailurePolicy.LETS_PASS, "Ignore"), (FailurePolicy.REFUSES, "Fail")]
)
def test_a_failure_policy_is_written_as_kubernetes_has_it(policy: FailurePolicy, written: str) -> None:
    assert str(policy) == written


@pytest.mark.parametrize("change", [{"refusal": "no"}, {"attributes": {"verb": "get"}}])
def test_access_checks_that_differ_are_different(change: Made) -> None:
    settings: Made = {"attributes": {"verb": "use"}, "refusal": "not allowed"}

    assert AccessCheck(**settings) == AccessCheck(**settings)
    assert AccessCheck(**{**settings, **change}) != AccessCheck(**settings)


# The checks of every family


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_allows_a_write_of_a_kind_that_is_none_of_its_own(check: AdmissionCheck) -> None:
    assert check.judge(request()) == ALLOWED


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_has_a_qualified_name_a_path_and_a_timeout_that_webhooks_may_have(
    check: AdmissionCheck,
) -> None:
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+){2,}", check.name)
    assert re.fullmatch(r"(/[a-z]+)+", check.path)
    assert 1 <= check.seconds <= 30


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_names_the_writes_that_it_is_about(check: AdmissionCheck) -> None:
    assert check.rules
    for rule in check.rules:
        assert {"apiGroups", "apiVersions", "operations", "resources"} <= rule.keys()
        assert set(rule["operations"]) <= {"CREATE", "UPDATE", "DELETE"}


@pytest.mark.parametrize("check", CHECKS)
def test_match_conditions_have_names_of_their_own(check: AdmissionCheck) -> None:
    names = [condition["name"] for condition in check.conditions]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", name) for name in names)


def test_no_two_checks_share_a_name_or_a_path() -> None:
    checks = [check for family in chosen("all") for check in family.checks]

    assert len({check.name for check in checks}) == len({check.path for check in checks}) == len(checks)
