"""
The queries that are asked before a parent's children are decided, round by round.

First the hooks' credentials, then the rules of the customize hook, then the
related objects, then the desired children of each revision in use, then what
has the name of a missing child, and with server-side apply the dry runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.queries import Answers, Call, Follow, Listed, Query
from lamina.errors import HookError
from lamina.families.metacontroller.hooks.customize import customize_call, follows, read_rules, shown
from lamina.families.metacontroller.hooks.endpoint import Endpoint, Secret, look_in
from lamina.families.metacontroller.hooks.protocol import (
    Response,
    Shown,
    encode,
    read_composite,
    read_decorator,
    sync_request,
)
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.desired import (
    Desired,
    Key,
    desired,
    desired_index,
    key_of,
    missing,
    observed,
)
from lamina.families.metacontroller.sync.revisions import (
    ClaimingRevision,
    ParentRevisions,
    revisions,
    with_snapshot,
)
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj


class Responses(Struct, frozen=True, kw_only=True):
    """The responses of the hook by the name of the revision; `revisions` is None where nothing is rolled out."""

    latest: str
    by_revision: Mapping[str, Response]
    revisions: ParentRevisions | None

    @property
    def newest(self) -> Response:
        """Return the response for the latest revision."""
        return self.by_revision[self.latest]

    @property
    def resync_after(self) -> timedelta | None:
        """Return when the hook asked to be called again: the earliest of what it answered for the revisions."""
        resyncs = [one.resync_after for one in self.by_revision.values() if one.resync_after is not None]
        return min(resyncs, default=None)


def endpoint_of(view: View) -> Endpoint | None:
    """Return the hook to call: finalize or sync."""
    return view.setup.finalize if view.is_finalizing else view.setup.sync


def open_questions(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return what has still to be asked; nothing once the children can be decided."""
    endpoint = endpoint_of(view)
    if endpoint is None:
        return ()
    look = look_in(answers, view.kinds)
    customize = view.setup.customize
    related: Shown = {}
    if customize is not None:
        selecting = answers.hook_body(customize.purpose, view.about)
        if selecting is None:
            return (customize_call(view, customize, look),)
        rules = read_rules(view, customize, selecting)
        unseen = [one for _, one in follows(view, customize, rules, answers) if one not in answers]
        if unseen:
            return tuple(unseen)
        related = shown(view, customize, rules, answers)
    others = [one for one in _in_other_versions(view) if one not in answers]
    if others:
        return tuple(others)
    uncalled = [
        one
        for one in _in_use(view)
        if answers.hook_body(endpoint.purpose, f"{view.about}/{_name(one)}") is None
    ]
    if uncalled:
        return tuple(_calls(view, endpoint, uncalled, related, answers, look))
    names = tuple(one for one in _names_of_missing(view, answers) if one not in answers)
    return names or _dry_runs(view, answers)


def responses(view: View, answers: Answers) -> Responses:
    """Return what the hook answered for each revision it was called for."""
    endpoint = endpoint_of(view)
    assert endpoint is not None, "a hook was called"
    read = read_composite if view.setup.is_composite else read_decorator
    found: dict[str, Response] = {}
    for one in _in_use(view):
        name = _name(one)
        body = answers.hook_body(endpoint.purpose, f"{view.about}/{name}")
        assert body is not None, "everything has been asked"
        slot = endpoint.purpose, name
        found[name] = view.memo.update(_response, slot, read, endpoint, body).response
        view.memo.weigh(slot, len(body))
    rolled = revisions(view) if _rolls(view) else None
    return Responses(latest=next(iter(found)), by_revision=found, revisions=rolled)


Read: TypeAlias = Callable[[Endpoint, bytes], Response]


class _Read(Struct, frozen=True):
    """A response that was read, and what it was read from."""

    endpoint: Endpoint
    body: bytes
    response: Response
    children: Mapping[bytes, Obj]


def _response(last: _Read | None, read: Read, endpoint: Endpoint, body: bytes) -> _Read:
    """Read a response; children that are encoded as in the last one are the very same objects."""
    if last is not None and last.endpoint is endpoint and last.body == body:
        return last
    response = read(endpoint, body)
    known: dict[bytes, Obj] = {}
    children = tuple(
        _same(child, known, last.children if last is not None else {}) for child in response.children
    )
    if last is not None and len(children) == len(last.response.children):
        before = last.response.children
        children = before if all(one is two for one, two in zip(children, before, strict=True)) else children
    return _Read(endpoint, body, replace(response, children=children), known)


