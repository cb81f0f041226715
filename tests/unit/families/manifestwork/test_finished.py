"""A complete work is deleted after its TTL, if it has one and no owner."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from lamina.families.manifestwork.family import family
from lamina.families.manifestwork.hub.controller import Options
from lamina.families.manifestwork.hub.ttl import FINISHED
from lamina.families.manifestwork.labels import OWNER, OWNER_HASH, WORK_VERSION
from lamina.objects.kinds import Kinds
from lamina.objects.times import stamp
from lamina.objects.types import Made, Ref
from lamina.simulation import Loop, Process, SimulatedCluster, settle
from lamina.simulation.cluster.kinds import KINDS, kind, make

WORK = kind(WORK_VERSION, "ManifestWork", "manifestworks", subresources=("status",))
REF = Ref(WORK_VERSION, "ManifestWork", "east", "w")


@dataclass
class Hub(SimulatedCluster):
    kinds: Kinds = field(default_factory=lambda: Kinds([*KINDS.versions(), WORK]))

    def work(self, ttl: int | None = 60, **fields: Any) -> None:
        option = {"ttlSecondsAfterFinished": ttl} if ttl is not None else {"propagationPolicy": "Orphan"}
        self.create(make(WORK, "w", "east", spec={"deleteOption": option}, **fields))

    def completes(self, status: str = "True", generation: int = 1) -> None:
        said: Made = {
            "type": "Complete", "status": status, "reason": "ConditionRulesAggregated", "message": "",
            "lastTransitionTime": stamp(self.now), "observedGeneration": generation,
        }  # fmt: skip
        self.patch(REF, {"status": {"conditions": [said]}}, subresource="status")

    def after(self, seconds: float) -> "Hub":
        self.now += timedelta(seconds=seconds)
        settle(self, FINISHED)
        return self

    @property
    def has_it(self) -> bool:
        return self.at(REF) is not None


def test_a_complete_work_is_kept_as_long_as_it_says_and_no_longer() -> None:
    hub = Hub()
    hub.work(ttl=60)
    hub.completes()
    began = hub.now
    play = Loop(hub, Process(hub, (FINISHED,)))
    play.settle()
    assert hub.has_it
    assert play.next == began + timedelta(seconds=60), "it comes round when it is time, and not before"

    play.pass_time(timedelta(seconds=59))
    assert hub.has_it
    play.pass_time(timedelta(seconds=1))
    assert not hub.has_it


@pytest.mark.parametrize("ttl", [0, -1])
def test_one_that_is_not_to_be_kept_goes_at_once(ttl: int) -> None:
    hub = Hub()
    hub.work(ttl=ttl)
    hub.completes()
    assert not hub.after(0).has_it


@pytest.mark.parametrize(
    ("status", "generation"), [("False", 1), ("Unknown", 1), ("True", 0)], ids=["no", "maybe", "of-another"]
)
def test_one_that_is_not_complete_as_it_is_now_stays(status: str, generation: int) -> None:
    hub = Hub()
    hub.work()
    hub.completes(status, generation)
    assert hub.after(3600).has_it


def test_one_of_which_nothing_is_said_stays() -> None:
    hub = Hub()
    hub.work()
    assert hub.after(3600).has_it


@pytest.mark.parametrize("ttl", [None, 2**63 - 1])
def test_one_that_does_not_say_when_or_says_never_stays(ttl: int | None) -> None:
    hub = Hub()
    hub.work(ttl=ttl)
    hub.completes()
    assert hub.after(10 * 365 * 86400).has_it


@pytest.mark.parametrize("label", [OWNER, OWNER_HASH])
def test_one_of_a_replica_set_stays_whatever_it_says(label: str) -> None:
    hub = Hub()
    hub.work(ttl=0, labels={label: "team.app"})
    hub.completes()
    assert hub.after(3600).has_it


def test_one_that_goes_already_is_left_alone() -> None:
    hub = Hub()
    hub.work(ttl=0, finalizers=["example.com/hold"])
    hub.completes()
    hub.after(0)
    written = len(hub.journal)
    assert hub.has_it
    hub.after(60)
    assert len(hub.journal) == written


@pytest.mark.parametrize("schedules", [True, False])
def test_a_hub_deletes_finished_works_with_any_scheduler(schedules: bool) -> None:
    assert FINISHED in family(Options(schedules=schedules)).controllers
