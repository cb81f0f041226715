"""Certificates are believed as Kubernetes' own clients believe them, on every Python."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lamina.tls import client_context

HOST = "hook.example.com"


class Signer:
    """An issuer with a minimal certificate, which may sign others."""

    def __init__(self, name: str, by: "Signer | None" = None, *, is_authority: bool = True) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        by, now = by or self, datetime.now(UTC)
        built = (
            x509.CertificateBuilder(by.name, self.name, self.key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )
        if is_authority:
            built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        else:
            built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        self.certificate = built.sign(by.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def serving(self, folder: Path) -> ssl.SSLContext:
        secret = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pair = folder / "pair.pem"
        pair.write_bytes(self.certificate + secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Have two sides greet each other, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=HOST)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue


@pytest.fixture(autouse=True)
def as_on_the_newest_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have contexts begin as strict as they do on Python 3.13."""
    make = ssl.create_default_context

    def strictly(*, cadata: str | None = None) -> ssl.SSLContext:
        context = make(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strictly)


def test_an_authority_whose_certificate_says_little_is_believed(tmp_path: Path) -> None:
    authority = Signer("authority")
    hook = Signer(HOST, authority, is_authority=False)

    shake_hands(client_context(authority.certificate.decode()), hook.serving(tmp_path))


def test_a_named_certificate_is_trusted_whatever_signed_it(tmp_path: Path) -> None:
    between = Signer("between", Signer("root"))
    hook = Signer(HOST, between, is_authority=False)

    shake_hands(client_context(between.certificate.decode()), hook.serving(tmp_path))


def test_a_host_that_is_named_as_a_subject_alone_is_not_believed(tmp_path: Path) -> None:
    authority = Signer("authority")

    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(client_context(authority.certificate.decode()), Signer(HOST, authority).serving(tmp_path))


def test_no_other_certificate_is_trusted(tmp_path: Path) -> None:
    hook = Signer(HOST, Signer("somebody"), is_authority=False)

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(Signer("somebody").certificate.decode()), hook.serving(tmp_path))
