"""The role that `lamina rbac` prints allows what the controllers do, and they do what it allows."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import yaml

from lamina.app import App
from lamina.client.client import Client
from lamina.client.transport.inprocess import InProcessTransport
from lamina.clock import WallClock
from lamina.control_plane.install import apply_controllers, build_manager, install
from lamina.core.rbac import Rights
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.runtime.controller.manager import Manager
from lamina.runtime.hooks.client import HookClient
from lamina.server.http.request import Response
from lamina.settings import Settings
from tests.scenarios.story import EXAMPLES, Story
from tests.scenarios.test_examples import container, image, is_ready

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+)?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<below>[^/]+))?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def wanted_right(method: str, path: str, query: str) -> tuple[str, str, str] | None:
    """Return what a request takes: the group, the resource and the verb; None for what every user may request."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    resource = f"{found['resource']}/{found['below']}" if found["below"] else found["resource"]
    verb = _VERBS.get(method) or ("get" if found["name"] else "watch" if "watch=true" in query else "list")
    return found["group"] or "", resource, verb


Right = tuple[str, str, str]


def recording(app: App, asked: set[Right]) -> Client:
    """Return a client whose requests are recorded as the rights that they take."""

    async def handle(method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Response:
        if right := wanted_right(method, path, query):
            asked.add(right)
        return await app.request(method, path, query, headers, body)

    return Client(InProcessTransport(handle))


@asynccontextmanager
async def run(manager: Manager) -> AsyncIterator[None]:
    running = asyncio.create_task(manager.run())
    try:
        await manager.ready()
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def refused(asked: set[Right], needed: Rights) -> set[Right]:
    """Return what was asked for and is not in the role."""
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch"))
    return {right for right in asked if not needed.allow(*right)}


@pytest.mark.parametrize("folder", ["catset", "service-per-pod"])
async def test_everything_that_is_asked_for_is_in_the_role(folder: str) -> None:
    asked: set[Right] = set()
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:
        client, families = recording(app, asked), chosen("metacontroller")
        await install(client, families)
        hooks = Hooks([EXAMPLES / folder / "hooks.py"], log)
        await hooks.start()
        calls = HookClient(local=hooks.find)
        await apply_controllers(client, hooks.manifests)
        asked.clear()
        try:
            async with run(build_manager(client, families, WallClock(), calls)):
                await run_controllers(folder, Story(EXAMPLES / folder, app.client()))
                needed = families[0].rights(hooks.manifests)
        finally:
            await hooks.close()
            await calls.close()

    assert refused(asked, needed) == set()
    for group, resource in {("", "pods"), ("", "services")} & {right[:2] for right in asked}:
        for verb in ("create", "delete") if resource != "pods" or folder == "catset" else ():
            assert (group, resource, verb) in asked, f"{verb} {resource} is allowed, and never done"


@pytest.mark.parametrize("phase_class", ["", "default"], ids=["no class", "class"])
async def test_everything_that_an_object_deployment_asks_for_is_in_the_role(phase_class: str) -> None:
    asked: set[Right] = set()
    shop = shop_of(phase_class)
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:
        client, families = recording(app, asked), chosen("objectset")
        await install(client, families)
        asked.clear()
        async with run(build_manager(client, families, WallClock(), HookClient())):
            await releases(shop, Story(EXAMPLES / "objectset", app.client()))
        needed = families[0].rights([shop])

    assert refused(asked, needed) == set()
    contained = {("", "configmaps"), ("", "services"), ("apps", "deployments"), ("apps", "statefulsets")}
    own = {("package-operator.run", "objectsets")}
    own |= {("package-operator.run", "objectsetphases")} if phase_class else set()
    assert {(*kind, verb) for kind in contained | own for verb in ("create", "patch", "delete")} <= asked


def shop_of(phase_class: str) -> Made:
    """Return the example, with a class for its phases."""
    shop: Made = yaml.safe_load((EXAMPLES / "objectset" / "shop.yaml").read_text())
    shop["metadata"]["namespace"] = "default"
    for phase in shop["spec"]["template"]["spec"]["phases"] if phase_class else ():
        phase["class"] = phase_class
    return shop


async def releases(shop: Made, story: Story) -> None:
    """Release an application that works, and another one, and take all of it away, with its history."""
    ref = meta.ref(shop)
    await story.client.apply(shop, manager="test", force=True)
    await story.until(ref, lambda obj: has_rolled_out(obj, 1))
    text = json.dumps(shop).replace("shop-1", "shop-2")
    await story.client.apply(json.loads(text), manager="test", force=True)
    await story.until(ref, lambda obj: has_rolled_out(obj, 2))
    first = story.at("Deployment", "shop-1", api_version="apps/v1")
    await story.until_gone(first)
    await story.edit(ref, {"spec": {"revisionHistoryLimit": 0}})
    await story.until(ref, lambda obj: len((obj or {})["status"]["controllerOf"]) == 1)
    await story.client.delete(ref)
    await story.until_gone(story.at("StatefulSet", "database", api_version="apps/v1"))


def has_rolled_out(obj: Made | None, number: int) -> bool:
    status = (obj or {}).get("status") or {}
    progressing = conditions.find(conditions.of(obj or {}), "Progressing")
    return progressing is not None and (status.get("revision"), progressing.get("reason")) == (number, "Idle")


async def run_controllers(folder: str, story: Story) -> None:
    """Run the part of a story in which its controllers do everything they ever do."""
    if folder == "service-per-pod":
        await story.apply("nginx.yaml")
        await story.until_names("Service", ["nginx-0", "nginx-1"])
        nginx = story.at("StatefulSet", "nginx", api_version="apps/v1")
        await story.edit(nginx, {"metadata": {"annotations": {"service-per-pod-label": None}}})
        await story.until(nginx, lambda obj: obj is not None and not meta.finalizers(obj))
        return
    await story.apply("kinds.yaml", "web.yaml")
    web = story.parent("CatSet", "web")
    await story.until_status(web, ready=3)
    await story.edit(web, {"spec": {"template": {"spec": {"containers": [container("nginx:2")]}}}})
    await story.until(story.at("Pod", "web-2"), lambda pod: image(pod) == "nginx:2" and is_ready(pod))
    await story.client.delete(web)
    await story.until_gone(web)
