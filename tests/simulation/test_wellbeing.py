"""Who is well that a family has an account of, but rolls nothing for: by itself if it is a workload, and by its children."""

import json
from datetime import timedelta

import pytest

from lamina.core.questions import Answer, Call, Said
from lamina.families.every import chosen
from lamina.families.metacontroller.names import API_VERSION
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj
from lamina.simulation import Ending, Simulation
from lamina.stages import load_stages
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
    """Decorate with nothing; want a Deployment of the image that a flock names."""
    asked = json.loads(call.body)
    if "parent" not in asked:
        return Said(b"{}")
    child = deployment("web", image=asked["parent"]["spec"]["image"])
    return Said(json.dumps({"children": [child]}).encode())


def ending(*manifests: Obj) -> Ending:
    played = Simulation(families=chosen("metacontroller"), stages=load_stages(), call=hook)
    for manifest in manifests:
        played.apply(manifest)
    played.run(HOUR)
    (found,) = (one for one in played.endings() if one.account is not None)
    return found


@pytest.mark.parametrize(("image", "well"), [("db:1", True), ("db:bad", False)])
def test_a_workload_that_is_decorated_is_well_if_its_pods_are(image: str, well: bool) -> None:
    found = ending(DECORATOR, stateful_set("db", image=image))

    assert (found.ref.kind, found.well) == ("StatefulSet", well)
    assert (found.state, found.because.endswith("are ready")) == (
        ("unnumbered", False) if well else ("not ready", True)
    )


def test_an_owner_that_rolls_nothing_is_well_if_its_children_are() -> None:
    def flock(image: str) -> Obj:
        return custom("example.com/v1", "Flock", "geese", spec={"image": image})

    assert ending(definition("Flock"), COMPOSITE, flock("web:1")).well
    bad = ending(definition("Flock"), COMPOSITE, flock("web:bad"))
    assert (bad.ref.kind, bad.well, bad.state) == ("Flock", False, "Available=False")
    assert bad.because.startswith("deployment default/web: ")


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_child_in_a_namespace_that_the_cluster_does_not_have_is_told_of_until_nobody_wants_it(
    gives_up: bool,
) -> None:
    asked = 0

    def elsewhere(call: Call) -> Answer:
        nonlocal asked
        asked += 1
        wanted = [] if gives_up and asked > 5 else [config_map("settings", {}, namespace="nowhere")]
        return Said(json.dumps({"children": wanted}).encode())

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

    (found,) = (one for one in played.endings() if one.account is not None)
    assert found.well == gives_up
    assert ('namespaces "nowhere" not found' in found.because) != gives_up
    assert any('namespaces "nowhere" not found' in one.failure for one in played.story)
