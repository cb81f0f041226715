"""
CertificateSigningRequests: what one asks for, whether it is approved, and the certificate that was issued.

The subject of a request is the user that the certificate will stand for, with its
organizations as groups.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.objects.types import GroupKind, Made, Obj

REQUEST = GroupKind("certificates.k8s.io", "CertificateSigningRequest")
REQUEST_VERSION = f"{REQUEST.group}/v1"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer of client certificates, in kube-controller-manager."""
CLIENT_AUTH = "client auth"
_USAGES = ("digital signature", "key encipherment", CLIENT_AUTH)


class Subject(NamedTuple):
    """The user that a certificate is requested for, and its groups."""

    user: str
    groups: frozenset[str]


def request_client_certificate(prefix: str, pem: bytes, labels: Mapping[str, str]) -> Made:
    """Return the object that requests a client certificate."""
    return {
        "apiVersion": REQUEST_VERSION,
        "kind": REQUEST.kind,
        "metadata": {"generateName": prefix, "labels": dict(labels)},
        "spec": {
            "request": b64encode(pem).decode(),
            "signerName": CLIENT_SIGNER,
            "usages": list(_USAGES),
        },
    }


def pem_of(request: Obj) -> bytes:
    """Return the request itself, in PEM."""
    return b64decode((request.get("spec") or {}).get("request") or "")


def subject(request: Obj) -> Subject | None:
    """Return the subject of a request; None where that cannot be read."""
    # Loaded on demand: it loads slowly, and most processes see no request.
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        found = x509.load_pem_x509_csr(pem_of(request)).subject
    except ValueError:
        return None
    names = [str(one.value) for one in found.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = frozenset(str(one.value) for one in found.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    return Subject(names[0], groups) if len(names) == 1 else None


def is_for_a_client(request: Obj) -> bool:
    """Say whether a request is for a certificate of a client, and for nothing else."""
    spec = request.get("spec") or {}
    usages = spec.get("usages") or ()
    return spec.get("signerName") == CLIENT_SIGNER and CLIENT_AUTH in usages and set(usages) <= set(_USAGES)


def is_approved(request: Obj) -> bool:
    return _condition(request, "Approved") is not None


def refusal(request: Obj) -> str:
    """Return why no certificate will be issued; empty where one may be."""
    for kind in ("Denied", "Failed"):
        if (found := _condition(request, kind)) is not None:
            return f"{kind}: {found.get('message') or found.get('reason') or 'no reason is given'}"
    return ""


def is_pending(request: Obj) -> bool:
    return not is_approved(request) and not refusal(request)


def certificate(request: Obj) -> bytes:
    """Return the certificate that was issued, in PEM; empty where there is none yet."""
    return b64decode((request.get("status") or {}).get("certificate") or "")


def approved(request: Obj, *, reason: str, message: str) -> Made:
    """Return a request as it is sent to its subresource `approval`."""
    condition = {"type": "Approved", "status": "True", "reason": reason, "message": message}
    status: Obj = request.get("status") or {}
    return {**request, "status": {**status, "conditions": [*_conditions(request), condition]}}


def requested_by(request: Obj) -> str:
    """Return the user that has sent a request, as the server recorded it."""
    return str((request.get("spec") or {}).get("username") or "")


def _conditions(request: Obj) -> Sequence[Obj]:
    found: Sequence[Obj] = (request.get("status") or {}).get("conditions") or ()
    return found


def _condition(request: Obj, kind: str) -> Obj | None:
    return next((one for one in _conditions(request) if one.get("type") == kind), None)
