"""Rules that need more than one object, or a very large one, to be seen at work."""

from typing import Any

import pytest

from lamina.server.builtin.validate import validate_create, validate_update
from lamina.server.builtin.validate.configuration import DATA_LIMIT
from lamina.server.builtin.validate.cron import complaint


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


def test_a_kind_nobody_has_rules_for_has_nothing_wrong() -> None:
    assert validate_create("Widget", "example.com", {"spec": 1}) == []


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ("* * * * *",               None),
        ("*/5 1-3,7 1 JAN mon-FRI", None),
        ("@hourly",                 None),
        ("@every 1h30m",            None),
        ("? ? ? ? ?",               None),
        ("* * * *",                 "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *",              "end of range (60) above maximum (59): 60"),
        ("* * 0 * *",               "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *",             "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *",             "step of range should be a positive number: */0"),
        ("x * * * *",               'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("-1 * * * *",              'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("@never",                  "unrecognized descriptor: @never"),
        ("@every 2562047h",         None),
        ("@every 2562048h",         'failed to parse duration @every 2562048h: time: invalid duration "2562048h"'),
        ("@every 5",                'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("@every 5y",               'failed to parse duration @every 5y: time: unknown unit "y" in duration "5y"'),
    ],
)  # fmt: skip
def test_a_schedule_is_read_as_cron_reads_it(schedule: str, wrong: str | None) -> None:
    assert complaint(schedule) == wrong


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
