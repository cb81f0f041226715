"""Which requests a policy matches."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.server.admission.policies.attributes import Attributes
from lamina.server.admission.policies.matching import Matcher
from lamina.server.identity import ADMIN
from lamina.server.kinds.builtin.kinds import builtin_kinds
from lamina.server.kinds.kind import Kind

KINDS = {
    (kind.group, kind.version, kind.plural): kind
    for kind in builtin_kinds(lambda: datetime(2026, 1, 1, tzinfo=UTC))
}
EVERY_CREATE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"]}


def attempt(group: str, version: str, plural: str, **other: Any) -> Attributes:
    kind = KINDS[group, version, plural]
    given = {
        "operation": "CREATE",
        "kind": kind,
        "namespace": "here" if kind.namespaced else "",
        "name": "a",
        "subresource": "",
        "new": {"metadata": {"name": "a", "labels": {"own": "yes"}}},
        "old": None,
        "user": ADMIN,
        "dry_run": False,
        **other,
    }
    return Attributes(**given)


def match(written: dict[str, Any], one: Attributes) -> Kind | None:
    labels = {"here": {"team": "a"}}
    versions = [kind for kind in KINDS.values() if kind.bucket == one.kind.bucket]
    matcher = Matcher(written)
    found = matcher.match(one, labels.get, lambda kind: versions)
    # A match must not be excluded by `may_match`.
    assert found is None or matcher.may_match(versions, one.operation, one.subresource)
    return found


def test_requests_of_a_sort_that_no_rule_names_are_never_looked_at() -> None:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["deployments"],
    }
    matcher, kind = Matcher({"resourceRules": [rule]}), KINDS["apps", "v1", "deployments"]

    assert matcher.may_match([kind], "CREATE", "")
    assert not matcher.may_match([kind], "UPDATE", "")
    assert not matcher.may_match([kind], "CREATE", "status")
    assert not matcher.may_match([KINDS["", "v1", "pods"]], "CREATE", "")
    assert Matcher({}).may_match([kind], "DELETE", "")


@pytest.mark.parametrize(
    ("resources", "plural", "subresource", "matches"),
    [
        (["pods"], "pods", "", True),
        (["pods"], "pods", "status", False),
        (["*"], "pods", "", True),
        (["*"], "pods", "status", False),
        (["*/*"], "pods", "status", True),
        (["*/*"], "pods", "", True),
        (["pods/*"], "pods", "status", True),
        (["*/status"], "pods", "status", True),
        (["*/scale"], "pods", "status", False),
        (["secrets"], "pods", "", False),
    ],
)
def test_resources_are_named_with_what_is_below_them(
    resources: list[str], plural: str, subresource: str, matches: bool
) -> None:
    rule = {**EVERY_CREATE, "resources": resources}
    one = attempt("", "v1", plural, subresource=subresource)

    assert (match({"resourceRules": [rule]}, one) is not None) is matches


@pytest.mark.parametrize(
    ("written", "matches"),
    [
        ({}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"objectSelector": {"matchLabels": {"own": "yes"}}}, True),
        ({"objectSelector": {"matchLabels": {"own": "no"}}}, False),
        ({"excludeResourceRules": [{**EVERY_CREATE, "resources": ["*"], "resourceNames": ["a"]}]}, False),
        ({"excludeResourceRules": [{**EVERY_CREATE, "resources": ["*"], "resourceNames": ["b"]}]}, True),
        ({"resourceRules": [{**EVERY_CREATE, "resources": ["*"], "scope": "Cluster"}]}, False),
        ({"resourceRules": [{**EVERY_CREATE, "resources": ["*"], "scope": "Namespaced"}]}, True),
        ({"resourceRules": [{**EVERY_CREATE, "resources": ["*"], "operations": ["DELETE"]}]}, False),
    ],
)
def test_everything_that_is_said_has_to_be_so(written: dict[str, Any], matches: bool) -> None:
    assert (match(written, attempt("", "v1", "configmaps")) is not None) is matches


def test_a_namespace_is_known_by_its_own_labels_and_is_in_none() -> None:
    one = attempt("", "v1", "namespaces", namespace="a")
    rule = {**EVERY_CREATE, "resources": ["namespaces"], "scope": "Cluster"}

    assert match({"namespaceSelector": {"matchLabels": {"own": "yes"}}, "resourceRules": [rule]}, one)
    assert not match({"namespaceSelector": {"matchLabels": {"team": "a"}}}, one)


def test_selectors_of_namespaces_mean_everything_outside_of_them() -> None:
    one = attempt("", "v1", "nodes")

    assert match({"namespaceSelector": {"matchLabels": {"team": "b"}}}, one) is one.kind


@pytest.mark.parametrize(("policy", "version"), [("Equivalent", "v1"), ("Exact", None)])
def test_another_version_is_the_same_unless_it_must_be_exact(policy: str, version: str | None) -> None:
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["horizontalpodautoscalers"],
    }
    one = attempt("autoscaling", "v2", "horizontalpodautoscalers")

    found = match({"matchPolicy": policy, "resourceRules": [rule]}, one)

    assert (found and found.version) == version
