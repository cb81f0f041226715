"""A plan with the memo of earlier passes equals a plan without one, whatever is edited in between."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis.strategies import integers, lists, sampled_from, tuples

from lamina.core.model.controller import Controller
from lamina.core.model.memo import MemoStore
from lamina.core.model.plan import Plan
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.families.metacontroller.compile import composite
from lamina.families.metacontroller.controller import controller
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import planned
from tests.properties.no_memos import NoMemos, comparable
from tests.unit.families.metacontroller.catset import PARENT, POD, Cats

EDITS = (
    "plan", "plan", "plan", "half a plan", "replicas", "image", "labels", "selector", "status", "ready",
    "unready", "edit child", "delete child", "relabel child", "orphan child", "name in use",
    "edit revision", "delete revision", "time",
)  # fmt: skip
METHODS = (
    "Recreate",
    "InPlace",
    "OnDelete",
    "RollingRecreate",
    "RollingInPlace",
    "RollingRecreate",
    "RollingInPlace",
)


class Edited(Cats):
    """Cats whose parent, children and revisions are edited in between passes."""

    def edit(self, what: str, number: int) -> None:
        pods, revisions = self.listed(POD), self.revisions()
        pod = meta.ref(pods[number % len(pods)]) if pods else None
        revision = revisions[number % len(revisions)] if revisions else None
        match what:
            case "replicas":
                self.want(replicas=number % 5)
            case "image":
                self.want(template={"image": ("one", "two", "three")[number % 3]})
            case "labels":
                self.patch(PARENT, {"metadata": {"labels": {"n": str(number)}}})
            case "selector":
                # Written anew, it is an equal selector in another object.
                self.want(selector={"matchLabels": {"app": "nginx" if number % 4 else "other"}})
            case "status":
                self.patch(PARENT, {"status": {"seen": number}})
            case "ready" if pod is not None:
                self.ready(pod.name)
            case "unready" if pod is not None:
                self.ready(pod.name, status="False")
            case "edit child" if pod is not None:
                self.patch(pod, {"spec": {"image": ("one", "edited")[number % 2]}})
            case "delete child" if pod is not None:
                self.delete(pod)
            case "relabel child" if pod is not None:
                self.patch(pod, {"metadata": {"labels": {"app": ("nginx", "other")[number % 2]}}})
            case "orphan child" if pod is not None:
                self.patch(pod, {"metadata": {"ownerReferences": None}})
            case "name in use":
                named: Made = {"name": f"nginx-{number % 5}", "namespace": "default"}
                self.create(
                    {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": {"image": "other"}}
                )
            case "edit revision" if revision is not None:
                names = [f"nginx-{place}" for place in range(number % 4)]
                self.patch(
                    meta.ref(revision), {"children": [{"apiGroup": "", "kind": "Pod", "names": names}]}
                )
            case "delete revision" if revision is not None:
                self.delete(meta.ref(revision))
            case "time":
                self.now += timedelta(seconds=number)


def controllers(cats: Cats, method: str, applies: bool) -> tuple[Controller[View], Controller[View]]:
    """Return two controllers of one setup: with memos, and without."""
    setup = composite(
        cats.composite(method, kept=2), cats.kinds, applies_as="metacontroller" if applies else ""
    )
    return controller(setup, memos=MemoStore()), controller(setup, memos=NoMemos())


def outcome(cats: Cats, one: Controller[View]) -> Plan | str:
    """Return the plan, or why there is none."""
    try:
        plan = planned(cats, one, PARENT)
    except Exception as error:
        return repr(error)
    return plan


@settings(max_examples=200, deadline=None)
@given(
    lists(tuples(sampled_from(EDITS), integers(0, 12)), min_size=4, max_size=30),
    sampled_from(METHODS),
    sampled_from((False, True)),
    sampled_from((False, True)),
)
def test_a_plan_with_a_memo_equals_a_plan_without(
    edits: list[tuple[str, int]], method: str, applies: bool, boxes: bool
) -> None:
    cats = Edited(boxes=boxes)
    cats.start()
    # Two revisions have children from the start, and each plan may find them otherwise.
    cats.roll(method=method, applies=applies)
    cats.want(template={"image": "two"})
    cats.settle(method=method, applies=applies)
    remembers, forgets = controllers(cats, method, applies)
    for what, number in [*edits, *[("plan", 0)] * 3]:
        try:
            cats.edit(what, number)
        except (AlreadyExists, Conflict, NotFound):
            continue
        with_memo, without = outcome(cats, remembers), outcome(cats, forgets)

        assert comparable(with_memo) == comparable(without), (what, number)
        if what in ("plan", "half a plan") and isinstance(with_memo, Plan):
            carry_out(cats, with_memo, 1 + number % 3 if what == "half a plan" else None)


def carry_out(cats: Cats, plan: Plan, most: int | None) -> None:
    """Carry out a plan, or the first writes of it."""
    for action in plan.actions[:most]:
        try:
            cats.perform(action)
        except (AlreadyExists, Conflict, NotFound):
            return
