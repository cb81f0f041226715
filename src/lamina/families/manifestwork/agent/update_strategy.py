"""
The write that a manifest's update strategy makes, given the live object.

    Update           created if it is missing; otherwise its content is replaced. Labels, annotations and
                     owners are merged into the live ones, finalizers stay. A key that ends in a dash
                     is removed, and so is one that an earlier manifest set and this one does not
    CreateOnly       created if it is missing; otherwise only its owners are written
    ServerSideApply  applied. Fields of another manager are a conflict unless forced: the manifest fails
    ReadOnly         nothing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.core.apply.change_check import Check, Effect, apply_query, check_apply, check_replace
from lamina.core.model.plan import Action, Apply, Create, Replace
from lamina.core.model.queries import Answers, Query
from lamina.families.manifestwork.agent.api import ServerSideApply
from lamina.families.manifestwork.agent.applied_manifestwork import SetKeys
from lamina.families.manifestwork.agent.ignore_fields import IgnoreError, without
from lamina.families.manifestwork.agent.labels import AGENT, CONFIG_HASH
from lamina.families.manifestwork.agent.manifest import Manifest
from lamina.families.manifestwork.agent.ownership import Others, claimed, is_record, owners
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj, OwnerRef

_CONFLICT = 409
_MERGED = ("labels", "annotations", "finalizers", "ownerReferences")


class Writing(Struct, frozen=True):
    """The write of a manifest, the queries it depends on, or why it fails."""

    action: Action | None = None
    queries: tuple[Query, ...] = ()
    failed: str = ""
    is_ignore_error: bool = False


UNCHANGED = Writing()
_Owned: TypeAlias = Callable[[Obj | None], Sequence[OwnerRef]]
"""Returns the owner references that an object should have."""


def writing(
    manifest: Manifest, live: Obj | None, record: Obj, keys: SetKeys, answers: Answers, others: Others
) -> Writing:
    """
    Return the write of a manifest.

    `keys` are those that earlier manifests set on its object; `others` returns the
    owners that are written together with its own.
    """
    owned = partial(owners, record=record, orphaned=manifest.is_orphaned, others=others)
    strategy = manifest.config.strategy
    match strategy.type:
        case "ReadOnly":
            return UNCHANGED
        case "ServerSideApply":
            return _applied(manifest, live, strategy.server_side_apply, answers, owned)
        case "CreateOnly" | "Update" if live is None:
            return Writing(
                Create(obj=_new(manifest.obj, owners(None, record, orphaned=manifest.is_orphaned)))
            )
        case "CreateOnly":
            return _claimed(live, owned)
        case "Update":
            return _updated(manifest, live, keys, answers, owned)


def _new(obj: Obj, owned: Sequence[OwnerRef]) -> Made:
    labels, annotations = _without_dashes(meta.labels(obj)), _without_dashes(meta.annotations(obj))
    return meta.with_metadata(obj, labels=labels, annotations=annotations, ownerReferences=owned)


def _claimed(live: Obj | None, owned: _Owned) -> Writing:
    return Writing(claimed(live, owned(live))) if live is not None else UNCHANGED


# Update


def _updated(manifest: Manifest, live: Obj | None, keys: SetKeys, answers: Answers, owned: _Owned) -> Writing:
    assert live is not None
    wanted = _replacement(manifest.obj, live, keys, owned(live))
    whole = check_replace(live, wanted, AGENT, answers)
    if whole.effect is not Effect.REFUSED:
        return _replaced(wanted, whole)
    # The server refuses to drop what is live and not in the manifest: the generated selector of a Job, say.
    overlaid: Made = {**_overlaid(live, wanted), "metadata": wanted["metadata"]}
    return _replaced(overlaid, check_replace(live, overlaid, AGENT, answers))


def content_check(manifest: Manifest, live: Obj, answers: Answers) -> Check:
    """Return what the content of a manifest, without its metadata, would do to a live object."""
    wanted = _replacement(manifest.obj, live, SetKeys(), meta.owner_refs(live))
    wanted["metadata"] = {key: value for key, value in meta.metadata(live).items() if key != "managedFields"}
    check = check_replace(live, wanted, AGENT, answers)
    if check.effect is not Effect.REFUSED:
        return check
    return check_replace(live, {**_overlaid(live, wanted), "metadata": wanted["metadata"]}, AGENT, answers)


def claim(manifest: Manifest, live: Obj, record: Obj, others: Others) -> Writing:
    """Return the write of the owner references of a live object alone."""
    return _claimed(live, partial(owners, record=record, orphaned=manifest.is_orphaned, others=others))


def _replaced(wanted: Made, check: Check) -> Writing:
    match check.effect:
        case Effect.NONE:
            return UNCHANGED
        case Effect.UNKNOWN if check.query is not None:
            return Writing(queries=(check.query,))
        case _:
            return Writing(Replace(obj=wanted))


def _replacement(wanted: Obj, live: Obj, keys: SetKeys, owned: Sequence[OwnerRef]) -> Made:
    """Return the content of a manifest, with everything of the live object that a manifest does not decide."""
    old = meta.metadata(live)
    metadata: Made = {key: value for key, value in old.items() if key not in ("managedFields", *_MERGED)}
    parts = {
        "labels": _merged(meta.labels(live), meta.labels(wanted), keys.labels),
        "annotations": _merged(meta.annotations(live), meta.annotations(wanted), keys.annotations),
        "ownerReferences": owned,
        "finalizers": list(meta.finalizers(live)),
    }
    metadata |= {key: value for key, value in parts.items() if value}
    made: Made = {**{key: value for key, value in wanted.items() if key != "status"}, "metadata": metadata}
    if "status" in live:
        made["status"] = live["status"]
    return made


def _merged(live: Mapping[str, str], wanted: Mapping[str, str], set_before: frozenset[str]) -> Made:
    brings = _without_dashes(wanted)
    taken_off = {key[:-1] for key in wanted if key.endswith("-")} | (set_before - brings.keys())
    return {key: value for key, value in {**live, **brings}.items() if key not in taken_off - brings.keys()}


def _without_dashes(keys: Mapping[str, str]) -> Made:
    return {key: value for key, value in keys.items() if not key.endswith("-")}


def _overlaid(live: Any, wanted: Any) -> Any:
    """Return what is wanted, with everything that is live and not named in it."""
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        overlaid = {
            key: _overlaid(live.get(key), value) for key, value in wanted.items() if value is not None
        }
        return {**live, **overlaid}
    if isinstance(live, list) and isinstance(wanted, list) and len(live) == len(wanted):
        return [_overlaid(one, two) for one, two in zip(live, wanted, strict=True)]
    return wanted


# ServerSideApply


def _applied(
    manifest: Manifest, live: Obj | None, how: ServerSideApply, answers: Answers, owned: _Owned
) -> Writing:
    try:
        body, mark = _body(manifest.obj, live, how, owned)
    except IgnoreError as wrong:
        return Writing(failed=str(wrong), is_ignore_error=True)
    action = Apply(obj=body, force=how.force, manager=how.field_manager)
    if live is None:
        return Writing(action)
    if mark and meta.annotations(live).get(CONFIG_HASH) == mark:
        return _claimed(live, owned)
    check = check_apply(apply_query(live, body, how.field_manager, force=how.force), live, answers)
    match check.effect:
        case Effect.NONE:
            return _claimed(live, owned)
        case Effect.UNKNOWN if check.query is not None:
            return Writing(queries=(check.query,))
        case Effect.REFUSED if check.code == _CONFLICT:
            return Writing(failed=check.because)
        case _:
            return Writing(action)


def _body(wanted: Obj, live: Obj | None, how: ServerSideApply, owned: _Owned) -> tuple[Made, str]:
    """Return what is applied of an object, and its hash where some fields are ignored."""
    obj: Obj = {key: value for key, value in wanted.items() if key != "status"}
    mark = ""
    if how.ignore_fields:
        reduced = without(obj, how.ignore_fields, "OnSpokePresent")
        # Evaluated for its errors: they are reported before the condition applies.
        without(obj, how.ignore_fields, "OnSpokeChange")
        mark = digest(reduced)
        obj = meta.with_annotation(reduced if live is not None else obj, CONFIG_HASH, mark)
    # The owner references of other works have the same manager: those left out of an apply would be removed.
    claims = [one for one in owned(live) if is_record(one)]
    return meta.with_metadata(obj, ownerReferences=claims), mark
