"""Simulated definitions with edits, rollbacks and deletions: scenarios for the crash explorer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from lamina.actors import DEFINITIONS, GARBAGE
from lamina.core.model.plan import Propagation
from lamina.families.resourcegraph.definitions.controller import definitions
from lamina.families.resourcegraph.labels import DEFINITION_ID
from lamina.families.resourcegraph.options import DEFAULTS, Options
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster
from lamina.testing.crash_explorer import Scenario, Step
from tests.unit.families.resourcegraph.definitions.clusters import (
    APP,
    CRD,
    INPUT_KIND,
    INSTANCES,
    REVISION_KIND,
    SPEC,
    app,
    cluster,
    instance,
    resource,
)
from tests.unit.families.resourcegraph.definitions.promises import PROMISES

OVER = timedelta(seconds=40)
HALF_WAY = timedelta(seconds=5)
GATE: Made = {"propagateWhen": ["${exponentiallyUpdated(instances, each)}"]}

Change: TypeAlias = Callable[[SimulatedCluster], object]


def becomes(wanted: Made) -> Change:
    def change(cluster: SimulatedCluster) -> None:
        live = cluster.at(APP)
        if live is None:
            cluster.create(wanted)
        else:
            cluster.replace({**live, "spec": wanted["spec"]}, "")

    return change


def annotated(ref: Ref, **values: str | None) -> Change:
    annotations = {f"kro.run/{name.replace('_', '-')}": value for name, value in values.items()}
    return lambda cluster: cluster.patch(ref, {"metadata": {"annotations": annotations}})


def loses(ref: Ref, how: Propagation = Propagation.BACKGROUND) -> Change:
    return lambda cluster: cluster.delete(ref, how) if ref in cluster.objects else None


def creates(*objects: Made) -> Change:
    def change(cluster: SimulatedCluster) -> None:
        for one in objects:
            cluster.create(one)

    return change


def instances(count: int, **fields: Any) -> Change:
    return creates(*(instance(f"a{number}", **fields) for number in range(count)))


def instance_ref(name: str) -> Ref:
    return Ref("kro.run/v1alpha1", "App", "ns1", name)


def version(number: int, **fields: Any) -> Made:
    return app(resource(more=f"version {number}"), **fields)


def rolls_back(to: int, **more: str) -> Change:
    return annotated(APP, rollback_to_revision=str(to), **more)


class Story(NamedTuple):
    given: Sequence[Made]
    steps: Sequence[Step]
    options: Options = DEFAULTS


def of_app(*steps: Step, options: Options = DEFAULTS, **fields: Any) -> Story:
    """A story of a definition at revision 1."""
    return Story((version(1, **fields),), steps, options)


LIMITED: Made = {"revisionManagement": {"historyLimit": 1}}
MANUAL: Made = {"revisionManagement": {"updatePolicy": {"type": "Manual"}}}

STORIES: Mapping[str, Story] = {
    "from nothing": Story((), (becomes(version(1)), OVER, instances(2))),
    "edits": of_app(
        instances(2), OVER, becomes(version(2)), OVER, becomes(version(3)), OVER, becomes(version(1)),
    ),
    "an invalid edit, and a valid one": of_app(
        instances(1), OVER, becomes(app(resource(more="${missing.x}"))), OVER, becomes(version(2)),
    ),
    "a breaking edit, which is allowed later": of_app(
        becomes(app(spec={**SPEC, "extra": "string"})), OVER, becomes(version(3)), OVER,
        annotated(APP, allow_breaking_changes="true"),
    ),
    "pruned": of_app(
        instances(2), OVER, annotated(instance_ref("a0"), rgd_revision="1"), OVER,
        becomes(version(2, **LIMITED)), OVER, becomes(version(3, **LIMITED)), OVER, becomes(version(4, **LIMITED)), OVER,
        annotated(instance_ref("a0"), rgd_revision=None), **LIMITED,
    ),
    "deleted by hand": of_app(
        instances(1), OVER, becomes(version(2)), OVER, loses(REVISION_KIND.ref("", "app-rev-2")),
        loses(REVISION_KIND.ref("", "app-rev-1")), OVER, becomes(version(3)),
    ),
    "rolled back": of_app(instances(2), OVER, becomes(version(2)), OVER, rolls_back(1)),
    "rolled back to nowhere": of_app(instances(1), OVER, rolls_back(9), OVER, rolls_back(0)),
    "rolled back without a change": of_app(becomes(app(resource(more="${missing.x}"))), OVER, rolls_back(1)),
    "rolled back past a field that is in use": of_app(
        becomes(app(spec={**SPEC, "extra": "string"})), OVER,
        creates(instance("a0", extra="x"), instance("a1", extra="y", annotations={"kro.run/rgd-revision": "2"})), OVER,
        rolls_back(1), OVER, loses(instance_ref("a1")),
    ),
    "approved": of_app(
        becomes(version(2, **MANUAL)), OVER, annotated(APP, create_revision="1"), OVER,
        annotated(APP, create_revision="true"), **MANUAL,
    ),
    "in waves": of_app(instances(6), OVER, becomes(version(2, **GATE)), timedelta(seconds=90), **GATE),
    "in waves, and a newer revision in the middle": of_app(
        instances(6), OVER, becomes(version(2, **GATE)), HALF_WAY, becomes(version(3, **GATE)), timedelta(seconds=90), **GATE,
    ),
    "in waves that stop at an instance, and rolled back": of_app(
        creates(instance("a0"), instance("a1", sick=2), instance("a2"), instance("a3")), OVER,
        becomes(version(2, **GATE)), timedelta(seconds=60), rolls_back(1), timedelta(seconds=60), **GATE,
    ),
    "rolled back in waves": of_app(
        instances(4), OVER, becomes(version(2, **GATE)), timedelta(seconds=60),
        rolls_back(1, rollback_mode="Gated"), timedelta(seconds=60), **GATE,
    ),
    "the CRD edited and deleted": of_app(
        lambda cluster: cluster.patch(CRD, {"metadata": {"labels": {"kro.run/kro-version": None}}}), OVER, loses(CRD),
    ),
    "deleted": of_app(instances(1), OVER, becomes(version(2)), OVER, loses(APP), options=Options(deletes_definitions=True)),
    "deleted in the foreground": of_app(becomes(version(2)), OVER, loses(APP, Propagation.FOREGROUND)),
    "orphaned and adopted": of_app(
        becomes(version(2)), OVER, loses(APP, Propagation.ORPHAN), OVER, creates(version(3)),
    ),
    "two definitions of one kind": of_app(
        creates(app(name="other")), OVER, becomes(version(2)), OVER,
        loses(APP), OVER, loses(CRD),
    ),
    "deleted and created again": of_app(becomes(version(2)), OVER, loses(APP), OVER, creates(version(3))),
}  # fmt: skip


_LEFT_OUT = ("Event", INPUT_KIND.kind)
"""Which input revisions there are depends on whether an instance was moved twice, or directly to the newest revision."""


def outcome(cluster: SimulatedCluster) -> Any:
    """Return the end: the definition, its revisions, its kind, and where its instances are."""
    return {ref: _comparable(obj) for ref, obj in cluster.objects.items() if ref.kind not in _LEFT_OUT}


def _comparable(obj: Obj) -> Any:
    labels = {key: value for key, value in meta.labels(obj).items() if key != DEFINITION_ID}
    return {
        **{key: value for key, value in obj.items() if key != "metadata"},
        "labels": labels,
        "annotations": meta.annotations(obj),
        "finalizers": meta.finalizers(obj),
        "owners": [one["name"] for one in meta.owner_refs(obj)],
        "status": _timeless(obj.get("status")),
    }


_TIMES = ("since", "createdAt", "lastTransitionTime", "observedGeneration")


def _timeless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _timeless(one) for key, one in value.items() if key not in _TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def scenarios() -> Iterator[Scenario]:
    for name, story in STORIES.items():
        yield Scenario(
            name=name,
            given=partial(cluster, *story.given),
            steps=story.steps,
            # Each process has graphs of its own, as after a restart.
            controllers=partial(_under_test, story.options),
            others=(INSTANCES, GARBAGE, DEFINITIONS),
            invariants=PROMISES,
            outcome=outcome,
        )


def _under_test(options: Options) -> Any:
    return (definitions(options),)
