"""Many works that mean one object: it is marked for all of them at once, and none is troubled by the marks of others."""

from typing import Any

import pytest

from lamina.core.model.plan import Action, Patch
from lamina.core.model.queries import Found
from lamina.families.manifestwork.agent.labels import HUB
from lamina.families.manifestwork.agent.ownership import changed_records, release_object
from lamina.families.manifestwork.agent.shared_resources import Sharing
from lamina.families.manifestwork.labels import WORK_VERSION
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import Process
from lamina.simulation.cluster.kinds import CONFIG_MAP
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy


def mark(name: str, uid: str = "") -> Made:
    return {
        "apiVersion": WORK_VERSION,
        "kind": "AppliedManifestWork",
        "name": name,
        "uid": uid or f"uid-{name}",
    }


def stated(manager: str, fields: Made, time: str = "1") -> Made:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def obj(*owners: Made, data: str = "1", **metadata: Any) -> Made:
    made = config_map(a=data)
    return {**made, "metadata": {**made["metadata"], "ownerReferences": list(owners), **metadata}}


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d"}
OWNERS: Made = {"f:metadata": {"f:ownerReferences": {"k:1": {}}}}
DATA: Made = {"f:data": {"f:a": {}}}


@pytest.mark.parametrize(
    ("before", "after", "whom"),
    [
        (obj(mark("a")), obj(mark("a"), mark("b")), {"b"}),
        (obj(mark("a"), mark("b")), obj(mark("a")), {"b"}),
        (obj(mark("a")), obj(mark("a", "another")), {"a"}),
        (obj(mark("a")), obj(mark("b")), {"a", "b"}),
        (obj(mark("a"), resourceVersion="1"), obj(mark("a"), resourceVersion="2"), set()),
        (obj(), obj(mark("b"), data="2"), None),
        (obj(), obj(mark("b"), labels={"x": "y"}), None),
        (obj(), obj(DEPLOYMENT), None),
        (
            obj(managedFields=[stated("agent", DATA)]),
            obj(mark("b"), managedFields=[stated("agent", {**DATA, **OWNERS}, "2")]),
            {"b"},
        ),
        (obj(), obj(mark("b"), managedFields=[stated("agent", OWNERS)]), {"b"}),
        (
            obj(managedFields=[stated("agent", DATA), stated("other", DATA)]),
            obj(managedFields=[stated("agent", DATA)]),
            None,
        ),
    ],
    ids=["got", "lost", "made-anew", "swapped", "nothing", "content", "label", "other-owner", "stated", "stated-first", "given-up"],
)  # fmt: skip
def test_a_mark_enqueues_its_work_and_any_other_change_all(
    before: Made, after: Made, whom: set[str] | None
) -> None:
    found = changed_records(before, after)
    assert (set(found) if found is not None else None) == whom


