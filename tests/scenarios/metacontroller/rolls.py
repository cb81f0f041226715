"""A parent whose children roll: parts of a kind of the story's own, which are well when the story says so."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from lamina.errors import Conflict, NotFound
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from tests.scenarios.hook import Said
from tests.scenarios.metacontroller.stage import API, Stage
from tests.scenarios.metacontroller.witness import Seen, Witness

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
REVISIONS = (API, "ControllerRevision")


class Roll:
    """One parent, `a`, with parts of the image its template names."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.kind = (f"{stage.group}/v1", "Part")

    async def given(
        self,
        *names: str,
        method: str = "RollingRecreate",
        checks: Obj | None = READY,
        paths: Sequence[str] = ("spec.template",),
        rolling: Obj | None = None,
        **controller: Any,
    ) -> None:
        """Have the kinds, the controller and the parent there, with parts of image `one`."""
        await self.stage.given_kind("Part")
        await self.given_controller(method=method, checks=checks, paths=paths, rolling=rolling, **controller)
        await self.given_parent(*names)

    async def given_parent(self, *names: str) -> Made:
        return await self.stage.given_parent(spec={"parts": list(names), "template": {"image": "one"}})

    async def given_controller(
        self,
        *,
        method: str = "RollingRecreate",
        checks: Obj | None = READY,
        paths: Sequence[str] = ("spec.template",),
        rolling: Obj | None = None,
        **controller: Any,
    ) -> None:
        self.stage.hook.answer = self.answer
        strategy: Made = {"method": method}
        strategy |= {"statusChecks": checks} if checks else {}
        strategy |= {"rollingUpdate": rolling} if rolling else {}
        parts = {"apiVersion": self.kind[0], "resource": "parts", "updateStrategy": strategy}
        parent = {
            "apiVersion": f"{self.stage.group}/v1",
            "resource": "things",
            "revisionHistory": {"fieldPaths": list(paths)},
        }
        spec = {"parentResource": parent, "childResources": [parts], **controller}
        await self.stage.given_composite("roll", **spec)

    def answer(self, said: Said) -> Said:
        """What the hook wants: the parts that the parent names, in its order, of the image it names."""
        return {"children": self.wanted(said["parent"]), "status": {"parts": len(said["children"]["Part." + self.kind[0]])}}  # fmt: skip

    def wanted(self, parent: Obj) -> list[Made]:
        spec = parent["spec"]
        return [
            {
                "apiVersion": self.kind[0],
                "kind": "Part",
                "metadata": {"name": name, "labels": {"app": "x"}},
                "spec": {"image": spec["template"]["image"], **spec.get("extra", {})},
            }
            for name in spec["parts"]
        ]

    # ── what users do ──

    async def want(self, **spec: Any) -> None:
        await self.stage.client.patch(self.stage.parent(), {"spec": spec})

    async def turn_to(self, image: str) -> None:
        await self.want(template={"image": image})

    async def heal(self, *names: str, status: str = "True") -> None:
        """Have parts become ready, or all of them."""
        for part in await self.parts():
            said = conditions.find((part.get("status") or {}).get("conditions") or (), "Ready")
            if (not names or meta.name(part) in names) and (said is None or said["status"] != status):
                ready = {"conditions": [{"type": "Ready", "status": status}]}
                with suppress(NotFound, Conflict):
                    await self.stage.client.patch(meta.ref(part), {"status": ready}, subresource="status")

    @asynccontextmanager
    async def healing(self) -> AsyncIterator[None]:
        """Have every part become ready soon after it comes, until the end of the block."""

        async def heal() -> None:
            while True:
                await self.heal()
                await asyncio.sleep(0.02)

        task = asyncio.create_task(heal())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # ── what is seen ──

    async def parts(self) -> Sequence[Made]:
        return await self.stage.listed("Part", self.kind[0])

    def part(self, name: str) -> Ref:
        return self.stage.at("Part", name, self.kind[0])

    async def images(self) -> dict[str, str]:
        return {meta.name(one): one["spec"]["image"] for one in await self.parts()}

    async def until_images(self, **images: str) -> None:
        await self.stage.until_listed(
            "Part",
            lambda those: {meta.name(one): one["spec"]["image"] for one in those} == images,
            self.kind[0],
        )

    async def until_all(self, image: str, count: int) -> None:
        """Wait until all parts are of an image and their parent says so."""
        await self.stage.until_listed(
            "Part", lambda those: [one["spec"]["image"] for one in those] == [image] * count, self.kind[0]
        )
        await self.until_updated("OnLatestRevision")

    async def until_updated(self, reason: str, containing: str = "") -> Made:
        """Wait until the parent's condition gives this reason, for what its spec says now."""
        found = await self.stage.until(
            self.stage.parent(),
            lambda obj: (
                obj is not None
                and (said := updated(obj)) is not None
                and said["reason"] == reason
                and containing in said["message"]
                and obj["status"].get("observedGeneration") == meta.generation(obj)
            ),
        )
        assert found is not None
        said = updated(found)
        assert said is not None
        return said

    async def until_waiting(self, name: str) -> Made:
        """Wait until all processes wait for a part that exists and is not ready."""
        return await self.until_updated("RolloutWaiting", f"child Part {name} failed")

    async def revisions(self) -> Sequence[Made]:
        return await self.stage.listed("ControllerRevision", API)

    async def until_revisions(self, *images: str) -> None:
        """Wait until there are revisions of exactly these images."""
        await self.stage.until_listed(
            "ControllerRevision",
            lambda those: sorted(map(image_of, those)) == sorted(images),
            API,
        )

    async def claims(self) -> dict[str, list[str]]:
        """Return which parts are said to be on which image."""
        return {image_of(one): sorted(claimed_by(one)) for one in await self.revisions()}


