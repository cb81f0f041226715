"""The order in which objects of several kinds are applied and deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.apply.apply_order import OTHERS, RANKS, UNKNOWN, by_rank, rank
from lamina.objects.types import GroupKind

RBAC = "rbac.authorization.k8s.io"
KINDS = st.one_of(st.none(), st.sampled_from(sorted(RANKS)), st.sampled_from([GroupKind("ex.com", "Widget")]))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (GroupKind("", "Namespace"),                                      GroupKind(RBAC, "Role")),
        (GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),   GroupKind("ex.com", "Widget")),
        (GroupKind(RBAC, "RoleBinding"),                                  GroupKind("", "ServiceAccount")),
        (GroupKind("", "ServiceAccount"),                                 GroupKind("apps", "Deployment")),
        (GroupKind("", "ConfigMap"),                                      GroupKind("apps", "Deployment")),
        (GroupKind("", "Secret"),                                         GroupKind("", "Pod")),
        (GroupKind("", "Service"),                                        GroupKind("apps", "StatefulSet")),
        (GroupKind("apps", "Deployment"),                                 GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")),
    ],
)  # fmt: skip
def test_what_others_depend_on_comes_first(first: GroupKind, then: GroupKind) -> None:
    assert rank(first) < rank(then)


@pytest.mark.parametrize("kind", [GroupKind("ex.com", "Deployment"), GroupKind("ex.com", "Namespace")])
def test_a_kind_of_the_same_name_in_another_group_has_no_rank_of_its_own(kind: GroupKind) -> None:
    assert rank(kind) == OTHERS


def test_a_kind_that_is_not_served_comes_last() -> None:
    assert rank(None) == UNKNOWN > OTHERS > max(RANKS.values())


def test_ranks_have_no_gaps() -> None:
    assert sorted(set(RANKS.values())) == list(range(OTHERS))


@given(kinds=st.lists(KINDS, max_size=12))
def test_ranks_ascend_and_keep_the_order_within_each(kinds: list[GroupKind | None]) -> None:
    items = list(enumerate(kinds))
    found = by_rank(items, lambda item: item[1])

    assert [number for number, _ in found] == sorted({rank(kind) for kind in kinds})
    for number, those in found:
        assert list(those) == [item for item in items if rank(item[1]) == number]
