"""What makes a revision, and what it is called."""

import pytest

from lamina.families.manifestwork.template import identity, mark, reports_progress, revision_name
from lamina.objects.types import Made
from tests.unit.families.manifestwork.fleet import template


def held(value: str) -> Made:
    config_map = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"namespace": "default", "name": "cm1"},
        "data": {"a": value},
    }
    return {"workload": {"manifests": [config_map]}}


@pytest.mark.parametrize(
    ("value", "collisions", "expected"),
    [
        ("b", 0, "65f4c6dbdf"),
        ("b", 1, "8677dbb668"),
        ("b", 2, "787f5df75"),
        ("c", 0, "547767fdb8"),
        ("c", 1, "54dddbc5b5"),
    ],
)  # fmt: skip
def test_the_mark_of_a_template_is_known_to_everybody(value: str, collisions: int, expected: str) -> None:
    assert mark(held(value), collisions) == expected


def test_the_order_of_keys_and_when_manifests_were_made_say_nothing() -> None:
    one = held("b")
    two: Made = {"workload": {"manifests": [dict(reversed(one["workload"]["manifests"][0].items()))]}}
    two["workload"]["manifests"][0]["metadata"] = {
        "name": "cm1", "namespace": "default", "creationTimestamp": None,
    }  # fmt: skip
    two["workload"]["manifests"][0]["spec"] = {"template": {"metadata": {"creationTimestamp": "2026-01-01"}}}
    one["workload"]["manifests"][0]["spec"] = {"template": {"metadata": {}}}

    assert identity(one) == identity(two)
    assert mark(one) == mark(two)


def test_the_order_of_manifests_and_everything_else_makes_another_revision() -> None:
    assert identity(held("b")) != identity(held("c"))
    both = held("b")["workload"]["manifests"] + held("c")["workload"]["manifests"]
    assert identity({"workload": {"manifests": both}}) != identity({"workload": {"manifests": both[::-1]}})
    assert identity(template()) != identity(template(rules=False))


def test_a_long_name_is_cut_so_that_the_mark_still_fits() -> None:
    assert revision_name("a" * 300, "65f4c6dbdf") == "a" * 223 + "-65f4c6dbdf"


def test_a_rule_named_progressing_is_found_wherever_it_stands() -> None:
    assert reports_progress(template())
    assert not reports_progress(template(rules=False))
    assert not reports_progress({})
