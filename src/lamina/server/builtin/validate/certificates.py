"""CertificateSigningRequests."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.builtin.validate.differences import difference
from lamina.server.builtin.validate.parts import items, part, signer, text
from lamina.server.fields import duplicate, forbidden, invalid, not_supported, required

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
    said: list[Cause] = []
    if wrong := _unreadable(text(spec, "request")):
        said.append(invalid("spec.request", text(spec, "request"), wrong))
    usages = items(spec, "usages")
    had = items(part(old, "spec"), "usages") if old else ()
    if not usages:
        said.append(required("spec.usages"))
    if all(usage in _USAGES for usage in had):
        said += (
            not_supported(f"spec.usages[{index}]", usage, _USAGES)
            for index, usage in enumerate(usages)
            if usage not in _USAGES
        )
    if len(set(had)) == len(had):
        said += (
            duplicate(f"spec.usages[{index}]", usage)
            for index, usage in enumerate(usages)
            if usage in usages[:index]
        )
    name = text(spec, "signerName")
    legacy = "kubernetes.io/legacy-unknown"
    if name == legacy and (old is None or text(part(old, "spec"), "signerName") != legacy):
        told = "the legacy signerName is not allowed via this API version"
        said.append(invalid("spec.signerName", name, told))
    else:
        said += signer("spec.signerName", name)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        told = "may not specify a duration less than 600 seconds (10 minutes)"
        said.append(invalid("spec.expirationSeconds", seconds, told))
    said += _conditions(items(status, "conditions"))
    certificate = text(status, "certificate")
    fresh = old is None or certificate != text(part(old, "status"), "certificate")
    if certificate and fresh and (wrong := _not_certificates(certificate)):
        said.append(invalid("status.certificate", "<certificate data>", wrong))
    return said


def _unreadable(request: str) -> str:
    """Return what is wrong with a request in PEM, in base64."""
    from cryptography import x509

    content = _bytes(request)
    block = _BLOCK.search(content)
    if block is None or block.group(1) != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        found = x509.load_pem_x509_csr(block.group())
        return "" if found.is_signature_valid else "x509: certificate signature is not valid"
    except ValueError as wrong:
        return str(wrong)


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
        except ValueError as wrong:
            return str(wrong)
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _conditions(found: Sequence[Obj]) -> list[Cause]:
    said: list[Cause] = []
    seen: list[str] = []
    for index, one in enumerate(found):
        here = f"status.conditions[{index}]"
        kind, state = text(one, "type"), text(one, "status")
        if not kind:
            said.append(required(f"{here}.type"))
        allowed = ("True",) if kind in _ONLY_TRUE else ("False", "True", "Unknown")
        if not state:
            said.append(required(f"{here}.status"))
        elif state not in allowed:
            said.append(not_supported(f"{here}.status", state, allowed))
        opposite = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if opposite in seen:
            told = "Approved and Denied conditions are mutually exclusive"
            said.append(invalid("status.conditions", kind, told))
        if kind in seen:
            said.append(duplicate(f"{here}.type", kind))
        seen.append(kind)
    return said


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = _request(new, old)
    path = "status.conditions"
    for kind in ("Approved", "Denied", "Failed"):
        now, were = (
            [one for one in items(part(request, "status"), "conditions") if text(one, "type") == kind]
            for request in (new, old)
        )
        if len(now) < len(were):
            said.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        elif subresource == "approval" or kind == "Failed":
            continue
        elif len(now) > len(were):
            said.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif now != were:
            told = f'updates may not modify a condition of type "{kind}"\n{difference(were, now)}'
            said.append(forbidden(path, told))
    now_signed, signed = (text(part(request, "status"), "certificate") for request in (new, old))
    if now_signed != signed:
        if subresource != "status":
            said.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif signed:
            told = "updates may not modify existing certificate content"
            said.append(forbidden("status.certificate", told))
    return said
