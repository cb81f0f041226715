"""Rights, gathered from whoever needs some."""

from lamina.core.rights import Rights


def test_resources_that_need_the_same_share_a_rule_and_verbs_come_in_the_usual_order() -> None:
    needed = Rights()
    needed.add("apps", ("deployments",), ("patch", "get"))
    needed.add("apps", ("daemonsets",), ("get",))
    needed.add("apps", ("daemonsets",), ("patch",))
    needed.add("", ("pods",), ("list",))

    assert needed.rules() == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments"], "verbs": ["get", "patch"]},
    ]


def test_what_may_be_done_to_all_need_not_be_said_of_one() -> None:
    needed = Rights()
    needed.add("", ("secrets",), ("get",), names=("token",))
    assert needed.rules()[0]["resourceNames"] == ["token"]

    needed.add("", ("secrets",), ("get", "list"))

    assert needed.rules() == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]
    assert needed.allow("", "secrets", "list") and not needed.allow("", "secrets", "delete")


def test_what_two_need_is_what_either_needs() -> None:
    one, other = Rights(), Rights()
    one.add("", ("pods",), ("get",))
    other.add("", ("pods",), ("list",))
    other.note("and something else")

    one.join(other)

    assert one.rules() == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    assert one.notes == ["and something else"]
