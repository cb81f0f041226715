"""The commands of `kro` against the running controllers: what they print, and what comes of them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from lamina.cli.kro import main
from lamina.client.client import Client
from lamina.objects import meta
from lamina.objects.types import Made
from tests.bed.scenarios import check
from tests.scenarios.resourcegraph.stage import Stage, config_map, is_on, message, node
from tests.scenarios.resourcegraph.versions import publish, stamp, until_counted

pytestmark = pytest.mark.asyncio(loop_scope="session")

Kro = Callable[..., Awaitable[tuple[int, str, str]]]
KIND = "Application"
INSTANCE = "application/my-app"


def _run(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest_asyncio.fixture(loop_scope="session")
async def kro(served: tuple[Client, Path], stage: Stage, capsys: pytest.CaptureFixture[str]) -> Kro:
    """Return what runs a command, as its exit code and what it prints to both outputs."""

    async def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        flags = ["-n", stage.namespace, "--kubeconfig", str(served[1])]
        code = await asyncio.to_thread(_run, [*words, *flags])
        out, err = capsys.readouterr()
        return code, out, "".join(line for line in err.splitlines(keepends=True) if not _is_logged(line))

    return run


def _is_logged(line: str) -> bool:
    """Say whether a line is of the log of the controllers, which run in the same process."""
    return line.startswith("timestamp=")


def _deployed(version: int) -> Made:
    return node("config", config_map("${schema.spec.name}-cm", image="${schema.spec.image}", n=str(version)))


async def _given_history(stage: Stage) -> None:
    """Have three revisions, an instance that follows them with three inputs, and one that is pinned to the second."""
    fields: Made = {"name": "application", "kind": KIND, "spec": {"name": "string", "image": "string"}}
    await stage.given_definition(_deployed(1), **fields)
    await publish(stage, 2, _deployed(2), **fields)
    await stage.given_instance("my-app", kind=KIND, image="one")
    await stage.given_instance("other", kind=KIND, image="one", annotations={"kro.run/rgd-revision": "2"})
    await publish(stage, 3, _deployed(3), **fields)
    await stage.until_instance("my-app", is_on(revision=3, input_revision=2), kind=KIND)
    await stage.edit_spec("my-app", kind=KIND, image="two")
    await stage.until_instance("my-app", is_on(input_revision=3), kind=KIND)
    await until_counted(stage, (3, 1), (2, 1), (1, 0), name="application")
    await stage.settled()


def _created(obj: Made) -> str:
    return str(meta.metadata(obj)["creationTimestamp"]).replace("T", " ").removesuffix("Z")


@check("RG-108")
async def test_revisions_are_listed_and_compared(stage: Stage, kro: Kro) -> None:
    async with stage.running():
        await _given_history(stage)
        target = f"rgd/{stage.named('application')}"
        first, second, third = map(_created, await stage.revisions("application"))
        listed = (
            "REVISION  CREATED              INSTANCES  STATUS\n"
            f"3         {third}  1          Current\n"
            f"2         {second}  1          Active\n"
            f"1         {first}  0          Prunable\n"
        )
        assert await kro("revisions", "list", target) == (0, listed, "")
        assert await kro("revisions", "list", *target.split("/")) == (0, listed, "")

        first, second, third = map(_created, await stage.input_revisions("my-app", KIND))
        listed = (
            "INPUT-REV  RGD-REV  CREATED              STATUS\n"
            f"3          3        {third}  Completed\n"
            f"2          3        {second}  Superseded\n"
            f"1          2        {first}  Superseded\n"
        )
        assert await kro("revisions", "list", INSTANCE) == (0, listed, "")

        header = "--- revision {}\n+++ revision {}\n"
        difference = f'{header.format(2, 3)}@@ spec.resources.0.template.data @@\n- n: "2"\n+ n: "3"\n'
        assert await kro("revisions", "diff", target, "--from=2", "--to=3") == (0, difference, "")
        assert await kro("revisions", "diff", target, "--from=3", "--to=3") == (0, header.format(3, 3), "")

        for unknown in ("rgd/nothing", "application/nothing", "nothing/my-app"):
            code, out, err = await kro("revisions", "list", unknown)
            assert (code, out, err.startswith("Error: ")) == (1, "", True), err


@check("RG-108")
async def test_rollbacks_wait_for_their_results(stage: Stage, kro: Kro) -> None:
    async with stage.running():
        await _given_history(stage)
        name = stage.named("application")
        assert await kro("rollback", f"rgd/{name}", "--to-revision=2") == (
            0,
            "Rolling back to revision 2...\n"
            "Created revision 4 (content from revision 2)\n"
            "1 instance will reconcile to new revision\n",
            "",
        )
        await stage.until_instance("my-app", is_on(revision=4, input_revision=4), kind=KIND)
        assert (await stage.until_object("my-app-cm"))["data"] == {"image": "two", "n": "2"}

        assert await kro("rollback", INSTANCE, "--to-input-revision=1") == (
            0,
            "Rolling back to input revision 1...\nInstance will reconcile to RGD revision 2\n",
            "",
        )
        found = await stage.until_instance("my-app", is_on(revision=2, input_revision=5), kind=KIND)
        assert (found["spec"]["image"], stamp(found)) == ("one", "2")

        code, _, err = await kro("rollback", f"rgd/{name}", "--to-revision=99")
        said = message(await stage.definition_now("application"), "RollbackSucceeded")
        assert (code, err.startswith("Error: "), said in err) == (1, True, True), err
        assert "there is no revision 99" in said
        code, _, err = await kro("rollback", INSTANCE, "--to-input-revision=99")
        said = message(await stage.instance_now("my-app", KIND), "RollbackSucceeded")
        assert (code, err.startswith("Error: "), said in err) == (1, True, True), err
        assert await stage.numbers("application") == [1, 2, 3, 4]


@check("RG-108")
async def test_an_instance_is_pinned_and_unpinned(stage: Stage, kro: Kro) -> None:
    async with stage.running():
        await _given_history(stage)
        assert await kro("pin", INSTANCE, "--rgd-revision=2") == (
            0,
            "Instance pinned to RGD revision 2\nWill not receive updates from newer RGD revisions\n",
            "",
        )
        await stage.until_instance("my-app", is_on(revision=2), kind=KIND)
        assert (await stage.until_object("my-app-cm"))["data"] == {"image": "two", "n": "2"}
        assert await kro("unpin", INSTANCE) == (
            0,
            "Instance unpinned, will use latest RGD revision\n",
            "",
        )
        found = await stage.until_instance("my-app", is_on(revision=3), kind=KIND)
        assert "kro.run/rgd-revision" not in meta.annotations(found)

        code, _, err = await kro("pin", INSTANCE, "--rgd-revision=99")
        assert (code, err.startswith("Error: "), "99" in err) == (1, True, True), err
