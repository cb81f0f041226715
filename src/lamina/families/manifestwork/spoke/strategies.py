"""
What is written of one manifest, given the object that is there.

    Update           made if it is missing; otherwise its content is replaced. Labels, annotations and
                     owners are merged into those there are, finalizers stay. A key that ends in a dash
                     is taken off, and so is one that an earlier manifest brought and this one does not
    CreateOnly       made if it is missing; otherwise only its owners are seen to
    ServerSideApply  stated. What another manager states is not taken unless forced: the manifest fails
    ReadOnly         nothing

Whether replacing or stating something would change anything only the server knows: it
fills in, rewrites and drops as it sees fit. So where what is there is not what is
wanted word for word, it is asked to pretend, once for each state of the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.core.plan import Action, Apply, Create, Replace
from lamina.core.questions import Answers, Found, Question, Refused, Rehearse
from lamina.families.manifestwork.spoke.api import ServerSideApply
from lamina.families.manifestwork.spoke.ignore import IgnoreError, without
from lamina.families.manifestwork.spoke.manifest import Manifest
from lamina.families.manifestwork.spoke.names import AGENT, CONFIG_HASH
from lamina.families.manifestwork.spoke.ownership import Others, claimed, is_record, owners
from lamina.families.manifestwork.spoke.record import SetKeys
from lamina.merge.stated import is_stated
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj

_CONFLICT = 409
_MOVING = ("resourceVersion", "generation", "managedFields")
_KEYED = ("labels", "annotations", "finalizers")
_MERGED = (*_KEYED, "ownerReferences")


class Writing(Struct, frozen=True):
    """What is to be written of a manifest, what has to be asked before, or why it cannot be done."""

    action: Action | None = None
    asks: tuple[Question, ...] = ()
    failed: str = ""
    is_ignore_error: bool = False


AS_WANTED = Writing()


def writing(
    manifest: Manifest, there: Obj | None, record: Obj, keys: SetKeys, answers: Answers, others: Others
) -> Writing:
    """
    Return what is written of a manifest.

    `keys` are those that its object has from manifests before; `others` says whose
    marks go on it together with its own.
    """
    strategy = manifest.config.strategy
    match strategy.type:
        case "ReadOnly":
            return AS_WANTED
        case "ServerSideApply":
            return _applied(manifest, there, record, strategy.server_side_apply, answers, others)
        case "CreateOnly" | "Update" if there is None:
            return Writing(Create(obj=_new(manifest, record)))
        case "CreateOnly":
            return _claimed(manifest, there, record, others)
        case "Update":
            return _updated(manifest, there, record, keys, answers, others)


def _new(manifest: Manifest, record: Obj) -> Made:
    obj = manifest.obj
    return meta.with_metadata(
        obj,
        labels=_without_dashes(meta.labels(obj)),
        annotations=_without_dashes(meta.annotations(obj)),
        ownerReferences=owners(None, record, orphaned=manifest.is_orphaned),
    )


def _claimed(manifest: Manifest, there: Obj | None, record: Obj, others: Others) -> Writing:
    if there is None:
        return AS_WANTED
    return Writing(claimed(there, record, orphaned=manifest.is_orphaned, others=others))


# Update


def _updated(
    manifest: Manifest, there: Obj | None, record: Obj, keys: SetKeys, answers: Answers, others: Others
) -> Writing:
    assert there is not None
    wanted = _replacement(manifest, there, record, keys, others)
    if is_same(_content(wanted), _content(there)):
        return AS_WANTED if _is_same_metadata(wanted, there) else Writing(Replace(obj=wanted))
    whole = _became(wanted, there, answers)
    if whole.asks or not whole.failed:
        return whole
    # The server will not have less than is there: a job without the selector that it was given, say.
    laid: Made = {**_laid_over(there, wanted), "metadata": wanted["metadata"]}
    if is_same(_content(laid), _content(there)):
        return AS_WANTED if _is_same_metadata(laid, there) else Writing(Replace(obj=laid))
    partly = _became(laid, there, answers)
    return partly if not partly.failed else Writing(Replace(obj=laid))


def _became(wanted: Obj, there: Obj, answers: Answers) -> Writing:
    """Return what is written to have one object take the place of another, as far as that changes anything."""
    # Whose it is the server leaves as it is told: works that mean the same object need not ask one by one.
    key = digest(["replace", _unowned(wanted), _unowned(there)])
    asked = Rehearse(obj=wanted, manager=AGENT, key=key, replaces=True)
    match answers.get(asked):
        case None:
            return Writing(asks=(asked,))
        case Found(obj=became) if (
            _is_same_metadata(became, there, _KEYED)
            and is_same(_content(became), _content(there))
            and list(meta.owner_refs(wanted)) == list(meta.owner_refs(there))
        ):
            return AS_WANTED
        case Refused(because=because):
            return Writing(failed=because)
        case _:
            return Writing(Replace(obj=wanted))


def _replacement(manifest: Manifest, there: Obj, record: Obj, keys: SetKeys, others: Others) -> Made:
    """Return an object with the content of a manifest, and with all that is not the manifest's to say."""
    wanted, old = manifest.obj, meta.metadata(there)
    metadata: Made = {key: value for key, value in old.items() if key not in ("managedFields", *_MERGED)}
    parts = {
        "labels": _merged(meta.labels(there), meta.labels(wanted), keys.labels),
        "annotations": _merged(meta.annotations(there), meta.annotations(wanted), keys.annotations),
        "ownerReferences": owners(there, record, orphaned=manifest.is_orphaned, others=others),
        "finalizers": list(meta.finalizers(there)),
    }
    metadata |= {key: value for key, value in parts.items() if value}
    made: Made = {**{key: value for key, value in wanted.items() if key != "status"}, "metadata": metadata}
    if "status" in there:
        made["status"] = there["status"]
    return made


