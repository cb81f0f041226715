"""Objects that a work no longer lists, works that are deleted, and records without a work."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.core.model.agents import AgentOptions
from lamina.core.model.plan import Delete, Patch
from lamina.core.model.queries import Read
from lamina.errors import Unreachable
from lamina.families.manifestwork.agent.labels import APPLIED_CLEANUP
from lamina.families.manifestwork.agent.ownership import RELEASED, Release, release_object
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Made
from lamina.simulation.cluster.kinds import SECRET, make
from tests.unit.families.manifestwork.agent.story import RECORD, Spoke, config_map

OURS = {"apiVersion": RECORD.api_version, "kind": "AppliedManifestWork", "name": "hash-w", "uid": "ours"}
THEIRS = {**OURS, "name": "hash-v", "uid": "theirs"}
FOREIGN = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "s"}
HERE = make(RECORD, "hash-w")
HERE["metadata"]["uid"] = "ours"


def thing(*owners: Any, **metadata: Any) -> Made:
    made = config_map()
    made["metadata"] |= {"uid": "u1", "ownerReferences": list(owners), **metadata}
    return made


def described(parting: Release) -> str:
    match parting.action:
        case Delete(uid=uid):
            return f"delete {uid}"
        case Patch(patch=patch):
            return f"leave to {[one['uid'] for one in patch['metadata']['ownerReferences']]}"
        case _:
            return "wait" if parting.waits else "let go"


@pytest.mark.parametrize(
    ("there", "recorded", "becomes"),
    [
        (None,                                             "u1", "let go"),
        (thing(),                                          "u1", "let go"),
        (thing(FOREIGN),                                   "u1", "let go"),
        (thing(THEIRS),                                    "u1", "let go"),
        (thing(OURS, THEIRS),                              "u1", "leave to ['theirs']"),
        (thing(OURS),                                      "u0", "let go"),
        (thing(OURS, deletionTimestamp="2026-01-01T00:00:00Z"), "u1", "wait"),
        (thing(OURS),                                      "u1", "delete u1"),
        (thing(OURS, FOREIGN),                             "u1", "delete u1"),
        (thing(OURS),                                      "",   "delete u1"),
    ],
)  # fmt: skip
def test_the_release_of_an_object_depends_on_its_owners(
    there: Made | None, recorded: str, becomes: str
) -> None:
    assert described(release_object(there, recorded, HERE)) == becomes
    assert described(RELEASED) == "let go"


def test_what_a_work_means_no_more_is_deleted() -> None:
    spoke = Spoke()
    spoke.ask(config_map("stays"), config_map("goes"))
    spoke.ask(config_map("stays"))

    assert spoke.has("stays")
    assert not spoke.has("goes")
    assert spoke.listed() == [("stays", "uid")]


def test_another_version_of_a_kind_is_the_same_object() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    record = spoke.record()
    assert record is not None
    entries = [{**one, "version": "v1beta1"} for one in record["status"]["appliedResources"]]
    spoke.home.patch(meta.ref(record), {"status": {"appliedResources": entries}}, subresource="status")
    uid = meta.uid(spoke.there())
    spoke.run()

    assert meta.uid(spoke.there()) == uid


def test_one_that_is_held_up_stays_on_the_list_until_it_is_gone() -> None:
    spoke = Spoke()
    spoke.ask(config_map("stays"), config_map("held"))
    ref = meta.ref(spoke.there("held"))
    spoke.home.patch(ref, {"metadata": {"finalizers": ["held/by-somebody"]}})
    spoke.ask(config_map("stays"))
    assert spoke.listed() == [("held", "uid"), ("stays", "uid")]
    assert spoke.said("Applied")[0] == "True"

    spoke.home.patch(ref, {"metadata": {"finalizers": None}})
    spoke.run()
    assert spoke.listed() == [("stays", "uid")]


def test_a_work_that_goes_takes_everything_along() -> None:
    spoke = Spoke()
    spoke.ask(config_map("one"), make(SECRET, "two"))
    spoke.hub.delete(spoke.work_ref())
    spoke.run()

    assert not spoke.has("one")
    assert not spoke.has("two", what=SECRET)
    assert spoke.record() is None
    assert spoke.hub.at(spoke.work_ref()) is None


def test_a_work_that_goes_says_so_and_waits_for_what_is_held_up() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    ref = meta.ref(spoke.there())
    spoke.home.patch(ref, {"metadata": {"finalizers": ["held/by-somebody"]}})
    spoke.hub.delete(spoke.work_ref())
    spoke.run()
    assert spoke.said("Deleting") == ("True", "WorkDeleting")
    record = spoke.record()
    assert record is not None and meta.finalizers(record) == [APPLIED_CLEANUP]

    spoke.home.patch(ref, {"metadata": {"finalizers": None}})
    spoke.run()
    assert spoke.record() is None
    assert spoke.hub.at(spoke.work_ref()) is None


def test_a_record_that_goes_lists_what_is_held_up_and_no_more() -> None:
    spoke = Spoke()
    spoke.ask(config_map("one"), config_map("two"), config_map("three"))
    for name in ("one", "two"):
        spoke.home.patch(meta.ref(spoke.there(name)), {"metadata": {"finalizers": ["held/by-somebody"]}})
    spoke.hub.delete(spoke.work_ref())
    spoke.run()
    assert spoke.listed() == [("one", "uid"), ("two", "uid")]

    spoke.home.patch(meta.ref(spoke.there("one")), {"metadata": {"finalizers": None}})
    spoke.run()
    assert spoke.listed() == [("two", "uid")]

    spoke.home.patch(meta.ref(spoke.there("two")), {"metadata": {"finalizers": None}})
    spoke.run()
    assert spoke.record() is None
    assert spoke.hub.at(spoke.work_ref()) is None


def test_a_recreated_object_is_not_deleted() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    play = spoke.play()
    spoke.hub.delete(spoke.work_ref())
    spoke.home.delete(meta.ref(spoke.there()))
    spoke.home.create(config_map(a="theirs"))
    play.settle()

    assert spoke.there()["data"] == {"a": "theirs"}
    assert spoke.record() is None


def test_a_kind_that_is_not_served_any_more_holds_up_no_end() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    record = spoke.record()
    assert record is not None
    gone = {"group": "ex.example.com", "resource": "relics", "name": "r", "namespace": "x", "version": "v1"}
    entries = [*record["status"]["appliedResources"], {**gone, "uid": "u"}]
    spoke.home.patch(meta.ref(record), {"status": {"appliedResources": entries}}, subresource="status")
    spoke.hub.delete(spoke.work_ref())
    spoke.run()

    assert spoke.hub.at(spoke.work_ref()) is None


# Orphans


def orphans(policy: str, *names: str) -> Made:
    rules = [{"group": "", "resource": "configmaps", "name": name, "namespace": "default"} for name in names]
    more = {"selectivelyOrphans": {"orphaningRules": rules}} if names else {}
    return {"deleteOption": {"propagationPolicy": policy, **more}}


def test_what_is_orphaned_never_carries_our_mark_and_stays() -> None:
    spoke = Spoke()
    spoke.ask(config_map(), **orphans("Orphan"))
    assert meta.owner_refs(spoke.there()) == ()
    spoke.hub.delete(spoke.work_ref())
    spoke.run()

    assert spoke.has()
    assert spoke.hub.at(spoke.work_ref()) is None


def test_of_some_only_those_named_stay() -> None:
    spoke = Spoke()
    spoke.ask(config_map("one"), config_map("two"), **orphans("SelectivelyOrphan", "one"))
    spoke.hub.delete(spoke.work_ref())
    spoke.run()

    assert spoke.has("one")
    assert not spoke.has("two")


def test_names_with_wildcards_orphan_nothing() -> None:
    spoke = Spoke()
    spoke.ask(config_map("one"), **orphans("SelectivelyOrphan", "*"))
    assert meta.owner_refs(spoke.there("one")) != ()


def test_another_policy_changes_the_owners_with_the_next_apply() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    spoke.ask(config_map(), **orphans("Orphan"))
    assert meta.owner_refs(spoke.there()) == ()
    spoke.ask(config_map(), **orphans("Foreground"))
    assert [one["kind"] for one in meta.owner_refs(spoke.there())] == ["AppliedManifestWork"]


# Eviction


def vanished(spoke: Spoke) -> None:
    """Remove a work from the hub without its finalizers."""
    spoke.hub.patch(spoke.work_ref(), {"metadata": {"finalizers": None}})
    spoke.hub.delete(spoke.work_ref())


def mark(spoke: Spoke) -> str:
    record = spoke.record()
    return str(((record or {}).get("status") or {}).get("evictionStartTime") or "")


def test_what_vanished_from_the_hub_is_marked_and_goes_after_an_hour() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    vanished(spoke)
    play = spoke.play()
    play.settle()
    assert moment(mark(spoke)) == spoke.home.now
    play.pass_time(timedelta(minutes=59))
    assert spoke.has()
    play.pass_time(timedelta(minutes=2))

    assert not spoke.has()
    assert spoke.record() is None


def test_a_work_that_comes_back_takes_the_mark_off() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    uid = meta.uid(spoke.there())
    vanished(spoke)
    spoke.run()
    assert mark(spoke)
    spoke.ask(config_map(a="1"))

    assert not mark(spoke)
    assert meta.uid(spoke.there()) == uid


def test_a_hundred_years_mean_never() -> None:
    spoke = Spoke(options=AgentOptions(eviction=timedelta(days=36500)))
    spoke.ask(config_map())
    vanished(spoke)
    spoke.run()
    assert not mark(spoke)
    assert spoke.has()


def test_the_record_of_another_hub_is_evicted_and_that_of_another_agent_is_not() -> None:
    spoke = Spoke()
    spec = {"hubHash": "old", "agentID": "hash", "manifestWorkName": "w"}
    spoke.home.create(make(RECORD, "old-w", spec=spec, finalizers=[APPLIED_CLEANUP]))
    spec = {"hubHash": "old", "agentID": "other", "manifestWorkName": "w"}
    spoke.home.create(make(RECORD, "old-v", spec=spec, finalizers=[APPLIED_CLEANUP]))
    spoke.ask(config_map())

    status = {name: spoke.home.get(RECORD.ref("", name)).get("status") for name in ("old-w", "old-v")}
    assert status["old-w"] and status["old-w"]["evictionStartTime"]
    assert not status["old-v"]


def test_nothing_is_evicted_while_the_hub_cannot_be_asked() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    vanished(spoke)
    play = spoke.play()
    play.settle()
    answer = spoke.hub.answer

    def silent(question: Any) -> Any:
        if isinstance(question, Read):
            raise Unreachable("no answer")
        return answer(question)

    spoke.hub.answer = silent  # type: ignore[method-assign]
    play.pass_time(timedelta(hours=3))
    assert spoke.has()
    spoke.hub.answer = answer  # type: ignore[method-assign]
    play.pass_time(timedelta(hours=1))
    assert not spoke.has()


def test_a_record_keeps_the_labels_of_its_work() -> None:
    spoke = Spoke()
    spoke.ask(config_map(), labels={"team": "blue", "old": "1"})
    spoke.ask(config_map(), labels={"team": "red"})
    record = spoke.record()
    assert record is not None and meta.labels(record) == {"team": "red"}


def test_a_deleted_record_is_made_anew_once_it_is_gone() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    record = spoke.record()
    assert record is not None
    spoke.home.delete(meta.ref(record))
    spoke.run()

    fresh = spoke.record()
    assert fresh is not None and meta.uid(fresh) != meta.uid(record)
    assert [one["uid"] for one in meta.owner_refs(spoke.there())] == [meta.uid(fresh)]
