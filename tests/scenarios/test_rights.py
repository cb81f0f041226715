"""The role that `lamina rbac` prints allows what the controllers do, and they do what it allows."""

import asyncio
import re
from collections.abc import Mapping

import pytest

from lamina.app import App
from lamina.client.client import Client
from lamina.client.inprocess import InProcessTransport
from lamina.clock import WallClock
from lamina.families.every import chosen
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.product import declare, install, product
from lamina.runtime.calls import Calls
from lamina.server.request import Answer
from lamina.settings import Settings
from tests.scenarios.story import EXAMPLES, Story
from tests.scenarios.test_examples import container, image, is_ready

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+)?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<below>[^/]+))?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def wanted_right(method: str, path: str, query: str) -> tuple[str, str, str] | None:
    """Return what a request takes: the group, the resource and the verb; None for what anybody may ask."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    resource = f"{found['resource']}/{found['below']}" if found["below"] else found["resource"]
    verb = _VERBS.get(method) or ("get" if found["name"] else "watch" if "watch=true" in query else "list")
    return found["group"] or "", resource, verb


@pytest.mark.parametrize("folder", ["catset", "service-per-pod"])
async def test_everything_that_is_asked_for_is_in_the_role(folder: str) -> None:
    asked: set[tuple[str, str, str]] = set()
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:

        async def handle(
            method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
        ) -> Answer:
            if right := wanted_right(method, path, query):
                asked.add(right)
            return await app.request(method, path, query, headers, body)

        client, families = Client(InProcessTransport(handle)), chosen("metacontroller")
        await install(client, families)
        hooks = Hooks([EXAMPLES / folder / "hooks.py"], log)
        await hooks.start()
        calls = Calls(local=hooks.find)
        await declare(client, hooks.manifests)
        asked.clear()
        manager = product(client, families, WallClock(), calls)
        running = asyncio.create_task(manager.run())
        try:
            await manager.ready()
            await told(folder, Story(EXAMPLES / folder, app.client()))
            needed = families[0].rights(hooks.manifests)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await hooks.close()
            await calls.close()

    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch"))
    assert {right for right in asked if not needed.allow(*right)} == set()
    for group, resource in {("", "pods"), ("", "services")} & {right[:2] for right in asked}:
        for verb in ("create", "delete") if resource != "pods" or folder == "catset" else ():
            assert (group, resource, verb) in asked, f"{verb} {resource} is allowed, and never done"


async def told(folder: str, story: Story) -> None:
    """Tell the part of a story that has everything done that its controllers ever do."""
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
