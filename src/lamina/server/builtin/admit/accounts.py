"""The account a new Pod runs as, and what comes with it."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.builtin import pods
from lamina.server.builtin.admit.asking import Lookup, Refusal

ACCOUNTS: Final = "serviceaccounts"
DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"


def give_account(pod: Made, lookup: Lookup, suffix: str) -> None:
    """Have a Pod run as an account that is there, with the account's secrets and its token."""
    spec, metadata = pod["spec"], pod["metadata"]
    if _MIRROR in (metadata.get("annotations") or {}):
        _judge_mirror(spec)
        return
    name = spec.get("serviceAccountName") or DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = metadata["namespace"]
    account = lookup.get(ACCOUNTS, namespace, name)
    if account is None:
        raise Refusal(
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        )
    mounts = spec.get("automountServiceAccountToken")
    if mounts is None:
        mounts = account.get("automountServiceAccountToken")
    if mounts is not False:
        pods.mount_account_token(pod, suffix)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]


def tolerate_troubles(pod: Made, lookup: Lookup, suffix: str) -> None:
    """Let a Pod stay five minutes on a node that is in trouble, unless it says otherwise."""
    pods.tolerate_troubles(pod["spec"])


def _judge_mirror(spec: Obj) -> None:
    """Refuse a Pod that stands for a file on a node and names what only the server knows."""
    if spec.get("serviceAccountName"):
        raise Refusal("a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if volume.get("secret"):
            raise Refusal("a mirror pod may not reference secrets")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken"):
                raise Refusal("a mirror pod may not use ServiceAccountToken volume projections")
