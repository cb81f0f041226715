"""
Records a new input revision: what has to be read live first, and the write.

A cache that lacks the newest edit, revision or input revision would move the instance back,
or issue a number twice. So the instance, its definition and its input revisions are read live.
A child that names a later input revision than the newest one shows that the cache lacks it,
that it is lost, or that the child was edited.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from lamina.core.model.plan import Action, change
from lamina.core.model.queries import Answers, Listed, Query, ReadAll
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.instances import input_revisions
from lamina.families.resourcegraph.instances.confirm import check_both
from lamina.families.resourcegraph.instances.input_revisions import InputRevision
from lamina.families.resourcegraph.instances.instance_spec import digest_of
from lamina.families.resourcegraph.instances.view import CURRENT_INPUT, CURRENT_RGD, HISTORY, View
from lamina.families.resourcegraph.labels import API_VERSION, INPUT_REVISION, INSTANCE_NAME
from lamina.graph.graph import Graph
from lamina.objects import meta
from lamina.objects.selectors import from_labels
from lamina.objects.times import stamp
from lamina.objects.types import Ref


class Recording(Struct, frozen=True, kw_only=True):
    """A new input revision and the write that records it, or what is missing for it."""

    made: InputRevision | None = None
    action: Action | None = None
    queries: tuple[Query, ...] = ()
    waits: str = ""


def record(
    view: View, revision: int, graph: Graph, answers: Answers, now: datetime, *, same: InputRevision | None
) -> Recording:
    """
    Return the record of the instance's spec at a revision of its definition.

    `same` is the newest input revision where it is that: it stays, unless a later one was lost.
    """
    if lacking := what_the_cache_lacks(view, answers):
        return lacking
    issued = _issued(view, are_lost=not (view.inputs if view.is_inline else _live(view, answers)))
    if same is not None and same.number >= issued:
        return Recording(made=same)
    spec = view.obj.get("spec") or {}
    made = InputRevision(
        number=issued + 1,
        revision=revision,
        revision_hash=view.hash_of(revision),
        spec=spec,
        hash=digest_of(graph, spec, revision),
        created=stamp(now),
    )
    action = _entry(view, made) if view.is_inline else _object(view, made)
    if action is None:
        return Recording(waits="waiting for a name of an input revision to be free")
    return Recording(made=made, action=action)


def what_the_cache_lacks(view: View, answers: Answers) -> Recording | None:
    """Return what has to be read live, or waited for, before it is decided on input revisions; None where nothing is."""
    listing, check = _list(view), check_both(view, answers)
    if listing is None and not view.is_inline:
        return Recording(waits=f"waiting for {INPUT_REVISION.kind} to be served")
    listed = () if listing is None or listing in answers else (listing,)
    if queries := (*check.pending, *listed):
        return Recording(queries=queries)
    if not check.is_confirmed:
        return Recording(waits="waiting for the cache to have the latest instance and definition")
    if _live(view, answers) - {meta.uid(one.obj) for one in view.inputs if one.obj is not None}:
        return Recording(waits="waiting for the cache to have all input revisions")
    return None


def _issued(view: View, *, are_lost: bool) -> int:
    """
    Return the highest number that was issued.

    An edit of a child can change its stamp, so stamps count only where all input revisions are lost.
    """
    stated = max((one.number for one in view.inputs), default=0), view.number(CURRENT_INPUT)
    return max(*stated, view.input_stamp if are_lost else 0)


def _live(view: View, answers: Answers) -> frozenset[str]:
    """Return the uids of the input revisions that a live list has; none where they are inline."""
    listing = _list(view)
    there = answers.get(listing) if listing is not None else None
    found = there.objects if isinstance(there, Listed) else ()
    return frozenset(input_revisions.of_instance(view.obj, found))


def _list(view: View) -> ReadAll | None:
    """Return the live list of the metadata of what may be the instance's input revisions."""
    kind = view.kinds.preferred(INPUT_REVISION)
    if kind is None or view.is_inline:
        return None
    labels = {INSTANCE_NAME: label_value(meta.name(view.obj))}
    return ReadAll(kind, _namespace(view), labels=from_labels(labels))


def _namespace(view: View) -> str:
    return meta.namespace(view.obj) or view.options.controller_namespace


def _object(view: View, made: InputRevision) -> Action | None:
    namespace, plural = _namespace(view), view.kind.plural
    candidates = input_revisions.names(view.obj, plural, made.number)
    refs = {name: Ref(API_VERSION, INPUT_REVISION.kind, namespace, name) for name in candidates}
    name = next((name for name, ref in refs.items() if view.find(ref) is None), None)
    if name is None:
        return None
    return input_revisions.creation(view.obj, namespace, name, made, meta.name(view.revisions[made.revision]))


def _entry(view: View, made: InputRevision) -> Action:
    """Return the write of an input revision to the status, at the version that its number was decided on."""
    history = input_revisions.history(view.inputs, {made.number: made}, inline=True)
    status = {HISTORY: history, CURRENT_INPUT: made.number, CURRENT_RGD: made.revision}
    return change(view.obj, {"status": status}, subresource="status")
