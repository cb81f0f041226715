"""A store of memos that remember nothing, for plans to compare with."""

from collections.abc import Callable, Hashable
from typing import TypeVar, TypeVarTuple, Unpack

from lamina.core.model.memo import Memo, MemoStore
from lamina.core.model.plan import Plan
from lamina.objects.types import Ref

Value = TypeVar("Value")
Inputs = TypeVarTuple("Inputs")


class NoMemo(Memo):
    """Computes everything again at every call."""

    def call(self, function: Callable[[Unpack[Inputs]], Value], *inputs: *Inputs) -> Value:
        return function(*inputs)

    def call_nested(self, function: Callable[[Memo, Unpack[Inputs]], Value], *inputs: *Inputs) -> Value:
        return function(self, *inputs)

    def update(
        self, function: Callable[[Value | None, Unpack[Inputs]], Value], slot: Hashable, *inputs: *Inputs
    ) -> Value:
        return function(None, *inputs)

    def unique(self, value: Value) -> Value:
        return value


class NoMemos(MemoStore):
    """A store that gives every pass a memo that keeps nothing."""

    def next_pass(self, controller: str, ref: Ref, uid: str) -> Memo:
        return NoMemo()


def comparable(plan: Plan | str) -> object:
    """Return a plan so that it can be compared: an error equals one that says the same."""
    if isinstance(plan, str):
        return plan
    return (
        plan.stages, plan.requeue_after, plan.appointment, plan.because, repr(plan.failure), plan.progress,
        plan.queries,
    )  # fmt: skip
