"""
A roll that dies after any of its writes, on paper, whatever somebody does to it in the meantime.

Each story is told once without a death, and what the cluster looked like is kept
after each write in it. From every such moment the story is told to its end again,
by a process that has just started and remembers nothing. The end is the same, and
nothing was sent twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.plan import Action, Apply, Create, Patch
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.paper import Crashed
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats, planned, touched

WAYS: Mapping[str, dict[str, Any]] = {
    "recreate": {"method": "RollingRecreate"},
    "in place": {"method": "RollingInPlace"},
    "recreate, server-side": {"method": "RollingRecreate", "applies": True},
    "in place, server-side": {"method": "RollingInPlace", "applies": True},
}
_MOST = 60


@dataclass
class Mortal(Cats):
    """A cluster whose controller dies once, after so many writes, and is looked over the shoulder all the time."""

    way: str = "recreate"
    dies_after: int | None = None
    finalizes: bool = False
    wrote: Callable[[], None] = lambda: None

    def perform(self, action: Action) -> None:
        if self.dies_after is not None and len(self.journal) >= self.dies_after:
            self.dies_after = None
            raise Crashed
        before = dict(self._claims())
        super().perform(action)
        self._look(action, before)
        self.wrote()

    def as_it_is(self) -> "Mortal":
        """Return the cluster as it is now; whatever becomes of this one, that one stays."""
        return Mortal(
            way=self.way,
            finalizes=self.finalizes,
            now=self.now,
            objects=deepcopy(self.objects),
            journal=list(self.journal),
            version=self.version,
            uids=self.uids,
        )

    def _claims(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield each pod, and the images of the revisions that claim it with how new they are."""
        claimed: dict[str, dict[str, int]] = {}
        for revision in self.revisions():
            image = revision["parentPatch"]["spec"]["template"]["image"]
            number = int(meta.annotations(revision)["metacontroller.k8s.io/revision-number"])
            for group in revision["children"]:
                for name in group["names"]:
                    claimed.setdefault(name, {})[image] = number
        yield from claimed.items()

    def _look(self, action: Action, before: Mapping[str, Mapping[str, int]]) -> None:
        image = _image(action)
        claims = dict(self._claims())
        if image:
            claimed = claims[action.ref.name]
            newest = max(claimed, key=lambda one: claimed[one])
            assert image == newest, "a child is never made anything but what the newest claim on it says"
        there = self.pods()
        for wanted in {image for images in claims.values() for image in images}:
            gained = [
                name
                for name, images in claims.items()
                if wanted in images
                and wanted not in before.get(name, {})
                and before.get(name)
                and there.get(name) != wanted
            ]
            assert len(gained) <= 1, "at most one is moved by one write"

    def go_on(self) -> None:
        """Let it work until there is nothing to do but wait, starting again where it dies."""
        while True:
            try:
                self.settle(**WAYS[self.way], finalizes=self.finalizes)
            except Crashed:
                continue
            return

    def to_the_end(self) -> None:
        """Let it work, pods becoming ready in between, until nothing changes."""
        for _ in range(_MOST):
            before = self.version
            self.go_on()
            self.ready()
            if self.version == before:
                return
        raise AssertionError(f"the roll never ends: {self.pods()}, {self.condition()}")

    def plan(self) -> Any:
        return planned(self, self.controller(**WAYS[self.way], finalizes=self.finalizes), PARENT)


def _image(action: Action) -> str:
    obj: Made | Any = None
    if action.ref.kind == "Pod":
        obj = action.obj if isinstance(action, Create | Apply) else None
        obj = action.patch if isinstance(action, Patch) else obj
    return str(obj["spec"]["image"]) if obj and "spec" in obj else ""


Step = Callable[[Mortal], None]


def wants(**spec: Any) -> Step:
    return lambda cats: cats.want(**spec)


def image(name: str) -> Step:
    return wants(template={"image": name})


def works(cats: Mortal) -> None:
    cats.go_on()


def gets_ready(cats: Mortal) -> None:
    cats.ready()


def ends(cats: Mortal) -> None:
    cats.to_the_end()


def loses_pods(cats: Mortal) -> None:
    """One dies before its turn, one after it."""
    for name in ("nginx-0", "nginx-2"):
        cats.delete(next(meta.ref(pod) for pod in cats.listed(POD) if meta.name(pod) == name))


def loses_revisions(cats: Mortal) -> None:
    for revision in cats.revisions():
        cats.delete(meta.ref(revision))


