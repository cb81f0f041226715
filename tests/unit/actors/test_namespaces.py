"""The deletion of a namespace with its content."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, lists, randoms, sampled_from

from lamina.actors.garbage import GARBAGE
from lamina.actors.namespaces import NAMESPACES
from lamina.actors.service_accounts import accounts
from lamina.core.model.plan import Delete, DeleteAll, Patch, Replace
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Ref
from lamina.simulation import Crashed, SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import CONFIG_MAP, KINDS, NAMESPACE, POD, WIDGET, make

HOLD = ["ex.example.com/hold"]


def namespace(cluster: SimulatedCluster, name: str = "web", **more: Any) -> Made:
    spec = {"finalizers": ["kubernetes"]}
    return cluster.create(make(NAMESPACE, name, spec=spec, status={"phase": "Active"}, **more))


def said(cluster: SimulatedCluster, name: str, condition: str) -> tuple[str, str, str]:
    found = conditions.find(cluster.get(NAMESPACE.ref("", name))["status"]["conditions"], condition)
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_namespace_takes_everything_in_it_along_and_nothing_else() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    cluster.create(make(CONFIG_MAP, "settings", "web"))
    cluster.create(make(WIDGET, "widget", "web"))
    cluster.create(make(CONFIG_MAP, "settings", "other"))

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    assert [str(ref) for ref in cluster.objects] == ["configmap other/settings"]


def test_a_namespace_that_is_not_to_go_is_left_alone() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    cluster.create(make(CONFIG_MAP, "settings", "web"))

    settle(cluster, NAMESPACES)

    assert cluster.journal == []
    assert cluster.has(web)


def test_pods_go_first_and_the_rest_only_when_they_are_gone() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    pod = cluster.create(make(POD, "pod", "web", finalizers=HOLD))
    settings_ = cluster.create(make(CONFIG_MAP, "settings", "web"))

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    assert meta.is_deleting(cluster.get(meta.ref(pod)))
    assert not meta.is_deleting(cluster.get(meta.ref(settings_)))
    # A real cluster says that nothing remains while it waits for pods; we say what does.
    assert said(cluster, "web", "NamespaceContentRemaining")[:2] == ("True", "SomeResourcesRemain")

    cluster.patch(meta.ref(pod), {"metadata": {"finalizers": None}})
    settle(cluster, NAMESPACES)

    assert cluster.objects == {}


def test_what_remains_and_what_holds_it_is_said_in_the_conditions() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    cluster.create(make(CONFIG_MAP, "a", "web", finalizers=HOLD))
    cluster.create(make(CONFIG_MAP, "b", "web", finalizers=HOLD))
    cluster.create(make(WIDGET, "w", "web", finalizers=[*HOLD, "ex.example.com/other"]))

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    assert said(cluster, "web", "NamespaceContentRemaining") == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 2 resource instances, "
        "widgets.ex.example.com has 1 resource instances",
    )
    assert said(cluster, "web", "NamespaceFinalizersRemaining") == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: ex.example.com/hold in 3 resource instances, "
        "ex.example.com/other in 1 resource instances",
    )
    assert said(cluster, "web", "NamespaceDeletionDiscoveryFailure")[0] == "False"
    assert said(cluster, "web", "NamespaceDeletionGroupVersionParsingFailure")[0] == "False"
    assert said(cluster, "web", "NamespaceDeletionContentFailure")[0] == "False"
    assert cluster.get(meta.ref(web))["status"]["phase"] == "Terminating"


def test_another_finalizer_on_the_namespace_keeps_it_after_it_is_empty() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster, finalizers=HOLD)
    cluster.create(make(CONFIG_MAP, "settings", "web"))

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    assert list(cluster.objects) == [meta.ref(web)]
    assert cluster.get(meta.ref(web))["spec"]["finalizers"] == []
    assert said(cluster, "web", "NamespaceContentRemaining") == (
        "False",
        "ContentRemoved",
        "All content successfully removed",
    )


def test_other_finalizers_of_a_namespace_are_waited_for() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    others = {"spec": {"finalizers": ["kubernetes", "ex.example.com/mine"]}}
    cluster.patch(meta.ref(web), others)

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    assert cluster.get(meta.ref(web))["spec"]["finalizers"] == ["ex.example.com/mine"]


def test_finalizing_keeps_the_metadata_of_the_namespace() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster, finalizers=HOLD, labels={"team": "blue"})

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)

    (last,) = [action for action in cluster.journal if isinstance(action, Replace)]
    assert last.subresource == "finalize"
    assert meta.labels(last.obj) == {"team": "blue"}
    assert meta.finalizers(last.obj) == HOLD


def test_a_namespace_is_not_let_go_on_memorys_word_alone() -> None:
    """An object that was created a moment before the end may not have been seen."""
    cluster = SimulatedCluster()
    web = namespace(cluster)
    late = make(CONFIG_MAP, "late", "web")
    cluster.create(late)
    cluster.delete(meta.ref(web))

    unseen = [meta.ref(late)]
    say = planned(cluster, NAMESPACES, meta.ref(web), unseen=unseen)
    for action in say.actions:
        cluster.perform(action)
    plan = planned(cluster, NAMESPACES, meta.ref(web), unseen=unseen)

    assert plan.actions == (DeleteAll(kind=CONFIG_MAP, namespace="web"),)


def test_a_kind_that_cannot_be_deleted_as_a_whole_is_deleted_one_by_one() -> None:
    one_by_one = CONFIG_MAP._replace(verbs=CONFIG_MAP.verbs - {"deletecollection"})
    cluster = SimulatedCluster(kinds=Kinds([one_by_one, *(kind for kind in KINDS if kind != CONFIG_MAP)]))
    web = namespace(cluster)
    settings_ = cluster.create(make(CONFIG_MAP, "settings", "web"))
    cluster.delete(meta.ref(web))

    plan = planned(cluster, NAMESPACES, meta.ref(web))

    assert plan.actions == (Delete(ref=meta.ref(settings_), uid=meta.uid(settings_)),)


def test_a_failure_to_delete_is_said_and_said_to_be_over() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    cluster.create(make(CONFIG_MAP, "settings", "web", finalizers=HOLD))
    cluster.delete(meta.ref(web))
    refused = PlanFailed([Forbidden("not today")])

    complaint = NAMESPACES.complain(cluster.world(NAMESPACES), meta.ref(web), refused, cluster.now)
    for action in complaint.actions:
        cluster.perform(action)

    assert said(cluster, "web", "NamespaceDeletionContentFailure") == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: not today",
    )
    again = NAMESPACES.complain(cluster.world(NAMESPACES), meta.ref(web), refused, cluster.now)
    assert again.actions == ()

    settle(cluster, NAMESPACES)
    assert said(cluster, "web", "NamespaceDeletionContentFailure")[0] == "False"


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    first = cluster.create(make(CONFIG_MAP, "a", "web", finalizers=HOLD))
    cluster.create(make(CONFIG_MAP, "b", "web", finalizers=HOLD))
    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES)
    before = cluster.get(meta.ref(web))["status"]["conditions"]

    cluster.now = cluster.now.replace(year=2027)
    cluster.patch(meta.ref(first), {"metadata": {"finalizers": None}})
    settle(cluster, NAMESPACES)
    after = cluster.get(meta.ref(web))["status"]["conditions"]

    assert before != after
    assert [one["lastTransitionTime"] for one in before] == [one["lastTransitionTime"] for one in after]


def test_nothing_is_created_in_a_namespace_that_is_being_deleted() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    settle(cluster, NAMESPACES, accounts("CERT"))

    cluster.delete(meta.ref(web))
    settle(cluster, NAMESPACES, accounts("CERT"))

    assert cluster.objects == {}


@pytest.mark.parametrize("kind_of_write", [Patch, Replace])
def test_an_ending_costs_two_writes_beside_the_deletions(kind_of_write: type) -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    cluster.create(make(CONFIG_MAP, "settings", "web"))
    cluster.delete(meta.ref(web))

    settle(cluster, NAMESPACES)

    assert len([action for action in cluster.journal if isinstance(action, kind_of_write)]) == 1
    assert len(cluster.journal) == 3


@given(
    lists(sampled_from([CONFIG_MAP, POD, WIDGET]), max_size=6),
    randoms(use_true_random=False),
    integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_a_namespace_ends_in_any_order_and_whatever_crashes(
    kinds: list[Any], random: Random, crash: int
) -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    owner: Made | None = None
    for number, kind in enumerate(kinds):
        refs = [meta.owner_ref(owner, blocks=True)] if owner is not None and number % 2 else []
        owner = cluster.create(make(kind, f"m{number}", "web", ownerReferences=refs))
    cluster.delete(meta.ref(web))

    try:
        settle(cluster, NAMESPACES, GARBAGE, accounts("CERT"), random=random, crash_after=crash)
    except Crashed:
        settle(cluster, NAMESPACES, GARBAGE, accounts("CERT"), random=random)

    assert cluster.objects == {}


def test_a_change_in_a_namespace_that_stays_enqueues_nothing() -> None:
    cluster = SimulatedCluster()
    namespace(cluster)
    made = cluster.create(make(CONFIG_MAP, "settings", "web"))

    assert cluster.keys_for(NAMESPACES, None, made, cluster.world(NAMESPACES)) == []


def test_what_happens_in_one_that_goes_concerns_it() -> None:
    cluster = SimulatedCluster()
    web = namespace(cluster)
    made = cluster.create(make(CONFIG_MAP, "settings", "web"))
    cluster.delete(meta.ref(web))

    heard = cluster.keys_for(NAMESPACES, made, None, cluster.world(NAMESPACES))

    assert heard == [Ref("v1", "Namespace", "", "web")]
