"""Every example does what its README says you should see."""

import asyncio
import base64
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.testing.waiting import eventually
from tests.bed import node
from tests.scenarios.story import EXAMPLES, SECONDS, Story, serving, telling

RBAC = "rbac.authorization.k8s.io/v1"


def image(pod: Obj | None) -> str:
    return str(pod["spec"]["containers"][0]["image"]) if pod is not None else ""


def is_ready(pod: Obj | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def test_catset_makes_rolls_and_takes_away_its_pods_in_order() -> None:
    async with telling("catset") as story:
        await story.apply("kinds.yaml", "web.yaml")
        web = story.parent("CatSet", "web")
        await story.until_status(web, ready=3)
        pods = [await story.until_there(story.at("Pod", f"web-{place}")) for place in range(3)]
        order = [int(meta.resource_version(pod)) for pod in pods]
        made = sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        assert [meta.name(pod) for pod in made] == ["web-0", "web-1", "web-2"]
        assert len(set(order)) == 3

        await story.edit(web, {"spec": {"template": {"spec": {"containers": [container("nginx:2")]}}}})
        for place in range(3):
            await story.until(
                story.at("Pod", f"web-{place}"), lambda pod: image(pod) == "nginx:2" and is_ready(pod)
            )

        await story.edit(web, {"spec": {"template": {"spec": {"containers": [container("nginx:bad")]}}}})
        await story.until(story.at("Pod", "web-0"), lambda pod: image(pod) == "nginx:bad")
        waiting = await story.until(web, lambda obj: updated(obj).get("reason") == "RolloutWaiting")
        assert "web-0" in updated(waiting)["message"]
        assert image(await story.get(story.at("Pod", "web-1"))) == "nginx:2"

        await story.edit(web, {"spec": {"template": {"spec": {"containers": [container("nginx:2")]}}}})
        await story.until(story.at("Pod", "web-0"), lambda pod: image(pod) == "nginx:2" and is_ready(pod))
        await story.edit(web, {"spec": {"replicas": 1}})
        await story.until_names("Pod", ["web-0"])
        await story.until_names("PersistentVolumeClaim", ["web-0", "web-1", "web-2"])
        await story.client.delete(web)
        await story.until_gone(web)
        await story.until_names("Pod", [])


def container(image: str) -> Made:
    return {"name": "web", "image": image}


def updated(obj: Obj | None) -> Made:
    conditions = (obj or {}).get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "Updated"), {})


async def test_bluegreen_switches_once_the_other_colour_is_ready() -> None:
    async with telling("bluegreen") as story:
        await story.apply("kinds.yaml", "shop.yaml")
        shop = story.parent("BlueGreenDeployment", "shop")
        await story.until_status(shop, active="blue", ready=2)

        await story.edit(
            shop, {"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "nginx:2"}]}}}}
        )

        await story.until_status(shop, active="green", ready=2)
        service = await story.until_there(story.at("Service", "shop"))
        assert service["spec"]["selector"] == {"app": "shop", "colour": "green"}
        blue = story.at("ReplicaSet", "shop-blue", api_version="apps/v1")
        await story.until(blue, lambda obj: obj is not None and obj["spec"]["replicas"] == 0)

        await story.edit(
            shop, {"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "nginx:bad"}]}}}}
        )
        await story.until(blue, lambda obj: obj is not None and obj["spec"]["replicas"] == 2)
        await story.until_status(shop, active="green")


async def test_configmappropagation_copies_into_the_namespaces_on_its_list() -> None:
    async with telling("configmappropagation") as story:
        await story.apply("kinds.yaml", "settings.yaml")
        await said(story, "one", {"colour": "red"})
        await said(story, "two", {"colour": "red"})

        await story.edit(story.at("ConfigMap", "settings"), {"data": {"colour": "blue"}})
        await said(story, "one", {"colour": "blue"})
        await said(story, "two", {"colour": "blue"})

        await story.edit(
            story.parent("ConfigMapPropagation", "settings", ""), {"spec": {"targetNamespaces": ["one"]}}
        )
        await story.until_gone(story.at("ConfigMap", "settings", "two"))


async def said(story: Story, namespace: str, data: Made, name: str = "settings") -> None:
    await story.until(
        story.at("ConfigMap", name, namespace), lambda obj: obj is not None and obj.get("data") == data
    )


async def test_globalconfigmap_is_in_every_namespace_also_in_those_that_come_later() -> None:
    async with telling("globalconfigmap", hooks=False) as story, webhook("globalconfigmap") as port:
        await story.apply("kinds.yaml", "controller.yaml", "authority.yaml", instead=(":8080", f":{port}"))
        await said(story, "kube-system", {"ca.crt": "trust me"}, "authority")

        await story.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})

        await said(story, "later", {"ca.crt": "trust me"}, "authority")


def webhook(folder: str) -> Any:
    return serving(str(EXAMPLES / folder / "hook.py"), "PORT")


