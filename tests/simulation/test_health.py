"""Health of owners without a rollout: that of the workload itself, and otherwise that of its children."""

import json
from datetime import timedelta

import pytest

from lamina.control_plane.load_stages import load_stages
from lamina.core.model.queries import Answer, Call, HookResponse
from lamina.families.metacontroller.labels import API_VERSION
from lamina.families.registry import chosen
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj
from lamina.simulation.scenario import FinalState, Simulation
from lamina.testing.builders import (
    config_map,
    custom,
    definition,
    deployment,
    edited,
    namespace,
    stateful_set,
)

HOUR = timedelta(hours=1)
HOOKS = {"sync": {"webhook": {"url": "http://hooks/sync"}}}
DECORATOR = custom(
    API_VERSION, "DecoratorController", "labels", namespace=None,
    spec={
        "resources": [{"apiVersion": "apps/v1", "resource": "statefulsets"}],
        "attachments": [{"apiVersion": "v1", "resource": "configmaps"}],
        "hooks": HOOKS,
    },
)  # fmt: skip
COMPOSITE = custom(
    API_VERSION, "CompositeController", "flocks", namespace=None,
    spec={
        "generateSelector": True,
        "parentResource": {"apiVersion": "example.com/v1", "resource": "flocks"},
        "childResources": [{"apiVersion": "apps/v1", "resource": "deployments", "updateStrategy": {"method": "InPlace"}}],
        "hooks": HOOKS,
    },
)  # fmt: skip


def hook(call: Call) -> Answer:
    """Decorate with nothing; desire a Deployment of the image that a flock names."""
    asked = json.loads(call.body)
    if "parent" not in asked:
        return HookResponse(b"{}")
    child = deployment("web", image=asked["parent"]["spec"]["image"])
    return HookResponse(json.dumps({"children": [child]}).encode())


def final_state(*manifests: Obj) -> FinalState:
    played = Simulation(families=chosen("metacontroller"), stages=load_stages(), call=hook)
    for manifest in manifests:
        played.apply(manifest)
    played.run(HOUR)
    (found,) = (one for one in played.final_states() if one.owner_status is not None)
    return found


@pytest.mark.parametrize(("image", "well"), [("db:1", True), ("db:bad", False)])
def test_a_decorated_workload_is_healthy_if_its_pods_are(image: str, well: bool) -> None:
    found = final_state(DECORATOR, stateful_set("db", image=image))

    assert (found.ref.kind, found.healthy) == ("StatefulSet", well)
    assert (found.state, " replicas are " in found.because) == (
        ("Healthy", False) if well else ("Progressing", True)
    )


def test_an_owner_without_a_rollout_is_healthy_if_its_children_are() -> None:
    def flock(image: str) -> Obj:
        return custom("example.com/v1", "Flock", "geese", spec={"image": image})

    assert final_state(definition("Flock"), COMPOSITE, flock("web:1")).healthy
    bad = final_state(definition("Flock"), COMPOSITE, flock("web:bad"))
    assert (bad.ref.kind, bad.healthy, bad.state) == ("Flock", False, "Degraded")
    assert bad.because.startswith("Deployment web: ")


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_child_in_a_namespace_that_the_cluster_does_not_have_is_reported_until_it_is_not_desired(
    gives_up: bool,
) -> None:
    asked = 0

    def elsewhere(call: Call) -> Answer:
        nonlocal asked
        asked += 1
        wanted = [] if gives_up and asked > 5 else [config_map("settings", {}, namespace="nowhere")]
        return HookResponse(json.dumps({"children": wanted}).encode())

    def fetch(kind: Kind) -> list[Obj]:
        return [namespace("default")] if kind.kind == "Namespace" else []

    played = Simulation(families=chosen("metacontroller"), call=elsewhere, fetch=fetch)
    everywhere = edited(
        COMPOSITE,
        spec={"childResources": [{"apiVersion": "v1", "resource": "configmaps"}]},
    )
    flock = custom("example.com/v1", "Flock", "geese", namespace=None, spec={})
    for manifest in (definition("Flock", scope="Cluster"), everywhere, flock):
        played.apply(manifest)
    played.run(HOUR)

    (found,) = (one for one in played.final_states() if one.owner_status is not None)
    assert found.healthy == gives_up
    assert ('namespaces "nowhere" not found' in found.because) != gives_up
    assert any('namespaces "nowhere" not found' in one.failure for one in played.timeline)
