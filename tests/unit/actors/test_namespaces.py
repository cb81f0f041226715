"""How a namespace ends."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, lists, randoms, sampled_from

from lamina.actors.accounts import accounts
from lamina.actors.garbage import GARBAGE
from lamina.actors.namespaces import NAMESPACES
from lamina.core.plan import Delete, DeleteAll, Patch, Replace
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Ref
from lamina.paper import Crashed, Paper, planned, settle
from lamina.paper.kinds import CONFIG_MAP, KINDS, NAMESPACE, POD, WIDGET, make

HOLD = ["ex.example.com/hold"]


def namespace(paper: Paper, name: str = "web", **more: Any) -> Made:
    spec = {"finalizers": ["kubernetes"]}
    return paper.create(make(NAMESPACE, name, spec=spec, status={"phase": "Active"}, **more))


def said(paper: Paper, name: str, condition: str) -> tuple[str, str, str]:
    found = conditions.find(paper.get(NAMESPACE.ref("", name))["status"]["conditions"], condition)
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_namespace_takes_everything_in_it_along_and_nothing_else() -> None:
    paper = Paper()
    web = namespace(paper)
    paper.create(make(CONFIG_MAP, "settings", "web"))
    paper.create(make(WIDGET, "widget", "web"))
    paper.create(make(CONFIG_MAP, "settings", "other"))

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    assert [str(ref) for ref in paper.objects] == ["configmap other/settings"]


def test_a_namespace_that_is_not_to_go_is_left_alone() -> None:
    paper = Paper()
    web = namespace(paper)
    paper.create(make(CONFIG_MAP, "settings", "web"))

    settle(paper, NAMESPACES)

    assert paper.journal == []
    assert paper.has(web)


def test_pods_go_first_and_the_rest_only_when_they_are_gone() -> None:
    paper = Paper()
    web = namespace(paper)
    pod = paper.create(make(POD, "pod", "web", finalizers=HOLD))
    settings_ = paper.create(make(CONFIG_MAP, "settings", "web"))

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    assert meta.is_deleting(paper.get(meta.ref(pod)))
    assert not meta.is_deleting(paper.get(meta.ref(settings_)))
    # A real cluster says that nothing remains while it waits for pods; we say what does.
    assert said(paper, "web", "NamespaceContentRemaining")[:2] == ("True", "SomeResourcesRemain")

    paper.patch(meta.ref(pod), {"metadata": {"finalizers": None}})
    settle(paper, NAMESPACES)

    assert paper.objects == {}


def test_what_remains_and_what_holds_it_is_said_in_the_conditions() -> None:
    paper = Paper()
    web = namespace(paper)
    paper.create(make(CONFIG_MAP, "a", "web", finalizers=HOLD))
    paper.create(make(CONFIG_MAP, "b", "web", finalizers=HOLD))
    paper.create(make(WIDGET, "w", "web", finalizers=[*HOLD, "ex.example.com/other"]))

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    assert said(paper, "web", "NamespaceContentRemaining") == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 2 resource instances, "
        "widgets.ex.example.com has 1 resource instances",
    )
    assert said(paper, "web", "NamespaceFinalizersRemaining") == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: ex.example.com/hold in 3 resource instances, "
        "ex.example.com/other in 1 resource instances",
    )
    assert said(paper, "web", "NamespaceDeletionDiscoveryFailure")[0] == "False"
    assert said(paper, "web", "NamespaceDeletionGroupVersionParsingFailure")[0] == "False"
    assert said(paper, "web", "NamespaceDeletionContentFailure")[0] == "False"
    assert paper.get(meta.ref(web))["status"]["phase"] == "Terminating"


def test_somebody_elses_finalizer_on_the_namespace_keeps_it_after_it_is_empty() -> None:
    paper = Paper()
    web = namespace(paper, finalizers=HOLD)
    paper.create(make(CONFIG_MAP, "settings", "web"))

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    assert list(paper.objects) == [meta.ref(web)]
    assert paper.get(meta.ref(web))["spec"]["finalizers"] == []
    assert said(paper, "web", "NamespaceContentRemaining") == (
        "False",
        "ContentRemoved",
        "All content successfully removed",
    )


def test_whoever_else_finalizes_a_namespace_is_waited_for() -> None:
    paper = Paper()
    web = namespace(paper)
    others = {"spec": {"finalizers": ["kubernetes", "ex.example.com/mine"]}}
    paper.patch(meta.ref(web), others)

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    assert paper.get(meta.ref(web))["spec"]["finalizers"] == ["ex.example.com/mine"]


def test_finalizing_keeps_the_metadata_of_the_namespace() -> None:
    paper = Paper()
    web = namespace(paper, finalizers=HOLD, labels={"team": "blue"})

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)

    (last,) = [action for action in paper.journal if isinstance(action, Replace)]
    assert last.subresource == "finalize"
    assert meta.labels(last.obj) == {"team": "blue"}
    assert meta.finalizers(last.obj) == HOLD


def test_a_namespace_is_not_let_go_on_memorys_word_alone() -> None:
    """An object that was created a moment before the end may not have been seen."""
    paper = Paper()
    web = namespace(paper)
    late = make(CONFIG_MAP, "late", "web")
    paper.create(late)
    paper.delete(meta.ref(web))

    unseen = [meta.ref(late)]
    say = planned(paper, NAMESPACES, meta.ref(web), unseen=unseen)
    for action in say.actions:
        paper.perform(action)
    plan = planned(paper, NAMESPACES, meta.ref(web), unseen=unseen)

    assert plan.actions == (DeleteAll(kind=CONFIG_MAP, namespace="web"),)


def test_a_kind_that_cannot_be_deleted_as_a_whole_is_deleted_one_by_one() -> None:
    one_by_one = CONFIG_MAP._replace(verbs=CONFIG_MAP.verbs - {"deletecollection"})
    paper = Paper(kinds=Kinds([one_by_one, *(kind for kind in KINDS if kind != CONFIG_MAP)]))
    web = namespace(paper)
    settings_ = paper.create(make(CONFIG_MAP, "settings", "web"))
    paper.delete(meta.ref(web))

    plan = planned(paper, NAMESPACES, meta.ref(web))

    assert plan.actions == (Delete(ref=meta.ref(settings_), uid=meta.uid(settings_)),)


def test_a_failure_to_delete_is_said_and_said_to_be_over() -> None:
    paper = Paper()
    web = namespace(paper)
    paper.create(make(CONFIG_MAP, "settings", "web", finalizers=HOLD))
    paper.delete(meta.ref(web))
    refused = PlanFailed([Forbidden("not today")])

    complaint = NAMESPACES.complain(paper.world(NAMESPACES), meta.ref(web), refused, paper.now)
    for action in complaint.actions:
        paper.perform(action)

    assert said(paper, "web", "NamespaceDeletionContentFailure") == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: not today",
    )
    again = NAMESPACES.complain(paper.world(NAMESPACES), meta.ref(web), refused, paper.now)
    assert again.actions == ()

    settle(paper, NAMESPACES)
    assert said(paper, "web", "NamespaceDeletionContentFailure")[0] == "False"


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    paper = Paper()
    web = namespace(paper)
    first = paper.create(make(CONFIG_MAP, "a", "web", finalizers=HOLD))
    paper.create(make(CONFIG_MAP, "b", "web", finalizers=HOLD))
    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES)
    before = paper.get(meta.ref(web))["status"]["conditions"]

    paper.now = paper.now.replace(year=2027)
    paper.patch(meta.ref(first), {"metadata": {"finalizers": None}})
    settle(paper, NAMESPACES)
    after = paper.get(meta.ref(web))["status"]["conditions"]

    assert before != after
    assert [one["lastTransitionTime"] for one in before] == [one["lastTransitionTime"] for one in after]


def test_nobody_furnishes_a_namespace_that_is_on_its_way_out() -> None:
    paper = Paper()
    web = namespace(paper)
    settle(paper, NAMESPACES, accounts("CERT"))

    paper.delete(meta.ref(web))
    settle(paper, NAMESPACES, accounts("CERT"))

    assert paper.objects == {}


@pytest.mark.parametrize("deed", [Patch, Replace])
def test_an_ending_costs_two_writes_beside_the_deletions(deed: type) -> None:
    paper = Paper()
    web = namespace(paper)
    paper.create(make(CONFIG_MAP, "settings", "web"))
    paper.delete(meta.ref(web))

    settle(paper, NAMESPACES)

    assert len([action for action in paper.journal if isinstance(action, deed)]) == 1
    assert len(paper.journal) == 3


@given(
    lists(sampled_from([CONFIG_MAP, POD, WIDGET]), max_size=6),
    randoms(use_true_random=False),
    integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_a_namespace_ends_in_any_order_and_whatever_crashes(
    kinds: list[Any], random: Random, crash: int
) -> None:
    paper = Paper()
    web = namespace(paper)
    owner: Made | None = None
    for number, kind in enumerate(kinds):
        refs = [meta.owner_ref(owner, blocks=True)] if owner is not None and number % 2 else []
        owner = paper.create(make(kind, f"m{number}", "web", ownerReferences=refs))
    paper.delete(meta.ref(web))

    try:
        settle(paper, NAMESPACES, GARBAGE, accounts("CERT"), random=random, crash_after=crash)
    except Crashed:
        settle(paper, NAMESPACES, GARBAGE, accounts("CERT"), random=random)

    assert paper.objects == {}


def test_what_happens_in_a_namespace_that_stays_concerns_nobody() -> None:
    paper = Paper()
    namespace(paper)
    made = paper.create(make(CONFIG_MAP, "settings", "web"))

    assert paper.concerned(NAMESPACES, None, made, paper.world(NAMESPACES)) == []


def test_what_happens_in_one_that_goes_concerns_it() -> None:
    paper = Paper()
    web = namespace(paper)
    made = paper.create(make(CONFIG_MAP, "settings", "web"))
    paper.delete(meta.ref(web))

    heard = paper.concerned(NAMESPACES, made, None, paper.world(NAMESPACES))

    assert heard == [Ref("v1", "Namespace", "", "web")]
