"""Authentication: certificates, tokens, and anonymous requests."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lamina.app import App
from lamina.server.api.authn import Authenticator
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN, ANONYMOUS, Identity, identity_from_subject
from lamina.server.tls.certificates import Pair, ensure_certificates
from tests.server.raw_http import CONFIG_MAPS, RawResponse, reach, tls_to

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = orjson.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
SPACED = "the provided Authorization header contains extra space before the bearer token, and is ignored"


def signed(
    app: App, folder: Path, subject: list[tuple[x509.ObjectIdentifier, str]], *, until: timedelta
) -> Pair:
    """A client certificate signed by the server's own CA."""
    authority = app.certificates.authority
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(kind, value) for kind, value in subject]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + until)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pair = Pair(folder / "client.crt", folder / "client.key")
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return pair


async def ask_with(app: App, pair: Pair | None, authorization: str = "", path: str = WHOAMI) -> RawResponse:
    tls = tls_to(app.certificates.authority.certificate, pair)
    async with await reach(app, tls) as wire:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(REVIEW)}\r\n"
        if authorization:
            head += f"Authorization: {authorization}\r\n"
        await wire.send(head.encode("latin-1") + b"\r\n" + REVIEW)
        return await wire.read_response()


def who(answer: RawResponse) -> tuple[str, list[str]]:
    assert answer.status == 201, answer.body
    info = answer.json["status"]["userInfo"]
    return info["username"], info["groups"]


async def test_the_certificate_in_the_kubeconfig_is_the_administrators(app: App) -> None:
    answer = await ask_with(app, app.certificates.admin)

    assert who(answer) == ("lamina-admin", ["system:masters", "system:authenticated"])


async def test_a_certificate_names_its_user_and_groups(app: App, tmp_path: Path) -> None:
    subject = [
        (NameOID.ORGANIZATION_NAME, "red"),
        (NameOID.ORGANIZATION_NAME, "blü"),
        (NameOID.COMMON_NAME, "bob"),
    ]
    pair = signed(app, tmp_path, subject, until=timedelta(days=1))

    assert who(await ask_with(app, pair)) == ("bob", ["red", "blü", "system:authenticated"])


async def test_a_certificate_goes_before_a_token(app: App) -> None:
    """As in kube-apiserver, where a wrong token beside a valid certificate is ignored."""
    for authorization in (f"Bearer {app.token}", "Bearer wrong", "Basic YTpi"):
        answer = await ask_with(app, app.certificates.admin, authorization)
        assert who(answer)[0] == "lamina-admin"


async def test_a_certificate_without_a_name_is_anonymous(app: App, tmp_path: Path) -> None:
    pair = signed(app, tmp_path, [(NameOID.ORGANIZATION_NAME, "red")], until=timedelta(days=1))

    answer = await ask_with(app, pair)
    known = await ask_with(app, pair, f"Bearer {app.token}")

    assert answer.status == 403
    assert who(known)[0] == "lamina-admin"


async def test_a_certificate_is_remembered_when_a_session_is_resumed(app: App) -> None:
    tls = tls_to(app.certificates.authority.certificate, app.certificates.admin)
    port = urlsplit(app.url).port

    def talk(session: ssl.SSLSession | None) -> tuple[bytes, bool | None, ssl.SSLSession | None]:
        request = (
            f"POST {WHOAMI} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(REVIEW)}\r\nConnection: close\r\n\r\n"
        )
        with (
            socket.create_connection(("127.0.0.1", port or 0), timeout=60) as plain,
            tls.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as wrapped,
        ):
            wrapped.sendall(request.encode() + REVIEW)
            heard = b""
            while piece := wrapped.recv(65536):
                heard += piece
            return heard, wrapped.session_reused, wrapped.session

    first, _, session = await asyncio.to_thread(talk, None)
    again, reused, _ = await asyncio.to_thread(talk, session)

    assert reused
    assert b'"username":"lamina-admin"' in first
    assert b'"username":"lamina-admin"' in again


def another_authority(app: App, folder: Path) -> Pair:
    return ensure_certificates(folder, ["127.0.0.1"], "lamina-admin", ["system:masters"]).admin


def an_expired_one(app: App, folder: Path) -> Pair:
    subject = [(NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.COMMON_NAME, "lamina-admin")]
    return signed(app, folder, subject, until=-timedelta(days=1))