async def settled(roll: Roll, *names: str, **settings: Any) -> None:
    """Have the parts there and ready, all of image `one`."""
    await roll.given(*names, **settings)
    await roll.until_images(**dict.fromkeys(names, "one"))
    await roll.heal()
    await roll.until_updated("OnLatestRevision")


def updated(parent: Obj) -> Made | None:
    """Return what a parent says of its roll."""
    found = conditions.find((parent.get("status") or {}).get("conditions") or (), "Updated")
    return dict(found) if found is not None else None


def image_of(revision: Obj) -> str:
    return str(revision["parentPatch"]["spec"]["template"]["image"])


def claimed_by(revision: Obj) -> Iterator[str]:
    for group in revision.get("children") or ():
        yield from group["names"]


def disruptions(seen: Witness, start: Iterable[Obj]) -> dict[str, int]:
    """Return how often each part was taken away or rewritten, since it was as at the start."""
    specs: dict[str, Any] = {meta.name(one): one.get("spec") for one in start if one["kind"] == "Part"}
    counts = dict.fromkeys(specs, 0)
    for one in seen.of("Part"):
        changed = one.what == "MODIFIED" and specs.get(one.name, one.obj["spec"]) != one.obj["spec"]
        counts[one.name] = counts.get(one.name, 0) + (one.what == "DELETED" or changed)
        specs[one.name] = one.obj["spec"]
    return counts


def check_promises(history: Iterable[Seen], start: Mapping[str, Made], newest: str) -> None:
    """
    Go through everything that happened and see that the promises of a roll were kept.

    `start` is what was there before, parts and revisions by uid; `newest` is the
    image that is rolled to.
    """
    there: dict[str, Made] = dict(start)
    for seen in history:
        before = dict(there)
        if seen.what == "DELETED":
            there.pop(meta.uid(seen.obj), None)
        else:
            there[meta.uid(seen.obj)] = seen.obj
        if seen.obj["kind"] == "Part" and seen.what != "DELETED":
            old = before.get(meta.uid(seen.obj))
            if old is None or old["spec"] != seen.obj["spec"]:
                _said_before_done(seen, before.values())
        if seen.obj["kind"] == "ControllerRevision" and image_of(seen.obj) == newest:
            _one_at_a_time(seen, before.values(), newest)


def _said_before_done(seen: Seen, before: Collection[Made]) -> None:
    """I2: no part is written to a state that a stored revision does not claim it for."""
    image = seen.obj["spec"]["image"]
    revisions = [one for one in before if one["kind"] == "ControllerRevision" and image_of(one) == image]
    assert any(seen.name in claimed_by(one) for one in revisions), (
        f"{seen.name} became {image} before any revision said so"
    )


def _one_at_a_time(seen: Seen, before: Collection[Made], newest: str) -> None:
    """I3 and I4: one part moves at a time, and none while one that moved before is missing, stale or unwell."""
    parts = {meta.name(one): one for one in before if one["kind"] == "Part"}
    old = next((one for one in before if meta.uid(one) == meta.uid(seen.obj)), None)
    had = set(claimed_by(old)) if old is not None else set()
    gained = set(claimed_by(seen.obj)) - had
    paid = {name for name in gained if name in parts and parts[name]["spec"]["image"] != newest}
    assert len(paid) <= 1, f"{sorted(paid)} moved together"
    if not paid:
        return
    for name in had:
        part = parts.get(name)
        assert part is not None, f"{sorted(paid)} moved while {name} was missing"
        assert part["spec"]["image"] == newest, f"{sorted(paid)} moved while {name} was not updated"
        well = conditions.is_true((part.get("status") or {}).get("conditions") or (), "Ready")
        assert well, f"{sorted(paid)} moved while {name} was not ready"
