"""
Stories in which the controller of definitions and those of instances run together, for the crash explorer.

The definition has a gate, and each resource takes two seconds to become ready with each revision,
so that there is time in the middle of a rollout.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lamina.actors import DEFINITIONS, GARBAGE
from lamina.core.model.plan import Create
from lamina.families.resourcegraph.controllers import controllers
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import KINDS
from lamina.testing.crash_explorer import Invariant, Scenario, Step, Write
from tests.unit.families.resourcegraph.definitions.promises import PROMISES as OF_DEFINITIONS
from tests.unit.families.resourcegraph.instances.promises import INPUT, inputs_of
from tests.unit.families.resourcegraph.instances.promises import PROMISES as OF_INSTANCES
from tests.unit.families.resourcegraph.instances.stories import ACTOR, Change, annotates, creates, links
from tests.unit.families.resourcegraph.instances.stories import outcome as outcome_of_instances
from tests.unit.families.resourcegraph.instances.world import SPEC, instance, rgd

OVER = timedelta(seconds=60)
HALF_WAY = timedelta(seconds=7)
"""Longer than a perturbation: a definition that is edited has published its revision by then."""
COUNT = 5
GATE = "${exponentiallyUpdated(instances, each)}"
PIN = "kro.run/rgd-revision"


def definition(version: int) -> Made:
    replicas = f"${{string(schema.spec.replicas) + '-v{version}'}}"
    resources = [
        {**one, "template": {**one["template"], "data": {**one["template"]["data"], "replicas": replicas}}}
        for one in links("a", "b")
    ]
    schema = {
        "kind": "App",
        "apiVersion": "v1alpha1",
        "group": "kro.run",
        "scope": "Namespaced",
        "spec": dict(SPEC),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": "app"},
        "spec": {"schema": schema, "resources": resources, "propagateWhen": [GATE]},
    }


def becomes(version: int) -> Change:
    return lambda on: on.replace({**on.get(rgd("app")), "spec": definition(version)["spec"]}, "")


def rolls_back(to: int, **annotations: str) -> Change:
    values = {"kro.run/rollback-to-revision": str(to), **annotations}
    return lambda on: on.patch(rgd("app"), {"metadata": {"annotations": values}})


CREATED = creates(
    instance("a0"),
    instance("a1", annotations={PIN: "1"}),
    *(instance(f"a{number}") for number in range(2, COUNT)),
)

STORIES: Mapping[str, Sequence[Step]] = {
    "a definition that is edited, in waves": (CREATED, OVER, becomes(2), OVER),
    "a definition that is rolled back in the middle of a wave": (
        CREATED, OVER, becomes(2), HALF_WAY, rolls_back(1), OVER,
    ),
    "a definition that is rolled back in waves, in the middle of a wave": (
        CREATED, OVER, becomes(2), HALF_WAY, rolls_back(1, **{"kro.run/rollback-mode": "Gated"}), OVER,
    ),
    "an instance that is pinned in the middle of a wave": (
        CREATED, OVER, becomes(2), HALF_WAY, annotates("a2", rgd_revision="1"), annotates("a4", rgd_revision="2"), OVER,
    ),
}  # fmt: skip


def no_instance_is_moved_twice(write: Write) -> None:
    """Of an instance whose spec is not edited, a revision is recorded once, unless it is pinned to it."""
    if not isinstance(write.action, Create) or write.action.ref.kind != INPUT:
        return
    made = write.cluster.objects[write.action.ref]
    owner = next(one for one in write.before.values() if meta.uid(one) == meta.owner_refs(made)[0]["uid"])
    had = [one["spec"]["rgdRevision"] for one in inputs_of(write.before, owner).values()]
    moves_to = made["spec"]["rgdRevision"]
    if PIN in meta.annotations(owner):
        assert moves_to == int(meta.annotations(owner)[PIN]), f"{meta.name(owner)} leaves its pin"
    else:
        assert moves_to > max(had, default=0), f"{meta.name(owner)} is moved to {moves_to} after {had}"


PROMISES: Sequence[Invariant] = (*OF_DEFINITIONS, *OF_INSTANCES, no_instance_is_moved_twice)


def outcome(cluster: SimulatedCluster) -> Any:
    """Return the end: the definition and its revisions, the instances and their children."""
    live = cluster.get(rgd("app"))
    status = live["status"]
    counts = [(one["revision"], one["instanceCount"]) for one in status["revisionHistory"]]
    return {
        **outcome_of_instances(cluster),
        "spec": live["spec"],
        "annotations": dict(meta.annotations(live)),
        "current": (status["currentRevision"], status["lastIssuedRevision"]),
        "instances": counts,
        "conditions": sorted((one["type"], one["status"]) for one in conditions.of(live)),
    }


def _given() -> SimulatedCluster:
    made = SimulatedCluster(kinds=KINDS, tracks_creates=True)
    for one in (*definitions(), definition(1)):
        made.create(one)
    return made


def scenarios() -> Iterator[Scenario]:
    """Yield each story."""
    for name, steps in STORIES.items():
        yield Scenario(
            name=name,
            given=_given,
            steps=steps,
            # Each process has graphs of its own, as after a restart.
            controllers=lambda: (controllers().definitions,),
            sources=lambda: (controllers().instances,),
            others=(ACTOR, GARBAGE, DEFINITIONS),
            invariants=PROMISES,
            outcome=outcome,
        )