def the_servers_own(app: App, folder: Path) -> Pair:
    return app.certificates.server


@pytest.mark.parametrize("choose", [another_authority, an_expired_one, the_servers_own])
async def test_a_certificate_that_is_no_good_is_refused_by_tls(
    app: App, tmp_path: Path, choose: Callable[[App, Path], Pair]
) -> None:
    pair = choose(app, tmp_path)

    with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        await ask_with(app, pair, f"Bearer {app.token}")
    assert who(await ask_with(app, app.certificates.admin))[0] == "lamina-admin"


async def test_a_client_does_not_trust_another_authority(app: App, tmp_path: Path) -> None:
    other = ensure_certificates(tmp_path, ["127.0.0.1"], "x", [])

    with pytest.raises(ssl.SSLCertVerificationError):
        await reach(app, tls_to(other.authority.certificate))


async def test_the_version_before_the_latest_of_tls_is_spoken_as_well(app: App) -> None:
    tls = tls_to(app.certificates.authority.certificate)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    async with await reach(app, tls) as wire:
        assert (await wire.send_request("GET", "/version")).status == 200
        assert wire.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        assert wire.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize(
    ("authorization", "user", "warned"),
    [
        ("Bearer {token}", "lamina-admin", False),
        ("bearer {token}", "lamina-admin", False),
        ("BEARER {token}", "lamina-admin", False),
        ("Bearer {token}   ", "lamina-admin", False),
        ("   Bearer {token}", "lamina-admin", False),
        ("Bearer {token} and more", "lamina-admin", False),
        ("Bearer  {token}", None, True),
        ("Bearer\t{token}", None, False),
        ("Bearer ", None, False),
        ("Bearer", None, False),
        ("{token}", None, False),
        ("Token {token}", None, False),
        ("Basic YTpi", None, False),
        ("Digest username=x", None, False),
        ("", None, False),
    ],
)
async def test_a_token_is_read_as_a_real_server_reads_it(
    app: App, authorization: str, user: str | None, warned: bool
) -> None:
    answer = await ask_with(app, None, authorization.format(token=app.token))

    if user is None:
        assert answer.status == 403
        assert 'User "system:anonymous" cannot create' in answer.message
    else:
        assert who(answer)[0] == user
    assert answer.all("warning") == ([f'299 - "{SPACED}"'] if warned else [])


@pytest.mark.parametrize("token", ["wrong", "{token}x", "x{token}", "\xff\xfe", "null"])
async def test_a_request_with_a_wrong_token_is_not_anonymous(app: App, token: str) -> None:
    for path in (WHOAMI, CONFIG_MAPS, "/healthz", "/version", "/nope"):
        answer = await ask_with(app, None, f"Bearer {token.format(token=app.token)}", path)

        assert answer.status == 401
        assert answer.json == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


async def test_a_connection_is_not_spoilt_by_a_wrong_token(app: App) -> None:
    async with await reach(app) as wire:
        wrong = wire.request_bytes("GET", CONFIG_MAPS).replace(app.token.encode(), b"wrong")
        await wire.send(wrong, wire.request_bytes("GET", CONFIG_MAPS))
        statuses = [(await wire.read_response()).status, (await wire.read_response()).status]

    assert statuses == [401, 200]


@pytest.mark.parametrize(
    ("token", "status", "authenticated"),
    [
        ("", 400, None),
        ("wrong", 201, None),
        (" ", 201, None),
        ("{token}", 201, True),
        (" {token}", 201, None),
    ],
)
async def test_a_token_can_be_reviewed(app: App, token: str, status: int, authenticated: bool | None) -> None:
    review = orjson.dumps({"spec": {"token": token.format(token=app.token)}})
    async with await reach(app) as wire:
        answer = await wire.send_request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=review)

    assert answer.status == status
    if status == 400:
        assert answer.message == "token is required for TokenReview in authentication"
    else:
        assert answer.json["status"].get("authenticated") is authenticated


async def test_identities_are_values() -> None:
    known = Authenticator({"a": ADMIN, "b": Identity("bob")})

    assert known.bearer("a") == ADMIN
    assert known.bearer("b") == Identity("bob")
    assert known.bearer("c") is None
    assert known.authenticate(Request("GET", "/")) is ANONYMOUS
    assert identity_from_subject("bob", ("red",)) == Identity("bob", ("red", "system:authenticated"))
