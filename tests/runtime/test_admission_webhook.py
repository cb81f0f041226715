"""Admission webhooks: reviews over HTTPS and in process, with a CA that replicas share."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from lamina.admission.admission_review import BadReview, Reviewer
from lamina.admission.ca import Authority, Secrets, authority
from lamina.admission.inprocess import InProcessReviewer
from lamina.admission.registration import WebhookEndpoint, configurations
from lamina.admission.webhook_server import ServingCertificate, serving
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.admission import AccessCheck, AdmissionCheck, AdmissionRequest, AdmissionResponse
from lamina.errors import BadRequest, LaminaError, Unavailable
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.runtime.cluster import reader, wait_created

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
SECRETS = Secrets(namespace="default")


def judge(attempt: AdmissionRequest) -> AdmissionResponse:
    """Refuse what is called bad, warn of what is called odd, and check access for what is called secret."""
    if attempt.name == "secret":
        return AdmissionResponse(leave=AccessCheck(attributes={"verb": "peek"}, refusal="peeking is denied"))
    return AdmissionResponse(
        refusal="it is bad" if attempt.name == "bad" else "",
        warnings=("it is odd",) if attempt.name == "odd" else (),
    )


CHECK = AdmissionCheck(name="maps.example.com", path="/maps", rules=(RULE,), judge=judge)


class AccessReviews:
    """A client that answers each access review alike, or fails."""

    def __init__(self, answer: bool | LaminaError) -> None:
        self.answer = answer
        self.asked: list[Obj] = []

    async def create(self, obj: Obj) -> Made:
        self.asked.append(obj)
        if isinstance(self.answer, LaminaError):
            raise self.answer
        return {**obj, "status": {"allowed": self.answer}}


def question(name: str, **more: Any) -> bytes:
    request = {
        "uid": "u", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "namespace": "default", "name": name, "object": {"metadata": {"name": name}}, "oldObject": None,
        "userInfo": {"username": "ada", "groups": ["people"], "extra": {"a": ["b"]}}, **more,
    }  # fmt: skip
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


async def answered(name: str, reviews: AccessReviews | None = None) -> Made:
    reviewer = Reviewer([CHECK], reviews or AccessReviews(True), log)
    made: Made = orjson.loads(await reviewer.review("/maps", question(name)))
    assert (made["apiVersion"], made["kind"], made["response"]["uid"]) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
        "u",
    )
    return {field: value for field, value in made["response"].items() if field != "uid"}


async def test_a_decision_becomes_an_admission_response() -> None:
    assert await answered("fine") == {"allowed": True}
    assert await answered("odd") == {"allowed": True, "warnings": ["it is odd"]}
    assert await answered("bad") == {
        "allowed": False,
        "status": {"code": 400, "reason": "BadRequest", "message": "it is bad"},
    }


async def test_an_access_check_is_a_review_of_the_requesting_user() -> None:
    reviews = AccessReviews(True)
    assert await answered("secret", reviews) == {"allowed": True}
    (review,) = reviews.asked
    assert review["kind"] == "SubjectAccessReview"
    assert review["spec"] == {
        "user": "ada",
        "groups": ["people"],
        "extra": {"a": ["b"]},
        "resourceAttributes": {"verb": "peek"},
    }

    assert (await answered("secret", AccessReviews(False)))["status"]["message"] == "peeking is denied"
    unanswered = await answered("secret", AccessReviews(Unavailable("not now")))
    assert not unanswered["allowed"]
    assert "cannot check whether that is allowed: not now" in unanswered["status"]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request": {}}', b'{"request": {"uid": "u"}}'])
async def test_an_invalid_review_is_refused(body: bytes) -> None:
    with pytest.raises(BadReview):
        await Reviewer([CHECK], AccessReviews(True), log).review("/maps", body)


async def test_replicas_share_one_authority() -> None:
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        first, *others = await asyncio.gather(*(authority(client, SECRETS) for _ in range(3)))

        kept = (await client.get(SECRETS.ref))["data"]
        assert [first.certificate, first.key] == [
            base64.b64decode(kept[name]) for name in ("ca.crt", "ca.key")
        ]
        assert others == [first, first]

        await client.delete(SECRETS.ref)
        assert await authority(client, SECRETS, first) == first, "it is put back"


def made(key: Any = None, *, days: int = 1, ca: bool = True, signer: Any = None) -> dict[str, bytes]:
    """Return the certificate of a CA with its key, valid or not."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    start = datetime.now(UTC) - timedelta(days=2)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=2 + days))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = (signer or key).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"ca.crt": certificate, "ca.key": private}


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({},                                                        "holds no ca.crt and ca.key"),
        ({"ca.crt": b"text", "ca.key": b"text"},                    "holds no ca.crt and ca.key in PEM"),
        (made(rsa.generate_private_key(65537, 2048)),               "ca.key that is not on an elliptic curve"),
        (made(signer=ec.generate_private_key(ec.SECP256R1())),      "ca.key that does not match its ca.crt"),
        (made(days=-1),                                             "ca.crt that is not valid now"),
        (made(ca=False),                                            "ca.crt that is no CA certificate"),
    ],
)  # fmt: skip
async def test_an_invalid_ca_is_refused_with_its_reason(data: dict[str, bytes], wrong: str) -> None:
    metadata = {"name": SECRETS.name, "namespace": SECRETS.namespace}
    encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})

        with pytest.raises(LaminaError, match=f"{wrong}: delete it, and a new CA is generated"):
            await authority(client, SECRETS)


