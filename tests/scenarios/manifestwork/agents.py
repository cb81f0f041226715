"""
Clusters with real agents, for stories about what happens on them.

Each is an embedded cluster of its own. Its agent is the real one, and reaches the hub
as the story does; a story may stop it and start it again, with nothing remembered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.model.agents import AgentOptions
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.families.manifestwork.agent.controller import agent
from lamina.families.manifestwork.agent.labels import HUB, hub_hash
from lamina.families.manifestwork.crds.bundle import spoke_definitions
from lamina.families.manifestwork.labels import WORK_VERSION
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.settings import Settings
from lamina.testing.waiting import eventually, idle
from tests.bed.fixtures import chosen_server
from tests.scenarios.parity import Parity

TIMEOUT = 60.0 if chosen_server() == "real" else 20.0
ADDRESS = "https://hub.test"

DEFAULTS = AgentOptions()


@dataclass
class Spoke:
    """One cluster and its agent."""

    name: str
    """What the hub calls it."""
    client: Client
    hub: Client
    clock: Clock
    options: AgentOptions = AgentOptions()
    way: Client | None = None
    """How the agent reaches the hub, where that is to be another way than the story's."""
    running: tuple[Manager, asyncio.Task[None]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.parity = Parity({"": self.client, HUB: self.hub})

    async def start(self) -> None:
        controllers = agent(self.name, hub_hash(ADDRESS), options=self.options)
        others = {HUB: self.way or self.hub}
        manager = Manager(self.client, controllers, self.clock, others=others, meters=self.parity.recorder)
        task = asyncio.create_task(manager.run())
        self.running = manager, task
        await manager.ready()

    async def stop(self) -> None:
        """Die, in the middle of whatever is going on."""
        if self.running is not None:
            self.running[1].cancel()
            with suppress(asyncio.CancelledError):
                await self.running[1]
            self.running = None
        await self.parity.check()

    # ── what users do ──

    async def want(self, *manifests: Any, name: str = "w", labels: Obj | None = None, **spec: Any) -> Made:
        """Have a work ask for these manifests, and nothing else."""
        filled = {"workload": {"manifests": list(manifests)}, **spec}
        metadata: Made = {"name": name, "namespace": self.name, **({"labels": labels} if labels else {})}
        work: Made = {
            "apiVersion": WORK_VERSION,
            "kind": "ManifestWork",
            "metadata": metadata,
            "spec": filled,
        }

        async def write() -> Made | None:
            with suppress(AlreadyExists):
                return await self.hub.create(work)
            with suppress(Conflict):
                old = await self.hub.get(self.work_ref(name))
                return await self.hub.update({**old, "spec": filled})
            return None

        written = await eventually(write, seconds=TIMEOUT)
        assert written is not None
        return written

    def work_ref(self, name: str = "w") -> Ref:
        return Ref(WORK_VERSION, "ManifestWork", self.name, name)

    def record_ref(self, name: str = "w") -> Ref:
        return Ref(WORK_VERSION, "AppliedManifestWork", "", f"{hub_hash(ADDRESS)}-{name}")

    # ── what is seen ──

    async def there(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def config_map(self, name: str = "cm1", namespace: str = "default") -> Made | None:
        return await self.there(Ref("v1", "ConfigMap", namespace, name))

    async def data(self, name: str = "cm1", namespace: str = "default") -> Mapping[str, str] | None:
        found = await self.config_map(name, namespace)
        return found.get("data") or {} if found is not None else None

    async def work(self, name: str = "w") -> "Report":
        return Report(await self.hub.get(self.work_ref(name)))

    async def until(self, is_so: Callable[["Report"], bool], name: str = "w") -> "Report":
        """Wait until the status of a work meets a condition."""
        return await eventually(
            lambda: self.work(name),
            is_so,
            seconds=TIMEOUT,
            describe=lambda report: report.obj.get("status"),
        )

    async def until_applied(self, name: str = "w") -> "Report":
        """Wait until everything that a work asks for is there and settled, and that is said of this very spec."""
        return await self.until(lambda now: now.holds("Applied") and now.holds("Available"), name)

    async def until_gone(self, name: str = "w") -> None:
        async def is_gone() -> bool:
            with suppress(NotFound):
                await self.hub.get(self.work_ref(name))
                return False
            return True

        await eventually(is_gone, seconds=TIMEOUT)

    async def settled(self) -> None:
        """Wait until the agent has had nothing to do for a while."""
        assert self.running is not None
        await idle(self.running[0], rounds=8, interval=0.03, seconds=TIMEOUT)


@dataclass
class Report:
    """What the agent says of a work."""

    obj: Made

    @property
    def entries(self) -> Sequence[Made]:
        found: Sequence[Made] = ((self.obj.get("status") or {}).get("resourceStatus") or {}).get(
            "manifests"
        ) or ()
        return found

    def said(self, name: str) -> tuple[str, str]:
        return _said((self.obj.get("status") or {}).get("conditions") or (), name)

    def holds(self, name: str) -> bool:
        """Say whether a condition is True of the work as it is now."""
        return self._at_last(name, "True")

    def denies(self, name: str) -> bool:
        return self._at_last(name, "False")

    def _at_last(self, name: str, status: str) -> bool:
        found = conditions.find((self.obj.get("status") or {}).get("conditions") or (), name)
        return (
            found is not None
            and found["status"] == status
            and found.get("observedGeneration") == meta.generation(self.obj)
        )

    def of(self, place: int, name: str) -> tuple[str, str]:
        """Return what is said of one manifest."""
        return _said(self.entries[place]["conditions"], name) if place < len(self.entries) else ("", "")

    def message_of(self, place: int, name: str) -> str:
        found = conditions.find(self.entries[place]["conditions"], name)
        return found.get("message", "") if found is not None else ""

    def values(self, place: int = 0) -> Mapping[str, Any]:
        told = (self.entries[place].get("statusFeedback") or {}).get("values") or ()
        return {
            one["name"]: next(value for key, value in one["fieldValue"].items() if key != "type")
            for one in told
        }


def _said(said: Sequence[Any], name: str) -> tuple[str, str]:
    found = conditions.find(said, name)
    return (found["status"], found.get("reason", "")) if found is not None else ("", "")


@asynccontextmanager
async def spoke(
    name: str,
    hub: Client,
    clock: Clock,
    *,
    simulate: str = "off",
    options: AgentOptions = DEFAULTS,
    way: Client | None = None,
) -> AsyncIterator[Spoke]:
    """Run a cluster and its agent until the end of the block."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            EmbeddedCluster(Settings(simulate=simulate, families="none"), name=name)
        )
        client = cluster.client()
        for definition in spoke_definitions():
            await client.create(definition)
        await client.kind(WORK_VERSION, "AppliedManifestWork")
        made = Spoke(name, client, hub, clock, options, way)
        stack.push_async_callback(made.stop)
        await made.start()
        yield made
