"""
Field managers: what was created or updated becomes what was applied.

Server-side apply removes a field that a manager applied before and no longer names. It
removes none that the same manager set by a create or an update, because that is another
entry of the managed fields. So these entries are merged into the entry of the apply.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

from lamina.core.apply.change_check import field_managers, without_status
from lamina.core.model.plan import Patch, change
from lamina.core.model.queries import Answers, DryRun, Found
from lamina.merge.fieldset import union
from lamina.merge.is_applied import is_applied
from lamina.merge.managed import APPLY, UPDATE
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj


def has_updated(obj: Obj, managers: Collection[str]) -> bool:
    """Say whether one of these managers owns fields by a create or an update, subresources left out."""
    return any(_is_update(entry, managers) for entry in _entries(obj))


def owned_references(obj: Obj, manager: str) -> frozenset[str]:
    """Return the uids of the owner references that a manager has applied or created."""
    uids: set[str] = set()
    for entry in _entries(obj):
        if _is_of(entry, (manager,)):
            fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:ownerReferences")
            if fields == {}:
                # Without a schema the list is owned as a whole.
                uids.update(one["uid"] for one in meta.owner_refs(obj))
            uids.update(json.loads(key[2:]).get("uid", "") for key in fields or () if key.startswith("k:"))
    return frozenset(uids)


def merge_into_apply(
    obj: Obj, body: Obj, manager: str, others: Collection[str], answers: Answers, *, cluster: str = ""
) -> Patch | DryRun | None:
    """
    Return the patch that makes what a manager and `others` created or updated fields that it applied.

    None where there is nothing to merge. The create of `manager` itself also owns what the
    server defaulted, which an apply of `body` does not: then a dry run of that apply
    has the fields.
    """
    managers = {manager, *others}
    entries = _entries(obj)
    merged = [one for one in entries if _is_update(one, managers)]
    if not merged:
        return None
    applied = [one for one in entries if _is_apply(one, managers)]
    left = [one for one in entries if one not in merged and one not in applied]
    newest = max((*applied, *merged), key=lambda one: str(one.get("time") or ""))
    fields = reduce(union, (one.get("fieldsV1") or {} for one in (*applied, *merged)))
    patch = _patch(obj, left, newest, manager, fields, cluster)
    is_inherited = any(_is_of(one, others) for one in merged)
    if applied or is_inherited or is_applied(merge_patch(obj, patch.patch), body, manager):
        # After an earlier apply, or after another manager, the next apply removes what is not desired any more.
        return patch
    key = digest(["merge managers", body, manager, without_status(obj), field_managers(obj)])
    asked = DryRun(obj=body, manager=manager, key=key, cluster=cluster)
    match answers.get(asked):
        case None:
            return asked
        case Found(obj=became):
            exact = next((one for one in _entries(became) if _is_apply(one, (manager,))), None)
            if exact is not None:
                return _patch(obj, left, newest, manager, exact.get("fieldsV1") or {}, cluster)
    return patch


def _patch(
    obj: Obj, left: Sequence[Obj], newest: Obj, manager: str, fields: Mapping[str, Any], cluster: str
) -> Patch:
    entry: Made = {
        **{key: value for key, value in newest.items() if key != "subresource"},
        "manager": manager,
        "operation": APPLY,
        "fieldsV1": fields,
    }
    return change(obj, {"metadata": {"managedFields": [entry, *left]}}, cluster=cluster)


def _entries(obj: Obj) -> Sequence[Obj]:
    return meta.metadata(obj).get("managedFields") or ()


def _is_update(entry: Obj, managers: Collection[str]) -> bool:
    return entry.get("operation") == UPDATE and _is_of(entry, managers)


def _is_apply(entry: Obj, managers: Collection[str]) -> bool:
    return entry.get("operation") == APPLY and _is_of(entry, managers)


def _is_of(entry: Obj, managers: Collection[str]) -> bool:
    return entry.get("manager") in managers and not entry.get("subresource")
