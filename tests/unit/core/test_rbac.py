"""Rights are collected, joined and written as rules of a role."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rbac import Rights, plural

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate")
GRANTS = st.lists(
    st.tuples(
        st.sampled_from(("", "apps")),
        st.lists(st.sampled_from(("pods", "secrets", "deployments")), min_size=1, max_size=2, unique=True),
        st.lists(st.sampled_from(VERBS), min_size=1, max_size=3, unique=True),
        st.sampled_from(((), ("one",), ("one", "two"))),
    ),
    max_size=6,
)


def rights(grants: Any) -> Rights:
    made = Rights()
    for group, resources, verbs, names in grants:
        made.add(group, resources, verbs, names=names)
    return made


def allowed(rules: list[dict[str, Any]], group: str, resource: str, verb: str, name: str) -> bool:
    """Say what an API server would say about a request, given the rules of a role."""
    return any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and ("resourceNames" not in rule or name in rule["resourceNames"])
        for rule in rules
    )


@given(grants=GRANTS)
def test_the_rules_allow_what_was_added_and_nothing_else(grants: Any) -> None:
    rules = rights(grants).rules()

    for group in ("", "apps"):
        for resource in ("pods", "secrets", "deployments"):
            for verb in VERBS:
                for name in ("one", "two", "three"):
                    expected = any(
                        group == one and resource in those and verb in verbs and (not names or name in names)
                        for one, those, verbs, names in grants
                    )
                    assert allowed(rules, group, resource, verb, name) is expected


@given(grants=GRANTS)
def test_the_order_in_which_rights_are_added_does_not_matter(grants: Any) -> None:
    assert rights(grants).rules() == rights(reversed(grants)).rules()


@given(first=GRANTS, second=GRANTS)
def test_joined_rights_are_those_of_both(first: Any, second: Any) -> None:
    joined = rights(first)
    joined.join(rights(second))

    assert joined.rules() == rights([*first, *second]).rules()


@given(grants=GRANTS)
def test_a_right_on_all_objects_is_allowed_and_one_on_some_is_not(grants: Any) -> None:
    made = rights(grants)

    for group, resources, verbs, names in grants:
        for resource in resources:
            for verb in verbs:
                assert made.allow(group, resource, verb) or names


def test_resources_that_need_the_same_share_a_rule() -> None:
    made = rights([("", ["pods"], ["get"], ()), ("", ["secrets"], ["get"], ())])

    assert made.rules() == [{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get"]}]


def test_verbs_are_in_the_order_of_roles_and_others_behind_them() -> None:
    made = rights([("", ["pods"], ["escalate", "delete", "bind", "get", "create"], ())])

    assert made.rules()[0]["verbs"] == ["get", "create", "delete", "bind", "escalate"]


def test_a_verb_on_all_objects_is_not_repeated_for_some() -> None:
    made = rights([("", ["pods"], ["get"], ()), ("", ["pods"], ["get", "patch"], ("one",))])

    assert made.rules() == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"], "resourceNames": ["one"]},
    ]


@pytest.mark.parametrize("words", [["a", "b", "a"], ["a", "b"]])
def test_a_note_is_kept_once_in_the_order_of_notes(words: list[str]) -> None:
    made = Rights()
    for one in words:
        made.note(one)
    other = Rights()
    other.note("b")
    other.note("c")
    made.join(other)

    assert made.notes == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Deployment", "deployments"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("Gateway", "gateways"),
        ("Switch", "switches"),
        ("Box", "boxes"),
        ("Endpoints", "endpoints"),
    ],
)
def test_the_resource_of_a_kind_is_its_plural(kind: str, resource: str) -> None:
    assert plural(kind) == resource
