"""
What some kinds do beyond being stored, where they are written.

Each is a few lines that need a look at other objects: the addresses already
given to Services, the other CRDs of a group, the namespaces that must stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import orjson

from lamina.objects.conditions import with_condition
from lamina.objects.types import Made, Obj
from lamina.server import words
from lamina.server.builtin.admit import ADMITTED, Refusal, judge
from lamina.server.builtin.admit.accounts import ACCOUNTS, DEFAULT
from lamina.server.builtin.services import allocate, given_to
from lamina.server.builtin.signing import sign_request
from lamina.server.custom.names import status_of
from lamina.server.kind import Kind
from lamina.server.metadata import asked_name
from lamina.server.plane import Plane, Target
from lamina.server.registry import CRDS
from lamina.server.request import Identity
from lamina.server.store import Key

_PROTECTED: Final = ("default", "kube-system", "kube-public")
_GRACE: Final = 30
_PATIENCE: Final = 1.5
"""How many seconds a real server waits for a default account, give or take."""
_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


def before_create(plane: Plane, target: Target, obj: Made, user: Identity) -> None:
    """Finish an admitted object with what only the present state of the store, or who asks, can tell."""
    if target.kind.bucket == _REQUESTS:
        sign_request(obj, user.name, user.uid, list(user.groups), {})
    if target.kind.bucket in ADMITTED:
        _ask_others(plane, target, obj, None)
    hook = _ON_CREATE.get(target.kind.bucket)
    if hook is not None:
        hook(plane, target, obj, None)


def before_update(plane: Plane, target: Target, new: Made, old: Obj) -> None:
    """The same for a change."""
    if target.kind.bucket in ADMITTED and not target.subresource:
        _ask_others(plane, target, new, old)
    hook = _ON_UPDATE.get(target.kind.bucket)
    if hook is not None:
        hook(plane, target, new, old)


def before_delete(plane: Plane, target: Target, obj: Made) -> None:
    """Refuse deletions that would take the ground away; a CRD stays until its objects are gone."""
    if target.kind.bucket == CRDS:
        _begin_cleanup(plane, obj)
    if target.kind.bucket == "namespaces" and target.name in _PROTECTED:
        raise words.forbidden(target.kind, target.name, "this namespace may not be deleted")


def grace_of(kind: Kind, obj: Obj, asked: int | None) -> int:
    """Return how many seconds an object is given to end by itself; only a scheduled Pod is given any."""
    if kind.bucket != "pods":
        return 0
    spec = obj.get("spec") or {}
    phase = (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", _GRACE)
    return max(0, asked)


def _ask_others(plane: Plane, target: Target, new: Made, old: Obj | None) -> None:
    """Refuse what other objects are against, in their words."""
    try:
        judge(target.kind.bucket, new, old, plane.records)
    except Refusal as refusal:
        raise words.forbidden(target.kind, asked_name(new), str(refusal)) from None


async def await_account(plane: Plane, target: Target, obj: Obj) -> None:
    """
    Give the default account of a young namespace a moment to appear before its first Pod is judged.

    Somebody creates it once they hear of the namespace. Other accounts are there or are not.
    """
    if target.kind.bucket != "pods":
        return
    named = (obj.get("spec") or {}).get("serviceAccountName") or DEFAULT
    key = Key(ACCOUNTS, target.namespace, DEFAULT)
    if named != DEFAULT or plane.store.newest(key) is not None:
        return
    deadline = time.monotonic() + _PATIENCE
    follower = plane.store.follow(plane.store.version, ACCOUNTS, target.namespace)
    while plane.store.newest(key) is None and (left := deadline - time.monotonic()) > 0:
        if await follower.next(left) is None:
            return


def _addresses(plane: Plane, target: Target, new: Made, old: Obj | None) -> None:
    rows = plane.store.list("services").rows
    used = {one for row in rows if row.key[1:] != target.key[1:] for one in given_to(orjson.loads(row.value))}
    allocate(new, old, used)


def _definition(plane: Plane, target: Target, new: Made, old: Obj | None) -> None:
    # A definition is called for its plural and its group, and only those of its group are worth reading.
    group = (new.get("spec") or {}).get("group")
    others = [
        orjson.loads(row.value)
        for row in plane.store.list(CRDS).rows
        if row.key.name != target.name and row.key.name.partition(".")[2] == group
    ]
    new["status"] = status_of(new, others, plane.now())


def _begin_cleanup(plane: Plane, crd: Made) -> None:
    metadata = crd["metadata"]
    if "deletionTimestamp" in metadata:
        return
    finalizers = metadata.setdefault("finalizers", [])
    if _CLEANUP not in finalizers:
        finalizers.append(_CLEANUP)
    status = crd.setdefault("status", {})
    status["conditions"] = with_condition(
        status.get("conditions") or (),
        "Terminating",
        "True",
        reason="InstanceDeletionPending",
        message="CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now=plane.now(),
    )


_Hook = Callable[[Plane, Target, Made, Obj | None], None]
_ON_CREATE: dict[str, _Hook] = {"services": _addresses, CRDS: _definition}
_ON_UPDATE: dict[str, _Hook] = {"services": _addresses, CRDS: _definition}
