"""The metrics of owners' states, in all families, and what they cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.app import App
from lamina.core.model.state import State
from lamina.core.model.state_since import state_since
from lamina.objects.types import Obj, Ref
from lamina.runtime.metrics.prometheus import Metrics
from lamina.runtime.metrics.recorder import OwnerState
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.scenarios.story import EXAMPLES, Story

START = datetime(2026, 1, 1, tzinfo=UTC)
A, B = (Ref("ex.example.com/v1", "Thing", "default", name) for name in "ab")


def samples(metrics: Metrics, name: str) -> Iterator[tuple[dict[str, str], float]]:
    for family in text_string_to_metric_families(metrics.text().decode()):
        yield from ((one.labels, one.value) for one in family.samples if one.name == name)


def states(metrics: Metrics) -> dict[str, str]:
    """Return the state of each owner, and check that there is one, and one time of it."""
    found = {}
    for labels, value in samples(metrics, "lamina_owner_state"):
        assert value == 1 and set(labels) == {"kind", "namespace", "name", "state"}
        owner = f"{labels['kind']} {labels['namespace']}/{labels['name']}"
        assert owner not in found
        found[owner] = labels["state"]
    times = [labels for labels, _ in samples(metrics, "lamina_owner_state_since_seconds")]
    assert {f"{one['kind']} {one['namespace']}/{one['name']}": one["state"] for one in times} == found
    return found


def since(metrics: Metrics) -> dict[str, timedelta]:
    """Return since when each owner is in its state, after the start."""
    return {
        labels["name"]: datetime.fromtimestamp(value, UTC) - START
        for labels, value in samples(metrics, "lamina_owner_state_since_seconds")
    }


class Owned:
    """Owners as a controller knows them, and a count of how often each was read."""

    def __init__(self) -> None:
        self.known: dict[Ref, OwnerState] = {}
        self.read: list[str] = []
        self.led = True

    def of(self, ref: Ref) -> OwnerState | None:
        self.read.append(ref.name)
        return self.known.get(ref)

    def set(self, ref: Ref, state: State, *, minute: int, transition: int) -> None:
        self.known[ref] = OwnerState(
            state, START + timedelta(minutes=transition), START + timedelta(minutes=minute)
        )

    @property
    def metrics(self) -> Metrics:
        metrics = Metrics()
        self.meter = metrics.of("C")
        self.meter.track_owners(self.of, lambda ref: self.led)
        return metrics


def test_only_an_owner_that_has_changed_since_the_last_scrape_is_read() -> None:
    owned = Owned()
    metrics = owned.metrics
    for ref in (A, B):
        owned.set(ref, State.HEALTHY, minute=1, transition=0)
        for _ in range(3):
            owned.meter.changed(ref)
    assert owned.read == []

    assert states(metrics) == {"Thing default/a": "Healthy", "Thing default/b": "Healthy"}
    assert owned.read == ["a", "b"]

    owned.set(B, State.DEGRADED, minute=5, transition=4)
    owned.meter.changed(B)
    assert states(metrics) == {"Thing default/a": "Healthy", "Thing default/b": "Degraded"}
    assert owned.read == ["a", "b", "b"]

    del owned.known[B]
    owned.meter.changed(B)
    assert states(metrics) == {"Thing default/a": "Healthy"}
    owned.meter.end()
    assert states(metrics) == {}


def test_the_time_of_a_state_is_its_transition_or_that_at_which_it_was_first_seen() -> None:
    owned = Owned()
    metrics = owned.metrics

    def at(minute: int, state: State, *, transition: int) -> timedelta:
        owned.set(A, state, minute=minute, transition=transition)
        owned.meter.changed(A)
        return since(metrics)["a"]

    minutes = timedelta(minutes=1)
    # After a start there is nothing but what the object records.
    assert at(60, State.PROGRESSING, transition=10) == 10 * minutes
    # A condition that changed meanwhile is no other state.
    assert at(70, State.PROGRESSING, transition=65) == 10 * minutes
    assert at(80, State.HEALTHY, transition=75) == 75 * minutes
    # Nothing but a reason changed: the transition is older than the last look, so it is not this one.
    assert at(90, State.DEGRADED, transition=75) == 90 * minutes
    assert at(95, State.DEGRADED, transition=75) == 90 * minutes


def test_only_the_replica_that_leads_an_owner_exports_it() -> None:
    owned = Owned()
    metrics = owned.metrics
    owned.set(A, State.HEALTHY, minute=1, transition=0)
    owned.meter.changed(A)
    owned.led = False
    assert states(metrics) == {}

    owned.led = True
    assert states(metrics) == {"Thing default/a": "Healthy"}
    assert owned.read == ["a"]


def test_what_is_noted_without_a_scrape_is_limited() -> None:
    owned = Owned()
    metrics = owned.metrics
    for number in range(10_001):
        owned.meter.changed(A._replace(name=str(number)))

    # Nothing is read where events are handled.
    assert owned.read == []
    assert states(metrics) == {} and len(owned.read) == 10_000


def test_an_owner_of_several_controllers_has_the_worst_of_their_states() -> None:
    owned, other = Owned(), Owned()
    metrics = owned.metrics
    meter = metrics.of("D")
    meter.track_owners(other.of, lambda ref: True)
    owned.set(A, State.HEALTHY, minute=1, transition=0)
    other.set(A, State.DEGRADED, minute=2, transition=2)
    owned.meter.changed(A)
    meter.changed(A)

    assert states(metrics) == {"Thing default/a": "Degraded"}
    assert since(metrics) == {"a": timedelta(minutes=2)}


def test_the_number_of_series_is_limited() -> None:
    owned = Owned()
    metrics = owned.metrics
    for number in range(1100):
        ref = A._replace(name=str(number))
        owned.set(ref, State.HEALTHY, minute=1, transition=0)
        owned.meter.changed(ref)

    assert len(states(metrics)) == 1000
    assert len(owned.read) == 1000


@pytest.mark.parametrize(
    ("obj", "state", "minute"),
    [
        ({"metadata": {"creationTimestamp": "2026-01-01T00:01:00Z"}}, State.UNKNOWN, 1),
        ({"metadata": {}, "status": {"conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T00:02:00Z"},
            {"type": "B", "status": "True", "lastTransitionTime": "2026-01-01T00:03:00Z"},
        ]}}, State.DEGRADED, 3),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:04:00Z"}, "status": {"conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T00:05:00Z"},
        ]}}, State.DELETING, 4),
        ({"metadata": {}}, State.UNKNOWN, None),
    ],
)  # fmt: skip
def test_an_object_records_when_it_was_last_changed(obj: Obj, state: State, minute: int | None) -> None:
    assert state_since(obj, state) == (START + timedelta(minutes=minute) if minute is not None else None)


@asynccontextmanager
async def example(
    folder: str, *, hooks: bool = False, clusters: int = 0
) -> AsyncIterator[tuple[Story, Metrics]]:
    """Run an example with metrics."""
    metrics = Metrics()
    settings = Settings(
        ephemeral=True,
        port=0,
        hooks=(EXAMPLES / folder / "hooks.py",) if hooks else (),
        clusters=tuple(f"c{number}" for number in range(clusters)),
    )
    async with App(settings, metrics=metrics) as app:
        yield Story(EXAMPLES / folder, app.client()), metrics


async def reached(metrics: Metrics, **wanted: str) -> None:
    """Wait until the owners of these names are in these states, as the metrics say."""

    def found() -> dict[str, str]:
        return {owner.partition("/")[2]: state for owner, state in states(metrics).items()}

    await eventually(found, lambda now: {name: now.get(name) for name in wanted} == wanted)


async def test_a_parent_of_metacontroller() -> None:
    async with example("catset", hooks=True) as (story, metrics):
        await story.apply("kinds.yaml", "web.yaml")
        await reached(metrics, web="Healthy")

        web = story.parent("CatSet", "web")
        spec = {"containers": [{"name": "nginx", "image": "nginx:bad"}]}
        await story.edit(web, {"spec": {"template": {"spec": spec}}})
        await reached(metrics, web="Progressing")
        assert "CatSet default/web" in states(metrics)

        await story.client.delete(web)
        await eventually(lambda: "CatSet default/web" not in states(metrics))


async def test_a_replica_set_of_manifest_works() -> None:
    async with example("fleet", clusters=3) as (story, metrics):
        await story.apply("placement.yaml", "web.yaml")
        await reached(metrics, web="Healthy")
        before = dict(samples_of(metrics))

        await story.apply("web.yaml", instead=("nginx:1", "nginx:bad"))
        await reached(metrics, web="Aborted")
        assert states(metrics) == {"ManifestWorkReplicaSet default/web": "Aborted"}
        assert dict(samples_of(metrics))["web"] > before["web"]


def samples_of(metrics: Metrics) -> Iterator[tuple[str, float]]:
    for labels, value in samples(metrics, "lamina_owner_state_since_seconds"):
        yield labels["name"], value


async def test_an_object_deployment_and_none_of_its_sets() -> None:
    async with example("objectset") as (story, metrics):
        await story.apply("shop.yaml")
        await reached(metrics, shop="Healthy")

        await story.edit(
            Ref("package-operator.run/v1alpha1", "ObjectDeployment", "default", "shop"),
            {"spec": {"paused": True}},
        )
        await reached(metrics, shop="Paused")
        assert states(metrics) == {"ObjectDeployment default/shop": "Paused"}


async def test_a_resource_graph_and_its_instances() -> None:
    async with example("resourcegraph") as (story, metrics):
        await story.apply("site.yaml", "sites.yaml")
        await reached(metrics, site="Healthy", alpha="Healthy", beta="Healthy")

        await story.apply("site.yaml", instead=("nginx:1", "nginx:bad"))
        await reached(metrics, site="Progressing", alpha="Progressing", beta="Pending")