def _merged(there: Mapping[str, str], wanted: Mapping[str, str], set_before: frozenset[str]) -> Made:
    brings = _without_dashes(wanted)
    taken_off = {key[:-1] for key in wanted if key.endswith("-")} | (set_before - brings.keys())
    return {key: value for key, value in {**there, **brings}.items() if key not in taken_off - brings.keys()}


def _without_dashes(keys: Mapping[str, str]) -> Made:
    return {key: value for key, value in keys.items() if not key.endswith("-")}


def _is_same_metadata(one: Obj, two: Obj, parts: Sequence[str] = _MERGED) -> bool:
    first, second = meta.metadata(one), meta.metadata(two)
    return all(is_same(first.get(key) or None, second.get(key) or None) for key in parts)


def _content(obj: Obj) -> Made:
    return {
        key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")
    }


def _laid_over(there: Any, wanted: Any) -> Any:
    """Return what is wanted with everything that is there and that it does not speak of."""
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        laid = {key: _laid_over(there.get(key), value) for key, value in wanted.items() if value is not None}
        return {**there, **laid}
    if isinstance(there, list) and isinstance(wanted, list) and len(there) == len(wanted):
        return [_laid_over(one, two) for one, two in zip(there, wanted, strict=True)]
    return wanted


def _still(obj: Obj) -> Made:
    """Return what of an object has to do with what somebody writes: its status moves by itself."""
    metadata = {key: value for key, value in meta.metadata(obj).items() if key not in _MOVING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def _unowned(obj: Obj) -> Made:
    still = _still(obj)
    metadata = {key: value for key, value in still["metadata"].items() if key != "ownerReferences"}
    return {**still, "metadata": metadata}


# ServerSideApply


def _applied(
    manifest: Manifest,
    there: Obj | None,
    record: Obj,
    how: ServerSideApply,
    answers: Answers,
    others: Others,
) -> Writing:
    try:
        body, mark = _body(manifest, there, record, how, others)
    except IgnoreError as wrong:
        return Writing(failed=str(wrong), is_ignore_error=True)
    action = Apply(obj=body, force=how.force, manager=how.field_manager)
    if there is None:
        return Writing(action)
    if mark and meta.annotations(there).get(CONFIG_HASH) == mark:
        return _claimed(manifest, there, record, others)
    if is_stated(there, body, how.field_manager):
        return _claimed(manifest, there, record, others)
    key = digest(["apply", body, how.field_manager, _still(there), _stating(there)])
    asked = Rehearse(obj=body, manager=how.field_manager, key=key, force=how.force)
    match answers.get(asked):
        case None:
            return Writing(asks=(asked,))
        case Found(obj=became) if _is_same_applied(became, there):
            return _claimed(manifest, there, record, others)
        case Refused(code=code, because=because) if code == _CONFLICT:
            return Writing(failed=because)
        case _:
            return Writing(action)


def _body(
    manifest: Manifest, there: Obj | None, record: Obj, how: ServerSideApply, others: Others
) -> tuple[Made, str]:
    """Return what is stated of an object, and the mark of it where some fields are not to be."""
    obj: Obj = {key: value for key, value in manifest.obj.items() if key != "status"}
    mark = ""
    if how.ignore_fields:
        reduced = without(obj, how.ignore_fields, "OnSpokePresent")
        # Read as well, though nothing is taken away: what makes no sense is said before it matters.
        without(obj, how.ignore_fields, "OnSpokeChange")
        mark = digest(reduced)
        obj = meta.with_annotation(reduced if there is not None else obj, CONFIG_HASH, mark)
    # Records of other works state their mark under the same name: what is not restated would be taken off.
    whose = owners(there, record, orphaned=manifest.is_orphaned, others=others)
    claims = [one for one in whose if is_record(one)]
    return meta.with_metadata(obj, ownerReferences=claims), mark


def _stating(obj: Obj) -> list[Made]:
    """Return who stated what of an object, whenever that was, as far as it is not its status."""
    return [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in meta.metadata(obj).get("managedFields") or ()
        if not entry.get("subresource")
    ]


def _is_same_applied(one: Obj, two: Obj) -> bool:
    return is_same(_still(one), _still(two)) and is_same(_stating(one), _stating(two))
