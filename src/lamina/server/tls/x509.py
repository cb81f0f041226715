"""
Creates and checks certificates with the cryptography library.

The library takes longer to load than most of the server, so this module is imported only when there is a
certificate to create, check or read.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lamina.server.identity import Identity, identity_from_subject
from lamina.server.tls.certificates import Certificates, Pair, write_private

_AUTHORITY_YEARS = 10
_LEAF_DAYS = 365
_RENEW_DAYS = 30


def renew(made: Certificates, hosts: Sequence[str], admin: str, groups: Sequence[str]) -> datetime.datetime:
    """Create or renew certificates as needed, and return when they have to be checked again."""
    authority, server, client = made.authority, made.server, made.admin
    if not (authority.certificate.exists() and authority.key.exists()):
        _make_authority(authority)
    if not _is_good(server, authority, hosts):
        _make_leaf(server, authority, "lamina", (), hosts, ExtendedKeyUsageOID.SERVER_AUTH)
    if not _is_good(client, authority, ()):
        _make_leaf(client, authority, admin, groups, (), ExtendedKeyUsageOID.CLIENT_AUTH)
    ends = [
        x509.load_pem_x509_certificate(pair.certificate_pem).not_valid_after_utc for pair in (server, client)
    ]
    return min(ends) - datetime.timedelta(days=_RENEW_DAYS)


def _now() -> datetime.datetime:
    # TLS peers check against their own wall clocks, so certificates do not follow the server's clock.
    return datetime.datetime.now(datetime.UTC)


def _make_authority(pair: Pair) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lamina-ca")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - datetime.timedelta(hours=1))
        .not_valid_after(_now() + datetime.timedelta(days=365 * _AUTHORITY_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    _save(pair, builder.sign(key, hashes.SHA256()), key)


def _make_leaf(
    pair: Pair,
    authority: Pair,
    name: str,
    groups: Sequence[str],
    hosts: Sequence[str],
    purpose: x509.ObjectIdentifier,
) -> None:
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - datetime.timedelta(hours=1))
        .not_valid_after(_now() + datetime.timedelta(days=_LEAF_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
    _save(pair, builder.sign(signer, hashes.SHA256()), key)


def sign_client_certificate(authority: Pair, request: bytes, seconds: int | None) -> bytes:
    """Return the client certificate for a request, both in PEM; it is valid for a year at most."""
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    wanted = x509.load_pem_x509_csr(request)
    lifetime = datetime.timedelta(days=_LEAF_DAYS)
    if seconds is not None:
        lifetime = min(lifetime, datetime.timedelta(seconds=seconds))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(wanted.subject)
        .issuer_name(issuer.subject)
        .public_key(wanted.public_key())
        .serial_number(x509.random_serial_number())
        # As kube-controller-manager, which allows for clocks that differ.
        .not_valid_before(_now() - datetime.timedelta(minutes=5))
        .not_valid_after(min(_now() + lifetime, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _is_good(pair: Pair, authority: Pair, hosts: Sequence[str]) -> bool:
    """
    Return whether a pair exists, is signed by the authority, is not about to expire and names every host.
    """
    if not (pair.certificate.exists() and pair.key.exists()):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate_pem)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))
    except Exception:
        # A leaf that cannot be read is replaced.
        return False
    if certificate.not_valid_after_utc < _now() + datetime.timedelta(days=_RENEW_DAYS):
        return False
    if not hosts:
        return True
    named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(_alternatives(hosts)) <= set(named)


def _save(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(pair.key, private)
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))


def certificate_identity(certificate: bytes) -> Identity | None:
    """Return the identity in a client certificate: its common name, with its organizations as groups."""
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = tuple(str(one.value) for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    return identity_from_subject(names[0], groups) if names and names[0] else None
