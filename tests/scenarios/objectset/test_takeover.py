"""What upstream left on a cluster: its deployments, sets and objects are taken over as they are."""

import pytest

from lamina.families.objectset.labels import (
    API_VERSION,
    BOXCUTTER,
    CACHED,
    HASH,
    LEGACY_MANAGERS,
    MANAGED_BY,
    MANAGER,
    METRICS,
    OWNING_DEPLOYMENT,
    PHASE_CLASS,
    REVISION,
    TEARDOWN,
)
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    CONFIG_MAP,
    Stage,
    condition,
    controlled,
    controller,
    is_archived,
    is_available,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

SINCE = "2025-01-01T00:00:00Z"
THEIR_HASH = "6b8f9c7d54"
SETS = {1: "web-5c4f8d9b6d", 2: f"web-{THEIR_HASH}"}
"""The sets of upstream, by their numbers."""


def reported(obj: Obj, *found: tuple[str, str, str]) -> list[Made]:
    return [
        {
            "type": name,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": SINCE,
            "observedGeneration": meta.generation(obj),
        }
        for name, status, reason in found
    ]


def listed(stage: Stage, kind: str, name: str, group: str = "") -> Made:
    return {"kind": kind, "group": group, "name": name, "namespace": stage.namespace, "version": ""}


def defaulted(phase: Obj) -> Made:
    """Return a phase as upstream's schema stores it: with a collision protection for every object."""
    return {**phase, "objects": [{"collisionProtection": "Prevent", **one} for one in phase["objects"]]}


async def report(stage: Stage, obj: Obj, status: Obj) -> None:
    await stage.client.patch(meta.ref(obj), {"status": status}, subresource="status", manager=MANAGER)


class Upstream:
    """A cluster that upstream ran: a deployment whose revision 1 is archived and whose revision 2 serves."""

    def __init__(self, stage: Stage, phase: Made, *, class_: str = "") -> None:
        self.stage, self.phase, self.class_ = stage, phase, class_
        self.deployment: Made = {}
        self.sets: dict[int, Made] = {}

    async def left(self) -> None:
        stage = self.stage
        made = stage.deployment("web", self.phase, template={"successDelaySeconds": 0})
        template = made["spec"]["template"]
        template["spec"]["phases"] = [defaulted(self.phase)]
        self.deployment = await stage.client.create(made, manager="kubectl-client-side-apply")
        for number in SETS:
            self.sets[number] = await self._set(number, template["spec"])
        await self._objects()
        await report(
            stage,
            self.deployment,
            {
                "conditions": reported(
                    self.deployment, ("Available", "True", "Available"), ("Progressing", "False", "Idle")
                ),
                "revision": 2,
                "templateHash": THEIR_HASH,
                "controllerOf": [
                    listed(stage, "ObjectSet", name, "package-operator.run") for name in SETS.values()
                ],
            },
        )

    async def _set(self, number: int, spec: Obj) -> Made:
        labels = {**self.deployment["spec"]["template"]["metadata"]["labels"], OWNING_DEPLOYMENT: "web"}
        is_latest = number == 2
        own = spec if is_latest else {**spec, "successDelaySeconds": 5}
        made = await self.stage.client.create(
            {
                "apiVersion": API_VERSION,
                "kind": "ObjectSet",
                "metadata": {
                    "name": SETS[number],
                    "namespace": self.stage.namespace,
                    "labels": labels,
                    "annotations": {HASH: SETS[number].removeprefix("web-")},
                    "finalizers": [TEARDOWN, METRICS] if is_latest else [METRICS],
                    "ownerReferences": [meta.owner_ref(self.deployment, controller=True, blocks=True)],
                },
                "spec": {
                    **own,
                    "revision": number,
                    "lifecycleState": "Active" if is_latest else "Archived",
                    **({"previous": [{"name": SETS[1]}]} if is_latest else {}),
                },
            },
            manager=MANAGER,
        )
        found = (("Available", "True", "Available"),) if is_latest else (("Archived", "True", "Archived"),)
        names = [one["object"]["metadata"]["name"] for one in self.phase["objects"]]
        status: Made = {
            "revision": number,
            "conditions": reported(made, *found, ("Succeeded", "True", "RolloutSuccess")),
        }
        if is_latest:
            status["controllerOf"] = [listed(self.stage, "ConfigMap", name) for name in names]
        await report(self.stage, made, status)
        return made

    async def _objects(self) -> None:
        owner = await self._phase() if self.class_ else self.sets[2]
        for one in self.phase["objects"]:
            manifest = one["object"]
            applied = {
                **manifest,
                "metadata": {
                    **manifest["metadata"],
                    "namespace": self.stage.namespace,
                    "labels": {CACHED: "True", **({MANAGED_BY: BOXCUTTER} if self.class_ else {})},
                    "annotations": {**manifest["metadata"].get("annotations", {}), REVISION: "2"},
                    "ownerReferences": [meta.owner_ref(owner, controller=True, blocks=True)],
                },
            }
            await self._write(applied)

    async def _phase(self) -> Made:
        """Create the ObjectSetPhase of revision 2, with which the objects are."""
        owner = self.sets[2]
        made = await self.stage.client.create(
            {
                "apiVersion": API_VERSION,
                "kind": "ObjectSetPhase",
                "metadata": {
                    "name": f"{meta.name(owner)}-p1",
                    "namespace": self.stage.namespace,
                    "labels": {**meta.labels(owner), PHASE_CLASS: self.class_},
                    "annotations": dict(meta.annotations(owner)),
                    "finalizers": [TEARDOWN],
                    "ownerReferences": [meta.owner_ref(owner, controller=True, blocks=True)],
                },
                "spec": {
                    "revision": 2,
                    "previous": owner["spec"]["previous"],
                    "availabilityProbes": owner["spec"]["availabilityProbes"],
                    "objects": owner["spec"]["phases"][0]["objects"],
                },
            },
            manager=MANAGER,
        )
        names = [one["object"]["metadata"]["name"] for one in self.phase["objects"]]
        await report(
            self.stage,
            made,
            {
                "conditions": reported(made, ("Available", "True", "Available")),
                "controllerOf": [listed(self.stage, "ConfigMap", name) for name in names],
            },
        )
        return made

    async def _write(self, applied: Obj) -> None:
        """Write one object as a release of upstream did, which its name tells."""
        client, name = self.stage.client, meta.name(applied)
        if not name.startswith("old"):
            await client.apply(applied, manager=MANAGER, force=True)
            return
        for legacy in LEGACY_MANAGERS:
            extra = {"data": {**applied["data"], legacy: "dropped since"}}
            if legacy == LEGACY_MANAGERS[0]:
                await client.create({**applied, **extra}, manager=legacy)
            else:
                await client.patch(meta.ref(applied), extra, manager=legacy)


