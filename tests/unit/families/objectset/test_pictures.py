"""
The pictures of revisions as tests, read off the writes of the controllers.

The lifecycle of a revision, updates in place and side by side, a failure in the middle, and
the handover of two phases, arrow by arrow. Where an arrow of the handover says that a
revision reconciles an object, the object is edited by hand: without drift there is no write.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lamina.core.model.plan import Action, Apply, Create, Delete, Patch
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Key, Loop, Process
from lamina.testing.crash_explorer import Write
from tests.unit.families.objectset.promises import (
    LIFECYCLE,
    check,
    controller,
    is_archived,
    lifecycle,
    number,
    sets,
)
from tests.unit.families.objectset.revisions import config_map, deployment, object_set, phase
from tests.unit.families.objectset.stories import (
    CONFIG1,
    CONFIG2,
    CONFIG3,
    CURE,
    KUBELET,
    STORIES,
    UNDER_TEST,
    Story,
    cluster,
    edits,
    is_cured,
    loses,
    ref_of,
    set_ref,
    spec,
    turns,
    wants,
    widget,
)

MINUTE = timedelta(minutes=1)


class Recorded:
    """A cluster that runs the controllers; what they write to sets and objects is recorded in words."""

    def __init__(self, *given: Made) -> None:
        self.cluster = cluster(*given)
        self.process = Process(self.cluster, UNDER_TEST)
        self.loop = Loop(self.cluster, self.process, Process(self.cluster, (KUBELET,)))
        self.process.before_write, self.process.after_write = self._before, self._after
        self.writes: list[str] = []
        self.transitions: set[tuple[str, str]] = set()
        self.histories: dict[str, list[Made]] = {}
        """Every version of each object."""
        self.cluster.listeners.append(lambda ref, before, after: self._keep(ref, after))
        self.loop.pass_time(MINUTE)

    def _keep(self, ref: Ref, after: object) -> None:
        if isinstance(after, dict):
            self.histories.setdefault(ref.name, []).append(after)

    def _before(self, key: Key, action: Action) -> None:
        self._objects = dict(self.cluster.objects)

    def _after(self, key: Key, action: Action) -> None:
        check(Write(action, self._objects, self.cluster))
        before, after = self._objects.get(action.ref), self.cluster.objects.get(action.ref)
        if action.ref.kind == "ObjectSet" and before is not None:
            self.transitions.add((lifecycle(before), lifecycle(after) if after is not None else "gone"))
        said = _in_words(action)
        if said:
            self.writes.append(f"{self._who(key)} {said} {self._whom(action.ref)}")

    def _who(self, key: Key) -> str:
        one = self._objects.get(key.ref)
        return f"v{number(one)}" if one is not None and key.ref.kind == "ObjectSet" else key.controller

    def _whom(self, ref: Ref) -> str:
        one = self.cluster.objects.get(ref) or self._objects[ref]
        return f"v{number(one)}" if ref.kind == "ObjectSet" else ref.name

    def do(self, *steps: object) -> list[str]:
        """Take steps, let time pass after each, and return what was written."""
        self.writes.clear()
        for step in steps:
            if isinstance(step, timedelta):
                self.loop.pass_time(step)
            elif callable(step):
                step(self.cluster)
                self.loop.settle()
        return list(self.writes)

    def control(self, *names: str) -> dict[str, str]:
        """Which revision controls each of these objects."""
        held = {
            name: controller(self.cluster.objects, self.cluster.objects.get(_find(self, name)))
            for name in names
        }
        return {name: f"v{number(one)}" if one is not None else "none" for name, one in held.items()}

    def conditions(self, place: int) -> dict[str, str]:
        """The conditions of a revision."""
        one = next(each for each in sets(self.cluster.objects) if number(each) == place)
        return {each["type"]: each["status"] for each in one["status"]["conditions"]}

    def controlled(self, place: int) -> list[str]:
        one = next(each for each in sets(self.cluster.objects) if number(each) == place)
        return [each["name"] for each in one["status"].get("controllerOf", ())]


def _find(world: Recorded, name: str) -> Ref:
    return next(
        (ref for ref in world.cluster.objects if ref.name == name and ref.kind in ("Widget", "ConfigMap")),
        ref_of(name),
    )


def _in_words(action: Action) -> str:
    """Say what a write does; reports, events and the bookkeeping of field managers are left out."""
    match action:
        case Create() if action.ref.kind in ("ObjectSet", "Widget", "ConfigMap"):
            return "creates"
        case Apply():
            return "applies"
        case Delete():
            return "deletes"
        case Patch(patch={"spec": {"lifecycleState": str(state)}}):
            return {"Paused": "pauses", "Archived": "archives"}.get(state, "resumes")
        case Patch(patch={"metadata": {"ownerReferences": _}}) if action.ref.kind in ("Widget", "ConfigMap"):
            return "releases"
        case _:
            return ""


# ── the lifecycle ──


def _played(story: Story) -> Recorded:
    world = Recorded(*story.given)
    world.do(*story.steps, MINUTE)
    return world


def _more() -> Iterator[Story]:
    """Stories with the transitions that happen by hand only."""
    one = object_set("v1", spec(phase("p1", widget("a"))), lifecycleState="Archived")
    yield Story((), (lambda cluster: cluster.create(one),))
    yield Story((), (lambda cluster: cluster.create(object_set("v1", spec(phase("p1", CONFIG1)))),))
    yield Story((object_set("v1", spec(phase("p1", widget("a", "bad")))),), (turns("v1", "Archived"),))
    held = edits(ref_of("a"), {"metadata": {"finalizers": ["team/backup"]}})
    yield Story(
        (object_set("v1", spec(phase("p1", widget("a")))),),
        (held, turns("v1", "Archived"), MINUTE, turns("v1", "Active"), MINUTE, turns("v1", "Archived"), MINUTE,
         edits(ref_of("a"), {"metadata": {"finalizers": None}}), loses(set_ref("v1"))),
    )  # fmt: skip


def test_a_revision_passes_through_its_lifecycle_and_through_nothing_else() -> None:
    seen: set[tuple[str, str]] = set()
    for story in (*STORIES.values(), *_more()):
        seen |= _played(story).transitions

    moves = {(before, after) for before, after in seen if before != after}
    assert moves == LIFECYCLE


def test_a_revision_that_is_archived_is_never_anything_else_again() -> None:
    world = Recorded(object_set("v1", spec(phase("p1", widget("a")))))
    world.do(turns("v1", "Archived"), MINUTE)
    assert world.conditions(1) == {"Archived": "True", "Succeeded": "True"}

    assert world.do(turns("v1", "Active"), MINUTE) == []

    assert ref_of("a") not in world.cluster.objects
    assert world.conditions(1) == {"Archived": "True", "Succeeded": "True"}


# ── updates ──


def test_an_update_in_place_hands_each_object_over_and_deletes_none() -> None:
    world = Recorded(deployment("web", spec(phase("p1", CONFIG1, widget("web", "one")))))
    before = {name: meta.uid(world.histories[name][0]) for name in ("config", "web")}

    writes = world.do(wants(spec(phase("p1", CONFIG2, widget("web", "two")))), MINUTE)

    assert writes == [
        "objectdeployment creates v2",
        "v2 applies config",
        "v2 applies web",
        "objectdeployment pauses v1",
        "objectdeployment archives v1",
        "v1 releases config",
        "v1 releases web",
    ]
    assert {name: meta.uid(world.histories[name][-1]) for name in before} == before
    assert world.control("config", "web") == {"config": "v2", "web": "v2"}


def test_an_update_side_by_side_deletes_the_old_objects_once_the_new_ones_are_available() -> None:
    world = Recorded(deployment("web", spec(phase("p1", widget("web-1")))))

    first = world.do(wants(spec(phase("p1", widget("web-2")))), timedelta(seconds=1))

    assert first == ["objectdeployment creates v2", "v2 creates web-2"]
    assert world.control("web-1", "web-2") == {"web-1": "v1", "web-2": "v2"}
    assert world.conditions(1)["Available"] == "True"
    assert world.conditions(2) == {"Available": "False"}

    assert world.do(MINUTE) == [
        "objectdeployment pauses v1",
        "objectdeployment archives v1",
        "v1 deletes web-1",
    ]
    assert world.conditions(2) == {"Available": "True", "Succeeded": "True"}


def test_a_failure_in_the_middle_is_stepped_over() -> None:
    world = Recorded(deployment("web", spec(phase("p1", CONFIG1), phase("p2", widget("web-1")))))
    world.do(wants(spec(phase("p1", CONFIG2), phase("p2", widget("web-2", "bad")))), MINUTE)
    assert world.control("config", "web-1", "web-2") == {"config": "v2", "web-1": "v1", "web-2": "v2"}

    third = world.do(wants(spec(phase("p1", CONFIG3), phase("p2", widget("web-3", "bad-too")))), MINUTE)

    assert [one for one in third if one.startswith("v3")] == ["v3 applies config", "v3 creates web-3"]
    assert [one for one in third if not one.startswith("v3")] == [
        "objectdeployment creates v3",
        "objectdeployment pauses v2",
        "objectdeployment archives v2",
        "v2 deletes web-2",
        "v2 releases config",
    ]
    assert third.index("v3 applies config") < third.index("objectdeployment archives v2")
    assert world.conditions(3)["Available"] == "False"
    assert world.conditions(1)["Succeeded"] == "True"
    assert world.control("config", "web-1", "web-3") == {"config": "v3", "web-1": "v1", "web-3": "v3"}

    assert world.do(is_cured, MINUTE) == [
        "objectdeployment pauses v1",
        "objectdeployment archives v1",
        "v1 deletes web-1",
        "v1 releases config",
    ]
    assert world.cluster.get(_find(world, "config"))["data"] == CONFIG3["data"]


# ── the handover of two phases ──

ONE = spec(phase("phase-1", widget("child-1", "one")), phase("phase-2", widget("child-2", "one")))
TWO = spec(phase("phase-1", widget("child-1", "bad")), phase("phase-2", widget("child-2", "two")))


def drifts(name: str) -> object:
    return edits(ref_of(name), {"spec": {"image": "drift"}})


def owners(obj: Made) -> dict[str, bool]:
    """The owners of an object, and which of them controls it."""
    return {one["name"]: bool(one.get("controller")) for one in meta.owner_refs(obj)}


@pytest.fixture
def handover() -> Recorded:
    """v1 has rolled out, and v2 names it as its previous revision; its first phase does not pass."""
    world = Recorded(object_set("v1", ONE))
    assert world.writes == ["v1 creates child-1", "v1 creates child-2"]
    world.do(lambda cluster: cluster.create(object_set("v2", TWO, previous=["v1"])), MINUTE)
    return world


def test_step_0_v1_reconciles_both_children() -> None:
    world = Recorded(object_set("v1", ONE))

    assert world.do(drifts("child-1"), MINUTE) == ["v1 applies child-1"]
    assert world.do(drifts("child-2"), MINUTE) == ["v1 applies child-2"]
    assert world.control("child-1", "child-2") == {"child-1": "v1", "child-2": "v1"}
    assert [
        meta.annotations(world.histories[name][-1])["package-operator.run/revision"]
        for name in ("child-1", "child-2")
    ] == ["1", "1"]


def test_step_1_v2_takes_child_1_over_in_one_write(handover: Recorded) -> None:
    assert handover.writes == ["v2 applies child-1"]
    versions = [
        (owners(one), meta.annotations(one)["package-operator.run/revision"], one["spec"]["image"])
        for one in handover.histories["child-1"]
    ]
    at = [step for number, step in enumerate(versions) if number == 0 or versions[number - 1] != step]
    assert at == [
        ({"v1": True}, "1", "one"),
        ({"v1": False, "v2": True}, "2", "bad"),
    ]
    assert {tuple(owners(one).items()) for one in handover.histories["child-2"]} == {(("v1", True),)}


def test_step_2_each_revision_writes_its_own_child_only(handover: Recorded) -> None:
    assert (handover.controlled(1), handover.controlled(2)) == (["child-2"], ["child-1"])
    assert handover.conditions(1)["InTransition"] == handover.conditions(2)["InTransition"] == "True"


def test_step_3_v2_reconciles_child_1_and_v1_child_2_until_phase_1_passes(handover: Recorded) -> None:
    for _ in range(3):
        assert handover.do(drifts("child-1"), MINUTE) == ["v2 applies child-1"]
        assert handover.do(drifts("child-2"), MINUTE) == ["v1 applies child-2"]
    assert handover.do(loses(ref_of("child-2")), MINUTE) == ["v1 creates child-2"]
    assert handover.do(loses(ref_of("child-1")), MINUTE) == ["v2 creates child-1"]
    assert handover.control("child-1", "child-2") == {"child-1": "v2", "child-2": "v1"}


def test_step_4_v2_takes_child_2_over_once_phase_1_passes(handover: Recorded) -> None:
    assert handover.do(is_cured, MINUTE) == ["v2 applies child-2"]

    passed = next(
        int(meta.resource_version(one)) for one in handover.histories["child-1"] if _is_ready_for(one, "bad")
    )
    taken = next(
        int(meta.resource_version(one)) for one in handover.histories["child-2"] if "v2" in owners(one)
    )
    assert passed < taken
    assert CURE in handover.cluster.objects


def _is_ready_for(obj: Made, image: str) -> bool:
    status = obj.get("status") or {}
    observed = status.get("observedGeneration") == meta.generation(obj)
    return obj["spec"]["image"] == image and observed and status["conditions"][0]["status"] == "True"


def test_step_5_v2_reconciles_both_children_and_v1_none(handover: Recorded) -> None:
    handover.do(is_cured, MINUTE)

    assert (handover.controlled(1), handover.controlled(2)) == ([], ["child-1", "child-2"])
    assert handover.conditions(2) == {"Available": "True", "Succeeded": "True"}
    assert handover.do(drifts("child-1"), drifts("child-2"), MINUTE) == [
        "v2 applies child-1",
        "v2 applies child-2",
    ]
    assert handover.do(loses(ref_of("child-1")), MINUTE) == ["v2 creates child-1"]


def test_step_6_a_deployment_archives_v1_and_what_only_it_had_is_deleted_last_phase_first() -> None:
    first = spec(
        phase("phase-1", widget("child-1", "one"), config_map("old-1")),
        phase("phase-2", widget("child-2", "one"), config_map("old-2")),
    )
    world = Recorded(deployment("web", first))

    writes = world.do(wants(TWO), MINUTE, is_cured, MINUTE)

    assert writes == [
        "objectdeployment creates v2",
        "v2 applies child-1",
        "v2 applies child-2",
        "objectdeployment pauses v1",
        "objectdeployment archives v1",
        "v1 releases child-2",
        "v1 deletes old-2",
        "v1 releases child-1",
        "v1 deletes old-1",
    ]
    v2 = next(one for one in sets(world.cluster.objects) if not is_archived(one))
    for name in ("child-1", "child-2"):
        assert owners(world.histories[name][-1]) == {meta.name(v2): True}
