"""The examples about many clusters."""

from lamina.objects import conditions, meta
from lamina.objects.types import Made, Ref
from tests.scenarios.story import Story, telling

SET = "work.open-cluster-management.io/v1alpha1"
WORKS = ("work.open-cluster-management.io/v1", "ManifestWork")


async def test_fleet_gets_a_change_and_goes_back_from_a_broken_one() -> None:
    clusters = [f"cluster{number}" for number in range(1, 6)]
    async with telling("fleet", hooks=False, clusters=clusters) as story:
        await story.apply("placement.yaml", "web.yaml")
        web = Ref(SET, "ManifestWorkReplicaSet", "default", "web")
        await story.until(web, lambda obj: obj is not None and reason(obj) == "NewManifestWorkAvailable")
        assert await images(story) == dict.fromkeys(clusters, "nginx:1")

        await story.apply("web.yaml", instead=("nginx:1", "nginx:bad"))
        await story.until(web, lambda obj: obj is not None and reason(obj) == "RolloutAborted")

        assert await images(story) == dict.fromkeys(clusters, "nginx:1")
        events = (await story.client.list(("v1", "Event"), "default")).items
        (late,) = [one["message"] for one in events if one["reason"] == "ProgressDeadlineExceeded"]
        assert late.startswith("2 of 5 clusters not healthy within 15s, 0 tolerated: cluster1 (")


def reason(obj: Made) -> str:
    found = conditions.find(obj.get("status", {}).get("conditions", ()), "Progressing")
    return found.get("reason", "") if found is not None else ""


async def images(story: Story) -> dict[str, str]:
    """Return what each cluster was sent."""
    return {
        meta.namespace(work): work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"][
            "containers"
        ][0]["image"]
        for work in (await story.client.list(WORKS)).items
    }
