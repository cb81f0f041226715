"""How hooks and we know each other: authorities, certificates, tokens, passwords."""

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.certificates import Authority
from tests.bed.scenarios import check
from tests.scenarios.hook import Hook, Reply, Said, serve
from tests.scenarios.metacontroller.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Keys:
    """An authority, a hook that it vouches for, and what lies in Secrets for callers."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.authority = Authority(folder)
        self.server = self.authority.server("hook")
        self.client = self.authority.client("metacontroller")
        self.pem = self.authority.certificate.read_text()

    def context(self, *, both_ways: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server.certificate, self.server.key)
        if both_ways:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority.certificate)
        return context


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys") / "ours")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys") / "theirs")


@asynccontextmanager
async def secured(stage: Stage, context: ssl.SSLContext) -> AsyncIterator[Hook]:
    """Have a hook answer over TLS."""
    async with serve(lambda said: {"status": {"ok": True}}, context) as hook:
        yield hook


async def given_secret(stage: Stage, name: str, **data: str) -> Made:
    """Keep texts in a Secret, and return the reference to it."""
    await stage.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": stage.namespace},
            "data": {key.replace("_", "."): b64encode(text.encode()).decode() for key, text in data.items()},
        }
    )
    return {"name": name, "namespace": stage.namespace}


async def answers(stage: Stage) -> None:
    await stage.until(stage.parent(), lambda obj: bool(obj and obj.get("status", {}).get("ok")))


async def call(stage: Stage, url: str, *, endpoints: Any = None, **webhook: Any) -> None:
    """Have a controller that calls a hook in a certain way, and a parent for it to call about."""
    await stage.given_composite(
        "cc",
        hooks={"sync": {"webhook": {"url": f"{url}/sync", **webhook}}},
        endpointConfigs=endpoints or [],
    )
    await stage.given_parent()


@check("MC-27")
@pytest.mark.parametrize("kept", ["inline", "secret", "config map"])
async def test_a_private_authority_vouches_for_a_hook(stage: Stage, keys: Keys, kept: str) -> None:
    ref = {"name": "ca", "namespace": stage.namespace}
    match kept:
        case "inline":
            bundle: Made = {"inline": keys.pem}
        case "secret":
            bundle = {"secretRef": await given_secret(stage, "ca", ca_crt=keys.pem)}
        case _:
            await stage.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": ref, "data": {"ca.crt": keys.pem}}
            )
            bundle = {"configMapRef": ref}

    async with secured(stage, keys.context()) as hook, stage.running():
        await call(stage, hook.url, caBundle=bundle)
        await answers(stage)


@check("MC-27")
async def test_a_hook_that_the_authority_does_not_know_is_not_talked_to(
    stage: Stage, keys: Keys, others: Keys
) -> None:
    async with secured(stage, others.context()) as hook, stage.running():
        await call(stage, hook.url, caBundle={"inline": keys.pem})
        await stage.until_event(stage.parent(), "SyncError", "http error:")
        assert hook.requests == []


@check("MC-27")
async def test_certificates_go_both_ways_and_a_new_one_counts_at_once(
    stage: Stage, keys: Keys, others: Keys
) -> None:
    pairs = [(one.client.certificate.read_text(), one.client.key.read_text()) for one in (others, keys)]

    async with secured(stage, keys.context(both_ways=True)) as hook, stage.running():
        pair = await given_secret(stage, "pair", tls_crt=pairs[0][0], tls_key=pairs[0][1])
        await call(stage, hook.url, caBundle={"inline": keys.pem}, clientTLS={"secretRef": pair})
        await stage.until_event(stage.parent(), "SyncError", "http error:")
        assert hook.requests == []

        fresh = {key: b64encode(text.encode()).decode() for key, text in zip(("tls.crt", "tls.key"), pairs[1], strict=True)}  # fmt: skip
        await stage.client.patch(stage.at("Secret", "pair"), {"data": fresh})
        await answers(stage)


def only(stage: Stage, header: str) -> None:
    """Have the hook answer only requests with this header."""

    def answer(said: Said) -> Reply:
        if stage.hook.headers[-1].get("Authorization") != header:
            return web.Response(status=401, text="who are you")
        return {"status": {"ok": True}}

    stage.hook.answer = answer


@check("MC-27")
async def test_a_token_is_said_to_the_hook(stage: Stage) -> None:
    only(stage, "Bearer sesame")

    async with stage.running():
        token = {**await given_secret(stage, "token", token=" wrong\n"), "key": "token"}
        await call(stage, stage.hook.url, authorization={"secretRef": token})
        await stage.until_event(stage.parent(), "SyncError", "unsupported status code: 401 body: who are you")

        right = b64encode(b" sesame\n").decode()
        await stage.client.patch(stage.at("Secret", "token"), {"data": {"token": right}})
        await answers(stage)


@check("MC-27")
@pytest.mark.parametrize("where", ["in the hook", "for its host"])
async def test_a_name_and_a_password_are_said_to_the_hook(stage: Stage, where: str) -> None:
    only(stage, f"Basic {b64encode(b'ali:sesame').decode()}")

    async with stage.running():
        basic = {
            "basicAuth": {"secretRef": await given_secret(stage, "b", username="ali\n", password="sesame ")}
        }
        if where == "in the hook":
            await call(stage, stage.hook.url, **basic)
        else:
            host = stage.hook.url.partition("//")[2].upper()
            await call(stage, stage.hook.url, endpoints=[{"host": "elsewhere"}, {"host": host, **basic}])
        await answers(stage)


@check("MC-27")
async def test_what_a_hook_says_of_itself_counts_in_place_of_all_that_is_said_of_its_host(
    stage: Stage, keys: Keys
) -> None:
    only(stage, "Token sesame")

    async with stage.running():
        token = {**await given_secret(stage, "token", t="sesame"), "key": "t"}
        wrong = {"secretRef": await given_secret(stage, "basic", username="ali", password="wrong")}
        host = {"host": stage.hook.url.partition("//")[2], "basicAuth": wrong}
        await call(
            stage, stage.hook.url, endpoints=[host], authorization={"type": "Token", "secretRef": token}
        )
        await answers(stage)


@check("MC-27")
async def test_two_ways_to_say_who_calls_are_one_too_many(stage: Stage) -> None:
    async with stage.running():
        ref = {"secretRef": await given_secret(stage, "both", username="a", password="b", token="c")}
        made = await stage.given_composite(
            "cc",
            hooks={"sync": {"webhook": {"url": stage.hook.url, "authorization": ref, "basicAuth": ref}}},
        )
        await stage.until_event(
            meta.ref(made), "CreateError", "expected authorization or basicAuth, got both"
        )


@check("MC-27")
async def test_a_controller_whose_secret_is_not_there_starts_when_it_comes(stage: Stage) -> None:
    only(stage, "Bearer sesame")
    ref = {"name": "token", "namespace": stage.namespace, "key": "token"}

    async with stage.running():
        webhook = {"url": f"{stage.hook.url}/sync", "authorization": {"secretRef": ref}}
        await stage.given_composite(
            "cc", hooks={"sync": {"webhook": webhook}, "finalize": {"webhook": webhook}}
        )
        await stage.given_parent()
        controller = stage.at(
            "CompositeController", stage.named("cc"), "metacontroller.k8s.io/v1alpha1", namespace=""
        )
        await stage.until_event(controller, "CreateError", "does not exist")
        await stage.settled()
        assert meta.finalizers(await stage.client.get(stage.parent())) == (), "it has changed no parent"

        await given_secret(stage, "token", token="sesame")
        await stage.until_event(controller, "Started")
        await answers(stage)
