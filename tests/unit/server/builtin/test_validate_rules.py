"""Rules that need several objects, or very large ones."""

from typing import Any

from lamina.server.kinds.builtin.validate import validate_create, validate_update
from lamina.server.kinds.builtin.validate.configuration import DATA_LIMIT


def test_a_config_map_holds_a_mebibyte_and_no_more() -> None:
    just = {"data": {"a": "x" * (DATA_LIMIT - 2)}, "binaryData": {"b": "eHg="}}
    more = {"data": {"a": "x" * (DATA_LIMIT - 1)}, "binaryData": {"b": "eHg="}}

    assert validate_create("ConfigMap", "", just) == []
    assert validate_create("ConfigMap", "", more) == [
        ("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", "[]")
    ]


def test_letters_of_several_bytes_count_as_several() -> None:
    assert validate_create("ConfigMap", "", {"data": {"a": "é" * (DATA_LIMIT // 2 + 1)}})


def test_a_negative_scale_is_refused() -> None:
    refused = [
        ("FieldValueInvalid", "Invalid value: -1: must be greater than or equal to 0", "spec.replicas")
    ]

    assert validate_create("Scale", "autoscaling", {"spec": {"replicas": -1}}) == refused
    assert validate_update("Scale", "autoscaling", {"spec": {"replicas": -1}}, {}, "") == refused


def test_a_kind_without_rules_has_nothing_wrong() -> None:
    assert validate_create("Widget", "example.com", {"spec": 1}) == []


def test_a_pod_shows_what_changed_when_a_change_is_refused() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "a"},
        "spec": {
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "imagePullPolicy": "Always",
                    "terminationMessagePolicy": "File",
                }
            ],
        },
    }
    changed = {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}

    (refused,) = validate_update("Pod", "", changed, pod)

    assert refused.field == "spec"
    assert refused.message.startswith("Forbidden: pod updates may not change fields other than")
    assert '- "restartPolicy": "Always"' in refused.message
    assert '+ "restartPolicy": "Never"' in refused.message