def is_deleted(cats: Mortal) -> None:
    cats.delete(PARENT)


STORIES: Mapping[str, Sequence[Step]] = {
    "a plain roll": (image("two"), ends),
    "scaled up in the middle": (image("two"), works, wants(replicas=5), ends),
    "scaled down in the middle": (image("two"), works, wants(replicas=1), ends),
    "scaled down and up": (image("two"), works, wants(replicas=1), works, wants(replicas=3), ends),
    "turned round in the middle": (image("two"), works, gets_ready, works, image("one"), ends),
    "changed again in the middle": (image("two"), works, gets_ready, works, gets_ready, image("three"), ends),
    "children die in the middle": (image("two"), works, loses_pods, ends),
    "revisions are lost in the middle": (image("two"), works, loses_revisions, ends),
    "deleted in the middle": (image("two"), works, is_deleted, works),
}


def settled(way: str, *, finalizes: bool = False) -> Mortal:
    """Return a cluster with three pods that are ready, and nothing to do."""
    cats = Mortal(way=way, finalizes=finalizes)
    cats.start()
    cats.to_the_end()
    cats.journal.clear()
    return cats


def moments(cats: Mortal, steps: Sequence[Step]) -> list[tuple[int, Mortal]]:
    """Tell a story, and return what the cluster looked like after each write, and in which step that was."""
    kept: list[tuple[int, Mortal]] = []
    for place, step in enumerate(steps):
        cats.wrote = partial(_keep, kept, place, cats)
        step(cats)
    return kept


def _keep(kept: list[tuple[int, Mortal]], place: int, cats: Mortal) -> None:
    kept.append((place, cats.as_it_is()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", STORIES)
def test_a_death_after_any_write_leads_to_the_same_end_and_nothing_is_sent_twice(name: str, way: str) -> None:
    steps = STORIES[name]
    undisturbed = settled(way, finalizes=is_deleted in steps)
    kept = moments(undisturbed, steps)
    _check_the_end(undisturbed)
    assert kept
    for place, again in kept:
        after = len(again.journal)
        for step in steps[place:] if steps[place] in (works, ends) else steps[place + 1 :]:
            step(again)
        _check_the_end(again)
        assert again.pods() == undisturbed.pods()
        assert sorted(touched(again)) == sorted(touched(undisturbed)), f"after {after} writes"


def _check_the_end(cats: Mortal) -> None:
    if PARENT not in cats.objects:
        assert cats.pods() == {}
        assert cats.revisions() == []
        return
    assert cats.condition()["status"] == "True"
    assert len(cats.revisions()) == 1
    assert cats.plan().actions == ()


IMAGES = st.sampled_from(("one", "two", "three"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("image"), IMAGES),
        st.tuples(st.just("replicas"), st.integers(0, 4)),
        st.tuples(st.just("ready"), st.sampled_from(("True", "False"))),
        st.tuples(st.just("kill"), st.integers(0, 3)),
        st.tuples(st.just("lose"), st.integers(0, 2)),
        st.tuples(st.just("work"), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=10,
)


@given(way=st.sampled_from(tuple(WAYS)), steps=STEPS)
@settings(max_examples=60)
def test_whatever_is_done_to_it_it_comes_to_rest_where_the_spec_says_and_then_plans_nothing(
    way: str, steps: list[tuple[str, Any]]
) -> None:
    """The same view gives the same plan, all the way; a settled world gives an empty one."""
    cats = settled(way)
    for what, how in steps:
        _done(cats, what, how)
        assert cats.plan() == cats.plan()
    cats.dies_after = None
    cats.to_the_end()

    spec = cats.get(PARENT)["spec"]
    assert cats.pods() == {f"nginx-{number}": spec["template"]["image"] for number in range(spec["replicas"])}
    assert cats.condition()["status"] == "True"
    assert len(cats.revisions()) == 1
    assert cats.plan().actions == ()


def _done(cats: Mortal, what: str, how: Any) -> None:
    match what:
        case "image":
            cats.want(template={"image": how})
        case "replicas":
            cats.want(replicas=how)
        case "ready":
            cats.ready(status=how)
        case "kill":
            for pod in cats.listed(POD)[how : how + 1]:
                cats.delete(meta.ref(pod))
        case "lose":
            for revision in cats.revisions()[how : how + 1]:
                cats.delete(meta.ref(revision))
        case _:
            cats.dies_after = len(cats.journal) + how
            cats.go_on()
