"""CertificateSigningRequests."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.differences import difference
from lamina.server.kinds.builtin.validate.parts import items, part, signer, text

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_ONLY_TRUE = frozenset({"Approved", "Denied", "Failed"})
_BLOCK = re.compile(rb"-----BEGIN ([^-\n]+)-----\r?\n(.*?)-----END \1-----", re.DOTALL)


def create(request: Obj) -> list[Cause]:
    return _request(request, None)


def _request(request: Obj, old: Obj | None) -> list[Cause]:
    spec, status = part(request, "spec"), part(request, "status")
    causes: list[Cause] = []
    if problem := _unreadable(text(spec, "request")):
        causes.append(invalid("spec.request", text(spec, "request"), problem))
    usages = items(spec, "usages")
    had = items(part(old, "spec"), "usages") if old else ()
    if not usages:
        causes.append(required("spec.usages"))
    if all(usage in _USAGES for usage in had):
        causes += (
            not_supported(f"spec.usages[{index}]", usage, _USAGES)
            for index, usage in enumerate(usages)
            if usage not in _USAGES
        )
    if len(set(had)) == len(had):
        causes += (
            duplicate(f"spec.usages[{index}]", usage)
            for index, usage in enumerate(usages)
            if usage in usages[:index]
        )
    name = text(spec, "signerName")
    legacy = "kubernetes.io/legacy-unknown"
    if name == legacy and (old is None or text(part(old, "spec"), "signerName") != legacy):
        detail = "the legacy signerName is not allowed via this API version"
        causes.append(invalid("spec.signerName", name, detail))
    else:
        causes += signer("spec.signerName", name)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        causes.append(invalid("spec.expirationSeconds", seconds, detail))
    causes += _conditions(items(status, "conditions"))
    certificate = text(status, "certificate")
    is_new = old is None or certificate != text(part(old, "status"), "certificate")
    if certificate and is_new and (problem := _not_certificates(certificate)):
        causes.append(invalid("status.certificate", "<certificate data>", problem))
    return causes


def _unreadable(request: str) -> str:
    """Return what is wrong with a base64-encoded PEM request."""
    from cryptography import x509

    content = _bytes(request)
    block = _BLOCK.search(content)
    if block is None or block.group(1) != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        found = x509.load_pem_x509_csr(block.group())
        return "" if found.is_signature_valid else "x509: certificate signature is not valid"
    except ValueError as problem:
        return str(problem)


def _bytes(text_of_them: str) -> bytes:
    try:
        return b64decode(text_of_them)
    except ValueError:
        return b""


def _not_certificates(certificate: str) -> str:
    from cryptography import x509

    content = _bytes(certificate)
    blocks = list(_BLOCK.finditer(content))
    for block in blocks:
        kind = block.group(1).decode(errors="replace")
        if kind != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind}"'
        if b":" in block.group(2):
            return "no PEM block headers are permitted"
        try:
            x509.load_pem_x509_certificate(block.group())
        except ValueError as problem:
            return str(problem)
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _conditions(found: Sequence[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    seen: list[str] = []
    for index, one in enumerate(found):
        item_path = f"status.conditions[{index}]"
        kind, state = text(one, "type"), text(one, "status")
        if not kind:
            causes.append(required(f"{item_path}.type"))
        allowed = ("True",) if kind in _ONLY_TRUE else ("False", "True", "Unknown")
        if not state:
            causes.append(required(f"{item_path}.status"))
        elif state not in allowed:
            causes.append(not_supported(f"{item_path}.status", state, allowed))
        opposite = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if opposite in seen:
            detail = "Approved and Denied conditions are mutually exclusive"
            causes.append(invalid("status.conditions", kind, detail))
        if kind in seen:
            causes.append(duplicate(f"{item_path}.type", kind))
        seen.append(kind)
    return causes


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = _request(new, old)
    path = "status.conditions"
    for kind in ("Approved", "Denied", "Failed"):
        now, were = (
            [one for one in items(part(request, "status"), "conditions") if text(one, "type") == kind]
            for request in (new, old)
        )
        if len(now) < len(were):
            causes.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        elif subresource == "approval" or kind == "Failed":
            continue
        elif len(now) > len(were):
            causes.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif now != were:
            detail = f'updates may not modify a condition of type "{kind}"\n{difference(were, now)}'
            causes.append(forbidden(path, detail))
    now_signed, signed = (text(part(request, "status"), "certificate") for request in (new, old))
    if now_signed != signed:
        if subresource != "status":
            causes.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif signed:
            detail = "updates may not modify existing certificate content"
            causes.append(forbidden("status.certificate", detail))
    return causes
