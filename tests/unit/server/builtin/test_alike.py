"""Pods of one template are validated once, without missing an error."""

from typing import Any

import pytest

from lamina.objects.types import Made
from lamina.server.kinds.builtin.pod_validation_cache import content_of
from lamina.server.kinds.builtin.validate import validate_create


def pod(name: str = "a", token: str = "abcde", mounted: str = "", **more: Any) -> Made:
    volume = f"kube-api-access-{token}"
    container = {
        "name": "c",
        "image": "web:1",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": mounted or volume, "mountPath": "/var/run/secrets"}],
        "resources": {},
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "volumes": [{"name": volume, "emptyDir": {}}],
        "securityContext": {},
        **more,
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_pods_of_one_template_have_the_same_content() -> None:
    assert content_of(pod("a", "abcde")) == content_of(pod("b", "fghij")) is not None


@pytest.mark.parametrize(
    "other",
    [
        pod(token="a_cde"),
        pod(mounted="kube-api-access-fghij"),
        pod(restartPolicy="Never"),
        {**pod(), "metadata": {"name": "a", "namespace": "default", "annotations": {"a": "b"}}},
    ],
)
def test_what_differs_in_more_than_that_has_another(other: Made) -> None:
    assert content_of(pod()) != content_of(other)


def test_where_the_name_of_a_pod_matters_there_is_none() -> None:
    assert content_of(pod(volumes=[{"name": "v", "ephemeral": {}}])) is None


def test_a_pod_that_is_wrong_is_refused_however_many_like_it_are_right() -> None:
    assert validate_create("Pod", "", pod("a", "abcde")) == []
    assert validate_create("Pod", "", pod("b", "fghij")) == []

    for _ in range(2):
        (wrong,) = validate_create("Pod", "", pod("c", "klmno", mounted="kube-api-access-abcde"))
        assert wrong.field == "spec.containers[0].volumeMounts[0].name"


def test_a_pod_with_a_name_twice_is_not_taken_for_one_with_two_names() -> None:
    names = ("kube-api-access-abcde", "kube-api-access-fghij")
    sound = pod(volumes=[{"name": name, "emptyDir": {}} for name in names])
    twice = pod(volumes=[{"name": names[0], "emptyDir": {}} for _ in names])

    assert validate_create("Pod", "", sound) == []
    assert validate_create("Pod", "", twice) != []
