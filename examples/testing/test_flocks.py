"""A hook, tested on a complete cluster with a clock that the test winds."""

from pathlib import Path

import pytest

from lamina.testing import Cluster
from lamina.testing.builders import custom, definition

FLOCK = custom(
    "example.com/v1",
    "Flock",
    "geese",
    spec={"size": 3, "image": "goose:1", "selector": {"matchLabels": {"flock": "geese"}}},
)
pytestmark = pytest.mark.lamina(families="metacontroller", hooks=[Path(__file__).with_name("flocks.py")])


async def images(cluster: Cluster) -> list[str]:
    return [one["spec"]["containers"][0]["image"] for one in await cluster.list("pods", "default")]


async def test_a_new_image_goes_out_one_by_one(cluster: Cluster) -> None:
    await cluster.given(definition("Flock"), FLOCK)
    await cluster.pass_time(minutes=1)

    await cluster.edit(FLOCK, spec={"image": "goose:2"})
    await cluster.pass_time(minutes=1)

    assert await images(cluster) == ["goose:2"] * 3


async def test_an_image_that_cannot_be_pulled_stops_at_the_first(cluster: Cluster) -> None:
    await cluster.given(definition("Flock"), FLOCK)
    await cluster.pass_time(minutes=1)

    await cluster.edit(FLOCK, spec={"image": "goose:bad"})
    await cluster.pass_time(minutes=11)

    assert sorted(await images(cluster)) == ["goose:1", "goose:1", "goose:bad"]
    updated = await cluster.condition(FLOCK, "Updated")
    assert updated is not None
    assert updated.get("reason") == "RolloutStalled"
