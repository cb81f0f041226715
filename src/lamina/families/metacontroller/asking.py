"""
What has to be asked before a parent's children can be decided, round by round.

First what the hooks' credentials are, then which related objects the parent
wants to see, then those objects, then what children each revision wants, and,
where the server applies, what it would make of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.questions import Answers, Call, Follow, Listed, Question
from lamina.families.metacontroller.desired import Key, desired, observed
from lamina.families.metacontroller.hooks import (
    Response,
    Shown,
    read_composite,
    read_decorator,
    sync_request,
    written,
)
from lamina.families.metacontroller.means import Means
from lamina.families.metacontroller.names import COMPOSITE
from lamina.families.metacontroller.related import customize_call, follows, read_rules, shown
from lamina.families.metacontroller.revisions import Kept, as_it_was
from lamina.families.metacontroller.rolling import Album, album
from lamina.families.metacontroller.roster import present, roster
from lamina.families.metacontroller.view import View
from lamina.families.metacontroller.webhooks import Endpoint, look_in
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj


class Wishes(Struct, frozen=True, kw_only=True):
    """What the hook said for each revision, by its name; `album` is None where nothing rolls."""

    latest: str
    responses: Mapping[str, Response]
    album: Album | None


def endpoint_of(view: View) -> Endpoint | None:
    """Return whose turn it is: the finalize hook's, or the sync hook's."""
    return view.setup.finalize if view.is_finalizing else view.setup.sync


def open_questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has still to be asked; nothing once the hook has had its say."""
    endpoint = endpoint_of(view)
    if endpoint is None:
        return ()
    look = look_in(answers, view.world.kinds)
    customize = view.setup.customize
    related: Shown = {}
    if customize is not None:
        rules_said = answers.said(customize.purpose, view.about)
        if rules_said is None:
            return (customize_call(view, customize, look),)
        rules = read_rules(view, customize, rules_said)
        unseen = [one for _, one in follows(view, customize, rules, answers) if one not in answers]
        if unseen:
            return tuple(unseen)
        related = shown(view, customize, rules, answers)
    others = [one for one in _in_other_versions(view) if one not in answers]
    if others:
        return tuple(others)
    calls = [
        _call(view, endpoint, one, related, answers)
        for one in _revisions(view)
        if answers.said(endpoint.purpose, _about(view, one)) is None
    ]
    if calls:
        return tuple(calls)
    in_the_way = tuple(one for one in _in_the_way(view, answers) if one not in answers)
    return in_the_way or _rehearsals(view, answers)


def wishes(view: View, answers: Answers) -> Wishes:
    """Return what the hook wants, for each revision it was asked about."""
    known: tuple[Answers, Wishes] | None = view.notes.get("wishes")
    if known is None or known[0] is not answers:
        known = view.notes["wishes"] = answers, _wishes(view, answers)
    return known[1]


def _wishes(view: View, answers: Answers) -> Wishes:
    endpoint = endpoint_of(view)
    assert endpoint is not None, "somebody's turn it is"
    responses: dict[str, Response] = {}
    for one in _revisions(view):
        body = answers.said(endpoint.purpose, _about(view, one))
        assert body is not None, "everything has been asked"
        responses[_name(one)] = _read(view, endpoint, _name(one), body)
    view.recall.only([_recalled(endpoint, name) for name in responses])
    rolls = album(view) if _rolls(view) else None
    return Wishes(latest=next(iter(responses)), responses=responses, album=rolls)


def _read(view: View, endpoint: Endpoint, revision: str, body: bytes) -> Response:
    """Return what a hook's answer means. Reading it is not for nothing, and most are as the one before."""
    recall, about = view.recall, _recalled(endpoint, revision)
    known = recall.answer(about, body)
    if known is not None:
        return known
    read = read_composite if view.setup.kind == COMPOSITE else read_decorator
    meant = read(endpoint, body)
    return recall.note(about, body, replace(meant, children=recall.same(about, meant.children)))


def _recalled(endpoint: Endpoint, revision: str) -> str:
    return f"{endpoint.purpose} {revision}"


def _rolls(view: View) -> bool:
    """Say whether revisions matter: they do not to a parent that is going and is not ours to finalize."""
    return view.setup.rolls and (not view.is_deleting or view.is_finalizing)


def _revisions(view: View) -> tuple[Kept | None, ...]:
    """Return the revisions the hook is asked about, the latest first; None stands for the parent as it is."""
    return album(view).asked if _rolls(view) else (None,)


def _name(revision: Kept | None) -> str:
    return revision.name if revision is not None else ""


def _about(view: View, revision: Kept | None) -> str:
    about = view.notes.get("about")
    if about is None:
        about = view.notes["about"] = view.about
    return f"{about}/{_name(revision)}"


def _call(view: View, endpoint: Endpoint, revision: Kept | None, related: Shown, answers: Answers) -> Call:
    parent = view.parent
    if revision is not None:
        parent = as_it_was(parent, revision.revision, view.setup.paths)
    # The same whatever the revision, and nearly all of the request.
    shown = view.notes.get("shown")
    if shown is None:
        children = {**view.children, **_seen_otherwise(view, answers)}
        both = (written(those, parent, endpoint.version, view.recall) for those in (children, related))
        shown = view.notes["shown"] = tuple(both)
    body = sync_request(view.setup, parent, *shown, finalizing=view.is_finalizing)
    look = look_in(answers, view.world.kinds)
    return endpoint.call(body, look, about=_about(view, revision), asked_by=view.setup.asked_by)


def _in_other_versions(view: View) -> Iterator[Follow]:
    """Yield the children that are to be shown in another version too, as questions."""
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


def _in_the_way(view: View, answers: Answers) -> Iterator[Follow]:
    """Yield what has a name that a child is to have: when it goes, the child may come."""
    there, home = observed(view), meta.namespace(view.parent)
    for response in wishes(view, answers).responses.values():
        known = view.recall.followed.find(response)
        missing: Sequence[Obj] = response.children
        if known is not None:
            found = present(view, roster(view, known))
            if not any(map(is_, found, repeat(None))):
                continue
            missing = [obj for obj, one in zip(response.children, found, strict=True) if one is None]
        for obj in missing:
            kind = GroupKind(meta.ref(obj).group, str(obj["kind"]))
            rule = view.setup.children.get(kind)
            if rule is None:
                continue
            ref = rule.kind.ref(meta.namespace(obj) or home, meta.name(obj))
            if Key(kind, ref.namespace, ref.name) not in there and view.world.get(ref) is not None:
                places = (ref.namespace,) if rule.kind.namespaced else None
                yield Follow(kind=rule.kind, namespaces=places, names=(ref.name,))


def _rehearsals(view: View, answers: Answers) -> tuple[Question, ...]:
    if not view.setup.applies:
        return ()
    means, there = Means(view=view, answers=answers), observed(view)
    asked: list[Question] = []
    for response in wishes(view, answers).responses.values():
        for child in desired(view, response)[0]:
            found = there.get(child.key)
            if found is not None and means.needs_rehearsal(child, found):
                asked.append(means.rehearsal(child, found))
    return tuple(asked)