def left_phase(stage: Stage, *names: str, **fields: object) -> Made:
    return stage.phase("p1", *(stage.config_map(name) for name in names), **fields)


def managers(live: Obj) -> list[tuple[str, str]]:
    return [(one["manager"], one["operation"]) for one in live["metadata"]["managedFields"]]


@check("OS-54")
@pytest.mark.parametrize("class_", ["", "default"], ids=["in-process", "class-default"])
async def test_what_upstream_applied_is_taken_over_without_a_write(stage: Stage, class_: str) -> None:
    fields = {"class": class_} if class_ else {}
    left = Upstream(stage, left_phase(stage, "cm-a", "cm-b", **fields), class_=class_)
    await left.left()
    before = {name: await stage.live(name) for name in ("cm-a", "cm-b")}
    owner = controller(before["cm-a"])
    async with stage.running():
        await stage.settled()
        stage.pass_time(3600)
        await stage.settled()
        assert stage.journal.written("ConfigMap") == []
        assert {name: await stage.live(name) for name in before} == before
        found = await stage.revisions("web")
        assert [meta.name(one) for one in found] == list(SETS.values())
        assert is_archived(found[0])
        assert controlled(found[1]) == ["cm-a", "cm-b"]
        web = await stage.deployment_named("web")
        assert is_available(web)
        assert condition(web, "Progressing") == ("False", "Idle")
        assert web["status"]["revision"] == 2

        await stage.edit(stage.object_ref("cm-a"), {"data": {"key": "drift"}})
        await stage.until_object("cm-a", lambda now: now["data"] == {"key": "value"})
        await stage.client.delete(stage.object_ref("cm-b"))
        again = await stage.until_object("cm-b", lambda now: meta.uid(now) != meta.uid(before["cm-b"]))
        assert controller(again) == owner


@check("OS-54")
async def test_what_earlier_releases_updated_becomes_what_is_applied(stage: Stage) -> None:
    await Upstream(stage, left_phase(stage, "old-cm")).left()
    before = await stage.live("old-cm")
    async with stage.running():
        await stage.until_object("old-cm", lambda now: managers(now) == [(MANAGER, "Apply")])
        await stage.settled()

        after = await stage.live("old-cm")
        assert meta.uid(after) == meta.uid(before)
        assert after["data"] == {"key": "value"}, "what the manifest does not have any more is removed"
        assert owners(after) == {SETS[2]: True}
        assert len(await stage.revisions("web")) == 2


@check("OS-54")
async def test_the_next_revision_takes_the_objects_over_from_that_of_upstream(stage: Stage) -> None:
    await Upstream(stage, left_phase(stage, "cm-a", "cm-b")).left()
    uid = meta.uid(await stage.live("cm-a"))
    async with stage.running(), stage.recording(CONFIG_MAP) as record:
        await stage.settled()
        await stage.want("web", stage.phase("p1", stage.config_map("cm-a", key="v3")))
        found = await stage.until_rolled_out("web", 3)
        await record.caught_up()

        after = await stage.live("cm-a")
        assert meta.uid(after) == uid
        assert (after["data"], revision_of(after)) == ({"key": "v3"}, "3")
        assert owners(after) == {meta.name(found[2]): True}
        assert [one.name for one in record.changes if one.what == "DELETED"] == ["cm-b"]
        assert not meta.finalizers(found[1]), "upstream's finalizer for metrics is removed, too"


@check("OS-54")
async def test_a_set_of_upstream_with_its_number_in_the_status_is_taken_over(stage: Stage) -> None:
    manifest = stage.object_set("v5", defaulted(left_phase(stage, "cm-a")))
    manifest["metadata"]["finalizers"] = [TEARDOWN]
    made = await stage.client.create(manifest, manager=MANAGER)
    status = {
        "revision": 5,
        "conditions": reported(
            made, ("Available", "True", "Available"), ("Succeeded", "True", "RolloutSuccess")
        ),
        "controllerOf": [listed(stage, "ConfigMap", "cm-a")],
    }
    await report(stage, made, status)
    live = stage.config_map("cm-a")
    live["metadata"] |= {
        "namespace": stage.namespace,
        "labels": {CACHED: "True"},
        "annotations": {**live["metadata"]["annotations"], REVISION: "5"},
        "ownerReferences": [meta.owner_ref(made, controller=True, blocks=True)],
    }
    before = await stage.client.apply(live, manager=MANAGER, force=True)
    async with stage.running():
        await stage.settled()
        await stage.until_set("v5")

        assert await stage.live("cm-a") == before
        await stage.edit(stage.object_ref("cm-a"), {"data": {"key": "drift"}})
        await stage.until_object("cm-a", lambda now: now["data"] == {"key": "value"})
