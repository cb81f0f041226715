"""Admission plugins, with other objects in a dict."""

from collections.abc import Sequence
from typing import Any

import pytest

from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins import Denied, mutate, validate

PRIORITIES = "priorityclasses.scheduling.k8s.io"
STORAGE = "storageclasses.storage.k8s.io"
RUNTIMES = "runtimeclasses.node.k8s.io"


class Others:
    """Objects by bucket; the default service account always exists."""

    def __init__(self, **buckets: Sequence[Made]) -> None:
        account = named("default", "n")
        self._buckets: dict[str, Sequence[Obj]] = {"serviceaccounts": [account], **buckets}

    def get(self, bucket: str, namespace: str, name: str) -> Obj | None:
        for one in self._buckets.get(bucket, ()):
            if (one["metadata"].get("namespace", ""), one["metadata"]["name"]) == (namespace, name):
                return one
        return None

    def list(self, bucket: str) -> Sequence[Obj]:
        return self._buckets.get(bucket, ())


def named(name: str, namespace: str = "", **fields: Any) -> Made:
    metadata = {"name": name, "creationTimestamp": fields.pop("at", "2026-01-01T00:00:00Z")}
    if annotations := fields.pop("annotations", None):
        metadata["annotations"] = annotations
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), **fields}


def pod(*resources: Made, **spec: Any) -> Made:
    containers = [
        {"name": f"c{number}", "resources": {key: dict(value) for key, value in one.items()}}
        for number, one in enumerate(resources or ({},))
    ]
    return named("p", "n", spec={"containers": containers, **spec})


def admitted(obj: Made, others: Others, bucket: str = "pods") -> Made:
    mutate(bucket, obj, others, "abcde")
    validate(bucket, obj, None, others)
    return obj


@pytest.mark.parametrize(
    ("asked", "said", "mounted"),
    [
        (None, None, True),
        (None, False, False),
        (True, False, True),
        (False, None, False),
        (False, True, False),
    ],
)
def test_a_token_is_mounted_as_the_pod_or_else_its_account_says(
    asked: bool | None, said: bool | None, mounted: bool
) -> None:
    account = named("default", "n", **({} if said is None else {"automountServiceAccountToken": said}))
    spec = {} if asked is None else {"automountServiceAccountToken": asked}

    made = admitted(pod(**spec), Others(serviceaccounts=[account]))

    assert [one["name"] for one in made["spec"].get("volumes", [])] == (
        ["kube-api-access-abcde"] if mounted else []
    )


@pytest.mark.parametrize(
    ("marked", "chosen"),
    [
        ([], None),
        ([named("a")], None),
        ([named("a", annotations={"storageclass.kubernetes.io/is-default-class": "true"})], "a"),
        ([named("a", annotations={"storageclass.kubernetes.io/is-default-class": "false"})], None),
        (
            [
                named("a", annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
                named("b", annotations={"storageclass.kubernetes.io/is-default-class": "true"}, at="2027"),
            ],
            "b",
        ),
        (
            [
                named("b", annotations={"storageclass.beta.kubernetes.io/is-default-class": "true"}),
                named("a", annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
            ],
            "a",
        ),
    ],
    ids=["none", "none is marked", "the marked one", "marked as not", "the newest", "the first by name"],
)
def test_the_usual_class_is(marked: list[Made], chosen: str | None) -> None:
    claim = named("c", "n", spec={})

    admitted(claim, Others(**{STORAGE: marked}), "persistentvolumeclaims")

    assert claim["spec"].get("storageClassName") == chosen


def test_the_least_of_several_usual_priorities_counts() -> None:
    classes = [named("high", value=9, globalDefault=True), named("low", value=3, globalDefault=True)]

    made = admitted(pod(), Others(**{PRIORITIES: classes}))

    assert (made["spec"]["priority"], made["spec"]["priorityClassName"]) == (3, "low")


LIMITS = {
    "type": "Container",
    "min": {"cpu": "100m"},
    "max": {"cpu": "1"},
    "maxLimitRequestRatio": {"cpu": "2"},
}


@pytest.mark.parametrize(
    ("requests", "limits", "said"),
    [
        ({"cpu": "500m"}, {"cpu": "1"}, None),
        ({}, {"cpu": "1"}, "minimum cpu usage per Container is 100m.  No request is specified"),
        ({"cpu": "50m"}, {"cpu": "100m"}, "minimum cpu usage per Container is 100m, but request is 50m"),
        ({"cpu": "1"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ({"cpu": "1"}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        (
            {"cpu": "400m"},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
        ),
    ],
    ids=[
        "fits",
        "asks for nothing",
        "asks for too little",
        "is not limited",
        "is too large",
        "reaches too far",
    ],
)
def test_a_container_that(requests: Made, limits: Made, said: str | None) -> None:
    range_ = named("l", "n", spec={"limits": [LIMITS]})
    others = Others(limitranges=[range_])
    made = pod({"requests": requests, "limits": limits})

    if said is None:
        validate("pods", made, None, others)
        return
    with pytest.raises(Denied) as refused:
        validate("pods", made, None, others)
    assert said in str(refused.value)


def test_limits_of_another_namespace_refuse_nothing() -> None:
    others = Others(limitranges=[named("l", "other", spec={"limits": [LIMITS]})])

    validate("pods", pod(), None, others)


def test_limits_are_enforced_on_create_and_not_on_update() -> None:
    others = Others(limitranges=[named("l", "n", spec={"limits": [LIMITS]})])

    with pytest.raises(Denied):
        validate("pods", pod(), None, others)
    validate("pods", pod(), pod(), others)


def test_a_runtime_class_does_not_add_what_the_pod_tolerates_already() -> None:
    toleration = {"key": "k", "operator": "Exists"}
    others = Others(**{RUNTIMES: [named("r", handler="h", scheduling={"tolerations": [toleration]})]})

    made = admitted(pod(runtimeClassName="r", tolerations=[toleration]), others)

    assert made["spec"]["tolerations"].count(toleration) == 1


@pytest.mark.parametrize(
    ("phase", "grows", "refused"),
    [
        ("Bound", True, False),
        ("Bound", False, True),
        ("Pending", True, True),
    ],
)
def test_a_claim_grows_when_it_is_bound_and_its_class_allows_it(
    phase: str, grows: bool, refused: bool
) -> None:
    others = Others(**{STORAGE: [named("s", allowVolumeExpansion=grows)]})
    old, new = (
        named(
            "c",
            "n",
            spec={"storageClassName": "s", "resources": {"requests": {"storage": size}}},
            status={"phase": phase},
        )
        for size in ("1Gi", "2Gi")
    )

    if refused:
        with pytest.raises(Denied):
            validate("persistentvolumeclaims", new, old, others)
    else:
        validate("persistentvolumeclaims", new, old, others)
        validate("persistentvolumeclaims", old, new, others)