async def test_the_serving_certificate_is_renewed_before_it_expires_and_for_a_new_ca() -> None:
    """Connections made afterwards verify it with the CA of that moment."""
    first, other = (Authority(*made().values()) for _ in range(2))
    now = 0.0
    shown = ServingCertificate("localhost", first, lambda: now)
    server = await asyncio.start_server(
        lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=shown.context
    )
    async with server:
        port = int(server.sockets[0].getsockname()[1])
        before = await seen(port, first.certificate)
        assert not shown.renew(first)
        now += 31 * 24 * 3600
        assert shown.renew(first) and not shown.renew(first)
        after = await seen(port, first.certificate)
        assert shown.renew(other)
        await seen(port, other.certificate)

    assert after.issuer == before.issuer
    assert after.serial_number != before.serial_number


class Counted:
    """Records each review by its path, and the code it ended with."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def began(self, webhook: str) -> None:
        self.told.append(webhook)

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        self.told.append((webhook, code))

    def broke(self) -> None:
        self.told.append("broke")


async def test_reviews_are_counted_with_their_result() -> None:
    def clumsy(attempt: AdmissionRequest) -> AdmissionResponse:
        if attempt.name == "clumsy":
            raise ZeroDivisionError
        return judge(attempt)

    check, meter = replace(CHECK, judge=clumsy), Counted()
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client, way = cluster.client(), WebhookEndpoint(url="https://127.0.0.1:1/below")
        async with (
            serving((check,), client, way, ("127.0.0.1", 0), SECRETS, log, meter=meter) as port,
            aiohttp.ClientSession() as http,
        ):
            for path, body in (
                ("/maps", question("good")),
                ("/below/maps", b"{}"),
                ("/maps", question("clumsy")),
            ):
                async with http.post(f"https://127.0.0.1:{port}{path}", data=body, ssl=False):
                    pass

    assert meter.told == ["/maps", ("/maps", 200), "/maps", ("/maps", 400), "/maps", "broke", ("/maps", 500)]


async def test_a_deleted_or_changed_configuration_is_restored() -> None:
    way, (registered,) = (
        WebhookEndpoint(url="https://127.0.0.1:1"),
        configurations([CHECK], WebhookEndpoint()),
    )
    ref = meta.ref(registered)
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        async with serving((CHECK,), client, way, ("127.0.0.1", 0), SECRETS, log, resync=0.01):
            kept = (await client.get(SECRETS.ref))["data"]
            await client.delete(SECRETS.ref)
            await client.delete(ref)
            assert (await wait_created(client, SECRETS.ref))["data"] == kept
            await wait_created(client, ref)

            await client.patch(ref, {"webhooks": []})
            await eventually(reader(client, ref), lambda one: bool(one and one.get("webhooks")))

            other = {name: base64.b64encode(content).decode() for name, content in made().items()}
            await client.patch(SECRETS.ref, {"data": other})
            await eventually(reader(client, ref), lambda one: bundle(one) == other["ca.crt"])


def bundle(registered: Made | None) -> str:
    return str(((registered or {}).get("webhooks") or [{}])[0].get("clientConfig", {}).get("caBundle"))


async def test_an_in_process_webhook_stays_registered() -> None:
    (registered,) = map(meta.ref, configurations([CHECK], WebhookEndpoint()))
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        inside = InProcessReviewer([CHECK], client, 6443, log)
        await inside.register(cluster.api.context.dispatcher.here)
        version = meta.resource_version(await client.get(registered))
        await inside.ensure()
        assert meta.resource_version(await client.get(registered)) == version, "nothing was to be done"

        await client.delete(registered)
        await client.create(named("bad"), dry_run=True)
        await inside.ensure()
        with pytest.raises(BadRequest, match="it is bad"):
            await client.create(named("bad"))


def named(name: str) -> Made:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def seen(port: int, trusted: bytes) -> x509.Certificate:
    """Return the certificate that a client gets which trusts a CA."""
    context = ssl.create_default_context(cadata=trusted.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(found)


class Slow:
    """A client that answers access reviews one turn of the loop later, and counts those in flight."""

    def __init__(self) -> None:
        self.waiting = self.most = 0

    async def create(self, obj: Obj) -> Made:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return {**obj, "status": {"allowed": True}}


async def test_concurrent_access_reviews_are_limited() -> None:
    slow = Slow()
    reviewer = Reviewer([CHECK], slow, log)

    answers = await asyncio.gather(*(reviewer.review("/maps", question("secret")) for _ in range(100)))

    assert all(orjson.loads(one)["response"]["allowed"] for one in answers)
    assert slow.most == 32
