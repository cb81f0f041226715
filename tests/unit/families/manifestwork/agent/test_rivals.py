"""Works that state one object differently: the oldest keeps it, and both say so."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation.cluster.kinds import NAMESPACE, make
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy

KEPT = (
    "Failed to apply manifest: configmaps default/cm1 has other content in the older ManifestWork one, "
    "which keeps it"
)


def ask(spoke: Spoke, name: str, manifest: Made, how: str = "Update", **spec: Any) -> None:
    """Have a work, younger than those before it, state an object."""
    spoke.pass_time(5)
    spoke.want(manifest, name=name, manifestConfigs=[config_for(manifest, **strategy(how))], **spec)
    spoke.run()


def rivals() -> Spoke:
    spoke = Spoke()
    ask(spoke, "one", config_map(a="1"))
    ask(spoke, "two", config_map(a="2"))
    return spoke


def message(spoke: Spoke, name: str) -> str:
    return str(spoke.condition_of(0, "Applied", name)["message"])


def data(spoke: Spoke) -> Made:
    return dict(spoke.there()["data"])


def owners(spoke: Spoke) -> set[str]:
    return {owner["name"] for owner in meta.owner_refs(spoke.there())}


def test_the_older_work_keeps_its_object_and_both_say_so() -> None:
    spoke = rivals()

    assert data(spoke) == {"a": "1"}
    assert spoke.said("Applied", "one") == ("True", "AppliedManifestWorkComplete")
    assert message(spoke, "one") == ("Apply manifest complete; other content of two does not replace it")
    assert spoke.said("Applied", "two") == ("False", "AppliedManifestWorkFailed")
    assert message(spoke, "two") == KEPT


def test_neither_writes_any_more_however_much_time_passes() -> None:
    spoke = rivals()
    spoke.home.journal.clear()
    play = spoke.play()
    play.until(spoke.home.now + timedelta(hours=1))

    assert [one for one in spoke.home.journal if one.ref.kind == "ConfigMap"] == []
    assert data(spoke) == {"a": "1"}


def test_the_object_is_taken_over_when_the_older_work_goes_and_is_never_missing() -> None:
    spoke = rivals()
    uid = meta.uid(spoke.there())
    assert owners(spoke) == {"hash-one", "hash-two"}

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()

    assert data(spoke) == {"a": "2"}
    assert (meta.uid(spoke.there()), owners(spoke)) == (uid, {"hash-two"})
    assert message(spoke, "two") == "Apply manifest complete"


def test_the_object_is_taken_over_when_the_older_work_states_another() -> None:
    spoke = rivals()
    spoke.want(config_map("other"), name="one")
    spoke.run()

    assert data(spoke) == {"a": "2"}
    assert message(spoke, "two") == "Apply manifest complete"


def test_both_are_content_once_they_agree() -> None:
    spoke = rivals()
    spoke.want(config_map(a="1"), name="two")
    spoke.run()

    for name in ("one", "two"):
        assert message(spoke, name) == "Apply manifest complete"


def test_an_older_work_that_comes_to_state_an_object_takes_it_over() -> None:
    spoke = Spoke()
    ask(spoke, "one", config_map("other"))
    ask(spoke, "two", config_map(a="2"))
    spoke.want(config_map(a="1"), name="one")
    spoke.run()

    assert data(spoke) == {"a": "1"}
    assert message(spoke, "two") == KEPT


def test_of_many_works_the_oldest_keeps_it_and_names_the_others() -> None:
    spoke = rivals()
    ask(spoke, "three", config_map(a="3"))
    ask(spoke, "four", config_map(a="1"))

    assert data(spoke) == {"a": "1"}
    assert message(spoke, "three") == KEPT
    assert message(spoke, "four") == ("Apply manifest complete")
    assert message(spoke, "one") == (
        "Apply manifest complete; other content of two, three does not replace it"
    )


@pytest.mark.parametrize("how", ["CreateOnly", "ServerSideApply", "ReadOnly"])
def test_other_strategies_share_an_object_as_before(how: str) -> None:
    spoke = Spoke()
    ask(spoke, "one", config_map(a="1"))
    ask(spoke, "two", config_map(a="1", b="2") if how == "ServerSideApply" else config_map(a="2"), how)

    assert "keeps it" not in message(spoke, "two")

    spoke = Spoke()
    ask(spoke, "one", config_map(a="1"), how)
    ask(spoke, "two", config_map(a="2"))

    assert message(spoke, "two") == "Apply manifest complete"


def test_labels_of_different_works_are_merged_and_only_one_key_with_two_values_is_a_difference() -> None:
    def labelled(**labels: str) -> Made:
        return meta.with_metadata(config_map(a="1"), labels=labels)

    spoke = Spoke()
    ask(spoke, "one", labelled(a="1"))
    ask(spoke, "two", labelled(b="2"))
    assert meta.labels(spoke.there()) == {"a": "1", "b": "2"}
    assert message(spoke, "two") == "Apply manifest complete"

    for other in ({"a": "2"}, {"a-": ""}):
        ask(spoke, "three", labelled(**other))
        assert message(spoke, "three") == KEPT
        assert meta.labels(spoke.there()) == {"a": "1", "b": "2"}


def test_a_difference_that_the_server_defaults_is_none() -> None:
    def defaulted(obj: Made, old: Obj | None) -> Made:
        return {"immutable": False, **obj} if obj["kind"] == "ConfigMap" else obj

    spoke = Spoke()
    spoke.home.admit = defaulted
    ask(spoke, "one", {**config_map(a="1"), "immutable": False})
    ask(spoke, "two", config_map(a="1"))

    assert message(spoke, "two") == "Apply manifest complete"
    assert owners(spoke) == {"hash-one", "hash-two"}


def test_a_work_that_could_not_apply_it_keeps_nothing() -> None:
    spoke = Spoke()
    ask(spoke, "one", config_map(a="1"), executor={"subject": {"type": "ServiceAccount"}})
    assert spoke.said_of(0, "Applied", "one")[0] == "False"
    ask(spoke, "two", config_map(a="2"))

    assert data(spoke) == {"a": "2"}
    assert message(spoke, "two") == "Apply manifest complete"


def test_a_work_that_has_completed_keeps_nothing() -> None:
    spoke = Spoke()
    done = {"condition": "Complete", "type": "CEL", "celExpressions": ["true"]}
    spoke.ask(
        config_map(a="1"), name="one", manifestConfigs=[config_for(config_map(), conditionRules=[done])]
    )
    assert spoke.said_of(0, "Complete", "one")[0] == "True"
    ask(spoke, "two", config_map(a="2"))

    assert data(spoke) == {"a": "2"}
    assert message(spoke, "two") == "Apply manifest complete"


def test_objects_of_one_name_in_two_namespaces_have_nothing_to_do_with_each_other() -> None:
    spoke = Spoke()
    ask(spoke, "one", config_map(a="1"))
    ask(spoke, "two", config_map(namespace="other", a="2"))
    for name in ("one", "two"):
        assert message(spoke, name) == "Apply manifest complete"

    ask(spoke, "three", make(NAMESPACE, "web", labels={"a": "1"}))
    ask(spoke, "four", make(NAMESPACE, "web", "ignored", labels={"a": "2"}))
    assert "ManifestWork three, which keeps it" in message(spoke, "four")


def test_a_younger_work_that_goes_leaves_no_trace() -> None:
    spoke = rivals()
    spoke.hub.delete(spoke.work_ref("two"))
    spoke.run()

    assert data(spoke) == {"a": "1"}
    assert owners(spoke) == {"hash-one"}
    assert message(spoke, "one") == "Apply manifest complete"


def test_of_three_works_the_middle_one_takes_the_object_over_and_the_youngest_writes_nothing() -> None:
    spoke = rivals()
    ask(spoke, "three", config_map(a="3"))
    assert "ManifestWork one, which keeps it" in message(spoke, "three")
    spoke.home.journal.clear()

    spoke.hub.delete(spoke.work_ref("one"))
    spoke.run()

    assert data(spoke) == {"a": "2"}
    assert "ManifestWork two, which keeps it" in message(spoke, "three")
    assert not [one for one in spoke.home.journal if "'a': '3'" in str(one)]
