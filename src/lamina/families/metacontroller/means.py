"""
How a child is made as it should be: by what was desired last, or by the server.

With dynamic apply, what was desired last is written on the child, and what it
becomes is worked out here. With server-side apply the server keeps the record,
and where it cannot be read off the child the server is asked to rehearse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lamina.core.children import Method
from lamina.core.plan import Action, Apply, Create, change
from lamina.core.questions import Answers, Found, Refused, Rehearse
from lamina.families.metacontroller.apply import (
    differs,
    holds_already,
    is_as_last_applied,
    merged,
    new_child,
    stated,
    statement,
)
from lamina.families.metacontroller.desired import Desired
from lamina.families.metacontroller.names import LAST_APPLIED, MANAGER
from lamina.families.metacontroller.view import View
from lamina.merge.patches import create_merge_patch
from lamina.merge.stated import is_stated
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.digest import digest
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj

_SETTLES = timedelta(seconds=10)
"""Whoever undoes a child as soon as it is made would have it recreated for ever; so it is given this long."""
_UNCHANGEABLE = 422
_SYSTEM = (
    "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a child would become, and the action that makes it so."""

    view: View
    answers: Answers

    def is_as_desired(self, child: Desired, observed: Obj) -> bool:
        """Say whether a child is what a hook wants already."""
        if not self.view.setup.applies_as:
            known = child.notes.desired.find(observed)
            if known is None:
                same = self.is_as_merged(child, observed) or self.would_end_the_same(child, observed)
                known = child.notes.desired.keep(same, observed)
            return known
        in_place = child.rule.method is Method.IN_PLACE
        if in_place and LAST_APPLIED in meta.annotations(observed):
            # The record of the other means has to go.
            return False
        if self._is_stated(child, observed):
            return True
        match self.answers.get(self.rehearsal(child, observed)):
            case Found(obj):
                return is_same(_bare(obj), _bare(observed))
            case Refused(code=code):
                # What the server will not have changed is recreated. What it will not do at all is no
                # reason to take away what is there; in place it is tried, so that somebody hears why.
                return not in_place and code != _UNCHANGEABLE
            case _:
                return False

    def is_as_merged(self, child: Desired, observed: Obj) -> bool:
        """Say whether there is nothing at all in which a child is not what is merged into it."""
        # Whoever plans asks more than once, and merging is most of a pass that changes nothing.
        equal = child.notes.equal.find(observed)
        return (
            equal if equal is not None else child.notes.equal.keep(_is_as_merged(child, observed), observed)
        )

    def is_at_rest(self, child: Desired, observed: Obj) -> bool:
        """Say whether a child is plainly as it should be, and stays: nothing is to be done or said about it."""
        if self.view.setup.applies_as:
            # What the server keeps of it is another matter.
            return False
        rests = child.notes.rests.find(observed)
        if rests is None:
            rests = self.is_as_merged(child, observed) and not meta.is_deleting(observed)
            child.notes.rests.keep(rests, observed)
        return rests

    def would_end_the_same(self, child: Desired, observed: Obj) -> bool:
        """
        Say whether it is no use to recreate a child.

        It was made of this very wish, and nobody else has written to it since:
        if it differs, the server makes it so, and would again.
        """
        if child.rule.method is not Method.RECREATE:
            return False
        futile = child.notes.futile.find(observed)
        return (
            futile if futile is not None else child.notes.futile.keep(_is_made_so(child, observed), observed)
        )

    def _is_stated(self, child: Desired, observed: Obj) -> bool:
        stated = child.notes.stated.find(observed)
        if stated is None:
            stated = is_stated(observed, self._body(child), self.view.setup.applies_as)
            child.notes.stated.keep(stated, observed)
        return stated

    def is_fresh(self, child: Desired, observed: Obj, now: datetime) -> timedelta | None:
        """Return how long a child that was made of this very wish is still too young to be recreated, if it is."""
        made = moment(meta.metadata(observed).get("creationTimestamp"))
        if self.view.setup.applies or made is None or not is_as_last_applied(observed, child.obj):
            return None
        left = _SETTLES - (now - made)
        return left if timedelta(0) < left <= _SETTLES else None

    def rehearsal(self, child: Desired, observed: Obj) -> Rehearse:
        """Return the question what the server would make of a child."""
        known = child.notes.rehearsal.find(observed)
        if known is None:
            body = self._body(child)
            key = digest([meta.uid(observed), meta.resource_version(observed), body])
            known = Rehearse(obj=body, manager=self.view.setup.applies_as, key=key)
            child.notes.rehearsal.keep(known, observed)
        return known

    def needs_rehearsal(self, child: Desired, observed: Obj) -> bool:
        """Say whether only the server can tell if a child is as it should be."""
        return (
            self.view.setup.applies
            and child.rule.method is not Method.ON_DELETE
            and not meta.is_deleting(observed)
            and not self._is_stated(child, observed)
            and self.rehearsal(child, observed) not in self.answers
        )

    def create(self, child: Desired) -> Action:
        if self.view.setup.applies:
            return Apply(obj=self._body(child), force=True, manager=self.view.setup.applies_as)
        made = new_child(child.obj)
        owner = meta.owner_ref(self.view.parent, controller=True, blocks=True)
        return Create(obj=meta.with_owner(made, owner))

    def update(self, child: Desired, observed: Obj) -> tuple[Action, ...]:
        """Return what makes a child as it should be, in place."""
        if not self.view.setup.applies:
            became = child.notes.became.find(observed)
            if became is None:
                became = merged(observed, child.obj, child.notes.statement)
            return (change(observed, create_merge_patch(observed, became)),)
        body = {**self._body(child)}
        body["metadata"] = {**body["metadata"], "uid": meta.uid(observed)}
        applied = Apply(obj=body, force=True, manager=self.view.setup.applies_as)
        if LAST_APPLIED in meta.annotations(observed):
            # The record of the other means would never be true again.
            forget = change(observed, {"metadata": {"annotations": {LAST_APPLIED: None}}})
            return (forget,)
        return (applied,)

    def _body(self, child: Desired) -> Made:
        if child.notes.body is None:
            child.notes.body = self._stated(child)
        return child.notes.body

    def _stated(self, child: Desired) -> Made:
        metadata = {key: value for key, value in meta.metadata(child.obj).items() if key not in _SYSTEM}
        annotations = {
            key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED
        }
        metadata.pop("annotations", None)
        if annotations:
            metadata["annotations"] = annotations
        body = {key: value for key, value in child.obj.items() if key != "status"}
        owner = meta.owner_ref(self.view.parent, controller=True, blocks=True)
        made: Made = stated({**body, "metadata": metadata})
        return meta.with_owner(made, owner)


def _is_as_merged(child: Desired, observed: Obj) -> bool:
    child.notes.became.forget()
    if child.notes.statement is None:
        child.notes.statement = statement(child.obj)
    if holds_already(observed, child.obj, child.notes.statement):
        return True
    became = merged(observed, child.obj, child.notes.statement)
    if not differs(observed, became):
        return True
    # Whoever makes it so takes it from here.
    child.notes.became.keep(became, observed)
    return False


def _is_made_so(child: Desired, observed: Obj) -> bool:
    """Say whether a child was made of this very wish, and only we have written to it."""
    if not is_as_last_applied(observed, child.obj):
        return False
    writers = meta.metadata(observed).get("managedFields") or ()
    others = [one for one in writers if not one.get("subresource") and one.get("manager") != MANAGER]
    return bool(writers) and not others


def _bare(obj: Obj) -> Made:
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in _SYSTEM}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
