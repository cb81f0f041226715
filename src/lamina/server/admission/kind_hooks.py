"""
Behavior of single kinds on create, update and delete, beyond storing.

Each hook needs other objects: the cluster IPs that are allocated, the other CRDs
of a group, the protected namespaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import orjson

from lamina.objects.conditions import with_condition
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.context import AdmissionContext
from lamina.server.admission.plugins import PLUGIN_BUCKETS, Denied, validate
from lamina.server.admission.plugins.service_accounts import ACCOUNTS, DEFAULT
from lamina.server.identity import Identity
from lamina.server.kinds.builtin.csr import sign_request
from lamina.server.kinds.builtin.services import allocate, allocated_by
from lamina.server.kinds.custom.names import definition_status
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.metadata import requested_name
from lamina.server.kinds.registry import CRDS
from lamina.server.kinds.target import Target
from lamina.server.storage.store import Key

_PROTECTED: Final = ("default", "kube-system", "kube-public")
_GRACE: Final = 30
_ACCOUNT_WAIT: Final = 1.5
"""Seconds to wait for the default service account, about as long as the real server does."""
_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


def before_create(context: AdmissionContext, target: Target, obj: Made, user: Identity) -> None:
    """Complete an admitted object with values that depend on the store or the user."""
    if target.kind.bucket == _REQUESTS:
        sign_request(obj, user.name, user.uid, list(user.groups), {})
    if target.kind.bucket in PLUGIN_BUCKETS:
        _validate_plugins(context, target, obj, None)
    hook = _ON_CREATE.get(target.kind.bucket)
    if hook is not None:
        hook(context, target, obj, None)


def before_update(context: AdmissionContext, target: Target, new: Made, old: Obj) -> None:
    """Complete an updated object with values that depend on the store."""
    if target.kind.bucket in PLUGIN_BUCKETS and not target.subresource:
        _validate_plugins(context, target, new, old)
    hook = _ON_UPDATE.get(target.kind.bucket)
    if hook is not None:
        hook(context, target, new, old)


def before_delete(context: AdmissionContext, target: Target, obj: Made) -> None:
    """Refuse to delete protected namespaces; a CRD is kept until its objects are gone."""
    if target.kind.bucket == CRDS:
        _begin_cleanup(context, obj)
    if target.kind.bucket == "namespaces" and target.name in _PROTECTED:
        raise status_errors.forbidden(target.kind, target.name, "this namespace may not be deleted")


def grace_period(kind: Kind, obj: Obj, requested: int | None) -> int:
    """Return the grace period of an object in seconds; only a scheduled Pod has one."""
    if kind.bucket != "pods":
        return 0
    spec = obj.get("spec") or {}
    phase = (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if requested is None:
        requested = spec.get("terminationGracePeriodSeconds", _GRACE)
    return max(0, requested)


def _validate_plugins(context: AdmissionContext, target: Target, new: Made, old: Obj | None) -> None:
    """Run the validating plugins, which depend on other objects."""
    try:
        validate(target.kind.bucket, new, old, context.lister)
    except Denied as refusal:
        raise status_errors.forbidden(target.kind, requested_name(new), str(refusal)) from None


async def wait_for_service_account(context: AdmissionContext, target: Target, obj: Obj) -> None:
    """
    Wait briefly for the default service account of a new namespace before its first Pod is admitted.

    A controller creates it when the namespace appears. For other accounts there is no wait.
    """
    if target.kind.bucket != "pods":
        return
    named = (obj.get("spec") or {}).get("serviceAccountName") or DEFAULT
    key = Key(ACCOUNTS, target.namespace, DEFAULT)
    if named != DEFAULT or context.store.newest(key) is not None:
        return
    deadline = time.monotonic() + _ACCOUNT_WAIT
    cursor = context.store.watch(context.store.version, ACCOUNTS, target.namespace)
    while context.store.newest(key) is None and (left := deadline - time.monotonic()) > 0:
        if await cursor.next(left) is None:
            return


def _allocate_ips(context: AdmissionContext, target: Target, new: Made, old: Obj | None) -> None:
    rows = context.store.list("services").rows
    used = {
        one for row in rows if row.key[1:] != target.key[1:] for one in allocated_by(orjson.loads(row.value))
    }
    allocate(new, old, used)


def _accept_names(context: AdmissionContext, target: Target, new: Made, old: Obj | None) -> None:
    # A CRD is named after its plural and group, so only the CRDs of the group have to be read.
    group = (new.get("spec") or {}).get("group")
    others = [
        orjson.loads(row.value)
        for row in context.store.list(CRDS).rows
        if row.key.name != target.name and row.key.name.partition(".")[2] == group
    ]
    new["status"] = definition_status(new, others, context.now())


def _begin_cleanup(context: AdmissionContext, crd: Made) -> None:
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
        now=context.now(),
    )


_Hook = Callable[[AdmissionContext, Target, Made, Obj | None], None]
_ON_CREATE: dict[str, _Hook] = {"services": _allocate_ips, CRDS: _accept_names}
_ON_UPDATE: dict[str, _Hook] = {"services": _allocate_ips, CRDS: _accept_names}
