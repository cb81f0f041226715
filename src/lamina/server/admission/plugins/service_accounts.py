"""ServiceAccount: sets a new Pod's service account and its image pull secrets."""

from __future__ import annotations

from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins.lister import Denied, Lister
from lamina.server.kinds.builtin import pods

ACCOUNTS: Final = "serviceaccounts"
DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"


def set_service_account(pod: Made, lookup: Lister, suffix: str) -> None:
    """Set the service account of a Pod, which must exist, with its pull secrets and token mount."""
    spec, metadata = pod["spec"], pod["metadata"]
    if _MIRROR in (metadata.get("annotations") or {}):
        _validate_mirror(spec)
        return
    name = spec.get("serviceAccountName") or DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = metadata["namespace"]
    account = lookup.get(ACCOUNTS, namespace, name)
    if account is None:
        raise Denied(
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        )
    mounts = spec.get("automountServiceAccountToken")
    if mounts is None:
        mounts = account.get("automountServiceAccountToken")
    if mounts is not False:
        pods.mount_account_token(pod, suffix)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]


def add_default_tolerations(pod: Made, lookup: Lister, suffix: str) -> None:
    """Add the default tolerations: five minutes on a node that is not ready or unreachable."""
    pods.add_default_tolerations(pod["spec"])


def _validate_mirror(spec: Obj) -> None:
    """Refuse a mirror Pod that references objects which only the server knows."""
    if spec.get("serviceAccountName"):
        raise Denied("a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if volume.get("secret"):
            raise Denied("a mirror pod may not reference secrets")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken"):
                raise Denied("a mirror pod may not use ServiceAccountToken volume projections")