async def test_secretpropagation_follows_the_label() -> None:
    async with telling("secretpropagation") as story:
        await story.apply("kinds.yaml", "pull.yaml")
        copy = await story.until_there(story.at("Secret", "pull", "team-a"))
        assert base64.b64decode(copy["data"]["password"]) == b"secret"
        other = story.at("Secret", "pull", "team-b")
        assert await story.get(other) is None

        await story.edit(story.at("Namespace", "team-b", ""), {"metadata": {"labels": {"pulls": "yes"}}})
        await story.until_there(other)
        await story.edit(story.at("Namespace", "team-b", ""), {"metadata": {"labels": {"pulls": None}}})
        await story.until_gone(other)


async def test_service_per_pod_comes_and_goes_with_the_annotation() -> None:
    async with telling("service-per-pod") as story:
        await story.apply("nginx.yaml")
        await story.until_names("Service", ["nginx-0", "nginx-1"])
        await story.until(
            story.at("Pod", "nginx-0"),
            lambda pod: pod is not None and meta.labels(pod).get("pod-name") == "nginx-0",
        )

        nginx = story.at("StatefulSet", "nginx", api_version="apps/v1")
        await story.edit(nginx, {"spec": {"replicas": 3}})
        await story.until_names("Service", ["nginx-0", "nginx-1", "nginx-2"])
        await story.edit(nginx, {"metadata": {"annotations": {"service-per-pod-label": None}}})

        await story.until_names("Service", [])
        await story.until(nginx, lambda obj: obj is not None and not meta.finalizers(obj))


async def test_indexedjob_runs_every_number_once() -> None:
    async with telling("indexedjob") as story:
        await story.apply("kinds.yaml", "count.yaml")

        await story.until_status(story.parent("IndexedJob", "count"), succeeded=4)

        pods = (await story.client.list(("v1", "Pod"), "default")).items
        numbers = [one["spec"]["containers"][0]["env"][-1]["value"] for one in pods]
        assert sorted(numbers) == ["0", "1", "2", "3"]


async def test_daemonjob_ends_when_it_has_run_on_every_node() -> None:
    async with telling("daemonjob", nodes=3) as story:
        await story.apply("kinds.yaml", "hello.yaml")

        done = [{"type": "Complete", "status": "True"}]
        await story.until_status(story.parent("DaemonJob", "hello"), succeeded=3, conditions=done)

        await story.until_names("DaemonSet", [], "apps/v1")
        await story.until_names("Pod", [])
        await story.until_status(story.parent("DaemonJob", "hello"), succeeded=3, conditions=done)


async def test_clusteredparent_gives_a_role_until_it_is_deleted() -> None:
    async with telling("clusteredparent") as story:
        await story.apply("reader.yaml")
        binding = story.at("RoleBinding", "pod-reader", api_version=RBAC)
        first = await story.until_there(binding)

        await story.client.delete(binding)
        await story.until(binding, lambda obj: obj is not None and meta.uid(obj) != meta.uid(first))
        await story.client.delete(story.at("ClusterRole", "pod-reader", "", RBAC))
        await story.until_gone(binding)


async def test_crd_roles_makes_a_role_for_a_kind_that_asks() -> None:
    async with telling("crd-roles") as story:
        await story.apply("gadgets.yaml")
        role = story.at("ClusterRole", "gadgets.ctl.example.com-reader", "", RBAC)
        assert (await story.until_there(role))["rules"][0]["resources"] == ["gadgets"]

        await story.client.delete(
            story.at("CustomResourceDefinition", "gadgets.ctl.example.com", "", "apiextensions.k8s.io/v1")
        )
        await story.until_gone(role)


async def test_configmap_list_sees_another_namespace() -> None:
    async with telling("configmap-list-v2") as story:
        await story.apply("kinds.yaml", "catalogue.yaml")
        await said(story, "default", {"names": "library/atlas"}, "books")

        await story.edit(
            story.at("ConfigMap", "diary", "library"), {"metadata": {"labels": {"listed": "yes"}}}
        )
        await said(story, "default", {"names": "library/atlas\nlibrary/diary"}, "books")


async def test_namespace_list_sees_namespaces() -> None:
    async with telling("namespace-list-v2") as story:
        await story.apply("kinds.yaml", "places.yaml")
        await said(story, "default", {"names": "harbour"}, "places")

        await story.client.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "quay", "labels": {"place": "yes"}},
            }
        )
        await said(story, "default", {"names": "harbour\nquay"}, "places")


