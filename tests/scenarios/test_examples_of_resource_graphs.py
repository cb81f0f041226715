"""The examples about graphs of resources."""

import asyncio
from collections.abc import Callable

from lamina.families.resourcegraph.labels import ROLLBACK
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.testing.waiting import eventually
from tests.scenarios.story import SECONDS, Story, telling

API = "kro.run/v1alpha1"
SITE = Ref(API, "ResourceGraphDefinition", "", "site")
SITES = ("alpha", "beta", "gamma", "omega")


async def test_resourcegraph_goes_out_in_waves_stops_at_a_bad_site_and_is_rolled_back() -> None:
    async with telling("resourcegraph", hooks=False, families="resourcegraph") as story:
        await story.apply("site.yaml", "sites.yaml")
        for name in SITES:
            await story.until(Ref(API, "Site", "default", name), is_ready)
        assert await images(story) == dict.fromkeys(SITES, "nginx:1")

        order: list[str] = []
        watching = asyncio.create_task(note_order(story, order))
        await story.apply("site.yaml", instead=("nginx:1", "nginx:2"))
        await story.until(SITE, has_propagated(2))
        await watching
        assert order[:2] == ["alpha", "beta"] and sorted(order) == list(SITES)
        before = await pods(story)

        await story.apply("site.yaml", instead=("nginx:1", "nginx:bad"))
        await story.until(SITE, waits_for("default/alpha", "awaiting resource readiness"))
        assert await images(story) == dict.fromkeys(SITES, "nginx:2") | {"alpha": "nginx:bad"}

        await story.edit(SITE, {"metadata": {"annotations": {ROLLBACK: "2"}}})
        await story.until(SITE, has_propagated(4))
        assert await images(story) == dict.fromkeys(SITES, "nginx:2")
        assert await pods(story) >= {one for one in before if not one[0].startswith("alpha")}
        listed = (await story.until_there(SITE))["status"]["revisionHistory"]
        assert [one["revision"] for one in listed] == [4, 3, 2, 1]


def is_ready(obj: Made | None) -> bool:
    return conditions.is_true(conditions.of(obj or {}), "Ready")


def has_propagated(number: int) -> Callable[[Made | None], bool]:
    def is_so(obj: Made | None) -> bool:
        found = propagated(obj or {})
        return found.get("status") == "True" and (obj or {})["status"].get("currentRevision") == number

    return is_so


def waits_for(*parts: str) -> Callable[[Made | None], bool]:
    def is_so(obj: Made | None) -> bool:
        found = propagated(obj or {})
        return found.get("status") == "False" and all(part in found.get("message", "") for part in parts)

    return is_so


def propagated(obj: Obj) -> Made:
    found = conditions.find(conditions.of(obj), "Propagated")
    return (
        dict(found) if found is not None and found.get("observedGeneration") == meta.generation(obj) else {}
    )


async def images(story: Story) -> dict[str, str]:
    """Return the image of each site."""
    listing = await story.client.list(("apps/v1", "Deployment"), "default")
    return {
        meta.name(one): one["spec"]["template"]["spec"]["containers"][0]["image"] for one in listing.items
    }


async def pods(story: Story) -> set[tuple[str, str]]:
    """Return the names and uids of the pods with the second image."""
    listing = await story.client.list(("v1", "Pod"), "default")
    return {
        (meta.name(one), meta.uid(one))
        for one in listing.items
        if one["spec"]["containers"][0]["image"] == "nginx:2"
    }


async def note_order(story: Story, order: list[str]) -> None:
    """Note in which order sites get their new image."""

    async def all_have_it() -> bool:
        new = {name for name, image in (await images(story)).items() if image == "nginx:2"}
        order.extend(sorted(new - set(order)))
        return len(order) == len(SITES)

    await eventually(all_have_it, seconds=SECONDS)