def _same(child: Obj, known: dict[bytes, Obj], before: Mapping[bytes, Obj]) -> Obj:
    text = orjson.dumps(child)
    return known.setdefault(text, before.get(text, child))


def _rolls(view: View) -> bool:
    """Say whether revisions matter: not to a parent that is being deleted without a finalize hook."""
    return view.setup.rolls and (not view.is_deleting or view.is_finalizing)


def _in_use(view: View) -> tuple[ClaimingRevision | None, ...]:
    """Return the revisions that the hook is called for, the latest first; None stands for the parent as it is."""
    return revisions(view).in_use if _rolls(view) else (None,)


def _name(revision: ClaimingRevision | None) -> str:
    return revision.name if revision is not None else ""


def _calls(
    view: View,
    endpoint: Endpoint,
    uncalled: Sequence[ClaimingRevision | None],
    related: Shown,
    answers: Answers,
    look: Secret,
) -> Iterator[Call]:
    # The same for every revision, and nearly all of the request.
    home = meta.namespace(view.parent)
    children = encode({**view.children, **_seen_otherwise(view, answers)}, home, endpoint.version, view.memo)
    others = encode(related, home, endpoint.version)
    for one in uncalled:
        parent = view.parent
        if one is not None:
            parent = with_snapshot(parent, one.revision, view.setup.paths)
        body = sync_request(view.setup, parent, children, others, finalizing=view.is_finalizing)
        yield endpoint.call(body, look, about=f"{view.about}/{_name(one)}", origin=view.setup.origin)


def _in_other_versions(view: View) -> Iterator[Follow]:
    """Yield the queries for children that are sent in another version too."""
    for kind in view.setup.also:
        those = next(objects for one, objects in view.children.items() if one.group_kind == kind.group_kind)
        if those:
            places = tuple(sorted(set(map(meta.namespace, those)))) if kind.namespaced else None
            yield Follow(kind=kind, namespaces=places, names=tuple(sorted(set(map(meta.name, those)))))


def _seen_otherwise(view: View, answers: Answers) -> Shown:
    uids = {meta.uid(obj) for those in view.children.values() for obj in those} if view.setup.also else set()
    found: dict[Kind, tuple[Obj, ...]] = dict.fromkeys(view.setup.also, ())
    for follow in _in_other_versions(view):
        listed = answers.get(follow)
        if isinstance(listed, Listed):
            found[follow.kind] = tuple(obj for obj in listed.objects if meta.uid(obj) in uids)
    return found


def _names_of_missing(view: View, answers: Answers) -> Iterator[Follow]:
    """Yield what has the name of a desired child that does not exist: once it is deleted, the child can be created."""
    names: dict[tuple[Kind, str], dict[str, None]] = {}
    for response in responses(view, answers).by_revision.values():
        for child in missing(view, desired_index(view, _accepted(view, response))):
            names.setdefault((child.rule.kind, child.key.namespace), {})[child.key.name] = None
    for (kind, namespace), those in names.items():
        yield Follow(kind=kind, namespaces=(namespace,) if kind.namespaced else None, names=tuple(those))


def names_in_use(view: View, answers: Answers) -> Mapping[Key, Obj]:
    """Return the objects that have the name of a child that does not exist."""
    listed = (answers.get(one) for one in _names_of_missing(view, answers))
    return {key_of(obj): obj for one in listed if isinstance(one, Listed) for obj in one.objects}


def _accepted(view: View, response: Response) -> tuple[Desired, ...]:
    """Return the desired children of a response, none where it is refused: the plan reports that."""
    try:
        return desired(view, response)[0]
    except HookError:
        return ()


def _dry_runs(view: View, answers: Answers) -> tuple[Query, ...]:
    if not view.setup.applies:
        return ()
    strategy, there = ApplyStrategy(view=view, answers=answers), observed(view)
    asked: list[Query] = []
    for response in responses(view, answers).by_revision.values():
        for child in _accepted(view, response):
            found = there.get(child.key)
            query = strategy.open_dry_run(child, found) if found is not None else None
            if query is not None:
                asked.append(query)
    return tuple(asked)
