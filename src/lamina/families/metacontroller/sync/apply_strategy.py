"""
Compares a child with what is desired, and returns the action that updates it: by a three-way merge or by server-side apply.

With the three-way merge, what was applied last is recorded on the child. With
server-side apply the server keeps that record, and where the child does not
show what an apply would change, the server is asked by a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.apply.change_check import (
    SYSTEM_METADATA,
    Effect,
    apply_query,
    check_apply,
    is_written_only_by,
)
from lamina.core.apply.children import Method
from lamina.core.apply.three_way import ThreeWay, without_nulls
from lamina.core.model.object_map import differing
from lamina.core.model.plan import Action, Apply, Create, change
from lamina.core.model.queries import Answers, DryRun
from lamina.families.metacontroller.labels import LAST_APPLIED, MANAGER
from lamina.families.metacontroller.sync.desired import Desired
from lamina.families.metacontroller.sync.view import Parent, View
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj

_SETTLES = timedelta(seconds=10)
"""A child that another controller changes back at once is not recreated more often than this."""
_UNCHANGEABLE = 422
_THREE_WAY = ThreeWay(LAST_APPLIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyStrategy:
    """How the children of one parent are compared and written."""

    view: View
    answers: Answers

    def is_as_desired(self, child: Desired, observed: Obj) -> bool:
        """Say whether there is nothing to write to a child."""
        if not self.view.setup.applies_as:
            return self.is_as_merged(child, observed) or self.is_recreation_futile(child, observed)
        in_place = child.rule.method is Method.IN_PLACE
        if in_place and LAST_APPLIED in meta.annotations(observed):
            # The record of the three-way merge has to be removed.
            return False
        check = check_apply(self.dry_run(child, observed), observed, self.answers, ownership=False)
        if check.effect is Effect.REFUSED:
            # What the server refuses to change is recreated. What it refuses altogether is no reason to
            # delete what is live; in place it is tried, so that the error is reported.
            return not in_place and check.code != _UNCHANGEABLE
        return check.effect is Effect.NONE

    def comparison(self, children: Sequence[Desired], found: Sequence[Obj | None]) -> Callable[[int], bool]:
        """Return whether there is nothing to write to the child at a position, of those that were found for children."""
        if self.view.setup.applies:
            # With server-side apply the answers count too.
            return lambda place: (
                (there := found[place]) is not None and self.is_as_desired(children[place], there)
            )
        return self.view.memo.update(_compared, "compared", children, found, self).as_desired.__getitem__

    def is_as_merged(self, child: Desired, observed: Obj) -> bool:
        """Say whether merging what is desired into a child would not change it."""
        memo, desired = self.view.memo, child.obj
        applied = memo.call(_THREE_WAY.applied, desired)
        if memo.call(_THREE_WAY.is_merged, observed, desired, applied):
            return True
        return not memo.call(_THREE_WAY.differs, observed, self._merged(child, observed))

    def is_settled(self, child: Desired, observed: Obj) -> bool:
        """Say whether a child is as it is merged and not being deleted, so that it needs neither a write nor a message."""
        # With server-side apply only the answers show what would change.
        return (
            not self.view.setup.applies_as
            and not meta.is_deleting(observed)
            and self.is_as_merged(child, observed)
        )

    def is_recreation_futile(self, child: Desired, observed: Obj) -> bool:
        """
        Say whether a recreated child would end the same.

        It was created from the same desired object, and no other manager has
        written to it since: what differs is the server's doing.
        """
        return child.rule.method is Method.RECREATE and self.view.memo.call(_is_made_so, child, observed)

    def recreation_delay(self, child: Desired, observed: Obj, now: datetime) -> timedelta | None:
        """Return how long a child created from the same desired object is too young to be recreated, if it is."""
        made = moment(meta.metadata(observed).get("creationTimestamp"))
        if self.view.setup.applies or made is None or not _THREE_WAY.is_last_applied(observed, child.obj):
            return None
        left = _SETTLES - (now - made)
        return left if timedelta(0) < left <= _SETTLES else None

    def dry_run(self, child: Desired, observed: Obj) -> DryRun | None:
        """Return the dry run that shows what an apply would change; None where it is known without."""
        return self.view.memo.call(apply_query, observed, self._body(child), self.view.setup.applies_as)

    def open_dry_run(self, child: Desired, observed: Obj) -> DryRun | None:
        """Return the dry run of a child that is not answered yet."""
        if not self.view.setup.applies or child.rule.method is Method.ON_DELETE or meta.is_deleting(observed):
            return None
        query = self.dry_run(child, observed)
        return query if query is not None and query not in self.answers else None

    def create(self, child: Desired) -> Action:
        if self.view.setup.applies:
            return Apply(obj=self._body(child), force=True, manager=self.view.setup.applies_as)
        return Create(obj=meta.with_owner(_THREE_WAY.create(child.obj), self.view.identity.owner))

    def update(self, child: Desired, observed: Obj) -> tuple[Action, ...]:
        """Return what updates a child in place."""
        if not self.view.setup.applies:
            return (change(observed, create_merge_patch(observed, self._merged(child, observed))),)
        body = {**self._body(child)}
        body["metadata"] = {**body["metadata"], "uid": meta.uid(observed)}
        applied = Apply(obj=body, force=True, manager=self.view.setup.applies_as)
        if LAST_APPLIED in meta.annotations(observed):
            # The record of the three-way merge would never be current again.
            forget = change(observed, {"metadata": {"annotations": {LAST_APPLIED: None}}})
            return (forget,)
        return (applied,)

    def _merged(self, child: Desired, observed: Obj) -> Made:
        memo = self.view.memo
        return memo.call(_THREE_WAY.merge, observed, child.obj, memo.call(_THREE_WAY.applied, child.obj))

    def _body(self, child: Desired) -> Made:
        return self.view.memo.call(_applied_body, self.view.identity, child)


class _Compared(Struct, frozen=True):
    """Which children are as desired, and what that was found from."""

    children: Sequence[Desired]
    found: Sequence[Obj | None]
    as_desired: Sequence[bool]


def _compared(
    last: _Compared | None, children: Sequence[Desired], found: Sequence[Obj | None], strategy: ApplyStrategy
) -> _Compared:
    """Compare the children of which something changed."""
    if last is None or len(last.children) != len(children):
        last = _Compared((), (), [False] * len(children))
        places = set(range(len(children)))
    else:
        places = {*differing(children, last.children), *differing(found, last.found)}
    as_desired = list(last.as_desired)
    for place in places:
        there = found[place]
        as_desired[place] = there is not None and strategy.is_as_desired(children[place], there)
    return _Compared(children, found, as_desired)


def _applied_body(parent: Parent, child: Desired) -> Made:
    metadata = {key: value for key, value in meta.metadata(child.obj).items() if key not in SYSTEM_METADATA}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED
    }
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    body = {key: value for key, value in child.obj.items() if key != "status"}
    made: Made = without_nulls({**body, "metadata": metadata})
    return meta.with_owner(made, parent.owner)


def _is_made_so(child: Desired, observed: Obj) -> bool:
    """Say whether a child was created from the same desired object, and only we have written to it."""
    return _THREE_WAY.is_last_applied(observed, child.obj) and is_written_only_by(observed, MANAGER)
