"""
Applies manifests as `kubectl apply --dry-run=server` does, and returns the objects as the server would store them.

The server defaults and validates them, and stores nothing. Without server-side
apply, the patch is kubectl's three-way merge of the last applied, the live and
the new object; an object that was last applied on the server side is applied so
again, as in a simulation.
"""

from __future__ import annotations

from copy import deepcopy
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from lamina.client.client import PatchType
from lamina.errors import BadRequest, Conflict, Invalid, NotFound
from lamina.merge.client_side import annotated, client_side
from lamina.merge.last_applied import ANNOTATION, KUBECTL
from lamina.merge.managed import APPLY
from lamina.merge.patches import create_merge_patch
from lamina.merge.schema import Schema
from lamina.objects import meta
from lamina.objects.diff import diff
from lamina.objects.types import Made, Obj, Ref

_STRICT = "Strict"
_MISSING_NAMESPACE = "create the namespace first: a dry run stores none, even if the manifests have one"
_END_OF_QUOTE = '": '
_OPEN = Schema()
_OPEN.type, _OPEN.open = "object", True
_IGNORED_PATHS = (
    ("metadata", "annotations", ANNOTATION),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)


class Writer(Protocol):
    """The part of a client that a dry run uses."""

    async def get(self, ref: Ref) -> Made: ...

    async def create(
        self, obj: Obj, *, dry_run: bool = False, manager: str | None = None, validation: str = ""
    ) -> Made: ...

    async def patch(
        self,
        ref: Ref,
        patch: Obj,
        *,
        how: PatchType = PatchType.MERGE,
        dry_run: bool = False,
        manager: str | None = None,
        validation: str = "",
    ) -> Made: ...

    async def apply(
        self,
        obj: Obj,
        *,
        manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        validation: str = "",
    ) -> Made: ...


class ApplyFlags(Struct, frozen=True, kw_only=True):
    """How manifests are applied: on the server or client side, by which field manager, and whether conflicts are forced."""

    server_side: bool = False
    manager: str = KUBECTL
    force: bool = False


class AppliedAs(StrEnum):
    """What an apply would do to the object itself, in kubectl's words."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


class Applied(Struct, frozen=True):
    """An object as the server would store it, and what the apply would do to it."""

    obj: Made
    how: AppliedAs


async def dry_run_apply(server: Writer, manifest: Obj, flags: ApplyFlags) -> Applied:
    """Return the object that an apply of a manifest would store; raises the error that kubectl would report."""
    live = await _live(server, meta.ref(manifest))
    try:
        stored = await _stored(server, manifest, live, flags)
    except Conflict as conflict:
        conflict.hint = "take the fields over with --force-conflicts"
        raise
    except BadRequest as refused:
        # An unknown field, for example: the message names the kind at most.
        refused.message = f"{meta.ref(manifest)}: {refused.message}"
        raise
    except Invalid as invalid:
        if any(cause.field == "patch" for cause in invalid.causes):
            # The message quotes the whole object before it says what is wrong.
            invalid.message = f"{meta.ref(manifest)}: {invalid.message.rpartition(_END_OF_QUOTE)[2]}"
        raise
    except NotFound as missing:
        if missing.details.get("kind") == "namespaces":
            missing.hint = _MISSING_NAMESPACE
        raise
    if live is None:
        return Applied(stored, AppliedAs.CREATED)
    return Applied(stored, AppliedAs.CONFIGURED if _differs(live, stored) else AppliedAs.UNCHANGED)


async def _stored(server: Writer, manifest: Obj, live: Made | None, flags: ApplyFlags) -> Made:
    if flags.server_side or (live is not None and _is_applied_by(live, flags.manager)):
        return await server.apply(
            manifest, manager=flags.manager, force=flags.force, dry_run=True, validation=_STRICT
        )
    if live is None:
        return await server.create(
            annotated(manifest), manager=flags.manager, dry_run=True, validation=_STRICT
        )
    merged = client_side(deepcopy(live), manifest, _schema(meta.ref(manifest)))
    return await server.patch(
        meta.ref(manifest),
        create_merge_patch(live, merged),
        manager=flags.manager,
        dry_run=True,
        validation=_STRICT,
    )


def _schema(ref: Ref) -> Schema:
    """Return the schema by which kubectl merges lists: that of a built-in kind; lists of others are replaced."""
    # Loaded on demand: the built-in kinds take time to load, and most owners are of custom kinds.
    from lamina.server.kinds.builtin.kinds import builtin_kinds

    kinds = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
    kind = kinds.get((ref.api_version, ref.kind))
    return kind.schema if kind is not None else _OPEN


async def _live(server: Writer, ref: Ref) -> Made | None:
    try:
        return await server.get(ref)
    except NotFound:
        return None


def _is_applied_by(live: Obj, manager: str) -> bool:
    entries = meta.metadata(live).get("managedFields") or ()
    return any(
        (one.get("manager"), one.get("operation"), one.get("subresource") or "") == (manager, APPLY, "")
        for one in entries
    )


def _differs(live: Obj, stored: Obj) -> bool:
    return any(
        not any(change.path[: len(path)] == path for path in _IGNORED_PATHS) for change in diff(live, stored)
    )
