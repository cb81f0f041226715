"""What an agent makes of the manifests of a work."""

from lamina.core.model.plan import Create
from lamina.families.manifestwork.agent.labels import APPLIED_CLEANUP, WORK_CLEANUP
from lamina.objects import meta
from lamina.simulation.cluster.kinds import NAMESPACE, make
from tests.unit.families.manifestwork.agent.story import RECORD, Spoke, config_map


def test_what_a_work_asks_for_is_made_and_said() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"), labels={"team": "blue"})

    there = spoke.there()
    record = spoke.record()
    assert there["data"] == {"a": "1"}
    assert record is not None
    assert record["spec"] == {"hubHash": "hash", "agentID": "hash", "manifestWorkName": "w"}
    assert meta.labels(record) == {"team": "blue"}
    assert meta.finalizers(record) == [APPLIED_CLEANUP]
    assert meta.finalizers(spoke.work()) == [WORK_CLEANUP]
    (owner,) = meta.owner_refs(there)
    assert owner == {
        "apiVersion": RECORD.api_version,
        "kind": "AppliedManifestWork",
        "name": "hash-w",
        "uid": meta.uid(record),
    }
    assert spoke.listed() == [("cm1", "uid")]
    assert spoke.said("Applied") == ("True", "AppliedManifestWorkComplete")
    assert spoke.said("Available") == ("True", "ResourcesAvailable")
    assert spoke.said("Progressing") == ("False", "Completed")
    assert spoke.said("Degraded") == ("False", "Completed")
    assert spoke.condition("Applied")["observedGeneration"] == 1
    assert spoke.entry()["resourceMeta"] == {
        "ordinal": 0,
        "group": "",
        "version": "v1",
        "kind": "ConfigMap",
        "resource": "configmaps",
        "name": "cm1",
        "namespace": "default",
    }


def test_where_everything_is_as_it_should_be_nothing_is_sent() -> None:
    spoke = Spoke()
    spoke.ask(config_map(), make(NAMESPACE, "extra"))
    before = len(spoke.written)

    spoke.run()
    spoke.pass_time(3600)
    spoke.run()

    assert len(spoke.written) == before


def test_an_edit_costs_one_write_here_and_one_on_the_hub() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    here, there = len(spoke.home.journal), len(spoke.hub.journal)

    spoke.ask(config_map(a="2"))

    assert spoke.there()["data"] == {"a": "2"}
    assert (len(spoke.home.journal) - here, len(spoke.hub.journal) - there) == (1, 1)


def test_what_is_listed_in_reverse_is_made_in_the_order_of_its_kinds() -> None:
    spoke = Spoke()
    spoke.ask(config_map(namespace="fresh"), make(NAMESPACE, "fresh"))

    made = [one.obj["kind"] for one in spoke.home.journal if isinstance(one, Create)]
    assert made == ["AppliedManifestWork", "Namespace", "ConfigMap"]
    assert [spoke.entry(place)["resourceMeta"]["kind"] for place in (0, 1)] == ["ConfigMap", "Namespace"]
