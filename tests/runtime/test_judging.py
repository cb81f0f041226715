"""Answering a server that asks about writes: over HTTPS, by an authority that replicas share."""

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

from lamina.admission.authority import Authority, Secrets, authority
from lamina.admission.inside import Inside
from lamina.admission.registration import Way, configuration
from lamina.admission.reviews import BadQuestion, Reviewer
from lamina.admission.serving import Shown, serving
from lamina.core.admission import Attempt, Check, Leave, Verdict
from lamina.embedded import EmbeddedCluster
from lamina.errors import BadRequest, LaminaError, Unavailable
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.settings import Settings
from tests.runtime.cluster import until, until_there

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
SECRETS = Secrets(namespace="default")


def judge(attempt: Attempt) -> Verdict:
    """Refuse what is called bad, warn of what is called odd, and ask about what is called secret."""
    if attempt.name == "secret":
        return Verdict(leave=Leave(attributes={"verb": "peek"}, refusal="nobody peeks"))
    return Verdict(
        refusal="it is bad" if attempt.name == "bad" else "",
        warnings=("it is odd",) if attempt.name == "odd" else (),
    )


CHECK = Check(name="maps.example.com", path="/maps", rules=(RULE,), judge=judge)


class Court:
    """Somebody who knows what others may do, or does not."""

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


async def answered(name: str, court: Court | None = None) -> Made:
    reviewer = Reviewer([CHECK], court or Court(True), log)
    made: Made = orjson.loads(await reviewer.answer("/maps", question(name)))
    assert (made["apiVersion"], made["kind"], made["response"]["uid"]) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
        "u",
    )
    return {field: value for field, value in made["response"].items() if field != "uid"}


async def test_a_verdict_becomes_an_answer() -> None:
    assert await answered("fine") == {"allowed": True}
    assert await answered("odd") == {"allowed": True, "warnings": ["it is odd"]}
    assert await answered("bad") == {
        "allowed": False,
        "status": {"code": 400, "reason": "BadRequest", "message": "it is bad"},
    }


async def test_whether_somebody_may_is_asked_of_the_server_in_their_name() -> None:
    court = Court(True)
    assert await answered("secret", court) == {"allowed": True}
    (review,) = court.asked
    assert review["kind"] == "SubjectAccessReview"
    assert review["spec"] == {
        "user": "ada",
        "groups": ["people"],
        "extra": {"a": ["b"]},
        "resourceAttributes": {"verb": "peek"},
    }

    assert (await answered("secret", Court(False)))["status"]["message"] == "nobody peeks"
    unheard = await answered("secret", Court(Unavailable("not now")))
    assert not unheard["allowed"]
    assert "cannot be found out: not now" in unheard["status"]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request": {}}', b'{"request": {"uid": "u"}}'])
async def test_what_is_no_question_gets_no_answer(body: bytes) -> None:
    with pytest.raises(BadQuestion):
        await Reviewer([CHECK], Court(True), log).answer("/maps", body)


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
    """A certificate of an authority, with its key, or what is nearly one."""
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
        (made(signer=ec.generate_private_key(ec.SECP256R1())),      "ca.key that is not the one of its ca.crt"),
        (made(days=-1),                                             "ca.crt that is not valid now"),
        (made(ca=False),                                            "ca.crt that is no authority's"),
    ],
)  # fmt: skip
async def test_an_authority_that_nobody_would_trust_is_refused_in_words(
    data: dict[str, bytes], wrong: str
) -> None:
    metadata = {"name": SECRETS.name, "namespace": SECRETS.namespace}
    encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})

        with pytest.raises(LaminaError, match=f"{wrong}: delete it, and another is made"):
            await authority(client, SECRETS)


async def test_another_certificate_is_shown_once_the_old_one_will_not_do() -> None:
    """Whoever connects afterwards trusts it by the authority that is there now."""
    first, other = (Authority(*made().values()) for _ in range(2))
    now = 0.0
    shown = Shown("localhost", first, lambda: now)
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
    """What was asked at which path, and with which code that ended."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def began(self, webhook: str) -> None:
        self.told.append(webhook)

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        self.told.append((webhook, code))

    def broke(self) -> None:
        self.told.append("broke")


async def test_what_is_asked_is_counted_with_what_came_of_it() -> None:
    def clumsy(attempt: Attempt) -> Verdict:
        if attempt.name == "clumsy":
            raise ZeroDivisionError
        return judge(attempt)

    check, meter = replace(CHECK, judge=clumsy), Counted()
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client, way = cluster.client(), Way(url="https://127.0.0.1:1/below")
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


async def test_what_somebody_deletes_or_changes_is_put_right() -> None:
    way, registered = Way(url="https://127.0.0.1:1"), configuration([CHECK], Way())
    ref = meta.ref(registered)
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        async with serving((CHECK,), client, way, ("127.0.0.1", 0), SECRETS, log, looks_again=0.01):
            kept = (await client.get(SECRETS.ref))["data"]
            await client.delete(SECRETS.ref)
            await client.delete(ref)
            assert (await until_there(client, SECRETS.ref))["data"] == kept
            await until_there(client, ref)

            await client.patch(ref, {"webhooks": []})
            await until(client, ref, lambda one: bool(one and one.get("webhooks")))

            other = {name: base64.b64encode(content).decode() for name, content in made().items()}
            await client.patch(SECRETS.ref, {"data": other})
            await until(client, ref, lambda one: bundle(one) == other["ca.crt"])


def bundle(registered: Made | None) -> str:
    return str(((registered or {}).get("webhooks") or [{}])[0].get("clientConfig", {}).get("caBundle"))


async def test_a_server_that_answers_itself_goes_on_asking() -> None:
    registered = meta.ref(configuration([CHECK], Way()))
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        inside = Inside([CHECK], client, 6443, log)
        await inside.answer(cluster.api.plane.asker.here)
        version = meta.resource_version(await client.get(registered))
        await inside.look()
        assert meta.resource_version(await client.get(registered)) == version, "nothing was to be done"

        await client.delete(registered)
        await client.create(named("bad"), dry_run=True)
        await inside.look()
        with pytest.raises(BadRequest, match="it is bad"):
            await client.create(named("bad"))


def named(name: str) -> Made:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def seen(port: int, trusted: bytes) -> x509.Certificate:
    """Return the certificate that is shown to somebody who trusts an authority."""
    context = ssl.create_default_context(cadata=trusted.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(found)


class Slow:
    """Somebody who knows, and takes a turn of the loop to say so; counts who waits for an answer."""

    def __init__(self) -> None:
        self.waiting = self.most = 0

    async def create(self, obj: Obj) -> Made:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return {**obj, "status": {"allowed": True}}


async def test_however_many_ask_the_server_is_asked_by_a_few_at_once() -> None:
    slow = Slow()
    reviewer = Reviewer([CHECK], slow, log)

    answers = await asyncio.gather(*(reviewer.answer("/maps", question("secret")) for _ in range(100)))

    assert all(orjson.loads(one)["response"]["allowed"] for one in answers)
    assert slow.most == 32
