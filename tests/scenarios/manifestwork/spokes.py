"""
Agents that say how their works do, in place of real ones: whole clusters, as the hub sees them.

An agent goes by what is in its work: `done` succeeds, `bad` fails, anything else
takes for ever; a story may say otherwise for one cluster. One that is away says
nothing. They apply nothing anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Plan, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import World, whole
from lamina.families.manifestwork.labels import WORK, WORK_VERSION
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref


@dataclass
class Spokes:
    """The agents of one story's clusters, which are those whose names end alike."""

    suffix: str
    away: set[str] = field(default_factory=set)
    """Clusters whose agents say nothing."""
    phases: dict[str, str] = field(default_factory=dict)
    """How works do in a cluster, whatever is in them."""
    said: dict[str, dict[str, str]] = field(default_factory=dict)
    """What an agent says word for word: the status of each condition."""

    def controller(self) -> Controller[Obj]:
        return Controller(
            name="spokes",
            watches=(Watch(selects=only(*WORK), api_version=WORK_VERSION, enqueue=itself, keep=whole),),
            gather=self._gather,
            plan=self._plan,
            manager="work-agent",
            at_once=16,
        )

    def _gather(self, world: World, ref: Ref) -> Obj | None:
        cluster = ref.namespace.removesuffix(self.suffix)
        if cluster == ref.namespace or cluster in self.away:
            return None
        return world.get(ref)

    def _plan(self, work: Obj, answers: Answers, now: datetime) -> Plan:
        if meta.is_deleting(work):
            return Plan()
        status: Made = {**(work.get("status") or {}), "conditions": self._judged(work, now)}
        patch = set_status(work, status)
        return one_stage("say so", [patch] if patch is not None else [], because="it is as it is")

    def _judged(self, work: Obj, now: datetime) -> list[Any]:
        cluster = meta.namespace(work).removesuffix(self.suffix)
        spec = work.get("spec") or {}
        first = ((spec.get("workload") or {}).get("manifests") or [{}])[0]
        phase = self.phases.get(cluster) or (first.get("data") or {}).get("phase") or "done"
        holds = {"Applied": "True", "Available": "True"}
        if spec.get("manifestConfigs"):
            holds |= {"Progressing": str(phase != "done"), "Degraded": str(phase == "bad")}
        holds |= self.said.get(cluster, {})
        said: Sequence[Any] = (work.get("status") or {}).get("conditions") or ()
        for name, status in holds.items():
            said = conditions.with_condition(
                said, name, status, now=now, reason="Said", message=phase, generation=meta.generation(work)
            )
        return [one for one in said if one["type"] in holds]
