"""
The authority that a webhook's certificate is trusted by.

Replicas answer for each other, so all of them have one authority: the first
makes it and leaves it in a Secret, and the others find it there. Each makes a
certificate of its own with it.
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
from lamina.server.certificates import ensure_certificates

_CERTIFICATE, _KEY = "ca.crt", "ca.key"
_TRIES, _PAUSE = 20, 0.1


class Secrets(Struct, frozen=True, kw_only=True):
    """Where the authority is kept."""

    namespace: str
    name: str = "lamina-webhook"

    @property
    def ref(self) -> Ref:
        return Ref("v1", "Secret", self.namespace, self.name)


class Authority(Struct, frozen=True):
    """A certificate that others are trusted by, and its key; both in PEM."""

    certificate: bytes
    key: bytes


async def authority(client: Client, secrets: Secrets, known: Authority | None = None) -> Authority:
    """
    Return the authority that all replicas have, making it where there is none.

    One that is `known` is put back where somebody deleted it: the others have it still.
    """
    for _ in range(_TRIES):
        try:
            return _read(await client.get(secrets.ref))
        except NotFound:
            made = known or _made()
        try:
            await client.create(_secret(secrets, made))
            return made
        except AlreadyExists:
            # Another replica was quicker: what it made is the one, as soon as it can be read.
            await asyncio.sleep(_PAUSE)
    raise LaminaError(f"{secrets.ref} comes and goes: there is no authority to make a certificate with")


def _made() -> Authority:
    with tempfile.TemporaryDirectory(prefix="lamina-webhook-") as folder:
        made = ensure_certificates(Path(folder), ["localhost"], "lamina-webhook", ()).authority
        return Authority(made.certificate_pem, made.key_pem)


def _secret(secrets: Secrets, made: Authority) -> Obj:
    data = {_CERTIFICATE: made.certificate, _KEY: made.key}
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
    """Return the authority in a Secret; LaminaError where nobody would trust what is made with it."""
    data = secret.get("data") or {}
    try:
        found = Authority(*(base64.b64decode(data[name], validate=True) for name in (_CERTIFICATE, _KEY)))
        wrong = _wrong(found)
    except (KeyError, ValueError, TypeError):
        wrong = f"holds no {_CERTIFICATE} and {_KEY}"
    if wrong:
        where = Ref("v1", "Secret", secret["metadata"]["namespace"], secret["metadata"]["name"])
        raise LaminaError(f"{where} {wrong}: delete it, and another is made")
    return found


def _wrong(found: Authority) -> str:
    """Return what is wrong with an authority, or nothing; ValueError where it is none."""
    # They take longer to load than most of the rest, and only some commands get here.
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
        return f"holds a {_CERTIFICATE} that is no authority's"
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return f"holds a {_KEY} that is not on an elliptic curve"
    if not basics.ca:
        return f"holds a {_CERTIFICATE} that is no authority's"
    if certificate.public_key() != key.public_key():
        return f"holds a {_KEY} that is not the one of its {_CERTIFICATE}"
    # TLS is checked by other people's clocks, so certificates follow the wall clock and no other.
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        return f"holds a {_CERTIFICATE} that is not valid now"
    return ""
