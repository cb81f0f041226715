"""
Joins a cluster to a hub with a bootstrap token, and renews the certificate that it gets.

The family decides each step; here the key is made, the steps are carried out, and the
certificate is stored: next to the kubeconfig of the hub, which names the two files, so
that every client that reads it uses a renewed certificate from then on.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from lamina.client.client import Client
from lamina.client.kubeconfig.credentials import Identity, is_pair
from lamina.client.kubeconfig.read import Access
from lamina.client.kubeconfig.write import write_kubeconfig
from lamina.control_plane.hub import check_name
from lamina.core.csr import REQUEST
from lamina.core.model.agents import Agents, JoinStep
from lamina.errors import LaminaError, NotFound, SettingsError, Unavailable, Unreachable
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.server.tls.certificates import write_private

_POLL, _RETRY = 1.0, 60.0
"""How often the hub is asked for the certificate, and after how long a renewal that failed is tried again, in seconds."""
_RENEWED_AT = 0.8
"""The share of a certificate's lifetime after which it is renewed."""


class Request(NamedTuple):
    """A request for a client certificate and its key, both in PEM."""

    pem: bytes
    key: bytes


class Lifetime(NamedTuple):
    """When a certificate begins and ceases to be valid."""

    begins: datetime
    ends: datetime

    @property
    def renews(self) -> datetime:
        """Return when it is to be renewed."""
        return self.begins + (self.ends - self.begins) * _RENEWED_AT


class Store(NamedTuple):
    """The kubeconfig of a hub, and the files of the client certificate that it names."""

    kubeconfig: Path

    @property
    def certificate(self) -> Path:
        return self.kubeconfig.with_name(f"{self.kubeconfig.name}.crt")

    @property
    def key(self) -> Path:
        return self.kubeconfig.with_name(f"{self.kubeconfig.name}.key")

    def lifetime(self) -> Lifetime | None:
        """Return how long the stored certificate is valid; None where there is none that can be read."""
        from cryptography import x509

        try:
            found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError):
            return None
        return Lifetime(found.not_valid_before_utc, found.not_valid_after_utc)

    @property
    def has_pair(self) -> bool:
        """Say whether the stored certificate and key belong together."""
        return self.key.exists() and is_pair(Identity(self.certificate.read_bytes(), self.key.read_bytes()))

    def write_pair(self, certificate: bytes, key: bytes) -> None:
        """Write a certificate and its key; a client that reads one of them too early waits for the other."""
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_private(self.key, key)
        write_private(self.certificate, certificate)

    def write(self, bootstrap: Access) -> None:
        """Write the kubeconfig, which leads to the server of the bootstrap kubeconfig."""
        access = replace(
            bootstrap,
            certificate=b"",
            key=b"",
            token="",
            token_file=None,
            username="",
            password="",
            exec=None,
            # Relative to the kubeconfig: the three files may be mounted elsewhere.
            certificate_file=Path(self.certificate.name),
            key_file=Path(self.key.name),
        )
        write_kubeconfig(self.kubeconfig, access, name="hub")


def is_joined(store: Store, now: datetime) -> bool:
    """
    Say whether a cluster has a kubeconfig of its hub, and a valid certificate if that was stored beside it.

    A process that ended between the two files of a renewal has left a key without its certificate.
    """
    if not store.kubeconfig.exists():
        return False
    if not store.certificate.exists():
        return True
    lifetime = store.lifetime()
    return lifetime is not None and now < lifetime.ends and store.has_pair


def client_request(user: str, groups: tuple[str, ...]) -> Request:
    """Return a request for a client certificate of a user, with a new key."""
    # Loaded on demand: only a cluster that joins, or renews, needs it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Request(signed.public_bytes(serialization.Encoding.PEM), private)


async def obtain(agents: Agents, hub: Client, name: str, address: str, store: Store) -> None:
    """Request a client certificate for a cluster, wait for its approval, and store it."""
    check_name(agents, name)
    user, groups = agents.hub_user(name)
    request = client_request(user, tuple(one for one in groups if one != "system:authenticated"))
    sent, because = None, ""
    while True:
        try:
            step, sent = await _step(agents, hub, name, address, request, sent)
        except (Unreachable, Unavailable) as error:
            # The approval may take days: a hub that is restarted meanwhile ends nothing.
            step = JoinStep(because=f"the hub does not respond: {error}")
        if step.refused:
            raise SettingsError(
                f"the hub refuses a certificate for cluster {name!r}: {step.refused}",
                hint="start the agent again to send another request",
            )
        if step.certificate:
            store.write_pair(step.certificate, request.key)
            return
        if step.because != because:
            because = step.because
            log.info("joining the hub", cluster=name, because=because)
        if not step.creates:
            await asyncio.sleep(_POLL)


async def _step(
    agents: Agents, hub: Client, name: str, address: str, request: Request, sent: Ref | None
) -> tuple[JoinStep, Ref | None]:
    """Carry out the next step, and return it with the CertificateSigningRequest that was sent."""
    cluster = await _get(hub, agents.cluster(name))
    known = await _get(hub, sent) if sent is not None else None
    step = agents.joining.step(name, address, request.pem, cluster, known)
    for obj in step.creates:
        made = meta.ref(await hub.create(obj))
        sent = made if made.kind == REQUEST.kind else sent
    return step, sent


async def keep_renewed(agents: Agents, hub: Client, name: str, store: Store) -> None:
    """Renew the stored certificate whenever it is due, for as long as the agent runs."""
    while True:
        lifetime = store.lifetime()
        due = (lifetime.renews - datetime.now(UTC)).total_seconds() if lifetime is not None else 0.0
        await asyncio.sleep(max(due, 0.0))
        try:
            # A hub that does not approve it in time gets another request, with another key.
            async with asyncio.timeout(_time_limit(lifetime).total_seconds()):
                await obtain(agents, hub, name, "", store)
            log.info("client certificate renewed", cluster=name)
        except (LaminaError, OSError) as error:
            # TimeoutError is an OSError; others are those of files that cannot be written.
            because = str(error) or "the hub has not issued it in time"
            log.warning("client certificate not renewed, retrying", cluster=name, because=because)
            await asyncio.sleep(_RETRY)


def _time_limit(lifetime: Lifetime | None) -> timedelta:
    """Return how long a renewal may take."""
    least = timedelta(seconds=_RETRY)
    return least if lifetime is None else max((lifetime.ends - lifetime.renews) / 4, least)


async def _get(hub: Client, ref: Ref) -> Made | None:
    try:
        return await hub.get(ref)
    except NotFound:
        return None
