"""Simulated failures of pods, by a ConfigMap."""

import json
from typing import Any

import pytest

from lamina.actors.stages.failures import Failure, FailureMode, failures_in, with_failures
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.actors.stages.life import Life, container, pod


def saying(**entries: Any) -> Made:
    data = {name: one if isinstance(one, str) else json.dumps(one) for name, one in entries.items()}
    return {"metadata": {"name": "sim-failures", "namespace": "kube-system"}, "data": data}


def failure(image: str = "web", share: float = 1.0, how: FailureMode = FailureMode.CRASH) -> Failure:
    return Failure(name="f", image=image, share=share, how=how)


def test_an_entry_is_a_failure() -> None:
    found = failures_in(saying(a={"image": "web:2", "share": "20%", "how": "unready"}, b={"image": "web"}))

    assert found == (
        Failure(name="a", image="web:2", share=0.2, how=FailureMode.UNREADY),
        Failure(name="b", image="web", share=1.0, how=FailureMode.CRASH),
    )


@pytest.mark.parametrize("entry", ["", "[]", "nonsense", {}, {"image": 3}, {"image": "web", "how": "softly"}])
def test_an_invalid_entry_is_no_failure(entry: Any) -> None:
    assert failures_in(saying(a=entry)) == ()
    assert failures_in(None) == ()


@pytest.mark.parametrize(
    ("pattern", "image", "hit"),
    [
        ("web:2",    "web:2",          True),
        ("web:2",    "web:20",         False),
        ("web",      "web:2",          True),
        ("web",      "web@sha256:1",   True),
        ("web",      "website:1",      False),
        ("*/web:*",  "reg.io/web:7",   True),
    ],
)  # fmt: skip
def test_an_image_is_named_with_or_without_its_tag_or_by_a_pattern(
    pattern: str, image: str, hit: bool
) -> None:
    assert failure(pattern).affects(pod(container(image))) is hit


def test_a_share_is_always_the_same_pods() -> None:
    pods = [pod(container("web:1"), uid=f"uid-{number}") for number in range(500)]

    hit = [failure(share=0.2).affects(one) for one in pods]

    assert hit == [failure(share=0.2).affects(one) for one in pods]
    assert 60 < sum(hit) < 140


@pytest.mark.parametrize(
    ("how", "state", "is_ready"), [(FailureMode.CRASH, "waiting CrashLoopBackOff", False), (FailureMode.UNREADY, "running", False)]
)  # fmt: skip
def test_pods_that_run_already_fail_and_recover(how: FailureMode, state: str, is_ready: bool) -> None:
    life = Life(pod(container("web:1"))).pass_time(60)
    assert life.is_ready

    life.obj = dict(with_failures(life.obj, [failure(how=how)]))
    life.pass_time(60)
    assert (life.state(), life.is_ready) == (state, is_ready)

    life.obj = dict(meta.with_metadata(life.obj, annotations={}))
    life.pass_time(600)
    assert (life.state(), life.is_ready) == ("running", True)


def test_what_a_pod_asks_for_itself_stands() -> None:
    own = pod(container("web:1"), annotations={"sim/crash-share": "0"})

    assert meta.annotations(with_failures(own, [failure()])) == {"sim/crash-share": "0"}
    other = pod(container("db:1"))
    assert with_failures(other, [failure()]) is other
