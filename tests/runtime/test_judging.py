"""Answering a server that asks about writes: over HTTPS, by an authority that replicas share."""

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography import x509

from lamina.admission.authority import Secrets, authority
from lamina.admission.reviews import BadQuestion, Reviewer
from lamina.admission.serving import Shown
from lamina.core.admission import Attempt, Check, Leave, Verdict
from lamina.embedded import EmbeddedCluster
from lamina.errors import LaminaError, Unavailable
from lamina.logs import log
from lamina.objects.types import Made, Obj
from lamina.settings import Settings

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


async def test_replicas_share_one_authority(tmp_path: Path) -> None:
    async with EmbeddedCluster(Settings(families="none", simulate="off")) as cluster:
        client = cluster.client()
        await asyncio.gather(*(authority(tmp_path / name, client, SECRETS) for name in ("a", "b", "c")))

        kept = (await client.get(SECRETS.ref))["data"]
        for name in ("a", "b", "c"):
            assert (tmp_path / name / "ca.crt").read_bytes() == base64.b64decode(kept["ca.crt"])
            assert (tmp_path / name / "ca.key").stat().st_mode & 0o777 == 0o600

        await client.patch(SECRETS.ref, {"data": None})
        with pytest.raises(LaminaError, match="holds no ca.crt and ca.key: delete it, and another is made"):
            await authority(tmp_path / "d", client, SECRETS)


async def test_another_certificate_is_shown_once_the_old_one_will_not_do(tmp_path: Path) -> None:
    """Whoever connects afterwards trusts it by the same authority."""
    shown = Shown(tmp_path, "localhost")
    server = await asyncio.start_server(
        lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=shown.context
    )
    async with server:
        port = int(server.sockets[0].getsockname()[1])
        before = await seen(port, shown.authority)
        assert not shown.renew()
        (tmp_path / "server.crt").unlink()
        assert shown.renew()
        after = await seen(port, shown.authority)

    assert after.issuer == before.issuer
    assert after.serial_number != before.serial_number


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
