"""
The authority that a webhook's certificate is trusted by.

Replicas answer for each other, so all of them have one authority: the first
makes it and leaves it in a Secret, and the others find it there. Each makes a
certificate of its own with it.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from msgspec import Struct

from lamina.client.client import Client
from lamina.errors import AlreadyExists, LaminaError, NotFound
from lamina.objects.types import Obj, Ref
from lamina.server.certificates import ensure_certificates, write_private

_CERTIFICATE, _KEY = "ca.crt", "ca.key"
_TRIES, _PAUSE = 20, 0.1


class Secrets(Struct, frozen=True, kw_only=True):
    """Where the authority is kept."""

    namespace: str
    name: str = "lamina-webhook"

    @property
    def ref(self) -> Ref:
        return Ref("v1", "Secret", self.namespace, self.name)


async def authority(folder: Path, client: Client, secrets: Secrets) -> None:
    """Put the authority that all replicas have into a folder, making it where there is none."""
    for _ in range(_TRIES):
        try:
            _keep(folder, await client.get(secrets.ref))
            return
        except NotFound:
            made = ensure_certificates(folder, ["localhost"], "lamina-webhook", ()).authority
        try:
            await client.create(_secret(secrets, made.certificate_pem, made.key_pem))
            return
        except AlreadyExists:
            # Another replica was quicker: what it made is the one, as soon as it can be read.
            await asyncio.sleep(_PAUSE)
    raise LaminaError(f"{secrets.ref} comes and goes: there is no authority to make a certificate with")


def _secret(secrets: Secrets, certificate: bytes, key: bytes) -> Obj:
    data = {_CERTIFICATE: certificate, _KEY: key}
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


def _keep(folder: Path, secret: Obj) -> None:
    data = secret.get("data") or {}
    try:
        certificate, key = (base64.b64decode(data[name], validate=True) for name in (_CERTIFICATE, _KEY))
    except (KeyError, ValueError, TypeError):
        raise LaminaError(
            f"{Ref('v1', 'Secret', secret['metadata']['namespace'], secret['metadata']['name'])} "
            f"holds no {_CERTIFICATE} and {_KEY}: delete it, and another is made"
        ) from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / "ca.key", key)
    write_private(folder / "ca.crt", certificate)
