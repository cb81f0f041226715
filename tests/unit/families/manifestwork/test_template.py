"""The hash of a template, and what changes it."""

import pytest

from lamina.families.manifestwork.hub.revision import content_digest, content_hash, reports_progress
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
def test_the_hash_of_a_template_is_the_one_that_the_original_computes(
    value: str, collisions: int, expected: str
) -> None:
    assert content_hash(held(value), collisions) == expected


def test_the_order_of_keys_and_creation_timestamps_do_not_matter() -> None:
    one = held("b")
    two: Made = {"workload": {"manifests": [dict(reversed(one["workload"]["manifests"][0].items()))]}}
    two["workload"]["manifests"][0]["metadata"] = {
        "name": "cm1", "namespace": "default", "creationTimestamp": None,
    }  # fmt: skip
    two["workload"]["manifests"][0]["spec"] = {"template": {"metadata": {"creationTimestamp": "2026-01-01"}}}
    one["workload"]["manifests"][0]["spec"] = {"template": {"metadata": {}}}

    assert content_digest(one) == content_digest(two)
    assert content_hash(one) == content_hash(two)


def test_the_order_of_manifests_and_everything_else_makes_another_revision() -> None:
    assert content_digest(held("b")) != content_digest(held("c"))
    both = held("b")["workload"]["manifests"] + held("c")["workload"]["manifests"]
    assert content_digest({"workload": {"manifests": both}}) != content_digest(
        {"workload": {"manifests": both[::-1]}}
    )
    assert content_digest(template()) != content_digest(template(rules=False))


def test_a_rule_named_progressing_is_found_wherever_it_stands() -> None:
    assert reports_progress(template())
    assert not reports_progress(template(rules=False))
    assert not reports_progress({})
