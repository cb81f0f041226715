"""Warnings about accepted objects."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.defaults import default
from lamina.server.kinds.builtin.warn import warnings
from lamina.server.kinds.builtin.warn.addresses import address_warnings, block_warnings
from lamina.server.kinds.kind import Findings


def made(key: str, **body: Any) -> dict[str, Any]:
    obj = decode(key, {"metadata": {"name": "a"}, **body}, Findings())
    default(key, obj)
    return obj


def pod_says(**spec: Any) -> list[str]:
    given = {"containers": [{"name": "c", "image": "i"}], **spec}
    return warnings("core/v1.Pod", made("core/v1.Pod", spec=given), None)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "x"}},
            'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
            'spec.imagePullSecrets[1].name: duplicate name "a"',
        ),
        (
            {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"memory": "100m"}, "requests": {"memory": 1}}}]},
            'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, '
            "must be an integer",
        ),
        (
            {"containers": [{"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]},
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        (
            {"volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]},
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [
                {"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]}}]},
            'volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x"',
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
    ],
)  # fmt: skip
def test_odd_things_about_a_pod(spec: Any, sentence: str) -> None:
    assert pod_says(**spec) == [sentence]


def test_there_is_nothing_to_say_about_a_plain_pod() -> None:
    assert pod_says() == []


def test_a_variable_may_extend_its_former_value() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]

    assert pod_says(containers=[{"name": "c", "env": env}]) == []


def test_a_workload_speaks_up_when_its_generation_moves() -> None:
    odd = {"containers": [{"name": "c"}], "nodeSelector": {"beta.kubernetes.io/os": "x"}}
    deployment = made("apps/v1.Deployment", spec={"template": {"spec": odd}})
    same, moved = {**deployment}, {**deployment, "metadata": {"name": "a", "generation": 2}}
    moved["spec"], same["spec"] = dict(deployment["spec"]), dict(deployment["spec"])

    assert len(warnings("apps/v1.Deployment", deployment, None)) == 1
    assert warnings("apps/v1.Deployment", same, deployment) == []
    assert len(warnings("apps/v1.Deployment", moved, deployment)) == 1


def test_a_write_to_a_status_endpoint_says_nothing() -> None:
    service = made("core/v1.Service", spec={"externalName": "x", "ports": [{"port": 1}]})

    assert warnings("core/v1.Service", service, None) == [
        'spec.externalName is ignored when spec.type is not "ExternalName"'
    ]
    assert warnings("core/v1.Service", {**service}, service) == []


def test_a_name_that_is_no_label_is_odd_where_pods_take_it_on() -> None:
    job = made("batch/v1.Job", metadata={"name": "a.b"}, spec={"template": {"spec": {"containers": []}}})

    (sentence,) = warnings("batch/v1.Job", job, None)

    assert sentence == (
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ("10.0.0.1", []),
        ("2001:db8::1", []),
        (
            "010.0.0.1",
            [
                'p: non-standard IP address "010.0.0.1" will be considered invalid in a future Kubernetes '
                'release: use "10.0.0.1"'
            ],
        ),
        (
            "::ffff:10.0.0.1",
            [
                'p: non-standard IP address "::ffff:10.0.0.1" will be considered invalid in a future Kubernetes '
                'release: use "10.0.0.1"'
            ],
        ),
        (
            "2001:DB8::1",
            ['p: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'],
        ),
    ],
)
def test_addresses_in_odd_forms(value: str, sentences: list[str]) -> None:
    assert list(address_warnings("p", value)) == sentences


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ("10.0.0.0/8", []),
        (
            "10.1.2.3/8",
            [
                'p: CIDR value "10.1.2.3/8" is ambiguous in this context '
                '(should be "10.0.0.0/8" or "10.1.2.3/32"?)'
            ],
        ),
        (
            "2001:DB8::/32",
            ['p: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")'],
        ),
    ],
)
def test_blocks_in_odd_forms(value: str, sentences: list[str]) -> None:
    assert list(block_warnings("p", value)) == sentences
