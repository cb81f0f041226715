"""One controller, one worker, several clusters."""

from lamina.client.client import Client
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.testing.waiting import eventually
from tests.runtime.cluster import at, config_map, reader, wait_deleted
from tests.runtime.fleet import (
    SETTINGS,
    SPREAD,
    SPREADING,
    Line,
    clusters,
    is_marked,
    marking,
    running,
    says,
)


async def test_one_worker_keeps_five_clusters_alike_while_one_leaves_and_one_comes() -> None:
    async with clusters("home", "a", "b", "c", "d", "e", "late") as reach:
        home, late = reach.pop("home"), reach.pop("late")
        await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})

        async with running(home, reach, SPREADING) as manager:
            for client in reach.values():
                await eventually(reader(client, at("settings")), says("red"))

            await reach["c"].delete(at("settings"))
            await eventually(reader(reach["c"], at("settings")), says("red"))

            manager.unbind("b")
            manager.bind("late", late)
            await eventually(reader(late, at("settings")), says("red"))

            await home.patch(at("settings"), {"data": {"colour": "blue"}})
            for name in ("a", "c", "d", "e"):
                await eventually(reader(reach[name], at("settings")), says("blue"))
            await eventually(reader(late, at("settings")), says("blue"))
            assert says("red")(await reach["b"].get(at("settings")))

            manager.bind("b", reach["b"])
            await eventually(reader(reach["b"], at("settings")), says("blue"))

            await home.delete(at("settings"))
            for client in (*reach.values(), late):
                await wait_deleted(client, at("settings"))
            assert manager.names == ("spreading",)


async def test_a_cluster_that_says_nothing_holds_up_no_other_until_it_is_back() -> None:
    async with clusters("home", "a") as reach, EmbeddedCluster(SETTINGS) as silent:
        home, line = reach.pop("home"), Line(silent)
        line.cut()

        async with running(home, reach, SPREADING) as manager:
            manager.bind("silent", Client(line))
            await line.tried.wait()
            await home.create(config_map("settings", labels=SPREAD) | {"data": {"colour": "red"}})
            await eventually(reader(reach["a"], at("settings")), says("red"))

            line.mend()
            await eventually(reader(silent.client(), at("settings")), says("red"))


# ── a controller that works on each object where it is ──


async def test_objects_of_one_name_on_several_clusters_are_several_objects() -> None:
    async with clusters("home", "a", "b") as reach:
        home = reach.pop("home")
        async with running(home, reach, marking()):
            for client in (home, reach["b"]):
                await client.create(config_map("x", labels={"wants": "mark"}))
            await reach["a"].create(config_map("x"))

            for client in (home, reach["b"]):
                await eventually(reader(client, at("x")), is_marked)
            assert not is_marked(await reach["a"].get(at("x")))


async def test_a_silent_cluster_takes_no_worker_from_the_others() -> None:
    async with clusters("home", "a") as reach, EmbeddedCluster(SETTINGS) as falling:
        home, line = reach.pop("home"), Line(falling)
        others = {**reach, "falling": Client(line)}
        direct = falling.client()

        async with running(home, others, marking(at_once=1)):
            # Its watches are open and deliver events; a write gets no answer.
            line.cut()
            for name in ("x", "y", "z"):
                await direct.create(config_map(name, labels={"wants": "mark"}))
            await line.tried.wait()

            for client in (home, reach["a"]):
                await client.create(config_map("x", labels={"wants": "mark"}))
                await eventually(reader(client, at("x")), is_marked)
            assert not is_marked(await direct.get(at("x")))

            line.mend()
            for name in ("x", "y", "z"):
                await eventually(reader(direct, at(name)), is_marked)
