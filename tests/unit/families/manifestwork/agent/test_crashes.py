"""
An agent that dies after any of its writes, and starts again with nothing remembered.

Each story is told once without a death, and then once for each write in it, with a
death right after. The end is the same, on both sides, and nothing is left behind.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

from lamina.core.model.plan import Action, Apply, Create
from lamina.families.manifestwork.agent.labels import AGENT
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import Crashed
from lamina.simulation.cluster.kinds import CONFIG_MAP, NAMESPACE, SECRET, make
from tests.unit.families.manifestwork.agent.story import RECORD, WORK, Spoke, config_for, config_map, strategy

Step = Callable[[Spoke], object]
_OBJECTS = (CONFIG_MAP, SECRET, NAMESPACE, RECORD)


def labelled(obj: Made, **labels: str) -> Made:
    return meta.with_metadata(obj, labels=labels)


def applies(*manifests: Made) -> list[Made]:
    return [config_for(one, **strategy("ServerSideApply")) for one in manifests]


STORIES: dict[str, tuple[Step, ...]] = {
    "a work is applied": (
        lambda s: s.want(config_map("a", "fresh"), make(NAMESPACE, "fresh"), make(SECRET, "s", "fresh")),
    ),
    "a revision comes, with other objects and labels, and goes again": (
        lambda s: s.want(config_map("a", rev="1"), config_map("old")),
        lambda s: s.want(labelled(config_map("a", rev="2"), brought="x"), config_map("new")),
        lambda s: s.want(config_map("a", rev="1"), config_map("old")),
    ),
    "a work is applied and deleted": (
        lambda s: s.want(config_map("a"), config_map("b")),
        lambda s: s.hub.delete(s.work_ref()),
    ),
    "objects are stated, not replaced": (
        lambda s: s.want(config_map("a", x="1"), manifestConfigs=applies(config_map("a"))),
        lambda s: s.want(config_map("a", y="2"), manifestConfigs=applies(config_map("a"))),
        lambda s: s.hub.delete(s.work_ref()),
    ),
    "two works share an object, and one goes": (
        lambda s: (s.want(config_map("a"), name="one"), s.want(config_map("a"), name="two")),
        lambda s: s.hub.delete(s.work_ref("one")),
    ),
    "an object is deleted by hand, and then no longer wanted": (
        lambda s: s.want(config_map("a"), config_map("b")),
        lambda s: s.home.delete(CONFIG_MAP.ref("default", "b")),
        lambda s: s.want(config_map("a")),
    ),
    "a manifest is there for a moment only": (
        lambda s: s.want(config_map("a")),
        lambda s: s.want(config_map("a"), config_map("brief")),
        lambda s: s.want(config_map("a")),
    ),
}  # fmt: skip


class Crashing(Spoke):
    """An agent that crashes once, after so many writes on either cluster."""

    def live(self, steps: tuple[Step, ...], crashes_after: int | None) -> int:
        """Run a story, and return the number of its writes."""
        writes = 0

        def watched(perform: Callable[..., None]) -> Callable[..., None]:
            def write(action: Action, manager: str = AGENT) -> None:
                nonlocal writes, crashes_after
                if crashes_after is not None and writes >= crashes_after:
                    crashes_after = None
                    raise Crashed
                if isinstance(action, Create | Apply) and action.ref.kind in ("ConfigMap", "Secret"):
                    self._check_recorded(action)
                perform(action, manager)
                writes += 1

            return write

        for cluster in (self.hub, self.home):
            cluster.perform = watched(cluster.perform)  # type: ignore[method-assign]
        for step in steps:
            step(self)
            try:
                self.run()
            except Crashed:
                # The agent crashes once; this is the one that is started after it.
                self.run()
        return writes

    def _check_recorded(self, action: Create | Apply) -> None:
        """Check what must hold before anything is made: that it is about to be is written down."""
        if self.home.at(action.ref) is None:
            (owner,) = meta.owner_refs(action.obj)
            record = self.home.get(RECORD.ref("", owner["name"]))
            entries = record["status"]["appliedResources"]
            assert [one for one in entries if one["name"] == action.ref.name and not one.get("uid")]

    def end(self) -> object:
        """Return what matters of how it ended: what is there, whose it is, and what is said of it."""
        there = {
            f"{kind.kind} {meta.namespace(one)}/{meta.name(one)}": (
                one.get("data"),
                dict(meta.labels(one)),
                sorted(owner["name"] for owner in meta.owner_refs(one)),
                dict(meta.annotations(one)),
            )
            for kind in _OBJECTS
            for one in self.home.listed(kind)
        }
        said = {
            meta.name(work): [
                (one["type"], one["status"], one["reason"], one["observedGeneration"])
                for one in sorted((work.get("status") or {}).get("conditions") or (), key=lambda c: c["type"])
            ]
            for work in self.hub.listed(WORK)
        }
        return there, said


@pytest.mark.parametrize("story", STORIES)
def test_a_crash_after_any_write_leaves_nothing_behind(story: str) -> None:
    whole = Crashing()
    writes = whole.live(STORIES[story], None)
    for crashes_after in range(writes + 1):
        crashing = Crashing()
        crashing.live(STORIES[story], crashes_after)
        assert crashing.end() == whole.end(), f"after {crashes_after} of {writes} writes"


@pytest.mark.parametrize("crashes_after", range(12))
def test_what_an_agent_had_begun_and_is_no_longer_wanted_goes(crashes_after: int) -> None:
    """The work changes while the agent is dead, so it never finishes what it had begun."""
    spoke = Spoke()
    spoke.ask(config_map("a"))
    spoke.want(config_map("a"), config_map("brief"), labelled(config_map("marked"), x="1"))
    with suppress(Crashed):
        spoke.run(crash_after=crashes_after)
    spoke.ask(config_map("a"))

    assert spoke.has("a")
    assert not spoke.has("brief")
    assert not spoke.has("marked")
    assert spoke.listed() == [("a", "uid")]
