"""
The cost of simulations: `python -m bench.paper`.

A simulated hour in which a hundred targets are updated: pods, children of a hook, clusters.
"""

import time
from datetime import timedelta
from functools import cache

import msgspec
import orjson

from lamina.control_plane.load_stages import load_stages
from lamina.core.model.queries import Answer, Call, HookResponse
from lamina.families.metacontroller.labels import API_VERSION
from lamina.families.registry import chosen
from lamina.objects.types import Obj
from lamina.simulation.cluster.kinds import POD, make
from lamina.simulation.scenario import Simulation
from lamina.testing.builders import config_map, custom, definition, deployment

TARGETS = 100
AIM = 1.0
"""The aim for a simulated hour, in seconds."""
_ROLLING = {
    "method": "RollingRecreate",
    "statusChecks": {"conditions": [{"type": "Ready", "status": "True"}]},
}


class _Spec(msgspec.Struct):
    size: int
    image: str


class _Parent(msgspec.Struct):
    spec: _Spec


class _Request(msgspec.Struct):
    parent: _Parent


_REQUEST = msgspec.json.Decoder(_Request)


def hook(call: Call) -> Answer:
    """Return pods of an image; fast, since the simulation is measured and not the hook."""
    # The children are most of the request, and this hook does not use them.
    spec = _REQUEST.decode(call.body[: call.body.index(b',"children":')] + b"}").parent.spec
    return HookResponse(_answer(spec.size, spec.image))


@cache
def _answer(size: int, image: str) -> bytes:
    spec = {"containers": [{"name": "main", "image": image}]}
    pods = [make(POD, f"web-{number}", labels={"app": "web"}, spec=spec) for number in range(size)]
    return orjson.dumps({"children": pods})


def flock(image: str) -> Obj:
    spec = {"size": TARGETS, "image": image, "selector": {"matchLabels": {"app": "web"}}}
    return custom("example.com/v1", "Flock", "web", spec=spec)


def controller(at_once: int | str) -> Obj:
    rolling = {**_ROLLING, "rollingUpdate": {"maxUnavailable": at_once}}
    spec = {
        "parentResource": {
            "apiVersion": "example.com/v1",
            "resource": "flocks",
            "revisionHistory": {"fieldPaths": ["spec.image"]},
        },
        "childResources": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": rolling}],
        "hooks": {"sync": {"webhook": {"url": "http://hook/sync"}}},
    }
    return custom(API_VERSION, "CompositeController", "flocks", namespace=None, spec=spec)


def fleet() -> tuple[Obj, ...]:
    """Return a hub's clusters, and a placement that selects them all."""
    group = "cluster.open-cluster-management.io"
    member = {f"{group}/clusterset": "fleet"}
    clusters = [
        custom(f"{group}/v1", "ManagedCluster", f"c{number:03}", namespace=None, labels=member,
               spec={"hubAcceptsClient": True})
        for number in range(TARGETS)
    ]  # fmt: skip
    return (
        custom(f"{group}/v1beta2", "ManagedClusterSet", "fleet", namespace=None),
        custom(f"{group}/v1beta2", "ManagedClusterSetBinding", "fleet", spec={"clusterSet": "fleet"}),
        custom(f"{group}/v1beta1", "Placement", "everywhere", spec={}),
        *clusters,
    )


def works(colour: str) -> Obj:
    strategy = {"type": "Progressive", "progressive": {"maxConcurrency": "10%"}}
    spec = {
        "placementRefs": [{"name": "everywhere", "rolloutStrategy": strategy}],
        "manifestWorkTemplate": {"workload": {"manifests": [config_map("settings", {"colour": colour})]}},
    }
    return custom("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web", spec=spec)


def an_hour(*before: Obj, change: Obj) -> tuple[float, float, int]:
    """Return the cost of a simulated hour after a change: seconds, processor seconds, writes."""
    simulation = Simulation(families=chosen("all"), stages=load_stages(), call=hook)
    for manifest in before:
        simulation.apply(manifest)
    simulation.run(timedelta(minutes=5))
    simulation.apply(change)
    written, started, used = len(simulation.cluster.journal), time.perf_counter(), time.process_time()
    simulation.run(timedelta(hours=1))
    if not all(one.healthy for one in simulation.final_states()):
        raise AssertionError(f"unhealthy at the end: {simulation.final_states()}")
    return (
        time.perf_counter() - started,
        time.process_time() - used,
        len(simulation.cluster.journal) - written,
    )


def main() -> None:
    hours: tuple[tuple[str, tuple[Obj, ...], Obj], ...] = (
        (
            f"a simulated hour, a Deployment of {TARGETS} pods",
            (deployment("web", replicas=TARGETS),),
            deployment("web", replicas=TARGETS, image="web:2"),
        ),
        (
            f"a simulated hour, {TARGETS} children of a hook, 10% at once",
            (definition("Flock"), controller("10%"), flock("web:1")),
            flock("web:2"),
        ),
        (
            f"a simulated hour, {TARGETS} children of a hook, one by one",
            (definition("Flock"), controller(1), flock("web:1")),
            flock("web:2"),
        ),
        (
            f"a simulated hour, {TARGETS} clusters of a replica set, 10% at once",
            (*fleet(), works("red")),
            works("blue"),
        ),
    )
    for name, before, change in hours:
        wall, used, written = an_hour(*before, change=change)
        short = "  short" if wall > AIM else ""
        print(f"{name:62} {wall:8.2f} s  at most {AIM:g} s, processor {used:.2f} s, {written} writes{short}")


if __name__ == "__main__":
    main()