async def test_update_strategy_leaves_one_alone_and_makes_the_other_anew() -> None:
    async with telling("update-strategy", hooks=False) as story, webhook("update-strategy") as port:
        await story.apply("kinds.yaml", "controller.yaml", "hello.yaml", instead=(":8080", f":{port}"))
        secret, settings = story.at("Secret", "hello"), story.at("ConfigMap", "hello")
        first, kept = await story.until_there(secret), await story.until_there(settings)
        await story.edit(secret, {"metadata": {"labels": {"seen": "yes"}}})

        await story.edit(story.parent("Greeting", "hello"), {"spec": {"text": "good night"}})

        second = await story.until(secret, lambda obj: says(obj) == "good night")
        assert meta.uid(second) != meta.uid(first)
        still = await story.until_there(settings)
        assert (meta.uid(still), says(still)) == (meta.uid(kept), "good morning")
        await story.client.delete(settings)
        await story.until(settings, lambda obj: says(obj) == "good night")


def says(obj: Obj | None) -> str:
    return meta.annotations(obj).get("text", "") if obj is not None else ""


async def test_service_per_pod_v2_names_services_with_their_namespace() -> None:
    async with telling("service-per-pod-v2") as story:
        await story.apply("nginx.yaml")
        nginx = story.at("StatefulSet", "nginx", api_version="apps/v1")
        listed = "default/nginx-0,default/nginx-1"
        await story.until(
            nginx, lambda obj: obj is not None and meta.annotations(obj).get("services") == listed
        )

        await story.edit(nginx, {"metadata": {"annotations": {"service-per-pod-port": None}}})

        await story.until_names("Service", [])
        await story.until(
            nginx,
            lambda obj: (
                obj is not None and "services" not in meta.annotations(obj) and not meta.finalizers(obj)
            ),
        )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the certificates are made with openssl")
async def test_webhook_auth_lets_in_who_has_certificate_and_token(tmp_path: Path) -> None:
    script = EXAMPLES / "webhook-auth" / "certificates.sh"
    await asyncio.to_thread(subprocess.run, [script, tmp_path], check=True, capture_output=True)
    files = {"ca.crt": "ca.crt", "tls.crt": "client.crt", "tls.key": "client.key", "token": "token"}
    data = {key: base64.b64encode((tmp_path / file).read_bytes()).decode() for key, file in files.items()}
    hook = serving(str(EXAMPLES / "webhook-auth" / "hook.py"), "PORT", str(tmp_path))
    async with telling("webhook-auth", hooks=False) as story, hook as port:
        await story.client.create(
            {"apiVersion": "v1", "kind": "Secret", "data": data,
             "metadata": {"name": "hook-client", "namespace": "default"}}
        )  # fmt: skip
        await story.apply("kinds.yaml", "controller.yaml", "hello.yaml", instead=(":8443", f":{port}"))
        await said(story, "default", {"text": "who goes there"}, "hello")

        await story.edit(story.at("Secret", "hook-client"), {"data": {"token": "d3Jvbmc="}})
        await story.edit(story.parent("GuardedGreeting", "hello"), {"spec": {"text": "nobody"}})

        async def messages() -> list[str]:
            events = (await story.client.list(("v1", "Event"), "default")).items
            return [one["message"] for one in events if one["reason"] == "SyncError"]

        await eventually(
            messages,
            lambda found: any("unsupported status code: 401" in one for one in found),
            seconds=SECONDS,
        )
        assert (await story.until_there(story.at("ConfigMap", "hello")))["data"] == {"text": "who goes there"}


async def test_nodejs_greets_from_a_server_that_compares_the_whole_content_type() -> None:
    program = await asyncio.to_thread(node.command, "node")
    hook = serving(str(EXAMPLES / "nodejs" / "server.js"), "PORT", by=program)
    async with telling("nodejs", hooks=False) as story, hook as port:
        await story.apply("kinds.yaml", "controller.yaml", "hello.yaml", instead=(":8080", f":{port}"))
        await said(story, "default", {"text": "good evening"}, "hello")

        hello = story.parent("NodeGreeting", "hello")
        await story.until_status(hello, greeted="good evening")
        await story.edit(hello, {"spec": {"text": "good night"}})

        await said(story, "default", {"text": "good night"}, "hello")


# ── the pages themselves ──

FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_an_example_has_is_used_on_its_page_and_the_other_way_round(folder: str) -> None:
    page = (EXAMPLES / folder / "README.md").read_text()
    named = set(re.findall(rf"examples/{folder}/([\w.-]+)", page))
    there = {path.name for path in (EXAMPLES / folder).iterdir() if path.is_file()} - {"README.md"}

    assert named == there
    assert "You should see" in page


def test_the_page_of_examples_lists_them_all() -> None:
    listed = re.findall(r"\]\(([\w-]+)\)", (EXAMPLES / "README.md").read_text())

    assert sorted(listed) == FOLDERS


def test_every_example_with_a_hook_is_told() -> None:
    stories = "".join(file.read_text() for file in Path(__file__).parent.glob("test_examples*.py"))
    told = set(re.findall(r'telling\(\s*"([\w-]+)"', stories))

    assert told == {*FOLDERS}