def test_a_mark_that_is_no_longer_applied_enqueues_its_work_though_it_is_still_there() -> None:
    def whose(*marks: Made) -> Made:
        return {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{one["uid"]}"}}': {} for one in marks}}}

    one, two = mark("one"), mark("two")
    both = stated("agent-two", whose(one, two))
    before = obj(one, two, managedFields=[stated("agent", whose(one)), both])
    after = obj(one, two, managedFields=[stated("agent", whose(two)), both])

    assert changed_records(before, after) == {"one", "two"}
    assert changed_records(before, obj(one, two, managedFields=[both])) == {"one"}


def owners(spoke: Spoke) -> set[str]:
    return {owner["name"] for owner in meta.owner_refs(spoke.there())}


def touched(spoke: Spoke) -> list[Action]:
    """Return what was done to the object that is shared."""
    return [one for one in spoke.home.journal if one.ref.kind == "ConfigMap"]


NAMES = [f"w{number}" for number in range(12)]


@pytest.mark.parametrize("how", ["Update", "CreateOnly", "ServerSideApply"])
def test_what_many_works_share_is_marked_for_all_of_them_at_once(how: str) -> None:
    spoke, shared = Spoke(), config_map(a="1")
    for name in NAMES:
        spoke.want(shared, name=name, manifestConfigs=[config_for(shared, **strategy(how))])
    spoke.run()

    assert owners(spoke) == {f"hash-{name}" for name in NAMES}
    assert len(touched(spoke)) == 2, "it is made by one of them, and marked by another"
    assert all(spoke.said("Applied", name) == ("True", "AppliedManifestWorkComplete") for name in NAMES)


def test_the_marks_of_all_that_go_together_are_taken_off_at_once() -> None:
    spoke = Spoke()
    for name in NAMES:
        spoke.want(config_map(a="1"), name=name)
    spoke.run()
    spoke.home.journal.clear()

    for name in NAMES[:6]:
        spoke.hub.delete(spoke.work_ref(name))
    for name in NAMES[6:10]:
        spoke.want(config_map("other"), name=name)
    spoke.run()

    assert owners(spoke) == {f"hash-{name}" for name in NAMES[10:]}
    assert len([one for one in touched(spoke) if one.ref.name == "cm1"]) <= 2
    assert all(spoke.hub.at(spoke.work_ref(name)) is None for name in NAMES[:6])
    for name in NAMES[10:]:
        spoke.hub.delete(spoke.work_ref(name))
    spoke.run()
    assert not spoke.has()


def test_there_is_no_mark_for_a_work_that_must_ask_first_or_leaves_it_alone() -> None:
    """A work with an executor needs its permission first; one that only reads the object, or orphans it, has no mark."""
    spoke, shared = Spoke(), config_map(a="1")
    account = {"namespace": "default", "name": "sa"}
    executor = {"subject": {"type": "ServiceAccount", "serviceAccount": account}}
    spoke.home.review = lambda body: Found({**body, "status": {"allowed": False}})
    spoke.ask(shared, name="first")
    spoke.want(shared, name="reads", manifestConfigs=[config_for(shared, **strategy("ReadOnly"))])
    spoke.want(shared, name="orphans", deleteOption={"propagationPolicy": "Orphan"})
    spoke.want(shared, name="asks", executor=executor)
    spoke.want(shared, name="second")
    spoke.run()

    assert owners(spoke) == {"hash-first", "hash-second"}


def test_what_one_lets_go_stays_for_another_that_is_about_to_mark_it() -> None:
    there = obj(mark("ours", "ours"), uid="u1")
    record = {"metadata": {"name": "ours", "uid": "ours"}}

    parting = release_object(there, "u1", record, lambda: Sharing(add=(mark("next"),)))  # type: ignore[arg-type]

    assert isinstance(parting.action, Patch)
    assert parting.action.patch == {"metadata": {"ownerReferences": [mark("next")]}}


def test_what_is_shared_is_mended_and_goes_with_the_last_of_its_works() -> None:
    spoke = Spoke()
    for name in ("one", "two"):
        spoke.want(config_map(a="1"), name=name)
    spoke.run()
    spoke.home.patch(meta.ref(spoke.there()), {"data": {"a": "drifted"}})
    spoke.run()
    assert spoke.there()["data"] == {"a": "1"}

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()
    assert [owner["name"] for owner in meta.owner_refs(spoke.there())] == ["hash-two"]
    spoke.hub.delete(spoke.work_ref("two"))
    spoke.run()
    assert not spoke.has()


def test_what_a_work_could_not_apply_is_not_left_to_it() -> None:
    """It would have what another manager states for good, and never be able to apply it."""
    spoke, name = Spoke(), "cm1"
    first, second = config_map(name, a="1"), config_map(name, a="2")
    for work, manifest in (("one", first), ("two", second)):
        how = strategy("ServerSideApply", fieldManager=f"work-agent-{work}")
        spoke.ask(manifest, name=work, manifestConfigs=[config_for(manifest, **how)])
    assert spoke.said_of(0, "Applied", "two") == ("False", "AppliedManifestFailed")

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()
    for _ in range(3):
        spoke.pass_time(600)
        spoke.run()

    assert spoke.there()["data"] == {"a": "2"}
    assert owners(spoke) == {"hash-two"}
    assert spoke.said_of(0, "Applied", "two")[0] == "True"


def test_a_mark_that_came_too_late_for_its_work_goes_with_the_next_one() -> None:
    """It was set for a work that had the object on its list, and let it go at that very moment."""
    spoke = Spoke()
    spoke.ask(config_map(a="1"), name="one")
    spoke.ask(config_map("other"), name="two")
    there, late = spoke.there(), spoke.record("two")
    assert late is not None
    marks = [*meta.owner_refs(there), meta.owner_ref(late)]
    spoke.home.patch(meta.ref(there), {"metadata": {"ownerReferences": marks}})
    spoke.run()

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()

    assert not spoke.has()
    assert spoke.has("other")


def test_what_works_share_is_gathered_with_the_view_and_not_looked_up_while_planning() -> None:
    spoke = Spoke()
    for name in ("one", "two", "three"):
        spoke.ask(config_map(a="1"), name=name)
    worker, *_ = spoke.agent
    unmarked = meta.with_metadata(spoke.there(), ownerReferences=[])
    process = Process(spoke.home, spoke.agent, others={HUB: spoke.hub})
    world = process.world(worker.watches)

    def view() -> Any:
        return worker.gather(world, spoke.work_ref("one")._replace(cluster=HUB))

    def marked(view: Any) -> set[str]:
        sharing = view.sharers.sharing(view.manifests[0].resource, CONFIG_MAP, unmarked)
        return {owner["name"] for owner in sharing.add}

    before = view()
    for name in ("two", "three"):
        spoke.hub.delete(spoke.work_ref(name))
    spoke.run()

    assert marked(before) == {"hash-one", "hash-two", "hash-three"}
    assert marked(view()) == {"hash-one"}
