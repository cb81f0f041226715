"""The examples about revisions that are live side by side."""

from collections.abc import Callable

import yaml

from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from tests.scenarios.objectset.record import Change, Record
from tests.scenarios.story import Story, telling

API = "package-operator.run/v1alpha1"
SHOP = Ref(API, "ObjectDeployment", "default", "shop")
BAD = (("shop-1", "shop-2"), ("nginx:1", "nginx:bad"))


async def test_objectset_steps_over_a_release_that_fails_and_keeps_its_database() -> None:
    async with telling("objectset", hooks=False) as story:
        records = Record(story.client, [("apps/v1", "StatefulSet"), ("v1", "Service")], is_of_the_shop)
        async with records as record:
            await story.apply("shop.yaml")
            await story.until(SHOP, has_finished(1))
            database = await story.until_there(at("apps/v1", "StatefulSet", "database"))

            await release(story, *BAD)
            await story.until(SHOP, is_late)
            failing = await story.until_there(at("apps/v1", "StatefulSet", "database"))
            assert revision(failing) == "2" and meta.uid(failing) == meta.uid(database)
            assert revision(await story.until_there(at("v1", "ConfigMap", "settings"))) == "2"
            assert await traffic(story) == "shop-1"

            await release(story, ("shop-1", "shop-3"))
            await story.until(SHOP, has_finished(3))
            for name in ("shop-1", "shop-2"):
                await story.until_gone(at("apps/v1", "Deployment", name))
            assert await traffic(story) == "shop-3"
            await record.caught_up()

        assert [one.what for one in record.of("database")].count("ADDED") == 1
        assert {meta.uid(one.obj) for one in record.of("database")} == {meta.uid(database)}
        assert all(has_one_controller(one) and one.what != "DELETED" for one in record.changes)
        sent = [one.obj["spec"]["selector"]["release"] for one in record.of("shop")]
        assert list(dict.fromkeys(sent)) == ["shop-1", "shop-3"]


def at(api_version: str, kind: str, name: str) -> Ref:
    return Ref(api_version, kind, "default", name)


def is_of_the_shop(obj: Obj) -> bool:
    return meta.namespace(obj) == "default" and meta.name(obj) in ("database", "shop")


async def release(story: Story, *texts: tuple[str, str]) -> None:
    """Apply the manifest with other texts in it, as the commands of the page do."""
    text = (story.folder / "shop.yaml").read_text()
    for old, new in texts:
        text = text.replace(old, new)
    manifest = meta.with_metadata(yaml.safe_load(text), namespace="default")
    await story.client.apply(manifest, manager="test", force=True)


def progressing(obj: Made | None) -> Made:
    found = conditions.find((obj or {}).get("status", {}).get("conditions", ()), "Progressing")
    return dict(found) if found is not None else {}


def has_finished(number: int) -> Callable[[Made | None], bool]:
    def is_so(obj: Made | None) -> bool:
        found = (obj or {}).get("status", {}).get("revision")
        return bool(found == number and progressing(obj).get("reason") == "Idle")

    return is_so


def is_late(obj: Made | None) -> bool:
    """Say whether the second revision has failed in time, and the first one still serves."""
    available = conditions.find((obj or {}).get("status", {}).get("conditions", ()), "Available")
    return (
        progressing(obj).get("reason") == "ProgressDeadlineExceeded"
        and available is not None
        and available["status"] == "True"
        and available["message"].startswith("Previous revision")
    )


def revision(obj: Obj) -> str:
    return meta.annotations(obj)["package-operator.run/revision"]


async def traffic(story: Story) -> str:
    """Return the release that the Service sends traffic to."""
    service = await story.until_there(at("v1", "Service", "shop"))
    return str(service["spec"]["selector"]["release"])


def has_one_controller(change: Change) -> bool:
    return len([one for one in meta.owner_refs(change.obj) if one.get("controller")]) == 1
