"""
The CA of the webhook's certificates.

All replicas serve the same webhook, so they share one CA: the first replica
generates it and stores it in a Secret, the others read it there. Each replica
issues its own serving certificate.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import tempfile
from pathlib import Path

from msgspec import Struct

from lamina.client.client import Client
from lamina.errors import AlreadyExists, LaminaError, NotFound
from lamina.objects.types import Obj, Ref
from lamina.server.tls.certificates import ensure_certificates

_CERTIFICATE, _KEY = "ca.crt", "ca.key"
_TRIES, _PAUSE = 20, 0.1


class Secrets(Struct, frozen=True, kw_only=True):
    """The namespace and name of the Secret that holds the CA."""

    namespace: str
    name: str = "lamina-webhook"

    @property
    def ref(self) -> Ref:
        return Ref("v1", "Secret", self.namespace, self.name)


class Authority(Struct, frozen=True):
    """A CA certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


async def authority(client: Client, secrets: Secrets, previous: Authority | None = None) -> Authority:
    """
    Return the CA that all replicas share; generate it if there is none.

    `previous` is written again if the Secret was deleted, because other replicas still use it.
    """
    for _ in range(_TRIES):
        try:
            return _read(await client.get(secrets.ref))
        except NotFound:
            generated = previous or _generate()
        try:
            await client.create(_secret(secrets, generated))
            return generated
        except AlreadyExists:
            # Another replica created the Secret first: its CA is used, as soon as it can be read.
            await asyncio.sleep(_PAUSE)
    raise LaminaError(
        f"{secrets.ref} is created and deleted repeatedly: there is no CA to issue a certificate with"
    )


def _generate() -> Authority:
    with tempfile.TemporaryDirectory(prefix="lamina-webhook-") as folder:
        generated = ensure_certificates(Path(folder), ["localhost"], "lamina-webhook", ()).authority
        return Authority(generated.certificate_pem, generated.key_pem)


def _secret(secrets: Secrets, generated: Authority) -> Obj:
    data = {_CERTIFICATE: generated.certificate, _KEY: generated.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secrets.name,
            "namespace": secrets.namespace,
            "labels": {"app.kubernetes.io/managed-by": "lamina"},
        },
        "type": "Opaque",
        "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
    }


def _read(secret: Obj) -> Authority:
    """Return the CA in a Secret; raises LaminaError if clients would not trust its certificates."""
    data = secret.get("data") or {}
    try:
        found = Authority(*(base64.b64decode(data[name], validate=True) for name in (_CERTIFICATE, _KEY)))
        problem = _problem(found)
    except (KeyError, ValueError, TypeError):
        problem = f"holds no {_CERTIFICATE} and {_KEY}"
    if problem:
        ref = Ref("v1", "Secret", secret["metadata"]["namespace"], secret["metadata"]["name"])
        raise LaminaError(f"{ref} {problem}: delete it, and a new CA is generated")
    return found


def _problem(found: Authority) -> str:
    """Return what is wrong with a CA, or an empty string; raises ValueError if it is none."""
    # Imported here because it loads slowly and only some commands need it.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        certificate = x509.load_pem_x509_certificate(found.certificate)
        key = serialization.load_pem_private_key(found.key, None)
        basics = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"holds no {_CERTIFICATE} and {_KEY} in PEM"
    except x509.ExtensionNotFound:
        return f"holds a {_CERTIFICATE} that is no CA certificate"
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return f"holds a {_KEY} that is not on an elliptic curve"
    if not basics.ca:
        return f"holds a {_CERTIFICATE} that is no CA certificate"
    if certificate.public_key() != key.public_key():
        return f"holds a {_KEY} that does not match its {_CERTIFICATE}"
    # TLS clients check validity by the wall clock, so certificates follow it, not the manager's clock.
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        return f"holds a {_CERTIFICATE} that is not valid now"
    return ""
