"""Manifests that cannot be applied: each fails alone, and says why."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.core.model.plan import Create, Replace
from lamina.core.model.queries import Listed, Read, Refused
from lamina.errors import Forbidden, Invalid, NotFound
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation.cluster.kinds import CONFIG_MAP, DEFINITION, NAMESPACE, kind, make
from tests.unit.families.manifestwork.agent.story import Spoke, config_for, config_map, strategy

GADGET = kind("ex.example.com/v1", "Gadget", "gadgets")


def definition() -> Made:
    names = {"kind": "Gadget", "plural": "gadgets"}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    spec = {"group": "ex.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return make(DEFINITION, "gadgets.ex.example.com", "", spec=spec)


def test_an_unknown_kind_fails_alone() -> None:
    spoke = Spoke()
    spoke.ask(make(GADGET, "g"), config_map())

    assert spoke.has()
    assert spoke.said_of(0, "Applied") == ("False", "AppliedManifestFailed")
    assert spoke.condition_of(0, "Applied")["message"] == (
        'Failed to apply manifest: the server doesn\'t have a resource type "Gadget"'
    )
    assert spoke.said_of(0, "Available") == ("Unknown", "IncompleteResourceMeta")
    assert spoke.said_of(1, "Applied") == ("True", "AppliedManifestComplete")
    assert spoke.said("Applied") == ("False", "AppliedManifestWorkFailed")
    assert spoke.said("Available") == ("Unknown", "ResourcesStatusUnknown")
    assert spoke.said("Progressing") == ("True", "Applying")


def test_a_kind_that_its_own_work_brings_is_applied_once_it_is_served() -> None:
    spoke = Spoke()
    spoke.ask(make(GADGET, "g"), definition())

    assert spoke.has("g", what=GADGET)
    assert spoke.said("Applied") == ("True", "AppliedManifestWorkComplete")


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ("text", "the manifest is no object"),
        ({"kind": "ConfigMap"}, "the manifest has no apiVersion or no kind"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "x"}},
            "the manifest has no name",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
            "an empty namespace may not be set during creation",
        ),
    ],
)
def test_what_is_no_object_fails_alone(manifest: Any, why: str) -> None:
    spoke = Spoke()
    spoke.ask(manifest, config_map())

    assert spoke.condition_of(0, "Applied")["message"] == f"Failed to apply manifest: {why}"
    assert spoke.said_of(1, "Applied")[0] == "True"


def test_two_manifests_about_one_object_do_not_undo_each_other() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"), config_map(a="2"))

    assert spoke.there()["data"] == {"a": "1"}
    assert spoke.said_of(1, "Applied") == ("False", "AppliedManifestFailed")


def test_what_the_cluster_refuses_is_said_of_that_manifest_and_heals() -> None:
    spoke = Spoke()
    spoke.ask(config_map(a="1"))
    play = spoke.play()
    spoke.home.refuse = {Replace: Invalid("it is immutable")}

    spoke.want(config_map(a="2"), config_map("other"))
    play.settle()

    assert spoke.said_of(0, "Applied") == ("False", "AppliedManifestFailed")
    assert spoke.condition_of(0, "Applied")["message"] == "Failed to apply manifest: it is immutable"
    assert spoke.condition_of(0, "Applied")["observedGeneration"] == 2
    assert spoke.said("Applied") == ("False", "AppliedManifestWorkFailed")
    assert spoke.has("other"), "one failure does not stop the others"

    spoke.home.refuse = {}
    spoke.next_try(play)

    assert spoke.there()["data"] == {"a": "2"}
    assert spoke.said("Applied") == ("True", "AppliedManifestWorkComplete")


def test_a_namespace_that_is_not_there_is_said_and_waited_for() -> None:
    spoke = Spoke()
    missing = NotFound('namespaces "fresh" not found', details={"kind": "namespaces", "name": "fresh"})
    spoke.want(config_map(namespace="fresh"))
    play = spoke.play()
    spoke.home.perform = _without(spoke, "fresh", missing)  # type: ignore[method-assign]
    play.settle()

    assert spoke.condition_of(0, "Applied")["message"].endswith('namespaces "fresh" not found')
    spoke.home.create(make(NAMESPACE, "fresh"))
    play.settle()

    assert spoke.has(namespace="fresh")
    assert spoke.said("Applied")[0] == "True"


def _without(spoke: Spoke, namespace: str, error: NotFound) -> Any:
    perform = spoke.home.perform

    def checked(action: Any, manager: str = "lamina") -> None:
        is_missing = spoke.home.at(NAMESPACE.ref("", namespace)) is None
        if isinstance(action, Create) and action.ref.namespace == namespace and is_missing:
            raise error
        perform(action, manager)

    return checked


def test_an_object_that_is_on_its_way_out_is_made_anew_once_it_is_gone() -> None:
    spoke = Spoke()
    spoke.ask(config_map())
    ref = meta.ref(spoke.there())
    spoke.home.patch(ref, {"metadata": {"finalizers": ["held/by-somebody"]}})
    spoke.home.delete(ref)
    spoke.run()
    assert spoke.said_of(0, "Applied")[0] == "False"

    spoke.home.patch(ref, {"metadata": {"finalizers": None}})
    spoke.run()

    assert not meta.is_deleting(spoke.there())
    assert spoke.said_of(0, "Applied")[0] == "True"


def test_a_server_that_refuses_reads_is_reported_and_stops_no_other_work() -> None:
    spoke = Spoke()
    answer = spoke.home.answer

    def blind(question: Any) -> Any:
        if "secrets" in str(getattr(question, "kind", "")):
            return Listed(())
        if isinstance(question, Read) and question.ref.kind == "Secret":
            return Refused(403, "secrets is forbidden")
        return answer(question)

    spoke.home.answer = blind  # type: ignore[method-assign]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    spoke.ask(secret, config_map())

    assert spoke.said_of(0, "Applied") == ("False", "AppliedManifestFailed")
    assert spoke.said_of(0, "Available") == ("Unknown", "FetchingResourceFailed")
    assert spoke.said_of(1, "Applied")[0] == "True"


def test_what_the_agent_may_not_list_is_read_and_applied_all_the_same() -> None:
    spoke = Spoke()
    spoke.home.unlisted |= {CONFIG_MAP.group_kind, NAMESPACE.group_kind}
    spoke.want(config_map(a="1"))
    play = spoke.play()
    play.until(spoke.home.now + timedelta(minutes=2))
    assert spoke.said("Applied") == ("True", "AppliedManifestWorkComplete")

    spoke.want(config_map(a="2"))
    play.until(spoke.home.now + timedelta(minutes=2))
    assert spoke.there()["data"] == {"a": "2"}
    assert spoke.said("Available") == ("True", "ResourcesAvailable")


def test_fields_of_another_manager_make_it_fail_without_trying_over_and_over() -> None:
    spoke = Spoke()
    spoke.home.apply(config_map(a="theirs"), manager="somebody")
    mine = config_map(a="ours")
    spoke.want(mine, manifestConfigs=[config_for(mine, **strategy("ServerSideApply"))])
    play = spoke.play()
    play.settle()

    assert spoke.there()["data"] == {"a": "theirs"}
    assert spoke.said_of(0, "Applied") == ("False", "AppliedManifestFailed")
    assert "somebody" in spoke.condition_of(0, "Applied")["message"]
    before = len(spoke.written)
    play.pass_time(timedelta(hours=1))
    assert len(spoke.written) == before

    spoke.home.apply(config_map(b="x"), manager="somebody")
    play.settle()
    assert spoke.there()["data"] == {"a": "ours", "b": "x"}
    assert spoke.said_of(0, "Applied")[0] == "True"


def test_a_refusal_that_stays_the_same_is_said_once() -> None:
    spoke = Spoke()
    spoke.want(config_map())
    play = spoke.play()
    play.settle()
    spoke.home.refuse = {Create: Forbidden("exceeded quota")}
    spoke.want(config_map(), config_map("second"))
    play.settle()
    said = len(spoke.hub.journal)

    for _ in range(6):
        spoke.next_try(play)

    assert "exceeded quota" in spoke.condition_of(1, "Applied")["message"]
    assert len(spoke.hub.journal) <= said + 1


def test_a_record_that_is_refused_is_said_of_the_work() -> None:
    spoke = Spoke()
    spoke.home.refuse = {Create: Invalid("metadata.name: must be no more than 253 characters")}
    spoke.want(config_map())
    play = spoke.play()
    play.settle()

    assert spoke.said("Applied") == ("False", "AppliedManifestWorkFailed")
    assert "no more than 253" in spoke.condition("Applied")["message"]
    spoke.home.refuse = {}
    spoke.next_try(play)
    assert spoke.said("Applied")[0] == "True"
